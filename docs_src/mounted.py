from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from twofold import MCPServer

mcp = MCPServer("shop")


@mcp.tool()
def price_of(name: str) -> float:
    """Look up a price in USD."""
    return {"Travel mug": 24.0}[name]


async def health(request):
    return PlainTextResponse("ok")


app = Starlette(
    routes=[
        Route("/health", health),
        Mount("/shop", mcp.streamable_http_app(allowed_hosts=["mcp.example.com", "localhost", "127.0.0.1"])),
    ]
)
