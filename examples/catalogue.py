"""A product catalogue as an MCP server: every tool has a title, hints, and a result with two faces.

Run it with `python examples/catalogue.py`, or `twofold serve examples/catalogue.py`.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from twofold import Context, Icon, MCPServer, ToolAnnotations, ToolError

MUG = Icon(
    "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxNiAxNiI+PHBhdGggZD0iTTIg"
    "M2g5djEwSDJ6TTExIDVoM3Y1aC0zIiBmaWxsPSJub25lIiBzdHJva2U9IiMzNjMiLz48L3N2Zz4=",
    mime_type="image/svg+xml",
    sizes=["any"],
)
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

mcp = MCPServer(
    "catalogue",
    title="Product catalogue",
    version="1.0.0",
    instructions="Search first; product_details needs the exact name.",
    icons=[MUG],
)


class Product(BaseModel):
    """Something for sale."""

    name: str
    price: float = Field(description="Price in USD.")
    stock: int = Field(0, ge=0, description="Pieces on the shelf.")


class PriceSummary(BaseModel):
    """What the catalogue costs as a whole."""

    products: int
    cheapest: float
    dearest: float


class ImportReport(BaseModel):
    """What an import changed."""

    delivered: int
    products: list[str]


class Quote(BaseModel):
    """What a supplier asks for a product."""

    name: str
    price: float
    valid_days: int


CATALOG = {
    product.name: product
    for product in (
        Product(name="Travel mug", price=24, stock=12),
        Product(name="Enamel mug", price=9.5, stock=40),
        Product(name="Tea pot", price=38, stock=3),
    )
}


@mcp.tool(title="Search the product catalogue", annotations=READS, icons=[MUG])
def search_products(query: str, limit: Annotated[int, Field(ge=1, le=50)] = 10) -> list[Product]:
    """Find products whose name has a word in it.

    Args:
        query: Any part of the name, in any case.
        limit: The most products wanted.
    """
    return [product for product in CATALOG.values() if query.lower() in product.name.lower()][:limit]


@mcp.tool(title="Look up one product", annotations=READS, icons=[MUG])
def product_details(name: str) -> Product:
    """Look up one product by its exact name."""
    if name not in CATALOG:
        raise ToolError(f"No product named {name!r}")
    return CATALOG[name]


@mcp.tool(
    title="Sum up the prices",
    annotations=READS,
    text="{products} products, from {cheapest} to {dearest} USD.",
)
def price_summary() -> PriceSummary:
    """Sum up how many products there are and what they cost."""
    prices = [product.price for product in CATALOG.values()] or [0.0]
    return PriceSummary(products=len(CATALOG), cheapest=min(prices), dearest=max(prices))


@mcp.tool(
    title="Book a delivery into stock",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
)
async def import_stock(pieces: Annotated[int, Field(ge=1, le=1000)], ctx: Context) -> ImportReport:
    """Add so many pieces of every product to the stock."""
    await ctx.info(f"delivery of {pieces} pieces a product")
    for done, product in enumerate(list(CATALOG.values()), start=1):
        CATALOG[product.name] = product.model_copy(update={"stock": product.stock + pieces})
        await ctx.report_progress(done, len(CATALOG), f"booked {product.name}")
    return ImportReport(delivered=pieces * len(CATALOG), products=list(CATALOG))


@mcp.tool(
    title="Ask the supplier for a quote",
    annotations=ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
    ),
)
async def supplier_quote(name: str) -> Quote:
    """Ask the supplier what a product costs to reorder."""
    answer: dict[str, object] = {"name": name, "price": 7.25}  # its service no longer sends valid_days
    return answer  # type: ignore[return-value]  # and this is what Twofold finds out before it leaves


@mcp.tool(
    title="Clear the catalogue",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
)
def clear_catalog() -> str:
    """Remove every product from the catalogue."""
    CATALOG.clear()
    return "Catalog cleared"


if __name__ == "__main__":
    mcp.run()
