from pydantic import BaseModel

from twofold import MCPServer

mcp = MCPServer("shop")


class Product(BaseModel):
    name: str
    price: float


@mcp.tool(text="{name} costs {price} dollars.")
def cheapest() -> Product:
    """Find the cheapest product."""
    return Product(name="Travel mug", price=24)


@mcp.tool(text=lambda products: f"{len(products)} products, the first is {products[0].name}.")
def all_products() -> list[Product]:
    """List every product."""
    return [Product(name="Travel mug", price=24)]
