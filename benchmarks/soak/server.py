"""The server that is soaked: `server.py stdio`, or `server.py http` for a free port. Its tools end in every way."""

import asyncio
import sys
import time

from holdings import count_holdings

from twofold import Context, Limits, MCPServer, ToolError

mcp = MCPServer("soaked")


@mcp.tool()
async def echo(value: int) -> int:
    """Give the value back."""
    return value


@mcp.tool()
def compute(value: int) -> int:
    """Give the value back from a thread."""
    return value


@mcp.tool()
async def nap(value: int, seconds: float) -> int:
    """Give the value back after a while."""
    await asyncio.sleep(seconds)
    return value


@mcp.tool()
def doze(value: int, seconds: float) -> int:
    """Give the value back from a thread after a while."""
    time.sleep(seconds)
    return value


@mcp.tool()
async def big(value: int, kilobytes: int) -> list[str]:
    """Give much back, the value first."""
    return [str(value)] + ["x" * 1024] * kilobytes


@mcp.tool()
async def tell(value: int, steps: int, ctx: Context) -> int:
    """Report progress on the way."""
    for step in range(steps):
        await ctx.report_progress(step, steps, "x" * 200)
    return value


@mcp.tool()
async def refuse(value: int) -> int:
    """Fail in words for the model."""
    raise ToolError(f"refused {value}")


@mcp.tool(expose_errors=True)
def crash(value: int) -> int:
    """Raise what nobody expects."""
    raise ValueError(f"crashed {value}")


@mcp.tool(expose_errors=True)
def leave(value: int) -> int:
    """Try to end the process."""
    sys.exit(f"left {value}")


@mcp.tool(expose_errors=True)
async def recurse(value: int) -> int:
    """Recurse until Python ends it."""
    return await recurse(value)


@mcp.tool()
async def state() -> dict[str, int]:
    """Tell what this process holds."""
    return count_holdings()


if __name__ == "__main__":
    if sys.argv[1] == "http":
        # Bounds so small that sessions nobody ends have reached theirs within the warm-up.
        limits = Limits(
            sessions=40,
            session_yielding_seconds=0.5,
            retention_seconds=1.0,
            retained_bytes=4 * 2**20,
            sweep_seconds=0.5,
        )
        mcp.run("streamable-http", port=0, limits=limits)
    else:
        mcp.run()
