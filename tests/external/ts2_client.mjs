// The official TypeScript client, second line: prints as JSON what it sees of a server.
//
// Standard input holds the task: {"command": [...]} or {"url": ...}, "mode" (legacy, auto, or a revision to
// insist on), and "calls", arguments by tool.
// Evaluated in the folder where the package is installed, so that the imports find it.

import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const task = JSON.parse(readFileSync(0, "utf8"));
const seen = { calls: {}, progress: [] };
const mode = ["legacy", "auto"].includes(task.mode) ? task.mode : { pin: task.mode };
const client = new Client({ name: "ts2", version: "0" }, { versionNegotiation: { mode } });
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command: task.command[0], args: task.command.slice(1) });

// A call's own onprogress has gone when the last notification comes in one piece with the result, so the
// notifications themselves are read; giving an onprogress makes the client ask for them.
const onprogress = () => {};
client.setNotificationHandler("notifications/progress", ({ params }) => {
  seen.progress.push([params.progress, params.total, params.message]);
});

await client.connect(transport);
const server = client.getServerVersion();
seen.version = client.getNegotiatedProtocolVersion();
seen.server = server ? [server.name, server.version] : null;
seen.tools = (await client.listTools()).tools;
for (const [name, arguments_] of Object.entries(task.calls)) {
  const result = await client.callTool({ name, arguments: arguments_ }, { onprogress });
  seen.calls[name] = {
    text: result.content.map((block) => block.text),
    structured: result.structuredContent ?? null,
    is_error: result.isError ?? false,
  };
}
if (mode === "legacy") await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
