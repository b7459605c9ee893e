"""A server that tests burden beyond what it can hold: `python burdened_server.py stdio`, or `http` for a free port."""

import asyncio
import sys
import threading

from twofold import Limits, MCPServer

mcp = MCPServer("burdened")
released = asyncio.Event()
released_threads = threading.Event()
blocked: list[int] = []


@mcp.tool()
async def wait(value: int) -> int:
    """Give the value back, once `release` was called."""
    await released.wait()
    return value


@mcp.tool()
async def nap(value: int) -> int:
    """Give the value back after a moment."""
    await asyncio.sleep(0.2)
    return value


@mcp.tool()
async def quick(value: int) -> int:
    """Give the value back."""
    return value


@mcp.tool()
def block(value: int) -> int:
    """Give the value back from a thread, once `release` was called."""
    blocked.append(value)
    released_threads.wait(60)
    return value


@mcp.tool()
async def count_blocked(value: int) -> int:
    """Give the value back once so many calls of `block` have come to hold a thread."""
    while len(blocked) < value:
        await asyncio.sleep(0.01)
    return value


@mcp.tool()
def compute(value: int) -> int:
    """Give the value back from a thread."""
    return value


@mcp.tool()
async def stubborn(value: int) -> int:
    """Heed no cancellation."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


@mcp.tool()
async def release() -> str:
    """Let everything go on that waits."""
    released.set()
    released_threads.set()
    return "released"


if __name__ == "__main__":
    if sys.argv[1] == "http":
        mcp.run("streamable-http", port=0, limits=Limits(requests=32))
    else:
        mcp.run()
