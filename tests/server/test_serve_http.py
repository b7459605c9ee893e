"""What clients never send, sent over raw sockets on every event loop that is served on."""

import asyncio
import contextlib
import contextvars
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from tests.server.raw_http import TIMEOUT_SECONDS, RawClient, RunningServer, running
from twofold.errors import TransportError
from twofold.server.serve_http import bind, serve, serve_http
from twofold.transports.http_server.bounds import HttpLimits

SHORT = 0.4
LARGE = 12_000_000
LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
NewLoop = Callable[[], asyncio.AbstractEventLoop]
_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class EchoApp:
    """Answers with what it got; some paths do more.

    Attributes:
        requests: Method, path and body of every request whose body was read to its end.
        lifespan: The lifespan events that have come.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.lifespan: list[str] = []
        self.chunks_sent = 0
        self.started = threading.Event()
        self.disconnected = threading.Event()
        self.cancelled = threading.Event()
        self.release: asyncio.Event | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for what in ("startup", "shutdown"):
                self.lifespan.append((await receive())["type"])
                await send({"type": f"lifespan.{what}.complete"})
            return
        self.started.set()
        serve_path = {
            "/early": self._early,
            "/large": self._large,
            "/stream": self._stream,
            "/wait": self._wait,
            "/who": self._tell_who,
        }
        await serve_path.get(scope["path"], self._echo)(scope, receive, send)

    async def _echo(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                self.disconnected.set()
                return
            body, more = body + event["body"], event["more_body"]
        self.requests.append((scope["method"], scope["path"], body))
        await _answer(send, 200, f"{scope['method']} {scope['path']} ".encode() + body)

    async def _early(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer without reading the body, and close if it is asked for."""
        fields = [(b"connection", b"close")] if scope["query_string"] == b"close" else []
        await _answer(send, 413, b"too large", *fields)

    async def _large(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with more than the buffers of two kernels hold."""
        await _answer(send, 200, b"x" * LARGE)

    async def _tell_who(self, scope: Any, receive: Any, send: Any) -> None:
        """Tell the value of a context variable, and set it for whoever comes after in this context."""
        before = _who.get()
        _who.set("an earlier request")
        while (await receive())["more_body"]:
            pass
        await _answer(send, 200, before.encode())

    async def _stream(self, scope: Any, receive: Any, send: Any) -> None:
        """Stream without an end, until the client has gone."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.create_task(self._see_the_end(receive))
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 16384, "more_body": True})
            self.chunks_sent += 1
            await asyncio.sleep(0)

    async def _see_the_end(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected.set()

    async def _wait(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer when it is let, or never."""
        self.release = asyncio.Event()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        await _answer(send, 200, b"released")


async def _answer(send: Any, status: int, body: bytes, *fields: tuple[bytes, bytes]) -> None:
    headers = [(b"content-length", b"%d" % len(body)), *fields]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _post(body: bytes, *fields: str, path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture(params=LOOPS)
def new_loop(request: pytest.FixtureRequest) -> NewLoop:
    chosen: NewLoop = request.param
    return chosen


@contextlib.contextmanager
def _serving(new_loop: NewLoop, app: EchoApp, **options: Any) -> Iterator[RunningServer]:
    with running(app, new_loop=new_loop, **options) as server:
        yield server


@pytest.fixture(params=LOOPS, scope="module")
def echo(request: pytest.FixtureRequest) -> Iterator[tuple[RunningServer, EchoApp]]:
    """One server for the tests that leave nothing behind."""
    app = EchoApp()
    with _serving(request.param, app, limits=HttpLimits(head_seconds=TIMEOUT_SECONDS * 2)) as server:
        yield server, app


SECOND = b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n"
REFUSED = {
    "two_different_lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 34\r\n\r\n",
    "two_equal_lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc",
    "list_of_lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
    "signed_length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
    "negative_length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "length_with_a_gap": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3 4\r\n\r\nabc",
    "empty_length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    "hexadecimal_length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc",
    "overflowing_length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\na",
    "length_and_coding": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding_and_length": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "identity_coding": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
    "chunked_twice": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "two_coding_fields": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "gzip_coding": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "disguised_coding": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding_with_vertical_tab": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "coding_in_http_1_0": b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk_size_not_hexadecimal": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
    "chunk_size_negative": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "chunk_size_empty": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    "chunk_size_with_prefix": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
    "chunk_size_overflowing": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    "chunk_size_with_space": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
    "chunk_extension": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
    "chunk_size_ends_in_lf": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
    "chunk_longer_than_its_size": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    "trailer": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: b\r\n\r\n",
    "all_lines_end_in_lf": b"GET / HTTP/1.1\nHost: a\n\n",
    "a_line_ends_in_lf": b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "head_ends_in_lf": b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    "bare_cr_in_a_value": b"GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n",
    "folded_line": b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    "folded_first_line": b"GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n",
    "space_before_colon": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc",
    "no_colon": b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
    "empty_name": b"GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n",
    "nul_in_a_value": b"GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n",
    "nul_in_a_name": b"GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n",
    "name_outside_ascii": "GET / HTTP/1.1\r\nHost: a\r\nÉ: y\r\n\r\n".encode(),
    "absolute_target": b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority_target": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk_target": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "target_with_space": b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "target_outside_ascii": "GET /é HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    "no_version": b"GET /\r\n\r\n",
    "version_2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "version_of_two_digits": b"GET / HTTP/1.10\r\nHost: a\r\n\r\n",
    "version_in_lower_case": b"GET / http/1.1\r\nHost: a\r\n\r\n",
    "no_host": b"GET / HTTP/1.1\r\nX: y\r\n\r\n",
    "no_host_in_http_1_0": b"GET / HTTP/1.0\r\n\r\n",
    "two_hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("name", REFUSED)
def test_smuggled_request_is_refused_and_nothing_after_it_is_served(
    echo: tuple[RunningServer, EchoApp], name: str
) -> None:
    """What two parsers could read in two ways is answered with 400 and the end (RFC 9112, 11.2)."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        response = client.exchange(REFUSED[name] + SECOND)
        assert (response.status, response.headers["connection"], client.read_to_end()) == (400, "close", b"")
    assert app.requests == []


@pytest.mark.parametrize("method", [b"TRACE", b"CONNECT", b"BREW", b"post"])
def test_method_nobody_serves_is_refused(echo: tuple[RunningServer, EchoApp], method: bytes) -> None:
    """TRACE would echo credentials, CONNECT would make a proxy (RFC 9110, 9.3); 405 says what may be sent."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        response = client.exchange(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n" + SECOND)
        assert (response.status, response.headers["allow"], client.read_to_end()) == (
            405,
            "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
            b"",
        )
    assert app.requests == []


def test_unknown_expectation_is_refused(echo: tuple[RunningServer, EchoApp]) -> None:
    """An expectation that cannot be met is answered with 417 (RFC 9110, 10.1.1)."""
    server, _ = echo
    with server.connect() as client:
        assert client.exchange(_post(b"a", "Expect: tea")).status == 417


@pytest.mark.parametrize(
    "offer",
    [
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
        b"Connection: upgrade\r\nUpgrade: websocket",
    ],
)
def test_offer_of_another_protocol_is_ignored(echo: tuple[RunningServer, EchoApp], offer: bytes) -> None:
    """Some clients offer h2c in every first request; it is served as HTTP/1.1, and so is the next (RFC 9110, 7.8)."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        client.send(b"POST /first HTTP/1.1\r\nHost: a\r\n" + offer + b"\r\nContent-Length: 3\r\n\r\nabc" + SECOND)
        assert [client.read_response().body, client.read_response().body] == [b"POST /first abc", b"GET /second "]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1024 * 1024 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1024 * 1024,
        b"GET /" + b"y" * 1024 * 1024 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        b"G" * 1024 * 1024,
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 64 * 1024 + b"\r\n\r\n",
    ],
    ids=["value", "endless_value", "target", "fields", "method", "just_too_long"],
)
def test_megabyte_of_header_is_refused(echo: tuple[RunningServer, EchoApp], head: bytes) -> None:
    """A head of more than 64 KiB or 100 fields is answered with 431 (RFC 6585, 5), and never gathered."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        assert client.exchange(head).status == 431
        assert (client.read_to_end(), app.requests) == (b"", [])


def test_head_just_within_the_bounds_is_served(echo: tuple[RunningServer, EchoApp]) -> None:
    """64 KiB and 100 fields are taken."""
    server, _ = echo
    start = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 98
    head = start + b"Z: " + b"z" * (64 * 1024 - len(start) - 7) + b"\r\n\r\n"
    assert len(head) == 64 * 1024
    with server.connect() as client:
        assert client.exchange(head).body == b"GET / "


def test_pipelined_requests_are_answered_in_order(echo: tuple[RunningServer, EchoApp]) -> None:
    """Answers come in the order of the requests, whatever their bodies (RFC 9112, 9.3.2)."""
    server, app = echo
    app.requests.clear()
    chunked = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with server.connect() as client:
        client.send((_post(b"one", path="/a") + b"\r\n" + SECOND + chunked) * 50)
        bodies = [client.read_response().body for _ in range(150)]
    assert bodies == [b"POST /a one", b"GET /second ", b"POST /c abcde"] * 50
    assert len(app.requests) == 150


def test_large_pipelined_bodies_wait_their_turn(echo: tuple[RunningServer, EchoApp]) -> None:
    """What is sent ahead of an answer is not gathered without a bound, and not lost."""
    server, _ = echo
    bodies = [bytes([65 + number]) * 300_000 for number in range(5)]
    with server.connect() as client:
        sending = threading.Thread(target=client.send, args=(b"".join(map(_post, bodies)),))
        sending.start()
        answers = [client.read_response().body for _ in bodies]
        sending.join(TIMEOUT_SECONDS)
    assert answers == [b"POST / " + body for body in bodies]


def _send_while_taken(client: RawClient, data: bytes) -> int:
    """Send this over and over until nothing more is taken; tell how much was."""
    watch = select.poll()
    watch.register(client.socket, select.POLLOUT)
    client.socket.setblocking(False)
    sent = 0
    while sent < 64_000_000 and watch.poll(SHORT * 1000):
        sent += client.socket.send(data[sent % len(data) :])
    client.socket.settimeout(TIMEOUT_SECONDS)
    return sent


def test_requests_sent_ahead_of_an_answer_are_not_gathered(new_loop: NewLoop) -> None:
    """A client that sends on without end is no longer read: it waits, not our memory (B3)."""
    app = EchoApp()
    with _serving(new_loop, app, limits=HttpLimits(grace_seconds=0)) as server, server.connect() as client:
        client.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        assert app.started.wait(TIMEOUT_SECONDS)
        assert _send_while_taken(client, SECOND * 10_000) < 32_000_000  # the buffers of the two kernels
    assert app.requests == []


def test_requests_whose_answers_nobody_takes_wait(new_loop: NewLoop) -> None:
    """A client that sends and does not read gets no more requests worked on; once it reads, it gets every answer."""
    app, body = EchoApp(), b"x" * 100_000
    with _serving(new_loop, app) as server, server.connect(receive_bytes=4096) as client:
        client.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert app.started.wait(TIMEOUT_SECONDS)
        request = _post(body)
        sent = _send_while_taken(client, request)
        begun, left = -(-sent // len(request)), -sent % len(request)
        assert sent < 32_000_000
        assert begun > 2
        assert len(app.requests) <= 1  # whose answer waits for room
        sending = threading.Thread(target=client.send, args=(request[len(request) - left :],))
        sending.start()
        assert len(client.read_response().body) == LARGE
        assert [client.read_response().body == b"POST / " + body for _ in range(begun)] == [True] * begun
        sending.join(TIMEOUT_SECONDS)
    assert app.requests == [("POST", "/", body)] * begun


def test_request_in_segments_of_one_byte_is_served(echo: tuple[RunningServer, EchoApp]) -> None:
    """How bytes are cut on their way means nothing."""
    server, _ = echo
    with server.connect() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in (
            _post(b"one"),
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n",
        ):
            for byte in data:
                client.send(bytes([byte]))
        assert [client.read_response().body for _ in range(2)] == [b"POST / one", b"POST / two"]


def test_empty_lines_before_a_request_are_ignored(echo: tuple[RunningServer, EchoApp]) -> None:
    """A client may end a body with an empty line too many (RFC 9112, 2.2)."""
    server, _ = echo
    with server.connect() as client:
        assert client.exchange(b"\r\n\r\n" + _post(b"one")).body == b"POST / one"
        assert client.exchange(b"\r\n" + _post(b"two")).body == b"POST / two"


def test_continue_is_sent_when_the_body_is_wanted(echo: tuple[RunningServer, EchoApp]) -> None:
    """A client that expects it gets 100 and then sends (RFC 9110, 10.1.1)."""
    server, _ = echo
    with server.connect() as client:
        assert (
            client.exchange(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n").status
            == 100
        )
        assert client.exchange(b"abc").body == b"POST / abc"


def test_early_answer_to_an_expectation_ends_the_connection(echo: tuple[RunningServer, EchoApp]) -> None:
    """After it nobody knows whether the body will come, so nothing that comes is read as a request."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        head = b"POST /early HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n"
        assert client.exchange(head).status == 413
        client.send(SECOND)
        assert (client.read_to_end(), app.requests) == (b"", [])


def test_body_that_comes_after_its_answer_is_thrown_away(echo: tuple[RunningServer, EchoApp]) -> None:
    """The connection stays usable, and the body is not read as a request."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        assert (
            client.exchange(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(SECOND)).status
            == 413
        )
        client.send(SECOND)
        assert client.exchange(SECOND).body == b"GET /second "
    assert app.requests == [("GET", "/second", b"")]


def test_answer_that_closes_reaches_a_client_that_still_sends(echo: tuple[RunningServer, EchoApp]) -> None:
    """Closing with bytes unread would reset the connection, and the client would not see its 413 (RFC 9112, 9.6)."""
    server, app = echo
    app.requests.clear()
    with server.connect() as client:
        client.socket.sendall(_post(b"x" * 16_000_000, path="/early?close") + SECOND)  # without an error
        response = client.read_response()
        assert (response.status, response.body, client.read_to_end()) == (413, b"too large", b"")
    assert app.requests == []


def test_requests_of_one_connection_do_not_see_each_others_context(echo: tuple[RunningServer, EchoApp]) -> None:
    """What one request sets in a context variable, a principal say, is not there for the next."""
    server, _ = echo
    with server.connect() as client:
        for _ in range(3):
            assert client.exchange(_post(b"", path="/who")).body == b"nobody"
        client.send((_post(b"x" * 1_000_000, path="/who") + _post(b"", path="/who")) * 2)
        assert [client.read_response().body for _ in range(4)] == [b"nobody"] * 4


def test_http_1_0_is_answered_and_closed(echo: tuple[RunningServer, EchoApp]) -> None:
    """A version without persistent connections gets one answer (RFC 9112, 9.3)."""
    server, _ = echo
    with server.connect() as client:
        assert client.exchange(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n" + SECOND).body == b"GET / "
        assert client.read_to_end() == b""


def test_nothing_says_which_server_this_is(echo: tuple[RunningServer, EchoApp]) -> None:
    """An answer has the app's headers and the date, no more."""
    server, _ = echo
    with server.connect() as client:
        assert set(client.exchange(SECOND).headers) == {"content-length", "date"}


def test_half_closed_connection_ends(echo: tuple[RunningServer, EchoApp]) -> None:
    """A client that closes its side has gone, as far as anyone can tell; nothing of it stays."""
    server, _ = echo
    for sent in (b"", b"GET / HT", _post(b"abc")[:-1], SECOND, b"\r\n"):
        with server.connect() as client:
            client.send(sent)
            client.socket.shutdown(socket.SHUT_WR)
            assert client.read_to_end()[:12] in {b"", b"HTTP/1.1 200"}


def test_client_that_leaves_in_its_request_lets_the_app_know(new_loop: NewLoop) -> None:
    """The app sees `http.disconnect`, though more requests were pipelined behind this one."""
    app = EchoApp()
    with _serving(new_loop, app) as server:
        with server.connect() as client:
            client.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n" + SECOND * 3)
            assert app.started.wait(TIMEOUT_SECONDS)
        assert app.disconnected.wait(TIMEOUT_SECONDS)
    assert app.requests == []


def test_broken_chunk_lets_the_waiting_app_know(new_loop: NewLoop) -> None:
    """A body that turns out malformed is answered with 400, and its app does not wait for the rest."""
    app = EchoApp()
    limits = HttpLimits(linger_seconds=TIMEOUT_SECONDS * 2)  # so that it is not the closing that lets it know
    with _serving(new_loop, app, limits=limits) as server, server.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        assert app.started.wait(TIMEOUT_SECONDS)
        assert client.exchange(b"zz\r\n").status == 400
        assert app.disconnected.wait(TIMEOUT_SECONDS)
        assert client.read_to_end() == b""
    assert app.requests == []


def test_connection_that_says_nothing_more_is_closed(new_loop: NewLoop) -> None:
    """A connection without a request under way is closed in time, and told why if it has begun one (B3)."""
    limits = HttpLimits(head_seconds=SHORT, keep_alive_seconds=SHORT, linger_seconds=SHORT)
    expected = {
        b"": [],
        b"GET / HTTP/1.1\r\nHost:": [408],
        SECOND + b"GET /": [200, 408],
        SECOND: [200],
        SECOND + b"\r\n\r\n": [200],
        b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1": [413],
        b"POST /early?close HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1": [413],
        b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n": [405],
    }
    with _serving(new_loop, EchoApp(), limits=limits) as server, contextlib.ExitStack() as stack:
        clients = {sent: stack.enter_context(server.connect()) for sent in expected}
        for sent, client in clients.items():
            client.send(sent)
        statuses = {sent: [clients[sent].read_response().status for _ in expected[sent]] for sent in expected}
        assert statuses == expected
        assert [client.read_to_end() for client in clients.values()] == [b""] * len(clients)
        for client in clients.values():
            client.send_until_refused()


def test_request_that_runs_long_is_not_idle(new_loop: NewLoop) -> None:
    """The limits are for who keeps the server waiting, not for who waits, though it has sent a part of the next."""
    app = EchoApp()
    limits = HttpLimits(head_seconds=SHORT, keep_alive_seconds=SHORT, linger_seconds=SHORT, stall_seconds=SHORT)
    with _serving(new_loop, app, limits=limits) as server, server.connect() as client, server.connect() as other:
        client.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /")
        assert app.started.wait(TIMEOUT_SECONDS)
        assert other.read_to_end() == b""  # opened later, and closed by its limit
        assert server.loop is not None
        assert app.release is not None
        server.loop.call_soon_threadsafe(app.release.set)
        assert client.read_response().body == b"released"


def test_reader_that_takes_nothing_is_dropped_and_holds_little(new_loop: NewLoop) -> None:
    """A client that does not read makes `send` wait, and after a while loses its connection (B3)."""
    app = EchoApp()
    with (
        _serving(new_loop, app, limits=HttpLimits(stall_seconds=SHORT)) as server,
        server.connect(receive_bytes=4096) as client,
    ):
        client.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert app.disconnected.wait(TIMEOUT_SECONDS)
        assert app.chunks_sent * 16384 < 8 * 1024 * 1024  # the buffers of the two kernels, and our 64 KiB


def test_reader_that_never_takes_its_last_answer_is_dropped(new_loop: NewLoop) -> None:
    """An answer that is complete holds its connection no longer than one that is not."""
    app = EchoApp()
    with (
        _serving(new_loop, app, limits=HttpLimits(stall_seconds=SHORT, keep_alive_seconds=SHORT)) as server,
        server.connect(receive_bytes=4096) as client,
    ):
        client.send(_post(b"x" * 16_000_000, "Connection: close"))
        watch = select.poll()
        watch.register(client.socket, select.POLLRDHUP)
        assert [events & select.POLLERR for _, events in watch.poll(TIMEOUT_SECONDS * 1000)] == [select.POLLERR]


def test_connections_beyond_the_bound_are_told_to_come_again(new_loop: NewLoop) -> None:
    """One too many gets 503 and Retry-After; when one has gone there is room again (B3)."""
    limits = HttpLimits(max_connections=8, linger_seconds=TIMEOUT_SECONDS * 2)
    with _serving(new_loop, EchoApp(), limits=limits) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(8)]
        assert [each.exchange(SECOND).status for each in clients] == [200] * 8
        with server.connect() as refused:
            response = refused.exchange(SECOND)
            assert (response.status, response.headers["retry-after"], refused.read_to_end()) == (503, "5", b"")
            with server.connect() as too_many:  # even to be told
                assert too_many.read_to_end() == b""
        clients[0].socket.close()
        answers = {b""}
        while b"HTTP/1.1 200" not in answers:  # the server has to see that one has gone
            with server.connect() as again:
                again.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                answers.add(again.read_to_end()[:12])
        assert answers <= {b"", b"HTTP/1.1 503", b"HTTP/1.1 200"}


def test_listeners_probe_peers_that_say_nothing() -> None:
    """A peer that vanished without a word is found out by the system; connections inherit it from the listener."""
    (listener,) = bind("127.0.0.1", 0, stall_seconds=60)
    with listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


def test_stop_lets_requests_finish_and_ends_the_lifespan(new_loop: NewLoop) -> None:
    """Idle connections are closed, running requests are answered first, then the app is ended."""
    app, stopping = EchoApp(), threading.Event()
    with (
        _serving(new_loop, app, on_stopping=stopping.set) as server,
        server.connect() as client,
        server.connect() as idle,
    ):
        assert idle.exchange(SECOND).status == 200
        app.started.clear()
        client.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        assert app.started.wait(TIMEOUT_SECONDS)
        server.end()
        assert idle.read_to_end() == b""
        assert stopping.is_set()
        assert server.loop is not None
        assert app.release is not None
        server.loop.call_soon_threadsafe(app.release.set)
        response = client.read_response()
        assert (response.status, response.body, client.read_to_end()) == (200, b"released", b"")
    assert app.lifespan == ["lifespan.startup", "lifespan.shutdown"]


def test_stop_cancels_what_does_not_finish(new_loop: NewLoop, caplog: pytest.LogCaptureFixture) -> None:
    """After the grace requests are cancelled and their clients told; nothing but that is logged; the lifespan ends."""
    app = EchoApp()
    with _serving(new_loop, app, limits=HttpLimits(grace_seconds=SHORT)) as server, server.connect() as client:
        client.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        assert app.started.wait(TIMEOUT_SECONDS)
        server.end()
        assert client.read_to_end().startswith(b"HTTP/1.1 503 ")
    assert app.cancelled.is_set()
    assert app.lifespan == ["lifespan.startup", "lifespan.shutdown"]
    told = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert [each.split(" have ")[0] for each in told] == ["ending: 1 requests are running and"]


async def test_failing_lifespan_raises_what_it_raised() -> None:
    """Whoever calls the serving learns why the app does not start, and the port is free again."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("no database")

    listeners = bind("127.0.0.1", 0, stall_seconds=60)
    with pytest.raises(LookupError, match="^no database$"):
        await serve(app, listeners, stop=asyncio.Event())
    assert [each.fileno() for each in listeners] == [-1]


async def test_refused_start_is_an_error_with_its_reason() -> None:
    """`lifespan.startup.failed` ends the serving with its message (ASGI, Lifespan Protocol)."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    with pytest.raises(TransportError, match="^the server could not start: no database$"):
        await serve(app, bind("127.0.0.1", 0, stall_seconds=60), stop=asyncio.Event())


async def test_stop_before_the_start_has_ended_ends_it() -> None:
    """A signal is heeded while the app still starts."""
    cancelled = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    await serve(app, bind("127.0.0.1", 0, stall_seconds=60), stop=stop)
    assert cancelled.is_set()


def test_port_in_use_is_an_error_that_says_what_to_do() -> None:
    """The message has the address, the reason and the way out."""
    (listener,) = bind("127.0.0.1", 0, stall_seconds=60)
    with listener:
        port = listener.getsockname()[1]
        with pytest.raises(TransportError) as refused:
            serve_http(EchoApp(), host="127.0.0.1", port=port)
    assert str(refused.value) == (
        f"cannot serve at 127.0.0.1:{port}: Address already in use; "
        "stop what listens there, or choose another port (0 picks a free one)"
    )


@pytest.mark.parametrize(
    ("host", "advice"),
    [
        ("192.0.2.1", "Cannot assign requested address; choose an address of this machine, such as 127.0.0.1"),
        ("", "no address; name one, such as 127.0.0.1"),
        ("a" * 64 + ".invalid", "name this machine or one of its addresses, such as 127.0.0.1"),
        ("127.0.0.1.9", "name this machine or one of its addresses, such as 127.0.0.1"),
    ],
)
def test_host_that_is_not_ours_is_an_error_that_says_what_to_do(host: str, advice: str) -> None:
    """An address of another machine, none, and a name that cannot be one are the caller's to mend."""
    with pytest.raises(TransportError) as refused:
        serve_http(EchoApp(), host=host, port=0)
    assert str(refused.value).startswith("cannot serve at ")
    assert str(refused.value).endswith(advice)


@pytest.mark.parametrize("port", [-1, 65536])
def test_port_out_of_range_is_a_mistake_of_the_caller(port: int) -> None:
    """It is a plain ValueError."""
    with pytest.raises(ValueError, match=f"^a port is a number from 0 to 65535, got {port}$"):
        serve_http(EchoApp(), host="127.0.0.1", port=port)


async def test_serving_inside_a_running_loop_is_refused() -> None:
    """It has a loop of its own, as serving over stdio has."""
    with pytest.raises(RuntimeError, match="has an event loop of its own"):
        serve_http(EchoApp(), host="127.0.0.1", port=0)


PROGRAM = """
    import asyncio, signal, sys, threading, time
    from twofold.server.serve_http import serve_http
    from twofold.transports.http_server.bounds import HttpLimits

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            print("app ended", flush=True)
            await send({"type": "lifespan.shutdown.complete"})
            return
        print("asked", flush=True)
        WAIT

    serve_http(
        app,
        host="127.0.0.1",
        port=0,
        path="/mcp",
        limits=HttpLimits(grace_seconds=1),
        on_stopping=lambda: print("stopping", flush=True),
    )
    print("returned", flush=True)
"""
NEVER = "await asyncio.Event().wait()"
BLOCKED_THREAD = "await asyncio.to_thread(time.sleep, 600)"


@contextlib.contextmanager
def _program(wait: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that serves, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("WAIT", wait)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        prefix, suffix = "Serving at http://127.0.0.1:", "/mcp (Ctrl-C ends it)\n"
        assert (line[: len(prefix)], line[-len(suffix) :]) == (prefix, suffix)
        yield process, int(line[len(prefix) : -len(suffix)])
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_process_in_order(number: signal.Signals) -> None:
    """The first signal stops, ends the app, and the call returns: exit status 0, and one line said where it served."""
    with _program(NEVER) as (process, _):
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (output, errors, process.returncode) == ("stopping\napp ended\nreturned\n", "", 0)


def test_second_signal_ends_the_process_at_once() -> None:
    """Nobody has to wait for a request that does not end."""
    with _program(NEVER) as (process, port), RawClient(port) as client:
        assert process.stdout is not None
        client.send(SECOND)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (output, process.returncode) == ("", -signal.SIGTERM)


def test_thread_that_never_ends_does_not_keep_the_process() -> None:
    """After the grace the app is ended and the process ends hard, with status 0."""
    with _program(BLOCKED_THREAD) as (process, port), RawClient(port) as client:
        assert process.stdout is not None
        client.send(SECOND)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (output, process.returncode) == ("stopping\napp ended\n", 0)
    assert errors == "ending: 1 requests are running and have 1 seconds; a second signal ends at once\n"
