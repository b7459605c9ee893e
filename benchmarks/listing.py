"""A server of 1,000 tools over stdio: CPU of a whole `tools/list`, and how long after spawning the first is there."""

import contextlib
import json
import tempfile
import time
from pathlib import Path

from figures import Figures, add_turn
from over_stdio import Pipes, open_pipes
from peers import message_bytes, serve_command
from processes import Meter, load_on_first_core

LAYER, STARTING, PAYLOAD = "listing", "starting", "tools"
PEERS = ("twofold", "mcp", "fastmcp", "typescript")
TOOLS = 1000
LISTS_A_TURN = 3
STARTS = 3
"""Starting the slowest takes four seconds; so fewer rounds are had of it."""


def measure(figures: Figures, *, rounds: int) -> None:
    """Start each some times, then have those that run list their tools, in turns."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(load_on_first_core())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for turn in range(min(STARTS, rounds)):
            starting = stack.enter_context(contextlib.ExitStack())
            servers = [start(figures, peer, folder, starting) for peer in PEERS]
            if turn < min(STARTS, rounds) - 1:
                starting.close()
        for turn in range(rounds + 1):
            for server in servers:
                meter = Meter(server.pid)
                for _ in range(LISTS_A_TURN):
                    ask_for_all(server)
                if turn:
                    measured = meter.read(LISTS_A_TURN)
                    add_turn(figures, layer=LAYER, payload=PAYLOAD, peer=server.peer, measured=measured)


def start(figures: Figures, peer: str, folder: Path, stack: contextlib.ExitStack) -> Pipes:
    """Start a server, have it list its tools, and check what the list says."""
    began = time.perf_counter()
    server = stack.enter_context(open_pipes(peer, serve_command(peer, "tools", str(TOOLS)), folder))
    pages = ask_for_all(server)
    measured = {"ms": (time.perf_counter() - began) * 1e3}
    add_turn(figures, layer=STARTING, payload=PAYLOAD, peer=peer, measured=measured)
    check_tools(peer, [tool for page in pages for tool in json.loads(page)["result"]["tools"]])
    return server


def ask_for_all(server: Pipes) -> list[bytes]:
    """Ask for every page of the list."""
    pages, cursor = [], {}
    while cursor is not None:
        server.write(message_bytes("tools/list", cursor) + b"\n")
        (line,) = server.read_lines()
        pages.append(line)
        cursor = find_cursor(line)
    return pages


def find_cursor(page: bytes) -> dict | None:
    """Give the params of the next page, if there is one; a page of all tools need not be decoded for that."""
    if b'"nextCursor"' not in page:
        return None
    cursor = json.loads(page)["result"].get("nextCursor")
    return None if cursor is None else {"cursor": cursor}


def check_tools(peer: str, tools: list[dict]) -> None:
    """Lists that say different things cannot be compared.

    Raises:
        SystemExit: Names, descriptions, or what the schemas ask for and promise differ from what was registered.
    """
    expected = [
        (
            f"tool_{number}",
            "Search things by query and return the best user.",
            {"query": "string", "limit": "integer", "tag": ["null", "string"]},
            {"limit": 10, "tag": None},
            ["query"],
            {"id": "integer", "name": "string", "score": "number"},
            ["id", "name", "score"],
        )
        for number in range(TOOLS)
    ]
    for tool, wanted in zip(tools, expected, strict=True):
        if (found := read_meaning(tool)) != wanted:
            raise SystemExit(f"tools/list: {peer} lists {found}, expected {wanted}")


def read_meaning(tool: dict) -> tuple:
    """Say what a definition means, however its schemas put it."""
    given, made = tool["inputSchema"], tool["outputSchema"]
    arguments = given["properties"]
    return (
        tool["name"],
        tool["description"],
        {name: read_type(schema) for name, schema in arguments.items()},
        {name: schema["default"] for name, schema in arguments.items() if "default" in schema},
        given["required"],
        {name: read_type(schema) for name, schema in made["properties"].items()},
        sorted(made["required"]),
    )


def read_type(schema: dict) -> str | list[str]:
    """Give the type of a schema, or those of its alternatives."""
    if "anyOf" in schema:
        return sorted(each["type"] for each in schema["anyOf"])
    return schema["type"] if isinstance(schema["type"], str) else sorted(schema["type"])
