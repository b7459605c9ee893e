import asyncio
import sys

from pydantic import BaseModel

from twofold import Client, ContractError, MCPServer, OutcomeUnknown, StdioServer

mcp = MCPServer("shop")


class Product(BaseModel):
    name: str
    price: float


@mcp.tool()
def product_details(name: str) -> Product:
    """Look up one product by its exact name."""
    return Product(name=name, price=24.0)


async def main() -> None:
    server = StdioServer(command=sys.executable, args=[__file__, "serve"])  # or a URL, or mcp itself
    async with Client(server) as client:
        print([tool.name for tool in await client.list_tools()], client.revision)
        try:
            result = await client.call_tool("product_details", {"name": "Travel mug"}, as_type=Product)
        except ContractError as error:
            print("the server broke its word:", error.verdict, error.result.content)
        except OutcomeUnknown as error:
            print("it may have been done:", error.reason)
        else:
            if result.is_error:  # the tool says that it failed: there is no value
                print("it failed:", result.content)
            else:
                print(result.verdict, result.value, result.structured_content)


if __name__ == "__main__":
    mcp.run() if "serve" in sys.argv else asyncio.run(main())
