"""Revision 2026-07-28 over HTTP: one POST a request, headers that agree with the body, statuses, streams.

Source: MCP 2026-07-28, Streamable HTTP.
"""

import asyncio
import base64
import json
import threading
from typing import Annotated, Literal

import pytest

from tests.http_peer import PER_REQUEST, HttpPeer, Refused, per_request_params
from tests.oracle import judge_message
from twofold import (
    Context,
    DefinitionWarning,
    Header,
    HeaderMismatch,
    Limits,
    MCPServer,
    MissingRequiredClientCapability,
    ProtocolError,
)

mcp = MCPServer("shop", version="1.0.0")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def choose() -> str:
    """Choose."""
    return "ok"


with pytest.warns(DefinitionWarning, match="outside the recommended"):
    mcp.add_tool(choose, name="wybór")


@mcp.tool()
def query(
    region: Annotated[str, Header("Region")],
    shard: Annotated[int, Header("Shard")] = 0,
    dry: Annotated[bool, Header("Dry")] = False,
) -> str:
    """Query a region."""
    return f"{region} {shard} {dry}"


@mcp.tool()
async def count(ctx: Context, upto: int) -> str:
    """Count with progress and a log message."""
    for step in range(1, upto + 1):
        await ctx.report_progress(step, upto)
    await ctx.warning("counted")
    return f"counted to {upto}"


@mcp.tool()
def sample(ctx: Context) -> str:
    """Needs sampling."""
    if "sampling" not in ctx.client_capabilities:
        raise MissingRequiredClientCapability({"sampling": {}})
    return "sampled"


@mcp.tool()
def fail(code: int) -> str:
    """Raise an error of the protocol."""
    raise ProtocolError(code, "as asked")


def wrap(text: str) -> str:
    return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="


async def test_a_call_that_streams_nothing_is_one_json_object():
    """B1: both faces in one object, with its length."""
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/call", {"name": "add", "arguments": {"a": 2, "b": 40}}).whole()
    answer = response.json
    judge_message(answer, revision=PER_REQUEST, method="tools/call")
    assert (response.status, answer["result"]["structuredContent"]) == (200, {"result": 42})
    assert answer["result"]["content"] == [{"type": "text", "text": "42"}]
    assert set(response.headers) == {"content-type", "content-length"}


async def test_discovery_and_listing_are_served():
    """B1: `server/discover` and `tools/list` need no call before them."""
    async with HttpPeer(mcp) as http:
        discovered = await http.request("server/discover")
        listed = await http.request("tools/list")
    assert PER_REQUEST in discovered["supportedVersions"]
    assert [tool["name"] for tool in listed["tools"]] == ["add", "wybór", "query", "count", "sample", "fail"]


async def test_progress_and_logs_go_out_on_the_calls_own_stream():
    """B4: an event stream once something is streamed, and the answer ends it; proxies are told not to gather it."""
    meta = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "warning"}
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/call", {"name": "count", "arguments": {"upto": 2}}, **meta).whole()
    for message in response.messages:
        judge_message(message, revision=PER_REQUEST, method="tools/call")
    *sent, answer = response.messages
    assert [(each["method"], each["params"]) for each in sent] == [
        ("notifications/progress", {"progressToken": "p", "progress": 1, "total": 2}),
        ("notifications/progress", {"progressToken": "p", "progress": 2, "total": 2}),
        ("notifications/message", {"level": "warning", "data": "counted", "logger": "count"}),
    ]
    assert answer["result"]["structuredContent"] == {"result": "counted to 2"}
    assert response.status == 200
    assert response.headers["x-accel-buffering"] == "no"
    assert [event.id for event in response.events] == [None] * 4


@pytest.mark.parametrize(
    ("label", "headers"),
    [
        ("same", {"Mcp-Name": "add"}),
        ("wrapped", {"Mcp-Name": wrap("add")}),
        ("blanks around", {"Mcp-Name": "  add\t"}),
        (
            "any spelling of names",
            {"MCP-METHOD": "tools/call", "Mcp-Method": None, "mcp-NAME": "add", "Mcp-Name": None},
        ),
        ("a session of another era", {"Mcp-Session-Id": "whatever"}),
        ("resumption of another era", {"Last-Event-ID": "1-1"}),
    ],
)
async def test_headers_that_agree_are_served(label, headers):
    """B1: decoded before they are compared; what belongs to earlier revisions is ignored."""
    async with HttpPeer(mcp) as http:
        result = await http.call("add", {"a": 1, "b": 1}, headers)
    assert result["structuredContent"] == {"result": 2}


@pytest.mark.parametrize(
    ("label", "headers"),
    [
        ("version missing", {"MCP-Protocol-Version": None}),
        ("version different", {"MCP-Protocol-Version": "2025-11-25"}),
        ("method missing", {"Mcp-Method": None}),
        ("method different", {"Mcp-Method": "tools/list"}),
        ("method in capitals", {"Mcp-Method": "TOOLS/CALL"}),
        ("name missing", {"Mcp-Name": None}),
        ("name different", {"Mcp-Name": "drop_all"}),
        ("name in capitals", {"Mcp-Name": "ADD"}),
        ("broken wrapping", {"Mcp-Name": "=?base64?@@@?="}),
        ("padding missing", {"Mcp-Name": "=?base64?YWRk0?="}),
        ("no UTF-8", {"Mcp-Name": "=?base64?/////w==?="}),
        ("bytes beyond ASCII", {"Mcp-Name": "add\xff"}),
    ],
)
async def test_headers_that_disagree_are_refused(label, headers):
    """B1: status 400 and -32020, with the request's id; the tool is not called."""
    async with HttpPeer(mcp) as http:
        with pytest.raises(Refused) as caught:
            await http.call("add", {"a": 1, "b": 1}, headers)
    assert (caught.value.status, caught.value.code, caught.value.id) == (400, -32020, 1)


async def test_names_outside_ascii_are_called_by_their_encoded_form():
    """B1: X02, a name that no header can hold as it is."""
    async with HttpPeer(mcp) as http:
        result = await http.call("wybór", {}, {"Mcp-Name": wrap("wybór")})
    assert result["structuredContent"] == {"result": "ok"}


@pytest.mark.parametrize(
    ("arguments", "headers", "text"),
    [
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, "eu 0 False"),
        ({"region": "żółw"}, {"Mcp-Param-Region": wrap("żółw")}, "żółw 0 False"),
        ({"region": "a\r\nb"}, {"Mcp-Param-Region": wrap("a\r\nb")}, "a\r\nb 0 False"),
        ({"region": "=?base64?eHg="}, {"Mcp-Param-Region": "=?base64?eHg="}, "=?base64?eHg= 0 False"),
        ({"region": "eu", "shard": 42}, {"Mcp-Param-Region": "eu", "Mcp-Param-Shard": "42.0"}, "eu 42 False"),
        ({"region": "eu", "dry": True}, {"Mcp-Param-Region": "eu", "Mcp-Param-Dry": "true"}, "eu 0 True"),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu", "Mcp-Param-Unknown": "x"}, "eu 0 False"),
    ],
)
async def test_mirrored_arguments_that_agree_are_served(arguments, headers, text):
    """B1: `Mcp-Param-*`, decoded; whole numbers compared as numbers; unknown ones ignored."""
    async with HttpPeer(mcp) as http:
        result = await http.call("query", arguments, headers)
    assert result["structuredContent"] == {"result": text}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?ZXU?="}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu", "Mcp-Param-Shard": "1"}),
        ({"region": "eu", "shard": 42}, {"Mcp-Param-Region": "eu", "Mcp-Param-Shard": "42x"}),
        ({"region": "eu", "shard": 42}, {"Mcp-Param-Region": "eu", "Mcp-Param-Shard": "NaN"}),
        ({"region": "eu", "dry": True}, {"Mcp-Param-Region": "eu", "Mcp-Param-Dry": "True"}),
        ({"region": "eu", "dry": None}, {"Mcp-Param-Region": "eu", "Mcp-Param-Dry": "true"}),
    ],
)
async def test_mirrored_arguments_that_disagree_are_refused(arguments, headers):
    """B1: a header is missing, malformed, says something else, or stands for what the body does not have."""
    async with HttpPeer(mcp) as http:
        with pytest.raises(Refused) as caught:
            await http.call("query", arguments, headers)
    assert (caught.value.status, caught.value.code) == (400, -32020)


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("nope/nothing", {}, 404, -32601),
        ("initialize", {"protocolVersion": "2025-11-25"}, 404, -32601),
        ("ping", {}, 404, -32601),
        ("logging/setLevel", {"level": "debug"}, 404, -32601),
        ("tools/call", {"name": "ad"}, 400, -32602),
        ("tools/list", {"cursor": "made up"}, 400, -32602),
        ("tools/call", {"name": "sample"}, 400, -32021),
        ("tools/call", {"name": "fail", "arguments": {"code": 17}}, 200, 17),
    ],
)
async def test_errors_have_their_status(method, params, status, code):
    """B1: the protocol's own errors say so to whoever reads only the status; a tool's own code is an answer."""
    async with HttpPeer(mcp) as http:
        with pytest.raises(Refused) as caught:
            await http.request(method, params, id="seven")
    assert (caught.value.status, caught.value.code, caught.value.id) == (status, code, "seven")


async def test_a_missing_capability_is_named():
    """B1: -32021 lists what the client would have to declare."""
    async with HttpPeer(mcp) as http:
        with pytest.raises(Refused) as caught:
            await http.call("sample")
        served = await http.call("sample", **{"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}})
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}
    assert served["structuredContent"] == {"result": "sampled"}


@pytest.mark.parametrize(
    ("version", "header", "code"),
    [("v999.0.0", "v999.0.0", -32022), ("v999.0.0", PER_REQUEST, -32020), ("2025-11-25", "2025-11-25", -32022)],
)
async def test_unknown_versions_are_refused_with_those_there_are(version, header, code):
    """B1: first header and body have to agree, then the version has to be one that carries it in each request."""
    async with HttpPeer(mcp) as http:
        with pytest.raises(Refused) as caught:
            await http.request(
                "tools/list",
                {},
                {"MCP-Protocol-Version": header},
                **{"io.modelcontextprotocol/protocolVersion": version},
            )
    assert (caught.value.status, caught.value.code) == (400, code)
    if code == -32022:
        assert caught.value.data["requested"] == version
        assert PER_REQUEST in caught.value.data["supported"]


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {"io.modelcontextprotocol/clientCapabilities": {}},
        {"io.modelcontextprotocol/protocolVersion": PER_REQUEST},
    ],
)
async def test_a_request_without_its_meta_is_refused(meta):
    """B1: -32602 and 400, although the headers are right."""
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {} if meta is None else {"_meta": meta}}
    async with HttpPeer(mcp) as http:
        response = await http.post(message, {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": "tools/list"}).whole()
    assert (response.status, response.json["error"]["code"], response.json["id"]) == (400, -32602, 5)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b"[" * 5000, -32700),
        (b"[" * 5000, -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
async def test_bodies_that_are_no_message_are_refused(body, code):
    """B1: one message a body, no batches; status 400."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "*/*",
        "MCP-Protocol-Version": PER_REQUEST,
        "Mcp-Method": "tools/list",
    }
    async with HttpPeer(mcp) as http:
        response = await http.ask("POST", body, headers).whole()
    assert (response.status, response.json["error"]["code"]) == (400, code)


async def test_a_notification_is_accepted_without_an_answer():
    """B1: status 202 and no body."""
    async with HttpPeer(mcp) as http:
        message = {"jsonrpc": "2.0", "method": "notifications/whatever", "params": per_request_params()}
        headers = {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": "notifications/whatever"}
        response = await http.post(message, headers).whole()
    assert (response.status, response.body) == (202, b"")


@pytest.mark.parametrize(
    ("method", "allowed"),
    [("GET", "POST"), ("DELETE", "POST"), ("OPTIONS", "POST")]
    + [(method, "POST, GET, DELETE") for method in ("PUT", "PATCH", "HEAD", "TRACE")],
)
async def test_only_post_is_served(method, allowed):
    """B1: 405, and what is allowed: to this request, or, with GET and DELETE, to those of sessions."""
    async with HttpPeer(mcp) as http:
        response = await http.ask(method, b"", {"MCP-Protocol-Version": PER_REQUEST}).whole()
    assert (response.status, response.headers["allow"]) == (405, allowed)


async def test_closing_the_connection_cancels_the_call():
    """B4: whether it streams or not; the server stops work and sends nothing more."""
    server = MCPServer("s")
    started, ended = asyncio.Event(), []

    @server.tool()
    async def wait(ctx: Context, streams: bool) -> str:
        """Wait."""
        if streams:
            await ctx.report_progress(1)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(streams)
            raise
        return "never"

    async with HttpPeer(server) as http:
        for streams in (False, True):
            started.clear()
            response = http.send("tools/call", {"name": "wait", "arguments": {"streams": streams}}, progressToken=1)
            await started.wait()
            if streams:
                await response.until(lambda got=response: got.messages)
            response.disconnect()
            await asyncio.wait_for(response.task, 10)
            assert not response.is_complete
    assert ended == [False, True]


async def test_an_open_subscription_is_told_of_changes_until_the_client_goes():
    """B1: `subscriptions/listen`: acknowledged first; every notification carries the subscription's id."""
    server = MCPServer("s")
    server.add_tool(lambda: None, name="one", description="One.")
    async with HttpPeer(server) as http:
        wanted = {"notifications": {"toolsListChanged": True}}
        response = http.send("subscriptions/listen", wanted, id="sub")
        await response.until(lambda: response.events)
        server.add_tool(lambda: None, name="two", description="Two.")
        await response.until(lambda: len(response.events) == 2)
        for message in response.messages:
            judge_message(message, revision=PER_REQUEST, method="subscriptions/listen")
        assert [(each["method"], each["params"]["_meta"]) for each in response.messages] == [
            ("notifications/subscriptions/acknowledged", {"io.modelcontextprotocol/subscriptionId": "sub"}),
            ("notifications/tools/list_changed", {"io.modelcontextprotocol/subscriptionId": "sub"}),
        ]
        assert response.headers["x-accel-buffering"] == "no"
        response.disconnect()
        await asyncio.wait_for(response.task, 10)
        assert not server._connections


async def test_a_subscription_is_answered_when_the_server_stops():
    """B1: whoever only waits is told in order that it is over."""
    server = MCPServer("s")
    server.add_tool(lambda: None, name="one", description="One.")
    async with HttpPeer(server) as http:
        response = http.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=9)
        await response.until(lambda: response.events)
        http.app.stop()
        await response.whole()
        refused = await http.send("subscriptions/listen", {"notifications": {}}, id=10).whole()
    assert response.messages[-1]["id"] == 9
    assert response.messages[-1]["result"]["resultType"] == "complete"
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")


async def test_two_clients_may_use_the_same_id_at_once():
    """B1: requests share nothing: ids are each client's own."""
    server = MCPServer("s")
    both = asyncio.Barrier(2)

    @server.tool()
    async def meet(who: str) -> str:
        """Wait for the other."""
        await both.wait()
        return who

    async with HttpPeer(server) as http:
        results = await asyncio.gather(*(http.call("meet", {"who": who}) for who in "ab"))
    assert [result["structuredContent"]["result"] for result in results] == ["a", "b"]


async def test_a_quiet_call_keeps_its_connection_open():
    """B4: after a while a comment is sent, or proxies would close the connection, which cancels the call."""
    server = MCPServer("s")
    release = asyncio.Event()

    @server.tool()
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "done"

    async with HttpPeer(server, limits=Limits(keep_alive_seconds=0.01, watch_after_seconds=0)) as http:
        response = http.send("tools/call", {"name": "wait"})
        await response.until(lambda: response.body.count(b":\r\n\r\n") > 1)
        release.set()
        await response.whole()
    (answer,) = response.messages
    assert answer["result"]["structuredContent"] == {"result": "done"}


async def test_a_client_that_takes_nothing_is_given_up():
    """B3: a slow reader costs nothing lasting: its call is cancelled and forgotten."""
    server = MCPServer("s")
    ended = asyncio.Event()

    @server.tool()
    async def flood(ctx: Context) -> str:
        """Send without end."""
        try:
            step = 0
            while True:
                step += 1
                await ctx.report_progress(step, message="x" * 10_000)
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with HttpPeer(server, limits=Limits(stall_seconds=0.05)) as http:
        response = http.send("tools/call", {"name": "flood"}, progressToken=1)
        await response.until(lambda: response.events)
        response.may_send.clear()
        await asyncio.wait_for(ended.wait(), 20)
        await asyncio.wait_for(response.task, 20)
    assert not server._connections


async def test_a_tool_that_does_not_wait_cannot_fill_the_memory():
    """B3: what a client does not take is bounded, also where the tool never waits for it."""
    server = MCPServer("s")
    ended = asyncio.Event()

    @server.tool()
    async def flood(ctx: Context) -> str:
        """Send without waiting for room."""
        try:
            for step in range(1_000_000):
                ctx.report_progress(step, message="x" * 1000)
                await asyncio.sleep(0)
        finally:
            ended.set()
        return "all sent"

    async with HttpPeer(server, limits=Limits(unsent_bytes=100_000)) as http:
        response = http.send("tools/call", {"name": "flood"}, progressToken=1)
        await response.until(lambda: response.events)
        response.may_send.clear()
        await asyncio.wait_for(ended.wait(), 20)
        response.may_send.set()
    assert not response.is_complete


async def test_large_results_arrive_whole():
    """B1: as one object with its length."""
    server = MCPServer("s")

    @server.tool()
    def big(size: int) -> str:
        """Give a long text."""
        return "ä" * size

    async with HttpPeer(server) as http:
        result = await http.call("big", {"size": 2_000_000})
    assert result["structuredContent"]["result"] == "ä" * 2_000_000


async def test_a_crash_of_a_tool_is_a_result_and_not_a_status():
    """A22: the model reads it; its text stays in the log."""
    server = MCPServer("s")

    @server.tool()
    def crash() -> str:
        """Crash."""
        raise RuntimeError("secret")

    async with HttpPeer(server) as http:
        response = await http.send("tools/call", {"name": "crash"}).whole()
    assert response.status == 200
    assert response.json["result"]["isError"] is True
    assert b"secret" not in response.body


async def test_the_context_shows_what_the_request_carried():
    """A tool can tell who calls; nothing is known that was not sent."""
    server = MCPServer("s")
    seen = []

    @server.tool()
    def look(ctx: Context) -> None:
        """Look."""
        seen.append((ctx.protocol_version, ctx.client_info, ctx.client_capabilities, ctx.principal, ctx.request_id))

    async with HttpPeer(server) as http:
        await http.request(
            "tools/call",
            {"name": "look"},
            id="x",
            **{"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}},
        )
    info = {"name": "t", "version": "0"}
    assert seen == [(PER_REQUEST, info, {"elicitation": {"form": {}}}, None, "x")]


async def test_what_a_thread_sent_comes_before_the_answer_and_nothing_after_it():
    """B4: progress from a thread that an async tool waits for is not lost; one that goes on is not heard."""
    server = MCPServer("s")
    late = threading.Event()

    @server.tool()
    async def count(ctx: Context) -> str:
        """Report from a thread."""
        worker = threading.Thread(target=lambda: [ctx.report_progress(step) for step in range(1, 4)])
        worker.start()
        worker.join()
        threading.Thread(target=lambda: (late.wait(10), ctx.report_progress(9))).start()
        return "done"

    async with HttpPeer(server) as http:
        response = await http.send("tools/call", {"name": "count"}, progressToken=1).whole()
        late.set()
        for _ in range(20):
            await asyncio.sleep(0)
    assert [each.get("params", {}).get("progress") for each in response.messages] == [1, 2, 3, None]


async def test_a_mirrored_text_is_the_one_the_tool_gets():
    """B1: who routes by the header decides by what is then used: text inside text is not read there."""
    server = MCPServer("s")

    @server.tool()
    def pick(region: Annotated[Literal["us", "eu"], Header("Region")], other: Literal["us"] = "us") -> str:
        """Pick."""
        return region

    async with HttpPeer(server) as http:
        quoted = await http.call("pick", {"region": '"us"'}, {"Mcp-Param-Region": '"us"'})
        lenient = await http.call("pick", {"region": "eu", "other": '"us"'}, {"Mcp-Param-Region": "eu"})
    assert (quoted["isError"], lenient["isError"]) == (True, False)


async def test_one_large_message_is_no_overflow():
    """B3: what a client may not leave waiting is what was there before it."""
    server = MCPServer("s")

    @server.tool()
    async def tell(ctx: Context) -> str:
        """Send one large message."""
        await ctx.report_progress(1, message="x" * 100_000)
        return "y" * 100_000

    async with HttpPeer(server, limits=Limits(unsent_bytes=1000)) as http:
        response = await http.send("tools/call", {"name": "tell"}, progressToken=1).whole()
    assert [len(json.dumps(each)) > 100_000 for each in response.messages] == [True, True]


async def test_a_tool_cannot_make_a_client_call_it_again():
    """Clients repeat a call that is answered with -32020; one that ran must not be."""
    server = MCPServer("s")

    @server.tool()
    def proxy() -> None:
        """Fail as another server did."""
        raise HeaderMismatch("Mcp-Name is missing")

    async with HttpPeer(server) as http:
        with pytest.raises(Refused) as caught:
            await http.call("proxy")
    assert (caught.value.status, caught.value.code) == (200, -32603)
