// The official TypeScript client, first line: prints as JSON what it sees of a server.
//
// Standard input holds the task: {"command": [...]} or {"url": ...}, and "calls", arguments by tool.
// Evaluated in the folder where the package is installed, so that the imports find it.

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ProgressNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const task = JSON.parse(readFileSync(0, "utf8"));
const seen = { calls: {}, progress: [] };
const client = new Client({ name: "ts1", version: "0" });
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command: task.command[0], args: task.command.slice(1) });

// A call's own onprogress has gone when the last notification comes in one piece with the result, so the
// notifications themselves are read; giving an onprogress makes the client ask for them.
const onprogress = () => {};
client.setNotificationHandler(ProgressNotificationSchema, ({ params }) => {
  seen.progress.push([params.progress, params.total, params.message]);
});

// The client offers no public word on the revision it agreed to; it tells its transport.
transport.setProtocolVersion = ((tell) => (version) => {
  seen.version = version;
  tell?.call(transport, version);
})(transport.setProtocolVersion);

await client.connect(transport);
const server = client.getServerVersion();
seen.server = [server.name, server.version];
seen.tools = (await client.listTools()).tools;
for (const [name, arguments_] of Object.entries(task.calls)) {
  const result = await client.callTool({ name, arguments: arguments_ }, undefined, { onprogress });
  seen.calls[name] = {
    text: result.content.map((block) => block.text),
    structured: result.structuredContent ?? null,
    is_error: result.isError ?? false,
  };
}
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
