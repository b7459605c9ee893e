"""The official client, first line: prints as JSON what it sees of the five tools. Runs with its own interpreter."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(python: str, server: str) -> None:
    seen: dict = {"calls": {}, "progress": []}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([progress, total, message])

    async with (
        stdio_client(StdioServerParameters(command=python, args=[server])) as (read, write),
        ClientSession(read, write) as session,
    ):
        opened = await session.initialize()
        seen["version"] = opened.protocolVersion
        seen["server"] = [opened.serverInfo.name, opened.serverInfo.version]
        listing = await session.list_tools()
        seen["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listing.tools]
        for name, arguments in json.load(sys.stdin).items():
            result = await session.call_tool(name, arguments, progress_callback=on_progress)
            seen["calls"][name] = {
                "text": [block.text for block in result.content],
                "structured": result.structuredContent,
                "is_error": result.isError,
            }
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
