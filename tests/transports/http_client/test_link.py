"""Streamable HTTP from the client's side: both eras against our own server, sessions, streams taken up again."""

import asyncio
import contextlib
import logging
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.transports.hearing import INITIALIZE, Heard, per_request, request
from tests.transports.http_client.raw_server import RawServer, response, saying, stream_head, until_left
from twofold import Context, Limits, MCPServer
from twofold.errors import NotSent, TransportError
from twofold.server.serve_http import bind, serve
from twofold.transports.http_client.events import MAX_ATTEMPTS, Cursor
from twofold.transports.http_client.link import HttpLink, SessionGone

CERTIFICATE = Path(__file__).with_name("localhost.pem")
EARLIER = "2025-11-25"
NEWEST = "2026-07-28"
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'


@contextlib.asynccontextmanager
async def serving(mcp: MCPServer, **options):
    """Serve over a real socket; give the URL."""
    app = mcp.streamable_http_app(**options)
    listeners = bind("127.0.0.1", 0, stall_seconds=60)
    stop, started = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(app, listeners, stop=stop, on_serving=started.set, on_stopping=app.stop))
    await started.wait()
    try:
        yield f"http://127.0.0.1:{listeners[0].getsockname()[1]}/mcp"
    finally:
        stop.set()
        await task


@contextlib.asynccontextmanager
async def opened(url: str, **options):
    link, heard = HttpLink(url, **options), Heard()
    await link.open(heard)
    try:
        yield link, heard
    finally:
        await link.close()


async def ask(link, heard, method, params=None, *, id=1, headers=()):
    await link.send(request(method, params, id=id), request_id=id, headers=dict(headers))
    return next(each for each in heard.messages if each.get("id") == id)


def mirrored(method: str, **more: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": NEWEST, "Mcp-Method": method, **more}


async def open_session(link, heard) -> None:
    await ask(link, heard, "initialize", INITIALIZE, id="i")
    link.settle(EARLIER)
    await link.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', request_id=None, headers={})


def make_server() -> MCPServer:
    mcp = MCPServer("s")

    @mcp.tool()
    async def add(a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2)
        return a + b

    return mcp


ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


# Our own server.


async def test_a_call_of_the_newest_revision_is_answered():
    """Each request carries its own revision and has its own response, JSON or a stream."""
    before = asyncio.all_tasks()
    async with serving(make_server()) as url, opened(url) as (link, heard):
        headers = mirrored("tools/call", **{"Mcp-Name": "add"})
        quiet = await ask(link, heard, "tools/call", per_request(ADD), id=1, headers=headers)
        asked = per_request(ADD)
        asked["_meta"]["progressToken"] = "t"
        told = await ask(link, heard, "tools/call", asked, id=2, headers=headers)
        assert (link.name, link.has_own_streams) == (url, True)
    assert quiet["result"]["structuredContent"] == told["result"]["structuredContent"] == {"result": 3}
    progress = {"progressToken": "t", "progress": 1, "total": 2}
    assert [each for each in heard.messages if "method" in each] == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
    ]
    assert (heard.broken, heard.ends) == ([], [])
    assert asyncio.all_tasks() == before


async def test_a_session_is_opened_listened_to_and_ended():
    """2025-11-25: the session's id goes with each message, its GET stream tells of changes, DELETE ends it."""
    before = asyncio.all_tasks()
    mcp = make_server()
    async with serving(mcp) as url:
        async with opened(url) as (link, heard):
            await open_session(link, heard)
            answer = await ask(link, heard, "tools/call", ADD)
            mcp.remove_tool("add")
            await heard.until(lambda heard: any("method" in each for each in heard.messages))
        assert not mcp._connections
    assert answer["result"]["structuredContent"] == {"result": 3}
    assert heard.messages[-1] == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}
    assert asyncio.all_tasks() == before


async def test_a_call_whose_stream_is_closed_early_is_resumed():
    """2025-11-25, resumability: GET with Last-Event-ID after the wait that the server named; nothing is lost or doubled."""
    mcp = MCPServer("s")

    @mcp.tool()
    async def slow(ctx: Context) -> str:
        for step in range(3):
            await ctx.report_progress(step + 1)
            await ctx.close_sse_stream()
        return "done"

    limits = Limits(retry_milliseconds=20)
    async with serving(mcp, limits=limits) as url, opened(url) as (link, heard):
        await open_session(link, heard)
        params = {"name": "slow", "_meta": {"progressToken": "t"}}
        answer = await ask(link, heard, "tools/call", params)
    assert answer["result"]["content"] == [{"type": "text", "text": "done"}]
    assert [each["params"]["progress"] for each in heard.messages if "method" in each] == [1, 2, 3]


async def test_a_session_that_is_gone_is_told_and_forgotten():
    """404: the client must open a new session, by a message without the old one's id."""
    async with serving(make_server()) as url, opened(url) as (link, heard):
        await open_session(link, heard)
        async with httpx2.AsyncClient() as other:
            await other.delete(url, headers={"Mcp-Session-Id": link._session})
        with pytest.raises(SessionGone) as caught:
            await link.send(request("tools/list"), request_id=1, headers={})
        assert caught.value.status == 404
        await open_session(link, heard)
        assert "result" in await ask(link, heard, "tools/list", id=9)


async def test_cancelling_a_call_of_the_newest_revision_reaches_the_tool():
    """Closing the response stream is the cancellation."""
    mcp, started, cancelled = MCPServer("s"), asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    async with serving(mcp) as url, opened(url) as (link, _):
        message = request("tools/call", per_request({"name": "wait"}))
        headers = mirrored("tools/call", **{"Mcp-Name": "wait"})
        sending = asyncio.create_task(link.send(message, request_id=1, headers=headers))
        await asyncio.wait_for(started.wait(), 20)
        sending.cancel()
        await asyncio.wait_for(cancelled.wait(), 20)
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_one_connection_serves_many_messages():
    """A connection is used again after JSON, a notification, and a stream that ended."""
    connections = set()
    mcp = make_server()
    app = mcp.streamable_http_app()

    async def counting(scope, receive, send):
        if scope["type"] == "http":
            connections.add(scope["client"])
        await app(scope, receive, send)

    listeners = bind("127.0.0.1", 0, stall_seconds=60)
    stop, started = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(counting, listeners, stop=stop, on_serving=started.set))
    await started.wait()
    async with opened(f"http://127.0.0.1:{listeners[0].getsockname()[1]}/mcp") as (link, heard):
        asked = per_request(ADD)
        asked["_meta"]["progressToken"] = "t"
        for number in range(5):
            await ask(
                link, heard, "tools/call", asked, id=number, headers=mirrored("tools/call", **{"Mcp-Name": "add"})
            )
    stop.set()
    await task
    assert len(connections) == 1


# What is sent.


async def test_each_message_is_a_post_with_the_headers_it_needs():
    """Content-Type, Accept with both types, what is mirrored, and what the program adds."""
    async with RawServer(saying(response("200 OK", RESULT))) as server:
        async with opened(server.url + "?a=b", headers={"X-Api-Key": "k"}) as (link, _):
            await link.send(CALL, request_id=1, headers={**mirrored("tools/call"), "Mcp-Param-Region": "eu"})
        (seen,) = server.requests
        assert (seen.method, seen.target, seen.body) == ("POST", "/mcp?a=b", CALL)
        del seen.headers["user-agent"], seen.headers["accept-encoding"]
        assert seen.headers == {
            "host": f"127.0.0.1:{server.port}",
            "connection": "keep-alive",
            "content-length": str(len(CALL)),
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": NEWEST,
            "mcp-method": "tools/call",
            "mcp-param-region": "eu",
            "x-api-key": "k",
        }


async def test_a_session_and_its_revision_go_with_each_later_message():
    """The id that `initialize` was answered with, and the revision agreed on, until the session is gone."""
    answers = [
        response("200 OK", RESULT, mcp_session_id="s-1"),
        response("405 Method Not Allowed"),
        response("200 OK", RESULT, mcp_session_id="s-2"),
        response("404 Not Found"),
        response("200 OK", RESULT),
    ]
    async with RawServer(saying(*answers)) as server:
        async with opened(server.url) as (link, _):
            await link.send(CALL, request_id=1, headers={})
            link.settle(EARLIER)
            while len(server.requests) < 2:
                await asyncio.sleep(0.001)
            await link.send(CALL, request_id=1, headers={})
            with pytest.raises(SessionGone, match="404 Not Found; the session is over: open a new one"):
                await link.send(CALL, request_id=1, headers={})
            await link.send(CALL, request_id=1, headers={})
    seen = [
        (each.method, each.headers.get("mcp-session-id"), each.headers.get("mcp-protocol-version"))
        for each in server.requests
    ]
    assert seen == [
        ("POST", None, None),
        ("GET", "s-1", EARLIER),
        ("POST", "s-1", EARLIER),
        ("POST", "s-1", EARLIER),
        ("POST", None, None),
    ]


async def test_the_newest_revision_has_no_sessions():
    """An `Mcp-Session-Id` that a server of the newest revision sends is ignored: no id, no GET, no DELETE."""
    async with RawServer(saying(response("200 OK", RESULT, mcp_session_id="s-1"))) as server:
        async with opened(server.url) as (link, _):
            await link.send(CALL, request_id=1, headers=mirrored("server/discover"))
            link.settle(NEWEST)
            await link.send(CALL, request_id=1, headers=mirrored("tools/call"))
    seen = [(each.method, each.headers.get("mcp-session-id")) for each in server.requests]
    assert seen == [("POST", None), ("POST", None)]


async def test_a_session_id_that_no_header_can_carry_is_not_used(caplog):
    """The session id must only contain visible ASCII."""
    answer = response("200 OK", RESULT, mcp_session_id="a b")
    async with RawServer(saying(answer)) as server, opened(server.url) as (link, _):
        await link.send(CALL, request_id=1, headers={})
        await link.send(CALL, request_id=1, headers={})
    assert [each.headers.get("mcp-session-id") for each in server.requests] == [None, None]
    assert "no header can carry" in caplog.text


# Streams that are taken up again.


def streams(*parts: bytes, get: bytes = b""):
    """Answer POST with the first part and each GET with the next, then with `get`."""
    left = list(parts)

    async def answer(_, writer):
        writer.write(left.pop(0) if left else get)

    return answer


def event(data: bytes, id: str = "", retry: int | None = None) -> bytes:
    head = f"id: {id}\n" if id else ""
    return head.encode() + (b"" if retry is None else b"retry: %d\n" % retry) + b"data: " + data + b"\n\n"


NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress"}'


async def test_a_stream_is_resumed_after_the_last_event_that_came():
    """Each GET names the newest id; an attempt that fails, or a server that is busy, is made up for by the next."""
    answer = streams(
        stream_head() + event(b"", "1", retry=10),
        stream_head() + event(NOTE, "2"),
        response("503 Service Unavailable"),
        b"",
        stream_head() + event(RESULT, "3"),
    )
    async with RawServer(answer) as server, opened(server.url) as (link, heard):
        await link.send(CALL, request_id=1, headers={})
    assert [(each.method, each.headers.get("last-event-id"), each.headers["accept"]) for each in server.requests] == [
        ("POST", None, "application/json, text/event-stream"),
        ("GET", "1", "text/event-stream"),
        ("GET", "2", "text/event-stream"),
        ("GET", "2", "text/event-stream"),
        ("GET", "2", "text/event-stream"),
    ]
    assert heard.raw == [NOTE, RESULT]


@pytest.mark.parametrize("id", ["a\x01b", "\u00e9", "x" * 5000, ""])
async def test_a_stream_whose_ids_no_header_can_carry_is_not_resumed(id):
    """Whatever a server sends as an id, it never makes a request that cannot be sent."""
    answer = streams(stream_head() + event(NOTE, id, retry=0))
    async with RawServer(answer) as server, opened(server.url) as (link, _):
        with pytest.raises(TransportError, match="the event stream ended before the answer"):
            await link.send(CALL, request_id=1, headers={})
    assert len(server.requests) == 1


async def test_a_server_that_has_gone_meanwhile_does_not_make_a_message_unsent():
    """Its stream had begun, so it has arrived: never NotSent, whatever fails afterwards."""

    async def answer(_, writer):
        server.stop_listening()
        writer.write(stream_head() + event(NOTE, "1", retry=0))

    server = RawServer(answer)
    async with server, opened(server.url) as (link, _):
        with pytest.raises(TransportError, match="the event stream broke .ConnectError. before the answer") as caught:
            await link.send(CALL, request_id=1, headers={})
    assert type(caught.value) is TransportError


async def test_a_stream_of_the_newest_revision_is_never_resumed():
    """2026-07-28: resumption is not supported."""
    answer = streams(stream_head() + event(NOTE, "1", retry=0))
    async with RawServer(answer) as server, opened(server.url) as (link, _):
        with pytest.raises(TransportError, match="the event stream ended before the answer"):
            await link.send(CALL, request_id=1, headers=mirrored("tools/call"))
    assert len(server.requests) == 1


async def test_a_server_that_does_not_let_a_stream_be_resumed_is_asked_once():
    answer = streams(stream_head() + event(NOTE, "1", retry=10), get=response("405 Method Not Allowed"))
    async with RawServer(answer) as server, opened(server.url) as (link, _):
        with pytest.raises(
            TransportError, match="the event stream ended before the answer, and cannot be resumed: .*405"
        ) as caught:
            await link.send(CALL, request_id=1, headers={})
    assert type(caught.value) is TransportError
    assert len(server.requests) == 2


def test_attempts_wait_ever_longer_and_have_an_end():
    """Retry as the server says, bounded by 30 seconds; ten attempts without progress."""
    cursor = Cursor()
    waits = []
    while not cursor.is_exhausted:
        waits.append(cursor.next_delay_seconds())
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert len(waits) == MAX_ATTEMPTS
    cursor.note_progress()
    assert not cursor.is_exhausted
    assert cursor.next_delay_seconds() == 1


async def test_cancelling_while_a_stream_is_to_be_resumed_ends_it():
    answer = streams(stream_head() + event(NOTE, "1", retry=600_000))
    async with RawServer(answer) as server, opened(server.url) as (link, heard):
        sending = asyncio.create_task(link.send(CALL, request_id=1, headers={}))
        await heard.until(lambda heard: heard.raw)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert len(server.requests) == 1


async def test_the_stream_of_a_session_is_listened_to_again_when_it_breaks():
    """The server may close the stream at any time."""
    first = response("200 OK", RESULT, mcp_session_id="s")
    changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

    async def answer(request, writer):
        if request.method == "POST":
            writer.write(first)
        elif request.method == "DELETE":
            writer.write(response("204 No Content", content_type=""))
        elif "last-event-id" in request.headers:
            writer.write(stream_head() + event(changed, "2"))
            await until_left(writer)
        else:
            writer.write(stream_head() + event(changed, "1", retry=10))

    async with RawServer(answer) as server:
        async with opened(server.url) as (link, heard):
            await link.send(CALL, request_id=1, headers={})
            link.settle(EARLIER)
            await heard.until(lambda heard: len(heard.raw) == 3)
        assert [each.headers.get("last-event-id") for each in server.asked("GET")] == [None, "1"]
        assert [each.headers["mcp-session-id"] for each in server.asked("DELETE")] == ["s"]
    assert heard.raw == [RESULT, changed, changed]


@pytest.mark.parametrize(
    "refusal",
    [response("405 Method Not Allowed"), response("404 Not Found"), response("200 OK", b"{}")],
    ids=["405", "404", "json"],
)
async def test_a_server_without_such_a_stream_is_asked_once(refusal, caplog):
    """405: the server offers none; it costs nothing but that."""
    caplog.set_level(logging.DEBUG, "twofold")
    answers = [response("200 OK", RESULT, mcp_session_id="s"), refusal, response("405 Method Not Allowed")]
    async with RawServer(saying(*answers)) as server, opened(server.url) as (link, heard):
        await link.send(CALL, request_id=1, headers={})
        link.settle(EARLIER)
        while "no notifications of its own" not in caplog.text:
            await asyncio.sleep(0.001)
    assert [each.method for each in server.requests] == ["POST", "GET", "DELETE"]
    assert (heard.broken, heard.ends) == ([], [])


async def test_an_event_too_large_on_the_stream_of_a_session_is_told():
    async def answer(request, writer):
        if request.method == "GET":
            writer.write(stream_head() + event(b"x" * 5000))
        else:
            writer.write(response("200 OK", RESULT, mcp_session_id="s"))

    async with RawServer(answer) as server, opened(server.url, max_answer_bytes=1000) as (link, heard):
        await link.send(CALL, request_id=1, headers={})
        link.settle(EARLIER)
        await heard.until(lambda heard: heard.broken)
    (broken,) = heard.broken
    assert broken[0] == b""
    assert "event stream: a line of more than 1000 bytes" in broken[1]


async def test_closing_is_bounded_by_a_server_that_says_nothing():
    """DELETE is waited for two seconds, and `close` never raises."""
    silent = asyncio.Event()

    async def answer(request, writer):
        if request.method == "POST":
            writer.write(response("200 OK", RESULT, mcp_session_id="s"))
        else:
            await silent.wait()

    async with RawServer(answer) as server:
        async with opened(server.url) as (link, _):
            await link.send(CALL, request_id=1, headers={})
        assert len(server.asked("DELETE")) == 1


# What cannot be reached.


async def fail_to_send(url: str, **options) -> str:
    async with opened(url, **options) as (link, _):
        with pytest.raises(NotSent) as caught:
            await link.send(CALL, request_id=1, headers={})
        return str(caught.value)


async def test_a_port_where_nobody_listens_is_told():
    (listener,) = bind("127.0.0.1", 0, stall_seconds=60)
    port = listener.getsockname()[1]
    listener.close()
    told = await fail_to_send(f"http://user:s3cret@127.0.0.1:{port}/mcp?token=s3cret")
    assert (
        told
        == f"http://127.0.0.1:{port}/mcp: nothing listens there; start the server, or mend host and port in the URL"
    )


async def test_a_host_that_is_none_is_told():
    """A name with an empty part: nobody else has to be asked."""
    told = await fail_to_send("http://no..host/mcp")
    assert told == "http://no..host/mcp: no such host; check the name in the URL, and the network"


async def test_a_server_that_speaks_no_tls_is_told():
    def answer(_, writer):
        writer.write(response("400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    async with server:
        told = await fail_to_send(url)
    assert told.startswith(f"{url}: TLS failed (")
    assert told.endswith("); is it http:// rather than https://?")


async def test_a_certificate_that_is_not_accepted_is_told():
    """The file is a certificate that nobody vouches for, with its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/mcp"
    async with server:
        told = await fail_to_send(url)
    assert told.startswith(f"{url}: its certificate is not accepted (")
    assert told.endswith("); name its authority in SSL_CERT_FILE, or give a client of your own that trusts it")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://host/",
        "http://",
        "http:///mcp",
        "//host/mcp",
        "http://host:99999/",
        "http://user:s3/cret@host/",
        "http://host:s3cret/",
        "http://ho\nst/",
        "http://[::1/",
    ],
)
def test_what_is_no_url_is_refused_without_showing_secrets(url):
    """An invalid URL is NotSent, and says what to do."""
    with pytest.raises(NotSent, match="URL") as caught:
        HttpLink(url)
    assert "s3" not in str(caught.value)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"X-Key": "s3cret\r\nEvil: 1"}, "the value of 'X-Key' is not printable ASCII"),
        ({"X-Key": "s3crét"}, "the value of 'X-Key' is not printable ASCII"),
        ({"X-Key": " s3cret"}, "the value of 'X-Key' is not printable ASCII"),
        ({"X Key": "s3cret"}, "'X Key' is no header's name"),
        ({"Accept": "s3cret"}, "'Accept' is set by the transport"),
        ({"mcp-session-id": "s3cret"}, "'mcp-session-id' is set by the transport"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_at_once(headers, told):
    with pytest.raises(ValueError, match=told) as caught:
        HttpLink("http://127.0.0.1/", headers=headers)
    assert "s3cr" not in str(caught.value)


async def test_a_header_that_auth_breaks_is_told_without_its_value():
    class Broken(httpx2.Auth):
        def auth_flow(self, request):
            request.headers["Authorization"] = "Bearer s3cret\n"
            yield request

    async with RawServer(saying(b"")) as server:
        told = await fail_to_send(server.url, auth=Broken())
    assert told.endswith("a header has characters that no header can have; mend `headers`, or what `auth` adds")
    assert server.requests == []


# Who asks.


async def test_secrets_of_a_url_stand_in_no_log(caplog):
    """Credentials and the query never stand in an error or a log; they reach the server."""
    caplog.set_level(logging.DEBUG)
    async with RawServer(saying(response("200 OK", RESULT))) as server:
        url = server.url.replace("//", "//user:s3cret@") + "?token=s3cret"
        async with opened(url) as (link, _):
            await link.send(CALL, request_id=1, headers={})
            assert link.name == server.url
    (seen,) = server.requests
    assert (seen.target, seen.headers["authorization"]) == ("/mcp?token=s3cret", "Basic dXNlcjpzM2NyZXQ=")
    assert "s3cret" not in caplog.text


async def test_an_auth_flow_answers_a_challenge():
    """An auth object can be passed in, so that any OAuth flow can be used."""

    class Login(httpx2.Auth):
        def auth_flow(self, request):
            answer = yield request
            if answer.status_code == 401:
                request.headers["Authorization"] = "Bearer t"
                yield request

    answers = [response("401 Unauthorized", www_authenticate="Bearer"), response("200 OK", RESULT)]
    async with RawServer(saying(*answers)) as server, opened(server.url, auth=Login()) as (link, heard):
        await link.send(CALL, request_id=1, headers={})
    assert [each.headers.get("authorization") for each in server.requests] == [None, "Bearer t"]
    assert [each.body for each in server.requests] == [CALL, CALL]
    assert heard.raw == [RESULT]


async def test_a_client_that_is_passed_in_is_used_and_stays_open():
    """Its headers and its authentication hold; it is its owner who closes it."""
    async with (
        RawServer(saying(response("200 OK", RESULT))) as server,
        httpx2.AsyncClient(headers={"X-Mine": "1", "Accept": "text/html"}, auth=("a", "b")) as client,
    ):
        async with opened(server.url.replace("//", "//x:y@"), client=client) as (link, _):
            await link.send(CALL, request_id=1, headers={})
        assert not client.is_closed
    (seen,) = server.requests
    assert seen.headers["x-mine"] == "1"
    assert seen.headers["accept"] == "application/json, text/event-stream"
    assert seen.headers["authorization"] == "Basic YTpi"


async def test_a_client_that_is_closed_is_refused():
    client = httpx2.AsyncClient()
    await client.aclose()
    with pytest.raises(NotSent, match="the HTTP client that was given is closed"):
        await HttpLink("http://127.0.0.1/", client=client).open(Heard())


async def test_a_client_with_a_transport_of_its_own_needs_no_socket():
    """Any transport of httpx2's will do: one that stands for a server in a test, say."""

    def answer(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {"target": str(asked.url)}})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        async with opened("https://example.com/mcp?a=b", client=client) as (link, heard):
            await link.send(CALL, request_id=1, headers={})
    assert heard.messages[0]["result"] == {"target": "https://example.com/mcp?a=b"}


async def test_a_proxy_of_the_environment_is_not_asked_about_loopback(monkeypatch):
    """A proxy would look for `localhost` on its own machine."""
    async with RawServer(saying(b"")) as proxy, RawServer(saying(response("200 OK", RESULT))) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with opened(server.url) as (link, heard):
            await link.send(CALL, request_id=1, headers={})
    assert (heard.raw, proxy.requests) == ([RESULT], [])


async def test_a_link_is_opened_once():
    async with opened("http://127.0.0.1/") as (link, _):
        with pytest.raises(NotSent, match="opened before"):
            await link.open(Heard())


def test_without_httpx2_it_is_said_what_to_install():
    """An optional dependency: the message names the extra."""
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from twofold.errors import TransportError\n"
        "try: import twofold.transports.http_client.link\n"
        "except TransportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == (
        "talking to a server over HTTP takes the package 'httpx2', which is not installed: pip install 'twofold[http]'\n"
    )


def test_what_needs_no_http_loads_none():
    """`import twofold` loads no HTTP library; neither do the other transports, nor the error for a lost session."""
    program = (
        "import sys, twofold, twofold.transports.memory, twofold.transports.child_process\n"
        "print([name for name in ('httpx2', 'httpcore2', 'h11', 'http.client', 'urllib.request') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
