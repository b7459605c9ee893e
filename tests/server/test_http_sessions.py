"""The handshake revisions over HTTP: sessions, the GET stream, resumption; on the endpoint of the newest revision.

Source: MCP 2025-11-25, Transports, "Streamable HTTP"; 2025-06-18; 2025-03-26.
"""

import asyncio
import gc
import json
import re
import weakref

import pytest

from tests.http_peer import PER_REQUEST, HttpPeer, HttpSession, Response
from tests.oracle import judge_message
from twofold import Context, Limits, MCPServer, ProtocolError

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")


def make_server() -> MCPServer:
    server = MCPServer("shop", version="1.0.0")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool()
    async def count(ctx: Context, upto: int) -> str:
        """Count with progress."""
        for step in range(1, upto + 1):
            await ctx.report_progress(step, upto)
        await ctx.info("counted")
        return f"counted to {upto}"

    return server


class Gate:
    """A tool that waits until the test lets it go on."""

    def __init__(self, server: MCPServer) -> None:
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.was_cancelled = False
        server.add_tool(self.wait, name="wait")

    async def wait(self, ctx: Context, closes: bool = False, reports: bool = True) -> str:
        """Report, wait, report."""
        if reports:
            await ctx.report_progress(1)
        if closes:
            await ctx.close_sse_stream()
        self.started.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if reports:
            await ctx.report_progress(2)
        return "done"


async def resumed(session: HttpSession, event_id: str) -> Response:
    return await session.get({"Last-Event-ID": event_id}).whole()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_session_is_opened_used_and_ended(revision):
    """B2: the id is of visible ASCII; after DELETE it is 404, which tells a client to begin anew."""
    async with HttpPeer(make_server()) as http, HttpSession(http, revision) as session:
        assert re.fullmatch(r"[\x21-\x7E]{20,}", session.headers["Mcp-Session-Id"])
        listed = await session.post("tools/list").whole()
        called = await session.call("add", {"a": 1, "b": 2}).whole()
        pinged = await session.post("ping").whole()
        ended = await http.ask("DELETE", b"", session.headers).whole()
        after = [
            await session.post("tools/list").whole(),
            await http.ask("DELETE", b"", session.headers).whole(),
            await session.get().whole(),
        ]
    for response, method in ((listed, "tools/list"), (called, "tools/call"), (pinged, "ping")):
        assert response.status == 200
        judge_message(response.json, revision=revision, method=method)
    assert called.json["result"]["content"] == [{"type": "text", "text": "3"}]
    assert (ended.status, ended.body) == (204, b"")
    assert [response.status for response in after] == [404, 404, 404]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_messages_of_a_call_go_out_on_its_own_stream(revision):
    """B4: event ids in every revision; from 2025-11-25 on a first event that only names itself, and when to come back."""
    async with HttpPeer(make_server()) as http, HttpSession(http, revision) as session:
        await session.post("logging/setLevel", {"level": "info"}).whole()
        response = await session.call("count", {"upto": 2}, progressToken="p").whole()
    for message in response.messages:
        judge_message(message, revision=revision, method="tools/call")
    *sent, answer = response.messages
    assert [each["params"] for each in sent] == [
        {"progressToken": "p", "progress": 1, "total": 2},
        {"progressToken": "p", "progress": 2, "total": 2},
        {"level": "info", "data": "counted", "logger": "count"},
    ]
    assert answer["result"]["content"] == [{"type": "text", "text": "counted to 2"}]
    ids = [event.id for event in response.events]
    primes = revision == "2025-11-25"
    assert ids == [f"1-{place}" for place in range(1, 5 + primes)]
    assert (response.events[0].data == b"") is primes
    assert response.events[0].retry_milliseconds == (1000 if primes else None)


async def test_a_client_that_names_event_streams_first_gets_one():
    """The order in `Accept` is the client's wish; both kinds of answer are the server's right."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as session:
        response = await session.post("tools/list", {}, {"Accept": "text/event-stream, application/json"}).whole()
    (answer,) = response.messages
    judge_message(answer, revision="2025-11-25", method="tools/list")


async def test_a_dropped_connection_does_not_cancel_and_the_rest_is_resumed():
    """B4: the call goes on; what was not received is sent after `Last-Event-ID`, the answer included, and nothing twice."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server) as http, HttpSession(http) as session:
        response = session.call("wait", progressToken="p")
        await response.until(lambda: len(response.events) == 2)
        response.disconnect()
        await asyncio.wait_for(response.task, 10)
        gate.go_on.set()
        rest = await resumed(session, response.events[-1].id)
        again = await resumed(session, response.events[0].id)
        everything = await resumed(session, rest.events[-1].id)
    assert not gate.was_cancelled
    assert [each.get("params", each.get("result")) for each in rest.messages] == [
        {"progressToken": "p", "progress": 2},
        {"content": [{"type": "text", "text": "done"}], "structuredContent": {"result": "done"}, "isError": False},
    ]
    assert [event.id for event in rest.events] == ["1-3", "1-4"]
    assert [event.id for event in again.events] == ["1-2", "1-3", "1-4"]
    assert everything.events == []


async def test_a_stream_is_resumed_while_the_call_still_runs():
    """B4: what comes later goes to the connection that asked last."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server) as http, HttpSession(http) as session:
        response = session.call("wait", progressToken="p")
        await response.until(lambda: len(response.events) == 2)
        rest = session.get({"Last-Event-ID": response.events[-1].id})
        await response.whole()
        assert len(response.messages) == 1
        gate.go_on.set()
        await rest.whole()
    assert [each.get("id") for each in rest.messages] == [None, 2]


async def test_a_tool_can_let_its_client_go_until_the_answer_is_there():
    """`Context.close_sse_stream`: the response ends after what was sent, the client resumes it."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server) as http, HttpSession(http) as session:
        for reports in (True, False):
            gate.go_on.clear()
            response = await session.call("wait", {"closes": True, "reports": reports}, progressToken="p").whole()
            assert response.events[0].data == b""
            assert len(response.messages) == (1 if reports else 0)
            gate.go_on.set()
            rest = await resumed(session, response.events[-1].id)
            assert rest.messages[-1]["result"]["structuredContent"] == {"result": "done"}


async def test_a_client_that_could_not_resume_is_not_let_go():
    """Before 2025-11-25 a stream without an event yet has nothing to resume after; in 2026-07-28 nothing has."""
    server = make_server()
    gate = Gate(server)
    gate.go_on.set()
    async with HttpPeer(server) as http:
        async with HttpSession(http, "2025-06-18") as session:
            response = await session.call("wait", {"closes": True, "reports": False}).whole()
        result = await http.call("wait", {"closes": True, "reports": False})
    assert [each["result"]["content"][0]["text"] for each in response.messages] == ["done"]
    assert result["content"][0]["text"] == "done"


async def test_a_slow_call_becomes_a_stream_that_can_be_resumed():
    """A client whose connection breaks during a long quiet call does not lose its answer."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server, limits=Limits(resumable_after_seconds=0.01)) as http, HttpSession(http) as session:
        response = session.call("wait")
        await response.until(lambda: response.events)
        response.disconnect()
        gate.go_on.set()
        rest = await resumed(session, response.events[-1].id)
    assert (response.events[0].data, response.events[0].id) == (b"", "1-1")
    assert rest.messages[-1]["result"]["structuredContent"] == {"result": "done"}


@pytest.mark.parametrize("streams", [True, False])
async def test_only_a_notification_cancels(streams):
    """B4: `notifications/cancelled` stops the call; its own request ends without an answer."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server) as http, HttpSession(http) as session:
        response = session.call("wait", {"reports": streams}, progressToken="p")
        await asyncio.wait_for(gate.started.wait(), 10)
        accepted = await session.notify("notifications/cancelled", {"requestId": 2}).whole()
        await response.whole()
    assert (accepted.status, gate.was_cancelled) == (202, True)
    if streams:
        assert [each["method"] for each in response.messages] == ["notifications/progress"]
    else:
        assert (response.status, response.messages) == (200, [])


async def test_the_get_stream_tells_of_changes():
    """B2: what is about no request goes to whoever listens, also what happened before; once, and only there."""
    server = make_server()
    async with HttpPeer(server) as http, HttpSession(http) as session:
        server.add_tool(lambda: None, name="early", description="Early.")
        listening = session.get()
        await listening.until(lambda: len(listening.events) == 2)
        server.add_tool(lambda: None, name="late", description="Late.")
        await listening.until(lambda: len(listening.events) == 3)
        listening.disconnect()
        await asyncio.wait_for(listening.task, 10)
        server.remove_tool("late")
        await asyncio.sleep(0.01)
        again = session.get()
        await again.until(lambda: again.events)
        missed = await resumed_first(session, listening.events[1].id)
    for response in (listening, again):
        for message in response.messages:
            judge_message(message, revision="2025-11-25")
    assert [event.id for event in listening.events] == ["0-1", "0-2", "0-3"]
    assert [event.id for event in again.events] == ["0-4"]
    assert [event.id for event in missed.events][:2] == ["0-3", "0-4"]
    assert {message["method"] for message in listening.messages} == {"notifications/tools/list_changed"}


async def resumed_first(session: HttpSession, event_id: str) -> Response:
    response = session.get({"Last-Event-ID": event_id})
    await response.until(lambda: len(response.events) >= 2)
    return response


async def test_the_newest_listener_takes_over():
    """A client that lost its connection can listen again before the server has noticed."""
    server = make_server()
    async with HttpPeer(server) as http, HttpSession(http) as session:
        first = session.get()
        await first.until(lambda: first.events)
        second = session.get()
        await first.whole()
        server.add_tool(lambda: None, name="late", description="Late.")
        await second.until(lambda: second.events)
    assert len(first.messages) == 0
    assert len(second.messages) == 1


@pytest.mark.parametrize("event_id", ["", "0", "1", "9-1", "1-999", "1--1", "1-١", "x-1", "1-" + "9" * 400, "1-0"])
async def test_events_there_never_were_are_refused_by_name(event_id):
    """B3: made-up ids cost nothing."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as session:
        await session.call("count", {"upto": 1}, progressToken="p").whole()
        response = await session.get({"Last-Event-ID": event_id.encode("utf-8").decode("latin-1")}).whole()
    assert response.status == 400
    assert "Last-Event-ID" in response.json["error"]["message"]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 400),
        ("POST", {"MCP-Protocol-Version": "2025-11-25"}, 400),
        ("POST", {"Mcp-Session-Id": "unknown"}, 404),
        ("POST", {"Mcp-Session-Id": "ż".encode().decode("latin-1")}, 404),
        ("GET", {}, 405),
        ("GET", {"MCP-Protocol-Version": "2025-11-25"}, 400),
        ("GET", {"Mcp-Session-Id": "unknown"}, 404),
        ("DELETE", {"Mcp-Session-Id": "unknown"}, 404),
        ("DELETE", {}, 405),
    ],
)
async def test_what_comes_without_its_session_is_refused(method, headers, status):
    """B2: 400 where the session is missing, 404 where there is none of that name."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} | headers
    async with HttpPeer(make_server()) as http:
        response = await http.ask(method, body if method == "POST" else b"", given).whole()
    assert response.status == status
    assert "error" in response.json


async def test_notifications_need_a_session_too():
    async with HttpPeer(make_server()) as http:
        response = await http.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).whole()
    assert (response.status, "Mcp-Session-Id" in response.json["error"]["message"]) == (400, True)


@pytest.mark.parametrize("version", ["1999-01-01", "2024-11-05x", ""])
async def test_a_version_nobody_speaks_is_400(version):
    """B2: an invalid or unsupported `MCP-Protocol-Version` is answered with 400."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as session:
        response = await session.post("tools/list", {}, {"MCP-Protocol-Version": version}).whole()
    assert (response.status, response.json["error"]["code"]) == (400, -32022)


async def test_a_request_of_the_newest_revision_in_a_session_is_refused_or_stands_alone():
    """The era is told by the header; a body of another era than its header says is -32020."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as session:
        alone = await http.send("tools/list", {}, session.headers | {"MCP-Protocol-Version": PER_REQUEST}).whole()
        mixed = await http.send("tools/list", {}, session.headers).whole()
    assert (alone.status, alone.json["result"]["resultType"]) == (200, "complete")
    assert (mixed.status, mixed.json["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[]", 400), (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', 200)]
)
async def test_errors_in_a_session_never_look_like_its_end(body, status):
    """B2: 404 would make the client begin anew."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as session:
        headers = session.headers | {"Content-Type": "application/json", "Accept": "*/*"}
        response = await http.ask("POST", body, headers).whole()
    assert response.status == status
    assert "error" in response.json


async def test_batches_are_answered_where_the_revision_has_them():
    """B2: 2025-03-26 alone; an array of answers, 202 where none is owed."""
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": "b", "method": "ping"},
    ]
    async with HttpPeer(make_server()) as http:
        async with HttpSession(http, "2025-03-26") as session:
            both = await http.post(batch, session.headers).whole()
            none = await http.post(batch[1:2], session.headers).whole()
        async with HttpSession(http, "2025-06-18") as session:
            refused = await http.post(batch, session.headers).whole()
    assert [each["id"] for each in both.json] == ["a", "b"]
    assert (none.status, none.body) == (202, b"")
    assert (refused.status, refused.json["error"]["code"]) == (400, -32600)


async def test_sessions_do_not_see_each_other():
    """Ids, levels and streams are each session's own."""
    async with HttpPeer(make_server()) as http, HttpSession(http) as one, HttpSession(http) as two:
        assert one.headers["Mcp-Session-Id"] != two.headers["Mcp-Session-Id"]
        await one.post("logging/setLevel", {"level": "info"}).whole()
        first = await one.call("count", {"upto": 1}).whole()
        second = await two.call("count", {"upto": 1}).whole()
        stolen = await two.get({"Last-Event-ID": first.events[-1].id}).whole()
    assert [each.get("method") for each in first.messages] == ["notifications/message", None]
    assert second.json["result"]["content"] == [{"type": "text", "text": "counted to 1"}]
    assert stolen.status == 400


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}


async def test_where_all_sessions_are_in_use_the_next_is_asked_to_come_again():
    """B3: the number of sessions is bounded; nobody who was here lately is sent away for a newcomer."""
    async with HttpPeer(make_server(), limits=Limits(sessions=2)) as http, HttpSession(http), HttpSession(http):
        refused = await http.post(INITIALIZE).whole()
    assert (refused.status, refused.headers["retry-after"]) == (503, "60")
    assert "mcp-session-id" not in refused.headers


async def test_an_idle_session_gives_way_and_one_in_use_does_not():
    """B3: however many come at once, the bound holds."""
    server = make_server()
    gate = Gate(server)
    limits = Limits(sessions=2, session_yielding_seconds=0)
    async with HttpPeer(server, limits=limits) as http, HttpSession(http) as busy, HttpSession(http) as idle:
        busy.call("wait")
        await asyncio.wait_for(gate.started.wait(), 10)
        admitted = await asyncio.gather(*(http.post(INITIALIZE).whole() for _ in range(20)))
        gone = await idle.post("ping").whole()
        kept = await busy.post("ping").whole()
        open_sessions = len(http.app._sessions._sessions)
        gate.go_on.set()
    assert {response.status for response in admitted} == {200}
    assert (open_sessions, gone.status, kept.status) == (2, 404, 200)


async def test_idle_sessions_are_ended():
    """B3: a client that never said goodbye costs nothing lasting; one that listens is not idle."""
    server = make_server()
    limits = Limits(sweep_seconds=0.01, session_idle_seconds=0.05)
    async with HttpPeer(server, limits=limits) as http, HttpSession(http) as listens, HttpSession(http) as idle:
        stream = listens.get()
        await stream.until(lambda: stream.events)
        async with asyncio.timeout(20):
            while len(server._connections) > 1:
                await asyncio.sleep(0.01)
        gone = await idle.post("ping").whole()
        kept = await listens.post("ping").whole()
    assert (gone.status, kept.status) == (404, 200)


async def test_finished_streams_are_kept_within_bounds():
    """B3: what nobody comes back for is forgotten, the oldest first."""
    async with HttpPeer(make_server(), limits=Limits(retained_bytes=500)) as http, HttpSession(http) as session:
        responses = [await session.call("count", {"upto": 1}, progressToken="p").whole() for _ in range(4)]
        first, last = [await resumed(session, response.events[0].id) for response in (responses[0], responses[-1])]
    assert (first.status, last.status) == (400, 200)
    assert last.messages[-1]["result"]["content"][0]["text"] == "counted to 1"


async def test_a_running_stream_nobody_reads_keeps_the_newest(caplog):
    """B3: bounded in memory; the answer is never dropped, and what is dropped is told in the log."""
    server = make_server()
    go_on, ended = asyncio.Event(), asyncio.Event()

    @server.tool()
    async def flood(ctx: Context) -> str:
        """Send much after the client has gone."""
        await ctx.report_progress(1)
        await go_on.wait()
        for step in range(2, 100):
            await ctx.report_progress(step)
        ended.set()
        return "all sent"

    async with HttpPeer(server, limits=Limits(kept_bytes=1000)) as http, HttpSession(http) as session:
        response = session.call("flood", progressToken="p")
        await response.until(lambda: len(response.events) == 2)
        response.disconnect()
        await asyncio.wait_for(response.task, 10)
        go_on.set()
        await asyncio.wait_for(ended.wait(), 10)
        rest = await resumed(session, response.events[-1].id)
    assert rest.messages[-1]["result"]["structuredContent"] == {"result": "all sent"}
    assert sum(len(event.data) for event in rest.events) < 1000
    assert "is read on, but" in caplog.text


async def test_ending_a_session_cancels_what_runs_in_it():
    """B2: DELETE is the client's word that it needs nothing more."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server) as http, HttpSession(http) as session:
        response = session.call("wait", progressToken="p")
        listening = session.get()
        await asyncio.wait_for(gate.started.wait(), 10)
        ended = await http.ask("DELETE", b"", session.headers).whole()
        await response.whole()
        await listening.whole()
    assert (ended.status, gate.was_cancelled) == (204, True)


async def test_without_sessions_several_processes_serve_one_client():
    """Handshake revisions, `stateless=True`: each request may meet another process."""
    one, two = make_server(), make_server()
    gate = Gate(two)
    gate.go_on.set()
    async with HttpPeer(one, stateless=True) as first, HttpPeer(two, stateless=True) as second:
        for revision in REVISIONS:
            async with HttpSession(first, revision) as session:
                assert "Mcp-Session-Id" not in session.headers
                session.http = second
                listed = await session.post("tools/list").whole()
                called = await session.call("count", {"upto": 1}, progressToken="p").whole()
                waited = await session.call("wait", {"closes": True}, progressToken="p").whole()
                level = await session.post("logging/setLevel", {"level": "info"}).whole()
                others = [await session.get().whole(), await second.ask("DELETE", b"", session.headers).whole()]
            judge_message(listed.json, revision=revision, method="tools/list")
            for message in called.messages + waited.messages:
                judge_message(message, revision=revision, method="tools/call")
            assert called.messages[-1]["result"]["content"] == [{"type": "text", "text": "counted to 1"}]
            assert waited.messages[-1]["result"]["content"] == [{"type": "text", "text": "done"}]
            assert [event.id for event in called.events] == [None, None]
            assert (level.json["error"]["code"], "no sessions" in level.json["error"]["message"]) == (-32600, True)
            assert [response.status for response in others] == [405, 405]


async def test_without_sessions_the_first_revision_is_assumed():
    """A client that names no version is one of 2025-03-26, which had no header for it; batches and all."""
    batch = [{"jsonrpc": "2.0", "id": "a", "method": "ping"}]
    async with HttpPeer(make_server(), stateless=True) as http:
        response = await http.post(batch).whole()
    assert response.json == [{"jsonrpc": "2.0", "id": "a", "result": {}}]


async def test_without_sessions_a_dropped_connection_does_not_cancel():
    """B4: in the handshake revisions only a notification does."""
    server = make_server()
    gate = Gate(server)
    async with HttpPeer(server, stateless=True) as http, HttpSession(http) as session:
        response = session.call("wait")
        await asyncio.wait_for(gate.started.wait(), 10)
        response.disconnect()
        gate.go_on.set()
        await asyncio.wait_for(response.task, 10)
    assert not gate.was_cancelled


async def test_calls_whose_clients_have_gone_still_count():
    """B3: whoever calls and goes, again and again, cannot make the server run without bound."""
    server = make_server()
    gate = Gate(server)
    async with (
        HttpPeer(server, limits=Limits(requests=2, resumable_after_seconds=0)) as http,
        HttpSession(http) as session,
    ):
        for _ in range(2):
            response = session.call("wait")
            await response.until(lambda got=response: got.events)
            response.disconnect()
            await asyncio.wait_for(response.task, 10)
        refused = await session.call("wait").whole()
        gate.go_on.set()
        async with asyncio.timeout(20):
            while (served := await session.post("ping").whole()).status == 503:
                await asyncio.sleep(0)
    assert (refused.status, refused.headers["retry-after"], served.status) == (503, "1", 200)


async def test_what_running_calls_keep_together_is_bounded():
    """B3, decision 13: many calls whose clients have gone keep no more than `running_bytes`; answers stay."""
    server = make_server()
    go_on = asyncio.Event()

    @server.tool()
    async def flood(ctx: Context) -> str:
        """Send much to nobody."""
        for step in range(100):
            await ctx.report_progress(step, message="x" * 1000)
        await go_on.wait()
        return "done"

    limits = Limits(running_bytes=200_000, resumable_after_seconds=0)
    async with HttpPeer(server, limits=limits) as http, HttpSession(http) as session:
        firsts = []
        for _ in range(10):
            response = session.call("flood", progressToken="p")
            await response.until(lambda got=response: got.events)
            response.disconnect()
            await asyncio.wait_for(response.task, 10)
            firsts.append(response.events[0].id)
        spent = http.app._sessions._budget.spent_bytes
        go_on.set()
        answers = [(await resumed(session, each)).messages[-1] for each in firsts]
        left = http.app._sessions._budget.spent_bytes
    assert spent <= 200_000 + 10 * 1100
    assert [each["result"]["structuredContent"] for each in answers] == [{"result": "done"}] * 10
    assert left < 1000


async def test_ended_sessions_leave_nothing_in_memory():
    """B3: neither a connection nor what refers to it, also where a tool raised an error of the protocol."""
    connections = weakref.WeakSet()

    class Recorded(MCPServer):
        def connect(self, *args, **options):
            connection = super().connect(*args, **options)
            connections.add(connection)
            return connection

    server = Recorded("s")

    @server.tool()
    def fail() -> None:
        """Raise an error of the protocol."""
        raise ProtocolError(17, "as asked")

    async with HttpPeer(server) as http:
        for _ in range(20):
            async with HttpSession(http) as session:
                await session.call("fail").whole()
                await http.ask("DELETE", b"", session.headers).whole()
            await http.send("tools/call", {"name": "fail"}).whole()
        made = len(connections)
        http.open_responses.clear()
        del session
        await asyncio.sleep(0)
        gc.collect()
        assert (made > 0, len(connections)) == (True, 0)
