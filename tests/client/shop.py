"""A server for the client's tests: in process, over stdio (`python shop.py`), over HTTP."""

import asyncio
import datetime
import enum
import uuid

from pydantic import BaseModel

from twofold import Context, MCPServer, ToolError


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Order(BaseModel):
    number: uuid.UUID
    placed: datetime.datetime
    takes: datetime.timedelta
    label: bytes
    colour: Colour


ORDER = Order(
    number=uuid.UUID(int=7),
    placed=datetime.datetime(2026, 7, 28, 12, tzinfo=datetime.UTC),
    takes=datetime.timedelta(days=2),
    label=b"\x00\xff",
    colour=Colour.GREEN,
)


def make_shop() -> MCPServer:
    """Make a server of its own state: how often something was cancelled."""
    mcp = MCPServer("shop", version="1.2.3", instructions="Buy.")
    cancelled = 0

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    def order() -> Order:
        return ORDER

    @mcp.tool()
    def say(text: str) -> str:
        return text

    @mcp.tool(structured_output=False)
    def plain() -> str:
        return "only words"

    @mcp.tool()
    def nothing() -> None:
        """`null` for a value."""

    @mcp.tool()
    def refuse() -> int:
        raise ToolError("not today")

    @mcp.tool()
    async def count(to: int, ctx: Context) -> int:
        for number in range(1, to + 1):
            await ctx.report_progress(number, to, f"number {number}")
        return to

    @mcp.tool()
    async def talk(ctx: Context) -> str:
        await ctx.info({"a": 1}, logger="shop")
        await ctx.error("oh")
        return "said"

    @mcp.tool()
    async def sleep(seconds: float) -> str:
        nonlocal cancelled
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return "slept"

    @mcp.tool()
    def cancelled_calls() -> int:
        return cancelled

    @mcp.tool()
    def grow(name: str) -> None:
        """Add a tool while serving."""

        def fresh() -> str:
            return name

        mcp.add_tool(fresh, name=name)

    return mcp


if __name__ == "__main__":
    make_shop().run()
