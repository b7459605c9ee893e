"""A program connects to a server by any route, calls a tool, and can rely on what comes back: issue 4, rows C1 to C7."""

import asyncio
import contextlib
import dataclasses
import datetime
import decimal
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from pydantic import BaseModel, Field

from tests.client.shop import ORDER, Order, make_shop
from twofold import (
    Client,
    ContractError,
    DefinitionWarning,
    Header,
    MCPServer,
    OutcomeUnknown,
    ProtocolError,
    StdioServer,
    TextContent,
    TransportError,
)
from twofold.errors import (
    HttpStatusError,
    NotSent,
    ResultTypeMismatch,
    TwofoldError,
    UnsupportedProtocolVersion,
)
from twofold.server.serve_http import bind, serve

SHOP = Path(__file__).with_name("shop.py")
REVISIONS = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
Region = Annotated[str, Header("Region")]
REGION = {"type": "object", "properties": {"region": {"type": "string"}}, "required": ["region"]}
EARLIEST = "2024-11-05"
"""Over stdio and in process only."""


class HttpShop:
    """A server on a port, with what was asked of it: HTTP method, MCP method, headers."""

    def __init__(self, mcp: MCPServer, **options: Any) -> None:
        self._app = mcp.streamable_http_app(**options)
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def start(self, port: int = 0) -> str:
        listeners = bind("127.0.0.1", port, stall_seconds=60)
        self.port = listeners[0].getsockname()[1]
        started = asyncio.Event()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(
            serve(self._note, listeners, stop=self._stop, on_serving=started.set, on_stopping=self._app.stop)
        )
        await started.wait()
        return f"http://127.0.0.1:{self.port}/mcp"

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task

    async def _note(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            self.asked.append((scope["method"], headers.get("mcp-method", "")))
        await self._app(scope, receive, send)


@contextlib.asynccontextmanager
async def over_http(mcp: MCPServer, **options: Any) -> AsyncIterator[tuple[str, HttpShop]]:
    shop = HttpShop(mcp, **options)
    url = await shop.start()
    try:
        yield url, shop
    finally:
        await shop.stop()


@contextlib.asynccontextmanager
async def reached(route: str) -> AsyncIterator[Any]:
    """Give a target by each route; nothing runs on after it was closed."""
    before = asyncio.all_tasks()
    if route == "memory":
        yield make_shop()
    elif route == "stdio":
        yield StdioServer(sys.executable, [str(SHOP)])
    else:
        async with over_http(make_shop()) as (url, _):
            yield url
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


every_route = pytest.mark.parametrize("route", ["memory", "stdio", "http"])
both_eras = pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])


class Canned:
    """A server in process that answers what a test says, and keeps what it heard."""

    name = "canned"

    def __init__(
        self, tools: list[Any], results: dict[str, Any] | None = None, *, listing: dict[str, Any] | None = None
    ) -> None:
        self.tools = tools
        self.results = results or {}
        self.listing = listing or {}
        self.heard: list[Any] = []
        self.write: Callable[[bytes], None] = lambda _: None

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        yield None

    def connect(self, writer: Any, offer: Any) -> "Canned":
        self.write = writer.write
        return self

    def disconnect(self, connection: Any) -> None:
        """Nothing to forget."""

    async def close(self, *, grace_seconds: float) -> None:
        """Nothing runs."""

    def methods(self) -> list[str]:
        return [message.get("method") for message in self.heard]

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def receive(self, line: bytes) -> None:
        message = json.loads(line)
        self.heard.append(message)
        if "id" not in message or "method" not in message:
            return
        answer = self.answer(message["method"], message["params"])
        if answer is not None:
            self.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode())

    def answer(self, method: str, params: Any) -> Any:
        """Give the members of an answer; None for none."""
        if method == "server/discover":
            capabilities = {"tools": {}}
            return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "_meta": {}}}
        if method == "tools/list":
            return {"result": {"tools": self.tools, **self.listing}}
        if method == "tools/call":
            given = self.results[params["name"]]
            if isinstance(given, Exception):
                raise given
            return given if given is None or "error" in given else {"result": given}
        return {"error": {"code": -32601, "message": f"no {method}"}}


def tool(name: str, output: Any = None, **more: Any) -> Any:
    schema = {} if output is None else {"outputSchema": output}
    return {"name": name, "inputSchema": {"type": "object"}, **schema, **more}


def structured(value: Any, **more: Any) -> Any:
    return {"content": [{"type": "text", "text": "x"}], "structuredContent": value, **more}


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


# One client for each route, and each era.


@every_route
async def test_a_client_finds_the_newest_revision_and_who_serves(route):
    """C1: by URL, by command and in process, the era is found by itself."""
    async with asyncio.timeout(50), reached(route) as target:
        client = Client(target)
        assert (client.revision, client.server, client.rejected_tools) == (None, None, {})
        async with client:
            server = client.server
    assert (server.revision, server.name, server.version, server.instructions) == (
        "2026-07-28",
        "shop",
        "1.2.3",
        "Buy.",
    )


@every_route
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_revision_can_be_asked_for(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert client.revision == revision
    carried = {"result": 3} if revision == "2025-03-26" else 3
    assert result.structured_content in (3, carried) or not result.has_structured_content
    assert result.content == [TextContent("3")]


@pytest.mark.parametrize("route", ["memory", "stdio"])
async def test_the_earliest_revision_has_no_structure(route):
    """2024-11-05: text alone, and nothing promises more."""
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=EARLIEST) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
    assert (result.content, result.has_structured_content) == ([TextContent("3")], False)
    assert result.verdict.status == "unchecked"


async def test_a_server_of_the_earlier_era_is_found_by_a_probe():
    """The probe is refused, `initialize` follows; no setting is needed."""

    class Earlier(Canned):
        def answer(self, method, params):
            if method == "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "serverInfo": {"name": "old", "version": "1"},
                }
                return {"result": result}
            return (
                super().answer(method, params)
                if method != "server/discover"
                else {"error": {"code": -32601, "message": "what?"}}
            )

    server = Earlier([tool("a")], {"a": structured({"n": 1})})
    async with Client(server) as client:
        assert (client.revision, client.server.name) == ("2025-06-18", "old")
        assert (await client.call_tool("a")).structured_content == {"n": 1}
    assert server.methods() == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert "_meta" not in server.heard[-1]["params"]


async def test_a_revision_that_the_server_does_not_speak_is_refused():
    server = Canned([])
    with pytest.raises(ProtocolError):
        await Client(server, revision="2025-11-25").__aenter__()

    class Other(Canned):
        def answer(self, method, params):
            return {"result": {"supportedVersions": ["2031-01-01"], "capabilities": {}, "_meta": {}}}

    with pytest.raises(UnsupportedProtocolVersion, match="2031-01-01"):
        await Client(Other([]), revision="2026-07-28").__aenter__()


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"revision": "2026"}, ValueError, "revision: expected one of auto, 2026-07-28"),
        ({"check": "maybe"}, ValueError, "check: expected 'raise', 'mark' or 'off', got 'maybe'"),
        ({"timeout_seconds": 0}, ValueError, "timeout_seconds"),
        ({"timeout_seconds": float("inf")}, ValueError, "timeout_seconds"),
        ({"http_headers": {"x": "y"}}, TypeError, "http_headers is for a server that is reached by a URL"),
    ],
)
def test_an_option_that_means_nothing_is_refused_at_once(options, error, told):
    with pytest.raises(error, match=told.replace(".", r"\.")):
        Client(make_shop(), **options)


@pytest.mark.parametrize("target", [None, 7, b"http://127.0.0.1/mcp", ["python"]])
def test_a_target_that_is_none_is_refused(target):
    with pytest.raises(TypeError, match="expected a URL, StdioServer"):
        Client(target)


# Listing.


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("127.0.0.1:8000/mcp", "did you mean 'http://127.0.0.1:8000/mcp'?"),
        ("localhost:8000/mcp", "did you mean 'http://localhost:8000/mcp'?"),
        ("[::1]:8000/mcp", "did you mean 'http://[::1]:8000/mcp'?"),
        ("mcp.example.com/mcp", "did you mean 'https://mcp.example.com/mcp'?"),
        ("tools:8080/mcp", "did you mean 'https://tools:8080/mcp'?"),
        ("shop.py", "give StdioServer(command='python', args=['shop.py'])"),
        ("./dist/index.js", "give StdioServer(command='node', args=['./dist/index.js'])"),
        ("user:hunter2@example.com/mcp", "write it as https://example.com/mcp"),
        ("example.com/mcp?token=hunter2", "write it as https://example.com/mcp"),
        ("shop", "give StdioServer(command=…, args=[…]) to start one"),
        ("http://", "give StdioServer(command=…, args=[…]) to start one"),
    ],
)
async def test_a_text_that_is_no_url_is_refused_with_what_was_meant(target, told):
    """Nothing was sent, the likely target is named, and nothing that may be a secret is shown."""
    with pytest.raises(NotSent) as caught:
        async with asyncio.timeout(50), Client(target):
            pass
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)


@every_route
@both_eras
async def test_the_tools_are_listed_with_their_schemas(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            listing = await client.list_tools()
    names = {"add", "order", "say", "plain", "nothing", "refuse", "count", "talk", "sleep", "cancelled_calls", "grow"}
    assert {each.name for each in listing.tools} == names
    assert listing["add"].input_schema["required"] == ["a", "b"]
    assert listing["plain"].output_schema is None


async def test_all_pages_are_one_listing():
    """`list_tools` gives all pages; so schemas of all are known before the first result is judged."""
    mcp = MCPServer("pages", page_size=2)
    for number in range(5):
        mcp.add_tool(lambda: 1, name=f"t{number}", structured_output=False)
    async with Client(mcp) as client:
        assert [each.name for each in await client.list_tools()] == [f"t{number}" for number in range(5)]


async def test_the_second_page_is_known_when_the_first_call_is_judged():
    class Paged(Canned):
        def answer(self, method, params):
            if method != "tools/list":
                return super().answer(method, params)
            if "cursor" in params:
                return {"result": {"tools": [tool("late", NUMBER)]}}
            return {"result": {"tools": [tool("early")], "nextCursor": "2"}}

    async with Client(Paged([], {"late": structured({"n": "x"})}), check="mark") as client:
        assert (await client.call_tool("late")).verdict.status == "invalid"


@pytest.mark.parametrize(
    ("freshness", "listings"), [({"ttlMs": 60_000}, 1), ({"ttlMs": 0}, 3), ({}, 1), ({"ttlMs": "soon"}, 1)]
)
async def test_a_listing_is_kept_as_long_as_it_says(freshness, listings):
    """C6: `ttlMs`; where none is said, until the server says that it has changed."""
    server = Canned([tool("a")], listing=freshness)
    async with Client(server) as client:
        for _ in range(3):
            await client.list_tools()
    assert server.methods().count("tools/list") == listings


@every_route
async def test_a_change_of_the_list_drops_it(route):
    """C6: `list_changed`, on the connection or on the stream that was asked for."""
    told = asyncio.Event()
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, on_tools_changed=told.set) as client:
            await client.list_tools()
            names = [f"fresh{number}" for number in range(100)]
            while not told.is_set():  # over HTTP, what changes before the stream is open is not told
                await client.call_tool("grow", {"name": names.pop()})
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await told.wait()
            assert "fresh99" in await client.list_tools()


async def test_a_change_is_heard_in_an_earlier_revision_too():
    told = []
    mcp = make_shop()
    async with Client(mcp, revision="2025-11-25", on_tools_changed=lambda: told.append(1)) as client:
        await client.list_tools()
        await client.call_tool("grow", {"name": "fresh"})
        await client.call_tool("add", {"a": 1, "b": 1})
        assert (told, "fresh" in await client.list_tools()) == ([1], True)


async def test_an_unlisted_tool_costs_one_listing_not_one_each_time():
    server = Canned([tool("a")], {"hidden": structured({"n": 1})})
    async with Client(server) as client:
        for _ in range(3):
            result = await client.call_tool("hidden")
    assert server.methods() == ["server/discover", "tools/list", *["tools/call"] * 3]
    assert (result.structured_content, result.verdict.status) == ({"n": 1}, "unchecked")


async def test_a_server_that_cannot_list_is_called_all_the_same():
    class Silent(Canned):
        def answer(self, method, params):
            if method == "tools/list":
                return {"error": {"code": -32601, "message": "no"}}
            return super().answer(method, params)

    server = Silent([], {"a": structured(1)})
    async with Client(server) as client:
        assert [(await client.call_tool("a")).structured_content for _ in range(2)] == [1, 1]
        with pytest.raises(ProtocolError) as caught:
            await client.list_tools()
    assert caught.value.code == -32601


async def test_a_malformed_definition_costs_itself_and_is_named():
    server = Canned([tool("a"), {"name": "b"}, 7, tool("c")])
    async with Client(server) as client:
        assert [each.name for each in await client.list_tools()] == ["a", "c"]
        assert set(client.rejected_tools) == {"b", "(entry 3)"}
        assert "input schema" in client.rejected_tools["b"]


async def test_a_tool_with_a_bad_header_is_left_out_over_http_alone():
    """C4: `x-mcp-header` that breaks a rule; elsewhere nothing is mirrored, and the tool stays."""
    bad = {
        "name": "bad",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": ""}}},
    }
    async with Client(Canned([bad, tool("good")])) as client:
        assert [each.name for each in await client.list_tools()] == ["bad", "good"]


# Verdicts.

VERDICTS = [
    ("valid", NUMBER, structured({"n": 1}), "valid"),
    ("wrong_type", NUMBER, structured({"n": "x"}), "invalid"),
    ("null_where_none_may_be", NUMBER, structured(None), "invalid"),
    ("null_as_promised", {"type": "null"}, structured(None), "valid"),
    ("absent", NUMBER, {"content": []}, "absent"),
    ("unchecked", None, structured({"n": "x"}), "unchecked"),
    ("text_only", None, {"content": [{"type": "text", "text": "x"}]}, "unchecked"),
    ("an_error", NUMBER, structured({"n": "x"}, isError=True), "unchecked"),
    ("an_error_without", NUMBER, {"content": [], "isError": True}, "unchecked"),
    ("outside", {"$ref": "http://127.0.0.1:9/s.json"}, structured({"n": 1}), "uncheckable"),
    ("dangling", {"$ref": "#/$defs/x"}, structured({"n": 1}), "uncheckable"),
    ("dialect", {"$schema": "urn:nobody", "type": "object"}, structured({"n": 1}), "uncheckable"),
    ("draft_04", {"$schema": "http://json-schema.org/draft-04/schema#", "type": "array"}, structured([1]), "valid"),
    ("format_is_no_promise", {"type": "string", "format": "date"}, structured("soon"), "valid"),
    ("list", {"type": "array", "items": {"type": "integer"}}, structured([1, "x"]), "invalid"),
    ("number", {"type": "number"}, structured(7), "valid"),
    ("false", {"type": "boolean"}, structured(False), "valid"),
    ("no_content", NUMBER, {"structuredContent": {"n": 1}}, "valid"),
]


@pytest.mark.parametrize(("name", "schema", "result", "status"), VERDICTS, ids=[each[0] for each in VERDICTS])
async def test_a_result_is_judged_by_what_the_server_published(name, schema, result, status):
    """C2, C3, C5: what is not kept, or cannot be judged, raises with the whole result; marked, it is only marked."""
    server = Canned([tool(name, schema)], {name: result})
    async with Client(server) as client:
        marked = await client.call_tool(name, check="mark")
        off = await client.call_tool(name, check="off")
        assert marked.verdict.status == status
        assert (off.verdict.status, off.verdict.reason) == ("unchecked", "not asked for")
        if status in ("valid", "unchecked"):
            assert await client.call_tool(name) == marked
            return
        with pytest.raises(ContractError) as caught:
            await client.call_tool(name)
    error = caught.value
    assert (error.tool, error.verdict, error.result) == (name, marked.verdict, marked)
    assert name in str(error)


async def test_an_invalid_result_names_every_place_with_what_was_expected_and_what_came():
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": NUMBER}, "a/b": {"type": "string"}}}
    server = Canned([tool("t", schema)], {"t": structured({"rows": [{"n": 1}, {"n": "x"}, {}], "a/b": 7})})
    async with Client(server, check="mark") as client:
        verdict = (await client.call_tool("t")).verdict
    assert {(each.pointer, each.expected, each.got) for each in verdict.problems} == {
        ("/rows/1/n", "an integer", "a string ('x')"),
        ("/rows/2/n", "an integer", "nothing"),
        ("/a~1b", "a string", "an integer (7)"),
    }


async def test_null_is_a_value_and_nothing_is_not():
    """C5: null is not absent."""
    server = Canned([tool("null"), tool("nothing")], {"null": structured(None), "nothing": {"content": []}})
    async with Client(server) as client:
        null, nothing = await client.call_tool("null"), await client.call_tool("nothing")
    assert (null.structured_content, null.has_structured_content) == (None, True)
    assert (nothing.structured_content, nothing.has_structured_content) == (None, False)


async def test_an_error_keeps_its_data_and_is_never_judged():
    server = Canned(
        [tool("t", NUMBER)], {"t": structured({"why": [1]}, isError=True, _meta={"k": 1}) | {"content": []}}
    )
    async with Client(server) as client:
        result = await client.call_tool("t", as_type=int)
    assert (result.is_error, result.structured_content, result.meta, result.value) == (
        True,
        {"why": [1]},
        {"k": 1},
        None,
    )


WRAPPER = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        (tool("t", WRAPPER, _meta={"twofold/wrapped": True}), 3),
        (tool("t", {**WRAPPER, "title": "tOutput"}), 3),
        (tool("t", {**WRAPPER, "title": "Answer"}), {"result": 3}),
        (tool("t", WRAPPER), {"result": 3}),
        (tool("t"), {"result": 3}),
    ],
    ids=["marked", "as frameworks make it", "an author's own", "untitled", "no schema"],
)
async def test_only_a_wrapper_is_taken_off_and_never_a_genuine_field(definition, value):
    """A20: ours is marked in `_meta`; elsewhere title, sole property and `required` say so."""
    async with Client(Canned([definition], {"t": structured({"result": 3})})) as client:
        assert (await client.call_tool("t")).structured_content == value


async def test_a_stale_schema_is_not_judged_by():
    """A result that breaks what was published before is judged again by what is published now."""
    server = Canned([tool("t", NUMBER)], {"t": structured({"n": "x"})}, listing={"ttlMs": 0})
    async with Client(server) as client:
        await client.list_tools()
        server.tools = [tool("t", {"type": "object"})]
        assert (await client.call_tool("t")).verdict.status == "valid"


async def test_what_is_odd_about_a_result_is_noted_and_does_no_harm(caplog):
    blocks = [{"type": "text", "text": "x"}, {"type": "hologram", "depth": 3}]
    server = Canned([tool("t")], {"t": {"content": blocks, "stray": True}})
    async with Client(server) as client:
        result = await client.call_tool("t")
    assert [each.type for each in result.content] == ["text", "hologram"]
    assert result.content[1].raw == blocks[1]
    assert len(result.notes) == 1


# Calls over each route.


@every_route
@both_eras
async def test_a_call_gives_both_faces(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            added = await client.call_tool("add", {"a": 1, "b": 2})
            said = await client.call_tool("say", {"text": "ü\n\u2028 \"'"})
            plain = await client.call_tool("plain")
            nothing = await client.call_tool("nothing")
            refused = await client.call_tool("refuse")
    assert (added.content, added.structured_content, added.verdict.status) == ([TextContent("3")], 3, "valid")
    assert said.structured_content == "ü\n\u2028 \"'"
    assert (plain.content, plain.has_structured_content) == ([TextContent("only words")], False)
    assert (nothing.structured_content, nothing.has_structured_content) == (None, True)
    assert (refused.is_error, refused.content, refused.verdict.status) == (
        True,
        [TextContent("not today")],
        "unchecked",
    )


@every_route
@both_eras
async def test_a_typed_result_is_rebuilt(route, revision):
    """C7: dates, durations, UUIDs, bytes and enums."""
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            assert (await client.call_tool("order", as_type=Order)).value == ORDER
            assert (await client.call_tool("add", {"a": 1, "b": 2}, as_type=int)).value == 3
            with pytest.raises(ResultTypeMismatch) as caught:
                await client.call_tool("say", {"text": "x"}, as_type=Order)
    error = caught.value
    assert (error.tool, error.verdict.status, error.result.structured_content) == ("say", "valid", "x")


@every_route
@both_eras
async def test_progress_comes_in_order_and_before_the_result(route, revision):
    heard: list[Any] = []
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            result = await client.call_tool("count", {"to": 50}, on_progress=lambda *each: heard.append(each))
            at_the_result = list(heard)
    assert result.structured_content == 50
    assert at_the_result == [(number, 50, f"number {number}") for number in range(1, 51)]


@every_route
async def test_progress_can_be_awaited_and_a_fault_in_it_harms_nothing(route, caplog):
    heard: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        raise RuntimeError("the program's own fault")

    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as client:
            assert (await client.call_tool("count", {"to": 3}, on_progress=note)).structured_content == 3
    assert (heard, "a callback of the client failed" in caplog.text) == ([1, 2, 3], True)


@every_route
@both_eras
async def test_log_messages_are_handed_on(route, revision):
    heard: list[Any] = []
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(
            target, revision=revision, log_level="info", on_log=lambda *each: heard.append(each)
        ) as client:
            await client.call_tool("talk")
            while len(heard) < 2:  # over HTTP in a session they may come on a stream of their own
                await asyncio.sleep(0.01)
    assert heard == [("info", {"a": 1}, "shop"), ("error", "oh", "talk")]


@every_route
@both_eras
async def test_a_timeout_ends_the_wait_tells_the_server_and_leaves_the_connection(route, revision):
    """C6: `OutcomeUnknown`, as the call may have been carried out; the work at the server stops."""
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            await client.list_tools()
            with pytest.raises(OutcomeUnknown) as caught:
                await client.call_tool("sleep", {"seconds": 60}, timeout_seconds=0.3)
            while (await client.call_tool("cancelled_calls")).structured_content == 0:
                await asyncio.sleep(0.01)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == 3
    assert (caught.value.tool, "did not answer tools/call within" in caught.value.reason) == ("sleep", True)


@every_route
async def test_each_call_ends_when_its_own_time_is_over(route):
    """C6: one timer looks after all that wait: the order they come in, and that others end before, means nothing."""
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as client:
            await client.list_tools()
            ended = []

            async def call(name: str, seconds: float) -> None:
                with pytest.raises(OutcomeUnknown, match=f"within {seconds:.3g} seconds"):
                    await client.call_tool("sleep", {"seconds": 60}, timeout_seconds=seconds)
                ended.append(name)

            calls = [call("third", 0.9), call("first", 0.2), call("fourth", 1.3), call("second", 0.5)]
            await asyncio.gather(*calls, client.call_tool("add", {"a": 1, "b": 2}, timeout_seconds=0.7))
    assert ended == ["first", "second", "third", "fourth"]


@every_route
async def test_a_timeout_in_a_task_that_was_cancelled_is_a_timeout(route):
    """C6: what cleans up after a cancellation is told what happened to its call, not cancelled once more."""
    caught = []

    async def clean_up(client: Client) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            try:
                await client.call_tool("sleep", {"seconds": 60}, timeout_seconds=0.2)
            except OutcomeUnknown as error:
                caught.append(error.tool)

    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as client:
            await client.list_tools()
            task = asyncio.create_task(clean_up(client))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert caught == ["sleep"]


@every_route
async def test_a_cancellation_while_a_call_waits_is_not_taken_for_its_timeout(route):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as client:
            await client.list_tools()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.call_tool("sleep", {"seconds": 60}, timeout_seconds=30)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == 3


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_a_call_that_was_given_up_just_before_the_end_is_taken_back(revision, caplog):
    """C6: the server is told, however soon the client is closed: it need not wait for work that nobody wants."""
    server = MCPServer("s")
    ended = []

    @server.tool
    async def sleep() -> None:
        """Sleep."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(len(caplog.records))

    async with asyncio.timeout(50), Client(server, revision=revision) as client:
        await client.list_tools()
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("sleep", timeout_seconds=0.05)
    assert (ended, [record.message for record in caplog.records if "given up" in record.message]) == ([0], [])


@every_route
@both_eras
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            begun = asyncio.create_task(client.call_tool("sleep", {"seconds": 60}))
            await client.call_tool("add", {"a": 1, "b": 2})
            await asyncio.sleep(0.2)
            begun.cancel()
            with pytest.raises(asyncio.CancelledError):
                await begun
            while (await client.call_tool("cancelled_calls")).structured_content == 0:
                await asyncio.sleep(0.01)


@every_route
@both_eras
async def test_calls_at_once_get_each_its_own_answer(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 0}) for n in range(50)))
    assert [result.structured_content for result in results] == list(range(50))


@every_route
async def test_two_clients_of_one_server_do_not_disturb_each_other(route):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as one, Client(target, revision="2025-11-25") as two:
            results = await asyncio.gather(
                *(client.call_tool("say", {"text": text}) for text in "abc" for client in (one, two))
            )
    assert [result.structured_content for result in results] == list("aabbcc")


@every_route
@both_eras
async def test_closing_tells_whoever_waits(route, revision):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            await client.list_tools()
            running = [asyncio.create_task(client.call_tool("sleep", {"seconds": 60})) for _ in range(3)]
            await asyncio.sleep(0.1)
        ends = await asyncio.gather(*running, return_exceptions=True)
    assert [(type(end), end.tool) for end in ends] == [(OutcomeUnknown, "sleep")] * 3
    assert all("the client was closed" in end.reason for end in ends)


@every_route
async def test_a_client_can_be_opened_again_and_remembers_the_revision(route):
    async with asyncio.timeout(50), reached(route) as target:
        client = Client(target)
        for number in range(2):
            async with client:
                assert (await client.call_tool("add", {"a": number, "b": 1})).structured_content == number + 1
                with pytest.raises(RuntimeError, match="open already"):
                    await client.__aenter__()
        with pytest.raises(NotSent, match="the client was closed"):
            await client.call_tool("add", {"a": 1, "b": 1})
        with pytest.raises(NotSent, match="the client was closed"):
            await client.list_tools()
        with pytest.raises(RuntimeError, match="not open"):
            await Client(target).list_tools()
        await client.close()  # once more does nothing


@every_route
async def test_arguments_that_are_no_json_are_the_programs_own_fault(route):
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target) as client:
            for value in (float("nan"), object(), "\ud800"):
                with pytest.raises(TypeError, match="^tool 'say', arguments"):
                    await client.call_tool("say", {"text": value})
                with pytest.raises(TypeError, match="^tool 'say', meta"):
                    await client.call_tool("say", {"text": "x"}, meta={"note": value})
            assert (await client.call_tool("say", {"text": "x"})).structured_content == "x"


class Parcel(BaseModel):
    number: uuid.UUID = Field(alias="parcelNumber")
    sent: datetime.date
    weight: decimal.Decimal


@dataclasses.dataclass
class Load:
    parcels: list[Parcel]
    takes: datetime.timedelta
    tags: frozenset[str]


@pytest.mark.parametrize("route", ["memory", "http"])
async def test_arguments_may_be_models_and_what_else_has_a_form_in_json(route):
    """Models go by their aliases, wherever they stand; what a client can send, the in-process door takes too (S18)."""
    parcel = Parcel(parcelNumber=uuid.UUID(int=7), sent=datetime.date(2026, 1, 31), weight=decimal.Decimal("1.50"))
    load = Load([parcel], datetime.timedelta(hours=1), frozenset({"a"}))
    mcp = MCPServer("echo")
    mcp.add_tool(
        lambda arguments: arguments, name="echo", input_schema={"type": "object"}, output_schema={"type": "object"}
    )
    async with asyncio.timeout(50), contextlib.AsyncExitStack() as stack:
        target = mcp if route == "memory" else (await stack.enter_async_context(over_http(mcp)))[0]
        client = await stack.enter_async_context(Client(target))
        result = await client.call_tool("echo", {"load": load, "data": b"\xff"})
    written = {"parcelNumber": str(uuid.UUID(int=7)), "sent": "2026-01-31", "weight": "1.50"}
    sent = {"load": {"parcels": [written], "takes": "PT3600S", "tags": ["a"]}, "data": "/w=="}
    assert result.structured_content == sent
    assert (await mcp.call_tool("echo", {"load": load, "data": b"\xff"})).structured_content == sent


async def test_an_argument_without_a_form_is_named_by_its_place():
    """Both doors: which tool, where, what it is, what to give instead (STYLE, "Comments and errors")."""
    mcp = make_shop()
    told = (
        "tool 'say', arguments['items'][1] cannot be written as JSON: objects of type object have no form in it; "
        "give JSON values, a dataclass or a pydantic model"
    )
    async with asyncio.timeout(50), Client(mcp) as client:
        for door in (client, mcp):
            with pytest.raises(TypeError) as caught:
                await door.call_tool("say", {"items": [1, object()]})
            assert str(caught.value) == told


@every_route
@both_eras
async def test_an_error_of_the_protocol_has_its_code(route, revision):
    """A22: an unknown tool is -32602, with near names."""
    async with asyncio.timeout(50), reached(route) as target:
        async with Client(target, revision=revision) as client:
            with pytest.raises(ProtocolError, match="add") as caught:
                await client.call_tool("ad")
    assert caught.value.code == -32602


async def test_an_error_carries_its_data():
    error = {"error": {"code": 7, "message": "seven", "data": {"a": [1]}}}
    async with Client(Canned([tool("t")], {"t": error})) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("t")
    assert (caught.value.code, caught.value.message, caught.value.data) == (7, "seven", {"a": [1]})


@every_route
async def test_meta_travels_with_a_call(route):
    server = Canned([tool("t")], {"t": structured(1)})
    async with Client(server) as client:
        await client.call_tool("t", {"a": 1}, meta={"traceparent": "00-1"})
    params = server.heard[-1]["params"]
    assert (params["name"], params["arguments"], params["_meta"]["traceparent"]) == ("t", {"a": 1}, "00-1")


async def test_what_cannot_be_opened_is_said_at_once():
    """`TransportError`: nothing was sent."""
    with pytest.raises(NotSent, match="no program 'no-such-program'"):
        await Client(StdioServer("no-such-program")).__aenter__()
    with pytest.raises(NotSent, match="nothing listens there"):
        await Client("http://127.0.0.1:9/mcp").__aenter__()
    dying = StdioServer(sys.executable, ["-c", "import sys; print('oh no', file=sys.stderr); sys.exit(3)"])
    async with asyncio.timeout(50):
        with pytest.raises(TransportError, match="exit code 3.*last words.*oh no"):
            await Client(dying).__aenter__()


# HTTP alone.


async def test_the_right_headers_go_out():
    """C4: method, name and parameters in their exact encoding."""
    mcp = MCPServer("s")

    def measure(region: Region, count: int) -> str:
        return f"{region}{count}"

    with pytest.warns(DefinitionWarning, match="outside the recommended"):
        mcp.add_tool(measure, name="größe")

    async with asyncio.timeout(50), over_http(mcp) as (url, shop):
        async with Client(url) as client:
            assert (await client.call_tool("größe", {"region": "Zürich ", "count": 1})).structured_content == "Zürich 1"
            await client.call_tool("größe", {"region": "plain", "count": 1})
    first, second = shop.headers[-2:]
    assert {name: value for name, value in first.items() if name.startswith("mcp-")} == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?Z3LDtsOfZQ==?=",
        "mcp-param-region": "=?base64?WsO8cmljaCA=?=",
    }
    assert second["mcp-param-region"] == "plain"


async def test_headers_that_are_missing_are_learnt_from_a_new_listing_once():
    """C4: on `HeaderMismatch` the list is read again, and the call repeated once."""
    mcp = MCPServer("s")
    mcp.add_tool(
        lambda arguments: f"in {arguments['region']}",
        name="find",
        input_schema=REGION,
        output_schema={"type": "string"},
    )
    async with asyncio.timeout(50), over_http(mcp) as (url, shop):
        async with Client(url) as client:
            await client.list_tools()
            mcp.remove_tool("find")

            @mcp.tool(name="find")
            def find(region: Region) -> str:
                return f"in {region}"

            assert (await client.call_tool("find", {"region": "eu"})).structured_content == "in eu"
    assert [method for _, method in shop.asked] == [
        "server/discover",
        "tools/list",
        "tools/call",
        "tools/list",
        "tools/call",
    ]


class Mismatching(HttpShop):
    """Finds that headers are missing, whatever they are."""

    async def _note(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (b"mcp-method", b"tools/call") not in scope["headers"]:
            await super()._note(scope, receive, send)
            return
        self.asked.append(("POST", "tools/call"))
        request_id = json.loads((await receive())["body"])["id"]
        error = {"code": -32020, "message": "never right"}
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def test_a_header_that_stays_wrong_is_raised_after_one_repetition():
    async with asyncio.timeout(50):
        shop = Mismatching(make_shop())
        url = await shop.start()
        try:
            async with Client(url) as client:
                with pytest.raises(ProtocolError, match="never right") as caught:
                    await client.call_tool("add", {"a": 1, "b": 2})
        finally:
            await shop.stop()
    assert caught.value.code == -32020
    assert [method for _, method in shop.asked] == ["server/discover", *["tools/list", "tools/call"] * 2]


async def test_a_session_that_the_server_has_forgotten_is_begun_anew_and_the_call_repeated():
    """2025-11-25: a 404 says that nothing was done."""
    async with asyncio.timeout(50):
        before = HttpShop(make_shop())
        url = await before.start()
        async with Client(url, revision="2025-11-25") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == 2
            await before.stop()
            after = HttpShop(make_shop())
            await after.start(before.port)
            try:
                results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(5)))
                assert [result.structured_content for result in results] == [1, 2, 3, 4, 5]
                assert "add" in await client.list_tools()
            finally:
                await client.close()
                await after.stop()


async def test_a_forgotten_session_is_begun_anew_for_a_listing_too():
    async with asyncio.timeout(50):
        before = HttpShop(make_shop())
        url = await before.start()
        async with Client(url, revision="2025-11-25") as client:
            await before.stop()
            after = HttpShop(make_shop())
            await after.start(before.port)
            try:
                assert "add" in await client.list_tools()
            finally:
                await client.close()
                await after.stop()


async def test_log_messages_are_asked_for_again_in_a_new_session():
    heard: list[Any] = []
    async with asyncio.timeout(50):
        before = HttpShop(make_shop())
        url = await before.start()
        options: dict[str, Any] = {"log_level": "error", "on_log": lambda *each: heard.append(each)}
        async with Client(url, revision="2025-11-25", **options) as client:
            await client.list_tools()
            await before.stop()
            after = HttpShop(make_shop())
            await after.start(before.port)
            try:
                await client.call_tool("talk")
                while not heard:
                    await asyncio.sleep(0.01)
            finally:
                await client.close()
                await after.stop()
    assert heard == [("error", "oh", "talk")]


async def test_an_http_client_headers_and_auth_of_the_programs_own_are_used():
    """Any OAuth flow can be used; what was given stays open."""

    class Token(httpx2.Auth):
        def auth_flow(self, request):
            request.headers["authorization"] = "Bearer t"
            yield request

    async with asyncio.timeout(50), over_http(make_shop()) as (url, shop):
        async with httpx2.AsyncClient(trust_env=False) as own:
            async with Client(url, http_client=own, auth=Token(), http_headers={"X-Shop": "7"}) as client:
                await client.call_tool("add", {"a": 1, "b": 2})
            assert own.is_closed is False
    assert {(each["authorization"], each["x-shop"]) for each in shop.headers} == {("Bearer t", "7")}


async def test_a_status_that_refuses_is_raised_with_its_challenge():
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        headers = [(b"www-authenticate", b'Bearer scope="shop"'), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    listeners = bind("127.0.0.1", 0, stall_seconds=60)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(app, listeners, stop=stop))
    try:
        with pytest.raises(HttpStatusError) as caught:
            await Client(f"http://127.0.0.1:{listeners[0].getsockname()[1]}/mcp").__aenter__()
    finally:
        stop.set()
        await serving
    assert (caught.value.status, caught.value.challenge) == (401, 'Bearer scope="shop"')


async def test_a_server_that_goes_is_unsent_and_one_that_comes_back_is_used():
    """The newest revision has no session: the next call goes to whoever listens."""
    async with asyncio.timeout(50):
        before = HttpShop(make_shop())
        url = await before.start()
        async with Client(url) as client:
            await client.list_tools()
            await before.stop()
            with pytest.raises(TwofoldError) as caught:
                await client.call_tool("add", {"a": 1, "b": 1})
            assert isinstance(caught.value, NotSent)
            after = HttpShop(make_shop())
            await after.start(before.port)
            try:
                assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == 2
            finally:
                await client.close()
                await after.stop()
