"""The official client, second line: prints as JSON what it sees of the five tools. Runs with its own interpreter."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main(python: str, server: str, mode: str) -> None:
    parameters = StdioServerParameters(command=python, args=[server])
    seen: dict = {"calls": {}, "progress": []}

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([progress, total, message])

    async with Client(parameters, mode=mode) as client:
        seen["version"] = client.protocol_version
        seen["server"] = [client.server_info.name, client.server_info.version] if client.server_info else None
        listing = await client.list_tools()
        seen["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listing.tools]
        for name, arguments in json.load(sys.stdin).items():
            result = await client.call_tool(name, arguments, progress_callback=on_progress)
            seen["calls"][name] = {
                "text": [block.text for block in result.content],
                "structured": result.structured_content,
                "is_error": result.is_error,
            }
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
