"""The server that is fuzzed: tools of every ending, small enough that thousands of calls cost little."""

import asyncio

from twofold import Context, MCPServer, ToolError


def make_server() -> MCPServer:
    """Make a server of its own for each test."""
    mcp = MCPServer("fuzzed")

    @mcp.tool()
    async def echo(text: str) -> str:
        """Give the text back."""
        return text

    @mcp.tool()
    async def add(a: int, b: int = 0) -> int:
        """Add."""
        return a + b

    @mcp.tool()
    async def fail() -> str:
        """Fail, in words for the model."""
        raise ToolError("no")

    @mcp.tool()
    async def stop() -> str:
        """Wait until it is cancelled."""
        await asyncio.Event().wait()
        return ""

    @mcp.tool()
    async def tell(ctx: Context) -> str:
        """Say something on the way."""
        await ctx.report_progress(1, 2, "half")
        await ctx.info("here")
        return "told"

    @mcp.prompt()
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello {name}"

    return mcp
