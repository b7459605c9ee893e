"""The proposal on which channel is meant for whom: what it asks of servers."""

import pytest
from pydantic import BaseModel

from tests.peer import Peer, text_of
from twofold import CallToolResult, MCPServer, TextContent, ToolError


class Product(BaseModel):
    name: str
    price: float


async def test_a_tool_may_say_in_a_sentence_what_programs_get_as_data():
    """Semantic alignment: content may textualise structuredContent without listing every field."""
    mcp = MCPServer("s")

    @mcp.tool(text="{name} costs {price} dollars.")
    def details() -> Product:
        return Product(name="Mug", price=24)

    @mcp.tool(text=lambda products: f"{len(products)} products")
    def all_products() -> list[Product]:
        return [Product(name="Mug", price=24)]

    @mcp.tool(text="The answer is {result}.")
    def answer() -> int:
        return 42

    async with Peer(mcp) as peer:
        assert text_of(await peer.call("details")) == "Mug costs 24.0 dollars."
        assert (await peer.call("details"))["structuredContent"] == {"name": "Mug", "price": 24}
        assert text_of(await peer.call("all_products")) == "1 products"
        assert text_of(await peer.call("answer")) == "The answer is 42."


@pytest.mark.parametrize(
    ("text", "shown"),
    [("pretty", '{\n  "name": "Mug",\n  "price": 24.0\n}'), ("compact", '{"name":"Mug","price":24.0}')],
)
async def test_the_json_copy_is_pretty_or_compact_for_the_whole_server(text, shown):
    mcp = MCPServer("s", text=text)

    @mcp.tool()
    def details() -> Product:
        return Product(name="Mug", price=24)

    async with Peer(mcp) as peer:
        assert text_of(await peer.call("details")) == shown


async def test_structure_without_content_gets_a_text_copy():
    """For backwards compatibility, tools that return structuredContent should also return content."""
    mcp = MCPServer("s")

    @mcp.tool()
    def details() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"a": 1}, meta={"view": "x"})

    async with Peer(mcp) as peer:
        result = await peer.call("details")
        assert (text_of(result), result["structuredContent"], result["_meta"]["view"]) == (
            '{\n  "a": 1\n}',
            {"a": 1},
            "x",
        )


async def test_an_error_says_why_in_content_and_may_leave_without_structure():
    """Error results: the message in content; structuredContent may be omitted and is not judged."""
    mcp = MCPServer("s")

    @mcp.tool()
    def fails() -> Product:
        raise ToolError("out of stock")

    @mcp.tool()
    def fails_itself() -> Product:
        return CallToolResult(content=[TextContent(text="no")], structured_content={"code": 7}, is_error=True)

    @mcp.tool()
    def fails_silently() -> CallToolResult:
        return CallToolResult(content=[], is_error=True)

    async with Peer(mcp) as peer:
        told = await peer.call("fails")
        assert (told["isError"], text_of(told), "structuredContent" in told) == (True, "out of stock", False)
        own = await peer.call("fails_itself")
        assert (own["isError"], text_of(own), own["structuredContent"]) == (True, "no", {"code": 7})
        assert text_of(await peer.call("fails_silently")) != ""
