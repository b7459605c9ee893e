"""A server in a file, and a clean interpreter after each load."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = '''
import sys
from pydantic import BaseModel
from twofold import CallToolResult, Context, ImageContent, MCPServer, ProtocolError, TextContent, ToolAnnotations, ToolError

print("printed while importing")
mcp = MCPServer("shop", title="Shop [bold]")


class Product(BaseModel):
    name: str
    price: float = 1


@mcp.tool(title="Find [red]", annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def search(query: str, limit: int = 10) -> list[Product]:
    """Find products."""
    print("printed while called")
    return [Product(name=query)] * min(limit, 2)


@mcp.tool()
def fail() -> str:
    raise ToolError("out of [stock] \\x1b[2J")


@mcp.tool()
def refuse() -> str:
    raise ProtocolError(-31000, "not now")


@mcp.tool()
async def work(ctx: Context) -> dict[str, int]:
    await ctx.info({"step": 1})
    await ctx.warning("half\\x1b[2J")
    await ctx.report_progress(1, 2, "half [done]")
    return {"done": 2}


@mcp.tool()
def blocks() -> list[TextContent | ImageContent]:
    return [TextContent("a"), ImageContent(data="AAAA", mime_type="image/png")]


@mcp.tool()
def nothing() -> None:
    return None


class Holder:
    inner = mcp


holder = Holder()
'''


@pytest.fixture(autouse=True)
def _fresh_interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget what a load put into `sys.path` and `sys.modules`: a test's own files, not the libraries they use."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    own = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - modules:
        module = sys.modules[name]
        held = vars(module)  # a test's module may fail when it is asked
        places = [held.get("__file__") or "", *held.get("__path__", ())]
        if any(place.startswith(own) for place in places):
            del sys.modules[name]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a server, in the current directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "shop.py"
    file.write_text(SERVER)
    return file
