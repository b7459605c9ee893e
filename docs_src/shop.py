from pydantic import BaseModel

from twofold import MCPServer, ToolAnnotations, ToolError

mcp = MCPServer("shop")
PRICES = {"Travel mug": 24.0}


class Product(BaseModel):
    name: str
    price: float


@mcp.tool(title="Look up a product", annotations=ToolAnnotations(read_only_hint=True))
def product_details(name: str) -> Product:
    """Look up one product by its exact name."""
    if name not in PRICES:
        raise ToolError(f"No product named {name!r}")
    return Product(name=name, price=PRICES[name])


if __name__ == "__main__":
    mcp.run()
