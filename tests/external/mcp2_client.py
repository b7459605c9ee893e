"""The official Python client, second line: prints as JSON what it sees of a server. Runs with its own interpreter.

Standard input holds the task: `{"command": [...]}` or `{"url": ...}`, `mode`, and `calls`, arguments by tool.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


def reach(task: dict) -> str | StdioServerParameters:
    if "url" in task:
        return task["url"]
    command, *arguments = task["command"]
    return StdioServerParameters(command=command, args=arguments)


async def main(task: dict) -> None:
    seen: dict = {"calls": {}, "progress": []}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([progress, total, message])

    async with Client(reach(task), mode=task["mode"]) as client:
        seen["version"] = client.protocol_version
        seen["server"] = [client.server_info.name, client.server_info.version] if client.server_info else None
        listing = await client.list_tools()
        seen["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listing.tools]
        for name, arguments in task["calls"].items():
            result = await client.call_tool(name, arguments, progress_callback=on_progress)
            seen["calls"][name] = {
                "text": [block.text for block in result.content],
                "structured": result.structured_content,
                "is_error": result.is_error,
            }
    print(json.dumps(seen))


asyncio.run(main(json.load(sys.stdin)))
