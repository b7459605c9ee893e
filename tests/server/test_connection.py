"""One peer's connection: eras, sessions, bad input. Every answer is judged by the official wire types."""

import asyncio
import json

import pytest

from tests.peer import HANDSHAKE, PER_REQUEST, REVISIONS, Peer, Refused, text_of
from twofold import Context, MCPServer, ProtocolError, ToolError


def make_server(**options) -> MCPServer:
    mcp = MCPServer("s", version="1", **options)

    @mcp.tool()
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @mcp.tool()
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    return mcp


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_revision_is_served_by_the_same_server(revision):
    """B1, B2: one process, every era."""
    async with Peer(make_server(), revision) as peer:
        tools = await peer.list()
        assert list(tools) == ["add", "shout"]
        assert ("outputSchema" in tools["add"]) is (revision >= "2025-06-18")
        result = await peer.call("add", {"a": 2, "b": 40})
        assert text_of(result) == "42"
        assert result.get("structuredContent") == ({"result": 42} if revision >= "2025-06-18" else None)
        assert text_of(await peer.call("shout", {"text": "hi"})) == "HI"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_initialize_agrees_on_the_revision_asked_for(revision):
    async with Peer(make_server(instructions="Add."), revision) as peer:
        assert (peer.opening["protocolVersion"], peer.opening["instructions"]) == (revision, "Add.")
        assert await peer.request("ping", {}) == {}


async def test_discover_needs_no_handshake():
    """2026-07-28, server/discover."""
    async with Peer(make_server()) as peer:
        answer = await peer.request("server/discover")
        assert answer["supportedVersions"] == list(REVISIONS)
        assert answer["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "s", "version": "1"}


async def test_both_eras_are_served_on_one_connection():
    """Versioning: a dual-era server may serve both concurrently on the same process."""
    async with Peer(make_server(), "2025-06-18") as peer:
        meta = {
            "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call = {"name": "add", "arguments": {"a": 1, "b": 1}}
        peer.revision = PER_REQUEST
        newer = await peer.request("tools/call", {**call, "_meta": meta})
        peer.revision = "2025-06-18"
        older = await peer.request("tools/call", call)
        assert (newer["resultType"], "resultType" in older) == ("complete", False)


@pytest.mark.parametrize(
    ("method", "params", "code", "opening"),
    [
        ("tools/list", {}, -32602, "tools/list: _meta lacks io.modelcontextprotocol/protocolVersion"),
        (
            "tools/list",
            {"_meta": {"io.modelcontextprotocol/protocolVersion": PER_REQUEST}},
            -32602,
            "_meta lacks io.modelcontextprotocol/clientCapabilities",
        ),
        (
            "tools/list",
            {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                    "io.modelcontextprotocol/clientCapabilities": [],
                }
            },
            -32602,
            "tools/list: the params do not fit: Expected `object | null`, got `array`",
        ),
        ("tools/list", {"_meta": 5}, -32602, "tools/list: the params do not fit: "),
        (
            "tools/list",
            {"_meta": {"io.modelcontextprotocol/protocolVersion": 5}},
            -32602,
            "tools/list: the params do not fit: ",
        ),
        ("tools/nothing", {}, -32601, "method 'tools/nothing' is not served"),
        ("initialize", {"protocolVersion": 5}, -32602, "initialize: the params do not fit: "),
        ("initialize", {"protocolVersion": "2025-11-25"}, -32602, "initialize: the params do not fit: "),
    ],
)
async def test_a_request_that_cannot_be_placed_is_refused(method, params, code, opening):
    """Overview, "_meta": a request missing a required field is malformed, -32602."""
    async with Peer(make_server()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request(method, params)
        assert caught.value.code == code
        assert caught.value.message.startswith(opening)
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"


async def test_an_unknown_revision_is_refused_with_those_there_are():
    """2026-07-28, UnsupportedProtocolVersionError."""
    async with Peer(make_server()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request("tools/list", peer.params(protocolVersion="1900-01-01"))
        assert (caught.value.code, caught.value.data) == (
            -32022,
            {"supported": list(REVISIONS), "requested": "1900-01-01"},
        )


@pytest.mark.parametrize(
    ("revision", "method"),
    [
        (PER_REQUEST, "ping"),
        (PER_REQUEST, "initialize"),
        (PER_REQUEST, "logging/setLevel"),
        ("2025-11-25", "server/discover"),
        ("2025-11-25", "subscriptions/listen"),
        ("2025-06-18", "nonsense"),
    ],
)
async def test_a_method_of_another_era_does_not_exist(revision, method):
    async with Peer(make_server(), revision) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request(method, peer.params())
        assert (caught.value.code, caught.value.message) == (
            -32601,
            f"method {method!r} is not served in revision {revision}",
        )


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not json", -32700),
        (b'{"jsonrpc":"2.0","id":"\xff\xfe"}', -32700),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":' + b"[" * 100_000, -32700),
        (b"5", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b"[]", -32600),
        (b"[1,", -32600),
    ],
)
async def test_what_is_no_message_is_refused_and_the_next_one_answered(revision, line, code):
    """Malformed JSON, wrong UTF-8, deep nesting: a precise error, and the next request is answered."""
    async with Peer(make_server(), revision) as peer:
        answer = await peer.raw(line)
        if revision == "2025-03-26" and line == b"[1,":
            code = -32700  # there, batches exist: this one is not JSON
        assert answer["error"]["code"] == code
        assert answer.get("id") == (None if revision in (PER_REQUEST, "2025-11-25") else "unreadable")
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"


async def test_a_message_with_a_readable_id_is_refused_by_that_id():
    async with Peer(make_server()) as peer:
        answer = await peer.raw(b'{"jsonrpc":"2.0","id":77,"method":5}')
        assert (answer["id"], answer["error"]["code"]) == (77, -32600)


async def test_an_id_in_use_is_refused():
    """Overview: an id must not match that of a request not yet answered."""
    mcp = make_server()
    started, release = asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def wait() -> str:
        started.set()
        await release.wait()
        return "done"

    async with Peer(mcp) as peer:
        first = peer.send("tools/call", peer.params({"name": "wait"}), id=5)
        await started.wait()
        second = await peer.send("tools/list", id=5)
        assert second["error"] == {
            "code": -32600,
            "message": "the id 5 is in use by a request that is not answered yet",
        }
        release.set()
        del first
        await peer.connection.close(grace_seconds=5)
        (late,) = peer.unasked
        assert text_of(late["result"]) == "done"
        assert (
            text_of(
                (await peer.send("tools/call", peer.params({"name": "add", "arguments": {"a": 1, "b": 1}}), id=5))[
                    "result"
                ]
            )
            == "2"
        )


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_unknown_tool_is_a_protocol_error_with_near_names(revision):
    """A22: -32602, with near names."""
    async with Peer(make_server(), revision) as peer:
        with pytest.raises(Refused) as caught:
            await peer.call("ad")
        assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: 'ad'; did you mean 'add'?")


@pytest.mark.parametrize("params", [{}, {"name": ""}, {"name": 5}, {"name": None}])
async def test_a_call_without_a_name_is_refused(params):
    async with Peer(make_server()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request("tools/call", peer.params(params))
        assert caught.value.code == -32602


@pytest.mark.parametrize("arguments", [None, "null", {}])
async def test_no_arguments_can_be_said_in_three_ways(arguments):
    """I11: called with {}, with null and with nothing."""
    mcp = MCPServer("s")

    @mcp.tool()
    def now() -> str:
        return "noon"

    async with Peer(mcp) as peer:
        params = {"name": "now"} | (
            {} if arguments is None else {"arguments": None if arguments == "null" else arguments}
        )
        assert text_of(await peer.request("tools/call", peer.params(params))) == "noon"


@pytest.mark.parametrize("arguments", [[], 5, "text", True])
async def test_arguments_that_are_no_object_are_refused(arguments):
    async with Peer(make_server()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request("tools/call", peer.params({"name": "add", "arguments": arguments}))
        assert caught.value.code == -32602


async def test_initialize_happens_once():
    async with Peer(make_server(), "2025-11-25") as peer:
        with pytest.raises(Refused, match="this session speaks 2025-11-25 already"):
            await peer.request(
                "initialize",
                {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
            )


async def test_unasked_and_unknown_messages_get_no_answer():
    """A notification is never answered; nor is a response to nothing."""
    async with Peer(make_server()) as peer:
        peer.notify("notifications/unknown")
        peer.notify("notifications/cancelled", {"requestId": 99})
        peer.notify("notifications/cancelled", {"requestId": []})
        peer.connection.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}')
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"
        assert (peer.unasked, peer.notifications) == ([], [])


async def test_a_batch_is_answered_with_one_array():
    """2025-03-26: batches are accepted."""
    async with Peer(make_server(), "2025-03-26") as peer:
        messages = [
            {
                "jsonrpc": "2.0",
                "id": "a",
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
            },
            {"jsonrpc": "2.0", "method": "notifications/unknown"},
            {"jsonrpc": "2.0", "id": "b", "method": "nonsense"},
            5,
        ]
        peer.connection.receive(json.dumps(messages).encode())
        await peer.connection.close(grace_seconds=5)
        (line,) = [line for line in peer.sent if line.startswith(b"[")]
        first, second, third = json.loads(line)
        assert (first["id"], text_of(first["result"])) == ("a", "3")
        assert (second["id"], second["error"]["code"]) == ("b", -32601)
        assert (third["id"], third["error"]["code"]) == ("unreadable", -32600)


async def test_a_batch_of_notifications_gets_no_answer():
    async with Peer(make_server(), "2025-03-26") as peer:
        before = len(peer.sent)
        peer.connection.receive(b'[{"jsonrpc":"2.0","method":"notifications/unknown"}]')
        await peer.connection.close(grace_seconds=5)
        assert peer.sent[before:] == []


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"])
async def test_a_batch_does_not_exist_in_other_revisions(revision):
    async with Peer(make_server(), revision) as peer:
        answer = await peer.raw(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
        assert answer["error"]["code"] == -32600
        assert "batches do not exist" in answer["error"]["message"]


async def test_initialize_may_not_stand_in_a_batch():
    """2025-03-26, lifecycle: the initialize request must not be part of a batch."""
    async with Peer(make_server(), "2025-03-26", start=False) as peer:
        peer.revision = PER_REQUEST  # before the handshake no older revision is spoken yet
        answer = await peer.raw(b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]')
        assert answer["error"]["code"] == -32600


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_protocol_error_raised_in_a_tool_is_one_on_the_wire(revision):
    """A22: ProtocolError passes as a JSON-RPC error."""
    mcp = MCPServer("s")

    @mcp.tool()
    def fail() -> str:
        raise ProtocolError(-1, "no", {"a": 1})

    async with Peer(mcp, revision) as peer:
        with pytest.raises(Refused) as caught:
            await peer.call("fail")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-1, "no", {"a": 1})


async def test_context_tells_who_calls_and_passes_the_trace_on():
    """B4: trace context in `_meta` passes through."""
    mcp = MCPServer("s")
    seen = []

    @mcp.tool()
    async def look(ctx: Context) -> str:
        seen.append((ctx.request_id, ctx.tool_name, ctx.protocol_version, ctx.client_info, ctx.meta.get("traceparent")))
        return ""

    async with Peer(mcp) as peer:
        params = peer.params({"name": "look", "_meta": {"traceparent": "00-1-2-01"}})
        await peer.request("tools/call", params, id="x")
    async with Peer(mcp, "2025-06-18") as peer:
        await peer.call("look")
    assert seen == [
        ("x", "look", PER_REQUEST, {"name": "t", "version": "0"}, "00-1-2-01"),
        (2, "look", "2025-06-18", {"name": "t", "version": "0"}, None),
    ]


async def test_a_tool_error_is_a_result():
    mcp = MCPServer("s")

    @mcp.tool()
    def fail() -> str:
        raise ToolError("try \ud800 again")

    async with Peer(mcp) as peer:
        result = await peer.call("fail")
        assert (result["isError"], text_of(result)) == (True, "try \\ud800 again")


class Odd(BaseException):
    """Not even an Exception."""


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class MuteToolError(ToolError):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("expose_errors", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda: Odd("secret"),
        lambda: KeyboardInterrupt("secret"),
        lambda: SystemExit("secret"),
        lambda: GeneratorExit("secret"),
        lambda: BaseExceptionGroup("secret", [Odd("secret")]),
        lambda: Mute("secret"),
        lambda: MuteToolError("secret"),
        lambda: ToolError(object()),
        lambda: StopIteration("secret"),
        lambda: asyncio.CancelledError("secret"),
    ],
)
async def test_whatever_a_tool_raises_its_call_is_answered_and_the_next_one_too(make, expose_errors, is_async):
    """Never a dead server, never a lost answer."""
    mcp = make_server(expose_errors=expose_errors)

    async def later() -> str:
        raise make()

    def now() -> str:
        raise make()

    mcp.add_tool(later if is_async else now, name="fail")
    async with Peer(mcp) as peer:
        result = await peer.call("fail")
        assert result["isError"] is True
        assert "0x" not in text_of(result)
        assert expose_errors or "secret" not in text_of(result)
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"


async def suicidal() -> str:
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return ""


async def test_a_tool_that_cancels_its_own_task_is_answered():
    mcp = make_server()
    mcp.add_tool(suicidal)

    async with Peer(mcp) as peer:
        with pytest.raises(Refused) as caught:
            await peer.call("suicidal")
        assert caught.value.code == -32603
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"


async def test_failures_of_a_nested_group_are_told_one_by_one():
    """`ToolError` always passes its message; `ProtocolError` is one on the wire."""
    mcp = MCPServer("s")

    @mcp.tool()
    async def told() -> str:
        raise ExceptionGroup("g", [ToolError("one"), ExceptionGroup("h", [ToolError("two")])])

    @mcp.tool()
    async def refused() -> str:
        raise ExceptionGroup("g", [ToolError("one"), ProtocolError(-7, "no")])

    async with Peer(mcp) as peer:
        assert text_of(await peer.call("told")) == "one\ntwo"
        with pytest.raises(Refused, match="-7: no"):
            await peer.call("refused")


@pytest.mark.parametrize("data", [object(), float("nan"), "\ud800", {1j: 2}])
async def test_a_protocol_error_whose_data_is_no_json_arrives_without_it(data):
    mcp = MCPServer("s")

    @mcp.tool()
    async def fail() -> str:
        raise ProtocolError(-5, "no", data)

    async with Peer(mcp) as peer:
        with pytest.raises(Refused) as caught:
            await peer.call("fail")
        assert (caught.value.code, caught.value.message) == (-5, "no")
        assert caught.value.data.startswith("left out: data")
        assert "0x" not in caught.value.data


@pytest.mark.parametrize(("code", "message"), [("x", "m"), (1.5, "m"), (True, "m"), (-5, 5)])
def test_a_protocol_error_is_a_whole_number_and_a_text(code, message):
    with pytest.raises(TypeError, match="a whole number as code and a text"):
        ProtocolError(code, message)


async def test_an_error_without_a_request_is_not_answered():
    """Two ends that answer each other's errors would never stop."""
    async with Peer(make_server()) as peer:
        peer.connection.receive(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}')
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"
        assert peer.unasked == []


async def test_a_batch_that_is_too_long_is_refused():
    async with Peer(make_server(), "2025-03-26") as peer:
        line = b"[" + b",".join([b'{"jsonrpc":"2.0","method":"notifications/unknown"}'] * 1001) + b"]"
        assert "a batch holds at most 1000 messages" in (await peer.raw(line))["error"]["message"]


async def test_a_handshake_revision_named_in_a_request_is_told_how_it_opens():
    async with Peer(make_server()) as peer:
        with pytest.raises(Refused, match="it opens with initialize"):
            await peer.request("tools/list", peer.params(protocolVersion="2025-11-25"))


@pytest.mark.parametrize("failure", [SystemExit(2), KeyboardInterrupt(), Odd("x"), ValueError("x")])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_with_a_deadline_fails_as_one_without(failure, is_async):
    """`argparse` and `click` raise SystemExit; a task that raises it would take the event loop with it."""
    mcp = make_server()

    async def later() -> str:
        raise failure

    def now() -> str:
        raise failure

    mcp.add_tool(later if is_async else now, name="fail", timeout_seconds=20)
    async with Peer(mcp) as peer:
        assert text_of(await peer.call("fail")).startswith("Error executing tool fail (reference ")
        assert text_of(await peer.call("add", {"a": 1, "b": 1})) == "2"


async def test_a_large_batch_of_blocking_calls_is_answered_whole():
    mcp = make_server()

    @mcp.tool()
    def block(number: int) -> int:
        return number

    async with Peer(mcp, "2025-03-26") as peer:
        messages = [
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "block", "arguments": {"number": n}}}
            for n in range(600)
        ]
        peer.connection.receive(json.dumps(messages).encode())
        await peer.connection.close(grace_seconds=30)
        (line,) = [line for line in peer.sent if line.startswith(b"[")]
        assert [text_of(answer["result"]) for answer in json.loads(line)] == [str(n) for n in range(600)]
        assert peer.connection.running == 0


async def test_an_element_of_a_batch_that_cancels_itself_is_answered():
    mcp = make_server()
    mcp.add_tool(suicidal)

    async with Peer(mcp, "2025-03-26") as peer:
        listen = {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            "notifications": {},
        }
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "suicidal"}},
            {"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": listen},
        ]
        peer.connection.receive(json.dumps(messages).encode())
        for _ in range(20):
            await asyncio.sleep(0)
        (line,) = [line for line in peer.sent if line.startswith(b"[")]
        assert [(answer["id"], answer["error"]["code"]) for answer in json.loads(line)] == [(1, -32603), (2, -32600)]
