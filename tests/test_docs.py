"""Every program in the documents is a file in `docs_src/`, to the letter, and does what its page says."""

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from twofold import Context, MCPServer, TextContent, ToolOptions

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = {path.stem: path for path in sorted((ROOT / "docs_src").glob("*.py"))}


def load(name: str) -> MCPServer:
    spec = importlib.util.spec_from_file_location(f"docs_src_{name}", PROGRAMS[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mcp


def blocks(language: str) -> list[str]:
    return [block for page in PAGES for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)]


def test_every_program_in_the_documents_is_a_file_with_a_test():
    assert sorted(blocks("python")) == sorted(path.read_text() for path in PROGRAMS.values())
    assert set(PROGRAMS) == {"shop", *(case[0] for case in CALLS)}


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
