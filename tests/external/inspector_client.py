"""The Inspector's command line, one run a question: prints as JSON what it sees of a server.

Standard input holds the task: `{"command": [...]}` or `{"url": ...}`, `mode` (its protocol era), and `calls`,
arguments by tool. The arguments of this program start the Inspector: Node, then its launcher.
"""

import json
import os
import subprocess
import sys
import tempfile

# A result that says isError ends the command line with this status, after it has been printed.
TOOL_ERROR_STATUS = 5


def main(inspector: list[str], task: dict, *, home: str) -> None:
    target = ["--server-url", task["url"], "--transport", "http"] if "url" in task else task["command"]
    start = [*inspector, "--cli", *target, "--protocol-era", task["mode"], "--format", "json"]

    def ask(method: str, *options: str) -> tuple[int, dict]:
        command = [*start, "--method", method, *options]
        done = subprocess.run(
            command, env={**os.environ, "HOME": home}, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode not in (0, TOOL_ERROR_STATUS):
            sys.exit(f"{method}: status {done.returncode}: {done.stderr}")
        return done.returncode, json.loads(done.stdout)["result"]

    _, opened = ask("initialize")
    _, listing = ask("tools/list")
    seen: dict = {
        "version": opened["protocolVersion"],
        "server": [opened["serverInfo"]["name"], opened["serverInfo"]["version"]],
        "tools": listing["tools"],
        "calls": {},
        "progress": None,
    }
    for name, arguments in task["calls"].items():
        # It never asks for progress by itself: with a token of ours the notifications come, and it has to bear them.
        options = ["--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        status, result = ask("tools/call", *options, "--tool-metadata", "progressToken=inspected")
        seen["calls"][name] = {
            "text": [block["text"] for block in result["content"]],
            "structured": result.get("structuredContent"),
            "is_error": status == TOOL_ERROR_STATUS,
        }
    print(json.dumps(seen))


with tempfile.TemporaryDirectory() as empty:  # it reads and keeps settings in a person's home
    main(sys.argv[1:], json.load(sys.stdin), home=empty)
