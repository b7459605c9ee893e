"""The official Python client, first line: prints as JSON what it sees of a server. Runs with its own interpreter.

Standard input holds the task: `{"command": [...]}` or `{"url": ...}`, and `calls`, arguments by tool.
"""

import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def reach(task: dict) -> AbstractAsyncContextManager:
    if "url" in task:
        return streamable_http_client(task["url"])
    command, *arguments = task["command"]
    return stdio_client(StdioServerParameters(command=command, args=arguments))


async def main(task: dict) -> None:
    seen: dict = {"calls": {}, "progress": []}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([progress, total, message])

    async with reach(task) as streams, ClientSession(streams[0], streams[1]) as session:
        opened = await session.initialize()
        seen["version"] = opened.protocolVersion
        seen["server"] = [opened.serverInfo.name, opened.serverInfo.version]
        listing = await session.list_tools()
        seen["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listing.tools]
        for name, arguments in task["calls"].items():
            result = await session.call_tool(name, arguments, progress_callback=on_progress)
            seen["calls"][name] = {
                "text": [block.text for block in result.content],
                "structured": result.structuredContent,
                "is_error": result.isError,
            }
    print(json.dumps(seen))


asyncio.run(main(json.load(sys.stdin)))
