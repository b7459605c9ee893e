"""The founding page "Structured Output and Annotations": its Python programs, and a twin of each in TypeScript.

The Thai page holds the same programs; `test_structured_output_and_annotations_th.py` says so.
"""

import pytest
from pydantic import BaseModel, Field

from tests.peer import Peer, text_of
from twofold import Header, Icon, InvalidDefinition, MCPServer, ToolAnnotations, ToolError

CATALOG = [{"name": "Travel mug", "price": 24}]


def make_catalog() -> MCPServer:
    mcp = MCPServer("catalog")
    catalog = list(CATALOG)

    class Product(BaseModel):
        name: str
        price: float = Field(description="Price in USD.")

    @mcp.tool()
    def product_details(name: str) -> Product:
        """Look up one product by its exact name."""
        for p in catalog:
            if p["name"] == name:
                return Product(**p)
        raise ToolError(f"No product named {name!r}")

    @mcp.tool(
        title="Clear the catalog",
        annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True),
    )
    def clear_catalog() -> str:
        """Remove every product from the catalog."""
        catalog.clear()
        return "Catalog cleared"

    return mcp


async def test_the_python_program_declares_its_output():
    """Declaring an output schema; a model gives an unwrapped object."""
    async with Peer(make_catalog()) as peer:
        tool = (await peer.list())["product_details"]
        assert tool["description"] == "Look up one product by its exact name" + "."
        assert tool["inputSchema"]["properties"] == {"name": {"title": "Name", "type": "string"}}
        assert tool["inputSchema"]["required"] == ["name"]
        assert tool["outputSchema"] == {
            "properties": {
                "name": {"title": "Name", "type": "string"},
                "price": {"description": "Price in USD.", "title": "Price", "type": "number"},
            },
            "required": ["name", "price"],
            "title": "Product",
            "type": "object",
        }


async def test_both_channels_hold_the_value():
    """Text is for the model, structure is for the program."""
    async with Peer(make_catalog()) as peer:
        result = await peer.call("product_details", {"name": "Travel mug"})
        assert result["resultType"] == "complete"
        assert result["structuredContent"] == {"name": "Travel mug", "price": 24}
        assert text_of(result) == '{\n  "name": "Travel mug",\n  "price": 24.0\n}'


async def test_a_product_that_is_not_there_is_told_as_the_author_says_it():
    async with Peer(make_catalog()) as peer:
        result = await peer.call("product_details", {"name": "Tent"})
        assert (result["isError"], text_of(result)) == (True, "No product named 'Tent'")


async def test_annotations_and_title_travel_under_their_wire_names():
    """Annotations: telling the host how a tool behaves."""
    async with Peer(make_catalog()) as peer:
        tool = (await peer.list())["clear_catalog"]
        assert tool["title"] == "Clear the catalog"
        assert tool["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
        assert tool["description"] == "Remove every product from the catalog."
        assert text_of(await peer.call("clear_catalog")) == "Catalog cleared"
        assert (await peer.call("product_details", {"name": "Travel mug"}))["isError"] is True


async def test_the_first_typescript_program_has_a_twin_by_hand():
    """registerTool with input and output schemas, and a handler that returns both channels itself."""
    from twofold import CallToolResult, TextContent

    mcp = MCPServer("catalog")

    def handler(arguments: dict) -> CallToolResult:
        product = next((p for p in CATALOG if p["name"] == arguments["name"]), None)
        if product is None:
            return CallToolResult(
                content=[TextContent(type="text", text=f"No product named {arguments['name']}")], isError=True
            )
        output = {"name": product["name"], "price": product["price"]}
        return CallToolResult(
            content=[TextContent(type="text", text='{"name":"Travel mug","price":24}')], structuredContent=output
        )

    input_schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    output_schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
        "required": ["name", "price"],
    }
    mcp.add_tool(
        handler,
        name="product_details",
        description="Look up one product by its exact name",
        input_schema=input_schema,
        output_schema=output_schema,
    )
    async with Peer(mcp) as peer:
        assert (await peer.list())["product_details"] == {
            "name": "product_details",
            "description": "Look up one product by its exact name",
            "inputSchema": input_schema,
            "outputSchema": output_schema,
        }
        found = await peer.call("product_details", {"name": "Travel mug"})
        assert found["content"] == [{"type": "text", "text": '{"name":"Travel mug","price":24}'}]
        assert found["structuredContent"] == {"name": "Travel mug", "price": 24}
        missing = await peer.call("product_details", {"name": "Tent"})
        assert (missing["isError"], text_of(missing)) == (True, "No product named Tent")


async def test_structure_is_required_where_a_schema_is_published():
    """When outputSchema is set, structuredContent is required and checked before it is sent."""
    from twofold import CallToolResult, TextContent

    mcp = MCPServer("catalog")
    results = {
        "absent": CallToolResult(content=[TextContent(text="x")]),
        "wrong": CallToolResult(content=[TextContent(text="x")], structured_content={"name": 5}),
    }
    output_schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    mcp.add_tool(
        lambda arguments: results[arguments["which"]],
        name="t",
        input_schema={"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]},
        output_schema=output_schema,
    )
    async with Peer(mcp) as peer:
        for which in results:
            result = await peer.call("t", {"which": which})
            assert result["isError"] is True, which
            assert text_of(result).startswith("Error executing tool t: "), which
            assert "structuredContent" not in result, which


async def test_the_second_typescript_program_has_a_twin():
    """A title, three hints, and content of the handler's own."""
    from twofold import TextContent

    mcp = MCPServer("catalog")
    catalog = list(CATALOG)

    @mcp.tool(
        title="Clear the catalog",
        description="Remove every product from the catalog",
        annotations={"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    )
    async def clear_catalog() -> list[TextContent]:
        catalog.clear()
        return [TextContent(type="text", text="Catalog cleared")]

    async with Peer(mcp) as peer:
        tool = (await peer.list())["clear_catalog"]
        assert (tool["title"], tool["description"]) == ("Clear the catalog", "Remove every product from the catalog")
        assert tool["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
        assert "outputSchema" not in tool
        assert text_of(await peer.call("clear_catalog")) == "Catalog cleared"
        assert catalog == []


async def test_an_array_may_stand_at_the_root():
    """outputSchema may be any JSON Schema 2020-12, including arrays at the root: `wrap=False`."""
    mcp = MCPServer("catalog")

    class Item(BaseModel):
        id: str

    @mcp.tool(wrap=False)
    def items() -> list[Item]:
        return [Item(id="a")]

    async with Peer(mcp) as peer:
        assert (await peer.list())["items"]["outputSchema"]["type"] == "array"
        assert (await peer.call("items"))["structuredContent"] == [{"id": "a"}]
    async with Peer(mcp, "2025-11-25") as peer:
        assert (await peer.list())["items"]["outputSchema"]["type"] == "object"
        assert (await peer.call("items"))["structuredContent"] == {"result": [{"id": "a"}]}


@pytest.mark.parametrize(
    ("src", "is_allowed"),
    [
        ("https://example.com/icon.png", True),
        ("data:image/png;base64,iVBORw0KGgo=", True),
        ("https://example.com/icon.svg", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("http://example.com/icon.png", False),
    ],
)
async def test_icons_have_two_schemes(src, is_allowed):
    """Icons: only https: and data: URIs are allowed."""
    mcp = MCPServer("catalog")
    if not is_allowed:
        with pytest.raises(InvalidDefinition):
            mcp.add_tool(lambda: "x", name="search", icons=[Icon(src=src)])
        return
    mcp.add_tool(lambda: "x", name="search", icons=[Icon(src=src, sizes=["48x48"])])
    async with Peer(mcp) as peer:
        assert (await peer.list())["search"]["icons"] == [{"src": src, "sizes": ["48x48"]}]


async def test_a_parameter_can_be_mirrored_into_a_header():
    """x-mcp-header on a primitive-typed parameter; never mark secrets with it."""
    from typing import Annotated

    mcp = MCPServer("catalog")

    @mcp.tool()
    def search(region: Annotated[str, Header("Region")], query: str) -> str:
        return query

    with pytest.raises(InvalidDefinition, match="api_key"):

        @mcp.tool()
        def leak(api_key: Annotated[str, Header("Key")]) -> str:
            return ""

    async with Peer(mcp) as peer:
        schema = (await peer.list())["search"]["inputSchema"]
        assert schema["properties"]["region"] == {"title": "Region", "type": "string", "x-mcp-header": "Region"}
