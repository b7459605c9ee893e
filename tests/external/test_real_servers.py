"""Servers nobody here wrote are started, listed and called by our client, over stdio and over HTTP.

What they need is named by the environment, and installed by `.ci/run`: `TWOFOLD_SERVERS`, the folder where npm put
servers for `TWOFOLD_NODE`, and `TWOFOLD_SERVERS_PYTHON`, an interpreter with one written in Python.
"""

import contextlib
import datetime
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.external.serving import END_SECONDS, wait_for_url
from twofold import CheckedResult, Client, ContractError, ProtocolError, StdioServer, ToolListing

HERE = Path(__file__).parent
FILESYSTEM_TOOLS = [
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "create_directory",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "move_file",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
]
MEMORY_TOOLS = [
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
]
EVERYTHING_TOOLS = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    "simulate-research-query",
]


@dataclass(frozen=True)
class Server:
    """A server as it is listed: who it is, and how many of its tools have what."""

    name: str
    version: str
    tools: list[str]
    output_schemas: int
    hints: int
    titles: int
    views: int
    revision: str = "2025-11-25"


SERVERS = {
    "filesystem": Server("secure-filesystem-server", "0.2.0", FILESYSTEM_TOOLS, 14, 14, 14, 0),
    "memory": Server("memory-server", "0.6.3", MEMORY_TOOLS, 9, 9, 9, 0),
    "everything": Server("mcp-servers/everything", "2.0.0", EVERYTHING_TOOLS, 1, 13, 13, 0),
    "system-monitor": Server("System Monitor Server", "1.0.0", ["get-system-info", "poll-system-stats"], 2, 0, 2, 2),
    "scenario-modeler": Server("SaaS Scenario Modeler", "1.0.0", ["get-scenario-data"], 1, 0, 1, 1),
    "time": Server("mcp-time", "2026.10.19", ["get_current_time", "convert_time"], 2, 2, 0, 0, "2026-07-28"),
}
HANDSHAKE = replace(SERVERS["time"], revision="2025-11-25")
STDIO_ARGS = {"everything": ["stdio"], "system-monitor": ["--stdio"], "scenario-modeler": ["--stdio"]}
HTTP_ARGS = {"everything": ["streamableHttp"], "system-monitor": [], "scenario-modeler": []}


def command_of(server: str, folder: Path) -> list[str]:
    """Give the command that starts a server over stdio; what it keeps, it keeps in the folder."""
    if server == "time":
        return [os.environ["TWOFOLD_SERVERS_PYTHON"], "-m", "mcp_server_time", "--local-timezone", "UTC"]
    args = [str(folder)] if server == "filesystem" else STDIO_ARGS.get(server, [])
    return [os.environ["TWOFOLD_NODE"], str(script_of(server)), *args]


def script_of(server: str) -> Path:
    packages = Path(os.environ["TWOFOLD_SERVERS"]) / "node_modules/@modelcontextprotocol"
    return packages / f"server-{server}/dist/index.js"


def start_of(server: str, folder: Path, *, tampering: str | None = None) -> StdioServer:
    """Give what the client starts: the server, or what stands before it and breaks its results."""
    command = command_of(server, folder)
    if tampering is not None:
        command = [sys.executable, str(HERE / "tampering.py"), tampering, *command]
    return StdioServer(command[0], command[1:], env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})


@contextlib.contextmanager
def listening(server: str, *, log: Path) -> Iterator[str]:
    """Run a server over HTTP at a free port of the loopback address, and give its URL."""
    command = [os.environ["TWOFOLD_NODE"], "--import", str(HERE / "loopback.mjs"), str(script_of(server))]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *HTTP_ARGS[server]], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield wait_for_url(process, log)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def describe(client: Client, tools: ToolListing) -> Server:
    """Say who was connected to, and how many of its tools have what."""
    assert client.server is not None
    return Server(
        name=client.server.name,
        version=client.server.version,
        tools=[tool.name for tool in tools],
        output_schemas=sum(tool.output_schema is not None for tool in tools),
        hints=sum(tool.annotations is not None for tool in tools),
        titles=sum(tool.title is not None for tool in tools),
        views=sum("ui" in (tool.meta or {}) for tool in tools),
        revision=client.server.revision,
    )


def seen(result: CheckedResult) -> dict[str, Any]:
    """Give what a result shows, but for pictures: of those, that they are there."""
    return {
        "verdict": result.verdict.status,
        "is_error": result.is_error,
        "structure": result.structured_content if result.has_structured_content else "none",
        "content": [getattr(block, "text", None) or type(block).__name__ for block in result.content],
        "notes": result.notes,
    }


def shown(verdict: str, structure: Any, *content: str, is_error: bool = False) -> dict[str, Any]:
    """Write what is expected of a result."""
    return {
        "verdict": verdict,
        "is_error": is_error,
        "structure": structure,
        "content": list(content),
        "notes": (),
    }


@pytest.mark.parametrize("revision", ["auto", "2025-11-25"])
@pytest.mark.parametrize("server", SERVERS)
async def test_every_definition_of_a_server_is_accepted(server, revision, tmp_path):
    """C1, C2: names, schemas, hints, titles and views all arrive, whichever dialect; nothing is left out."""
    async with Client(start_of(server, tmp_path), revision=revision) as client:
        tools = await client.list_tools()
        expected = HANDSHAKE if (server, revision) == ("time", "2025-11-25") else SERVERS[server]
        assert (describe(client, tools), client.rejected_tools) == (expected, {})


@pytest.mark.parametrize("server", HTTP_ARGS)
async def test_a_server_is_the_same_over_http(server, tmp_path):
    """C1: the newest revision is asked for, the handshake taken, and the session ended that was begun."""
    log = tmp_path / "log"
    with listening(server, log=log) as url:
        async with Client(url) as client:
            tools = await client.list_tools()
            assert (describe(client, tools), client.rejected_tools) == (SERVERS[server], {})
    printed = log.read_text()
    sessions = printed.count("Session initialized with ID"), printed.count("Received session termination request")
    assert sessions == ((1, 1) if server == "everything" else (0, 0)), printed


async def test_files_are_written_listed_and_read(tmp_path):
    """C2: every result of server-filesystem keeps its schema; a failure is an error with its text, not judged."""
    folder = tmp_path.resolve()  # as the server writes it
    path, missing = str(folder / "a.txt"), str(folder / "b.txt")
    async with Client(start_of("filesystem", folder)) as client:
        tools = await client.list_tools()
        results = [
            await client.call_tool("write_file", {"path": path, "content": "one\nzwei €\n"}),
            await client.call_tool("read_text_file", {"path": path}),
            await client.call_tool("list_directory", {"path": str(folder)}),
            await client.call_tool("read_media_file", {"path": path}),
            await client.call_tool("read_text_file", {"path": missing}),
        ]
    hints = tools["write_file"].annotations
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (False, True, True)
    resource = {
        "uri": f"file://{path}",
        "mimeType": "application/octet-stream",
        "blob": "b25lCnp3ZWkg4oKsCg==",
    }
    written, error = f"Successfully wrote to {path}", f"ENOENT: no such file or directory, open '{missing}'"
    assert list(map(seen, results)) == [
        shown("valid", {"content": written}, written),
        shown("valid", {"content": "one\nzwei €\n"}, "one\nzwei €\n"),
        shown("valid", {"content": "[FILE] a.txt"}, "[FILE] a.txt"),
        shown("valid", {"content": [{"type": "resource", "resource": resource}]}, "EmbeddedResource"),
        shown("unchecked", "none", error, is_error=True),
    ]


async def test_a_memory_is_filled_and_searched(tmp_path):
    """C2: nested structures of server-memory keep their draft-07 schemas."""
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote notes"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    describes = {"from": "Ada", "to": "Engine", "relationType": "describes"}
    async with Client(start_of("memory", tmp_path)) as client:
        results = [
            await client.call_tool("create_entities", {"entities": [ada, engine]}),
            await client.call_tool("create_relations", {"relations": [describes]}),
            await client.call_tool("search_nodes", {"query": "notes"}),
            await client.call_tool("delete_entities", {"entityNames": ["Engine"]}),
            await client.call_tool("read_graph"),
        ]
    assert [(result.verdict.status, result.structured_content) for result in results] == [
        ("valid", {"entities": [ada, engine]}),
        ("valid", {"relations": [describes]}),
        ("valid", {"entities": [ada], "relations": [describes]}),
        ("valid", {"success": True, "message": "Entities deleted successfully"}),
        ("valid", {"entities": [ada], "relations": []}),
    ]


EVERYTHING_SHOWN = [
    shown("unchecked", "none", "Echo: hé"),
    shown("unchecked", "none", "The sum of 1 and 2.5 is 3.5."),
    shown(
        "valid",
        {"temperature": 33, "conditions": "Cloudy", "humidity": 82},
        '{"temperature":33,"conditions":"Cloudy","humidity":82}',
    ),
    shown("unchecked", "none", "Here's the image you requested:", "ImageContent", "The image above is the MCP logo."),
    shown(
        "unchecked",
        "none",
        "Here are 2 resource links to resources available in this server:",
        "ResourceLink",
        "ResourceLink",
    ),
    shown("unchecked", "none", "Long running operation completed. Duration: 0.2 seconds, Steps: 2."),
    shown("unchecked", "none", "MCP error -32602: Tool nope not found", is_error=True),
]
"""What six tools of server-everything, and one it has not, answer: with a schema, without, and blocks of every kind."""


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_one_of_everything_is_seen(transport, tmp_path):
    """C2, C5, B4: all kinds of blocks, a structure, progress and a failure, the same over both transports."""
    progress: list[tuple[float, float | None, str | None]] = []
    with contextlib.ExitStack() as stack:
        target = (
            start_of("everything", tmp_path)
            if transport == "stdio"
            else stack.enter_context(listening("everything", log=tmp_path / "log"))
        )
        async with Client(target) as client:
            results = [
                await client.call_tool("echo", {"message": "hé"}),
                await client.call_tool("get-sum", {"a": 1, "b": 2.5}),
                await client.call_tool("get-structured-content", {"location": "New York"}),
                await client.call_tool("get-tiny-image"),
                await client.call_tool("get-resource-links", {"count": 2}),
                await client.call_tool(
                    "trigger-long-running-operation",
                    {"duration": 0.2, "steps": 2},
                    on_progress=lambda *step: progress.append(step),
                ),
                await client.call_tool("nope"),
            ]
    assert list(map(seen, results)) == EVERYTHING_SHOWN
    assert progress == [(1, 2, None), (2, 2, None)]


@dataclass
class Moment:
    """A moment somewhere, as mcp-server-time gives it."""

    timezone: str
    datetime: datetime.datetime
    day_of_week: str
    is_dst: bool


@dataclass
class Conversion:
    """One moment in two places."""

    source: Moment
    target: Moment
    time_difference: str


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_a_time_comes_as_a_time(revision, tmp_path):
    """C1, C7: mcp-server-time in both its revisions; dates in its results are dates, its refusals errors."""
    asked = {"source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "Asia/Kolkata"}
    async with Client(start_of("time", tmp_path), revision=revision) as client:
        result = await client.call_tool("convert_time", asked, as_type=Conversion)
        refused = await client.call_tool("convert_time", {**asked, "target_timezone": "Nowhere"})
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("nope")
    day = result.value.source.datetime.date()
    noon = datetime.datetime.fromisoformat(f"{day}T12:30:00+09:00")
    assert result.verdict.status == "valid"
    assert result.value == Conversion(
        source=Moment("Asia/Tokyo", noon, f"{day:%A}", is_dst=False),
        target=Moment("Asia/Kolkata", noon, f"{day:%A}", is_dst=False),
        time_difference="-3.5h",
    )
    assert result.value.target.datetime.utcoffset() == datetime.timedelta(hours=5, minutes=30)
    text = "Error executing tool convert_time: Invalid timezone: 'No time zone found with key Nowhere'"
    assert seen(refused) == shown("unchecked", "none", text, is_error=True)
    assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: nope")


async def test_an_app_gets_its_data(tmp_path):
    """C2: the deep structures of two MCP Apps are judged by 2020-12; text and structure of a result may differ."""
    inputs = {
        "startingMRR": 1000,
        "monthlyGrowthRate": 100,
        "monthlyChurnRate": 0,
        "grossMargin": 50,
        "fixedCosts": 100,
    }
    async with Client(start_of("scenario-modeler", tmp_path)) as client:
        modelled = await client.call_tool("get-scenario-data", {"customInputs": inputs})
    async with Client(start_of("system-monitor", tmp_path)) as client:
        described = await client.call_tool("get-system-info")
        polled = await client.call_tool("poll-system-stats")
    assert [each.verdict.status for each in (modelled, described, polled)] == ["valid", "valid", "valid"]
    earned = [1000 * 2**month for month in range(1, 13)]  # doubled each month
    assert modelled.structured_content["customProjections"] == [
        {
            "month": month,
            "mrr": mrr,
            "grossProfit": mrr / 2,
            "netProfit": mrr / 2 - 100,
            "cumulativeRevenue": sum(earned[:month]),
        }
        for month, mrr in enumerate(earned, 1)
    ]
    assert described.structured_content["hostname"] == socket.gethostname()
    assert described.structured_content["platform"].split()[0] == platform.system().lower()
    assert set(polled.structured_content) == {"cpu", "memory", "uptime", "timestamp"}


BROKEN = {
    "filesystem": ("list_allowed_directories", {}, ["/content"]),
    "memory": (
        "create_entities",
        {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote notes"]}]},
        ["/entities/0/name", "/entities/0/entityType", "/entities/0/observations/0"],
    ),
    "everything": ("get-structured-content", {"location": "New York"}, ["/conditions"]),
    "system-monitor": ("get-system-info", {}, ["/hostname", "/platform", "/arch", "/cpu/model"]),
    "scenario-modeler": ("get-scenario-data", {}, ["/templates/0/id"]),
    "time": ("get_current_time", {"timezone": "UTC"}, ["/timezone", "/datetime", "/day_of_week"]),
}
"""A call of each server, and where its structure is wrong once its texts are gone (of many places, the first)."""


@pytest.mark.parametrize("server", BROKEN)
async def test_a_structure_broken_on_the_way_is_found_out(server, tmp_path):
    """C2: real schemas condemn too: each place is named, and the result stays to be had."""
    tool, arguments, pointers = BROKEN[server]
    async with Client(start_of(server, tmp_path, tampering="null")) as client:
        with pytest.raises(ContractError) as caught:
            await client.call_tool(tool, arguments)
    error = caught.value
    found = [problem.pointer for problem in error.verdict.problems]
    assert (error.tool, error.verdict.status, error.result.has_structured_content) == (tool, "invalid", True)
    assert sorted(found[: len(pointers)]) == sorted(pointers), error


@pytest.mark.parametrize("server", BROKEN)
async def test_a_structure_lost_on_the_way_is_missed(server, tmp_path):
    """C2: where a real schema promises a structure, none is a fault; what the text says stays to be had."""
    tool, arguments, _ = BROKEN[server]
    async with Client(start_of(server, tmp_path, tampering="drop")) as client:
        with pytest.raises(ContractError) as caught:
            await client.call_tool(tool, arguments)
    error = caught.value
    assert (error.tool, error.verdict.status, len(error.result.content)) == (tool, "absent", 1)
