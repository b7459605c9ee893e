"""Every program in the documents is a file in `docs_src/`, to the letter, and does what its page says."""

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from tests.http_peer import HttpPeer, HttpSession
from tests.peer import Peer
from twofold import Context, MCPServer, PromptOptions, TextContent, ToolOptions

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = {path.stem: path for path in sorted((ROOT / "docs_src").glob("*.py"))}


def load_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_src_{name}", PROGRAMS[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(name: str) -> MCPServer:
    return load_module(name).mcp


def blocks(language: str) -> list[str]:
    return [block for page in PAGES for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)]


def test_the_readme_leads_to_every_page():
    """What is linked from nowhere is read by nobody; and no link leads nowhere."""
    readme = (ROOT / "README.md").read_text()
    linked = {ROOT / place for place in re.findall(r"\]\((?!http)([^)#]+)\)", readme)}
    assert [place for place in linked if not place.exists()] == []
    decisions = ROOT / "docs" / "decisions"  # a folder, linked as one
    pages = [page for page in PAGES[1:] if decisions not in page.parents]
    examples = [*(ROOT / "examples").glob("*/README.md")]
    assert [page for page in [decisions, *pages, *examples] if page not in linked] == []


def test_everything_that_make_does_is_named_in_a_document():
    """`make soak` and its like are for whoever reads, not only for who looks into the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()
    text = "\n".join(page.read_text() for page in PAGES)
    steps = {"format", "lint", "types", "contracts"}  # of `make check`, whose sentence names what they look at
    assert [target for target in targets if f"make {target}" not in text and target not in steps | {"clean"}] == []


def test_every_program_in_the_documents_is_a_file_with_a_test():
    assert sorted(blocks("python")) == sorted(path.read_text() for path in PROGRAMS.values())
    assert set(PROGRAMS) == {"shop", "prompts", "mounted", "authorization", "client", *(case[0] for case in CALLS)}


CALLS = [
    (
        "arguments",
        "book",
        {"nights": 2, "note": "late"},
        ["single for 2 nights (late)"],
        {"result": "single for 2 nights (late)"},
    ),
    ("text", "cheapest", {}, ["Travel mug costs 24.0 dollars."], {"name": "Travel mug", "price": 24.0}),
    (
        "text",
        "all_products",
        {},
        ["1 products, the first is Travel mug."],
        {"result": [{"name": "Travel mug", "price": 24.0}]},
    ),
    ("context", "import_rows", {"rows": ["a", "b"]}, ["2"], {"result": 2}),
    ("own_result", "plot", {"points": 3}, ["Plotted 3 points."], {"points": 3}),
    ("by_hand", "find", {"id": "7"}, ['{\n  "id": "7",\n  "found": true\n}'], {"id": "7", "found": True}),
]


@pytest.mark.parametrize(("program", "tool", "arguments", "texts", "structured"), CALLS)
async def test_a_program_does_what_its_page_says(program, tool, arguments, texts, structured):
    result = await load(program).call_tool(tool, arguments)
    assert [block.text for block in result.content] == texts
    assert result.structured_content == structured


async def test_the_first_program_finds_its_product_and_says_what_it_has_not():
    mcp = load("shop")
    found, missing = [await mcp.call_tool("product_details", {"name": name}) for name in ("Travel mug", "Tent")]
    assert found.structured_content == {"name": "Travel mug", "price": 24.0}
    assert (missing.is_error, missing.content) == (True, [TextContent("No product named 'Tent'")])
    assert len([line for line in PROGRAMS["shop"].read_text().splitlines() if line.strip()]) == 15


def test_every_option_of_a_prompt_is_in_its_table():
    rows = [line for line in (ROOT / "docs" / "prompts.md").read_text().splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])} == set(
        PromptOptions.__annotations__
    )


async def test_the_prompt_of_its_page_asks_for_a_review():
    async with Peer(load("prompts")) as peer:
        result = await peer.get_prompt("review", {"code": "x = 1", "style": "Ada"})
    asked = "Review this code. Heed the style guide of Ada.\n\nx = 1"
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": asked}},
        {"role": "assistant", "content": {"type": "text", "text": "First, what it is meant to do:"}},
    ]


async def test_a_server_mounted_in_starlette_is_served_beside_other_routes():
    """Both on one ASGI application, the server below its mount."""
    async with HttpPeer(load("mounted"), allowed_hosts=["localhost"]) as http:
        http.app = load_module("mounted").app
        http.prefix = "/shop"
        result = await http.call("price_of", {"name": "Travel mug"}, {"Host": "localhost:8000"})
        http.prefix = ""
        health = await http.ask("GET", b"", {}, path="/health").whole()
        http.app = load("mounted").streamable_http_app()
    assert result["structuredContent"] == {"result": 24.0}
    assert (health.status, health.body) == (200, b"ok")


async def test_a_server_with_tokens_serves_whoever_may_and_says_what_is_missing():
    """In both eras: what only the head of the newest revision says is not what decides."""
    ann, bob = {"Authorization": "Bearer t-ann"}, {"Authorization": "Bearer t-bob"}
    async with HttpPeer(load("authorization")) as http:
        bought = await http.call("buy", {"name": "mug"}, bob)
        narrow = await http.send("tools/call", {"name": "buy", "arguments": {"name": "mug"}}, ann).whole()
        unknown = await http.send("tools/list", {}, {"Authorization": "Bearer t-eve"}).whole()
        async with HttpSession(http, headers=ann) as session:
            earlier = await session.call("buy", {"name": "mug"}).whole()
    assert bought["structuredContent"] == {"result": "bob bought mug"}
    assert (narrow.status, 'scope="shop:read shop:buy"' in narrow.headers["www-authenticate"]) == (403, True)
    assert (unknown.status, 'error="invalid_token"' in unknown.headers["www-authenticate"]) == (401, True)
    assert earlier.json["result"]["isError"] is True


async def test_the_metadata_of_a_mounted_server_is_served_by_a_second_route():
    """As the page says: Starlette's `Route`, to the same application."""
    app = load("authorization").streamable_http_app(allowed_hosts=["localhost"])
    async with HttpPeer(load("authorization")) as http:
        http.app = Starlette(routes=[Route("/.well-known/oauth-protected-resource/mcp", app), Mount("/shop", app)])
        metadata = await http.ask(
            "GET", b"", {"Host": "localhost"}, path="/.well-known/oauth-protected-resource/mcp"
        ).whole()
        http.app = app
    assert (metadata.status, metadata.json["resource"]) == (200, "https://mcp.example.com/mcp")


def test_the_client_says_what_its_page_says():
    """It starts its own server as a child process, calls it, and ends."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS["client"])], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout in (ROOT / "docs" / "client.md").read_text()
    assert done.stdout.splitlines()[0] == "['product_details'] 2026-07-28"


async def test_a_picture_is_content():
    result = await load("own_result").call_tool("dot")
    assert [block.type for block in result.content] == ["text", "image"]


def test_links_between_the_documents_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


async def test_the_printed_error_is_the_one_that_is_sent():
    result = await load("arguments").call_tool("book", {"nights": "many", "rooms": "double"})
    (block,) = result.content
    assert block.text + "\n" in blocks("text")


def test_every_option_is_in_the_tables():
    """Options of a server, of a tool, and what a context has."""
    page = (ROOT / "docs" / "server.md").read_text()
    server, tool, context = page.split("\n## ")[1:4]

    def named(section: str) -> set[str]:
        cells = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
        return set(re.findall(r"`(\w+)", cells))

    assert named(server) == set(inspect.signature(MCPServer).parameters) - {"name"}
    assert named(tool) == set(ToolOptions.__annotations__)
    assert named(context) == {name for name in dir(Context) if not name.startswith("_")} - {"close"}


def test_the_message_by_hand_is_answered():
    (line,) = re.findall(
        r"^\$ echo '(.*)' \| \S+ docs_src/shop.py$", (ROOT / "docs" / "server.md").read_text(), re.MULTILINE
    )
    command = [sys.executable, str(PROGRAMS["shop"])]
    done = subprocess.run(command, input=line + "\n", capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["result"]["structuredContent"] == {"name": "Travel mug", "price": 24.0}
