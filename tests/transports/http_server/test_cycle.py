"""One request and its answer between an application and a transport of the test's own."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from tests.transports.http_server.wire import Wire
from twofold.transports.http_server.bounds import HttpLimits
from twofold.transports.http_server.cycle import MAX_BODY_HELD, Cycle
from twofold.transports.http_server.framing import Piece, RequestHead
from twofold.transports.http_server.protocol import HttpProtocol, Service

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
LONG = b"a" * 80
"""Longer than what is remembered of a field."""


def _open(app: Any, wire: Wire) -> HttpProtocol:
    connection = HttpProtocol(Service(app, HttpLimits(head_seconds=10, stall_seconds=60), {}))
    connection.connection_made(wire)
    return connection


async def _in_callback(function: Callable[[], object], *, context: contextvars.Context | None = None) -> None:
    """Call a function as the event loop does: outside every task."""
    loop = asyncio.get_running_loop()
    called = loop.create_future()

    def call() -> None:
        try:
            called.set_result(function())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            called.set_exception(error)

    loop.call_soon(call, context=context)
    await called


def _answering(*fields: tuple[bytes, bytes]) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2"), *fields]})
        await send({"type": "http.response.body", "body": b"ok"})

    return answer


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(b"x-note", b"a" * 10 + end + b"x-injected: b") for end in (b"\r\n", b"\n", b"\r", b"\0")],
        *[(b"x-note", LONG + end + b"x-injected: b") for end in (b"\r\n", b"\n", b"\r", b"\0")],
        *[(name, b"b") for name in (b"x-injected:", b"x injected", b"x\r\nx-injected", b"X-Injected", b"")],
        *[(name, LONG) for name in (b"x-injected:", b"x injected", b"x\r\nx-injected", b"X-Injected", b"")],
    ],
)
async def test_field_that_would_break_the_answer_is_500_and_not_sent(name: bytes, value: bytes) -> None:
    """A value with a line end would begin a header, or an answer, of its own (RFC 9110, 5.5); so would a bad name."""
    wire = Wire()
    connection = _open(_answering((name, value)), wire)
    await _in_callback(lambda: connection.data_received(REQUEST))
    sent = wire.written
    assert sent.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert sent.endswith(b"content-length: 21\r\n\r\nInternal Server Error")
    assert b"injected" not in sent.lower()
    assert LONG not in sent
    connection.connection_lost(None)


@pytest.mark.parametrize("value", [b"b", LONG])
async def test_field_that_is_well_formed_is_sent_as_it_is(value: bytes) -> None:
    """Short and long values are sent alike, and a whole answer is one write."""
    wire = Wire()
    connection = _open(_answering((b"x-note", value)), wire)
    await _in_callback(lambda: connection.data_received(REQUEST))
    date = connection.common_field
    assert wire.writes == [
        b"HTTP/1.1 200 OK\r\n" + date + b"content-length: 2\r\nx-note: " + value + b"\r\n\r\nok",
    ]
    connection.connection_lost(None)


async def test_peer_is_not_read_on_when_the_app_does_not_ask_for_the_body() -> None:
    """So much of a body is kept; the app's asking has the peer read on."""
    asked = asyncio.Event()
    bodies: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asked.wait()
        more = True
        while more:
            event = await receive()
            bodies.append(event["body"])
            more = event["more_body"]
        await _answering()(scope, receive, send)

    wire = Wire()
    connection = _open(app, wire)
    length = MAX_BODY_HELD + 3
    connection.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % length)
    connection.data_received(b"x" * MAX_BODY_HELD)
    assert wire.is_reading
    connection.data_received(b"x")
    assert not wire.is_reading
    asked.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (wire.is_reading, bodies) == (True, [b"x" * (MAX_BODY_HELD + 1)])
    connection.data_received(b"yz")
    await asyncio.gather(*connection._service.tasks)
    assert bodies == [b"x" * (MAX_BODY_HELD + 1), b"yz"]
    connection.connection_lost(None)


def _make_cycle(body: bytes, *, is_last: bool) -> Cycle:
    head = RequestHead("POST", b"/", False, ((b"host", b"a"),), True)
    connection = _open(_answering(), Wire())
    return Cycle(connection, head, Piece(head, body, is_last), awaits_continue=False)


async def test_whole_body_is_not_taken_once_a_part_was_given() -> None:
    """What is taken is all of it or nothing: the rest alone would be another message."""
    cycle = _make_cycle(b"ab", is_last=False)
    assert cycle.take_body() is None
    assert await cycle.receive() == {"type": "http.request", "body": b"ab", "more_body": True}
    cycle.feed(Piece(None, b"cd", True))
    assert cycle.take_body() is None
    assert await cycle.receive() == {"type": "http.request", "body": b"cd", "more_body": False}
    assert cycle.take_body() is None


async def test_whole_body_is_taken_once() -> None:
    """Whichever way it came: whole, in parts, or empty."""
    in_parts = _make_cycle(b"ab", is_last=False)
    in_parts.feed(Piece(None, b"cd", True))
    cycles = (_make_cycle(b"ab", is_last=True), in_parts, _make_cycle(b"", is_last=True))
    assert [(each.take_body(), each.take_body()) for each in cycles] == [(b"ab", None), (b"abcd", None), (b"", None)]


@pytest.mark.parametrize("is_in_task", [False, True])
async def test_each_request_runs_in_the_context_of_its_connection(is_in_task: bool) -> None:
    """Whoever last resumed the reading may be another request; its variables are nobody else's."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(WHO.get())
        WHO.set("an earlier request")
        await _answering()(scope, receive, send)

    connection = _open(app, Wire())
    other = contextvars.copy_context()
    other.run(WHO.set, "another request")
    for _ in range(2):
        if is_in_task:
            other.run(connection.data_received, REQUEST)
            await asyncio.gather(*connection._service.tasks)
        else:
            await _in_callback(lambda: connection.data_received(REQUEST), context=other)
    assert seen == ["nobody", "nobody"]
    connection.connection_lost(None)


async def test_head_goes_out_before_a_body_that_is_waited_for() -> None:
    """A stream of events is open for its client before the first event: also where the first step of the app waits."""
    ready = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await ready.wait()
        await send({"type": "http.response.body", "body": b"ok"})

    wire = Wire()
    connection = _open(app, wire)
    written_by_then: list[list[bytes]] = []

    def receive() -> None:
        connection.data_received(REQUEST)
        written_by_then.append(list(wire.writes))

    await _in_callback(receive)
    head = b"HTTP/1.1 200 OK\r\n" + connection.common_field + b"transfer-encoding: chunked\r\n\r\n"
    assert written_by_then == [[head]]
    ready.set()
    await asyncio.gather(*connection._service.tasks)
    assert wire.writes == [head, b"2\r\nok\r\n0\r\n\r\n"]
    connection.connection_lost(None)


async def test_connection_that_cannot_be_ended_is_aborted() -> None:
    """The system may know of the peer's end before the event loop does: no fault, and nothing is left of it."""
    wire = Wire(end_fails=True)
    connection = _open(_answering(), wire)
    connection.data_received(REQUEST[:9])
    connection.check_deadlines(0)
    connection.check_deadlines(10.1)
    assert wire.writes[0].startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert wire.is_aborted
    connection.connection_lost(None)


async def test_stalled_connection_is_aborted_whatever_the_system_says() -> None:
    """An option that cannot be set does not keep a connection that nobody reads."""
    wire = Wire(option_fails=True)
    connection = _open(_answering(), wire)
    wire.unsent_bytes = 3
    connection.check_deadlines(0)
    connection.check_deadlines(60)
    assert not wire.is_aborted
    connection.check_deadlines(60.1)
    assert wire.is_aborted
    connection.connection_lost(None)


def _answering_at_once(told: list[bool]) -> Any:
    """Answer as an application does that knows the server: at once where that goes, else by events."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        fields = [(b"content-length", b"2")]
        told.append(scope["extensions"]["twofold.request"].answer(200, fields, b"ok"))
        if not told[-1]:
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            await send({"type": "http.response.body", "body": b"ok"})

    return answer


async def test_whole_answer_is_not_sent_at_once_while_the_peer_does_not_keep_up() -> None:
    """What waits for room is an event: nothing is gathered without a bound, and nothing lost."""
    wire, told = Wire(), []
    connection = _open(_answering_at_once(told), wire)
    connection.pause_writing()
    await _in_callback(lambda: connection.data_received(REQUEST))
    assert (told, wire.writes) == ([False], [])
    connection.resume_writing()
    for _ in range(5):
        await asyncio.sleep(0)
    await _in_callback(lambda: connection.data_received(REQUEST))
    assert told == [False, True]
    assert wire.written.count(b"HTTP/1.1 200 OK\r\n") == wire.written.count(b"\r\n\r\nok") == 2


async def test_whole_answer_after_another_is_refused() -> None:
    """A second answer would be read as that to the next request."""
    wire, told = Wire(), []
    at_once = _answering_at_once(told)

    async def twice(scope: Any, receive: Any, send: Any) -> None:
        await at_once(scope, receive, send)
        with pytest.raises(RuntimeError, match="answered a request twice"):
            await at_once(scope, receive, send)

    connection = _open(twice, wire)
    await _in_callback(lambda: connection.data_received(REQUEST))
    assert (told, wire.written.count(b"HTTP/1.1")) == ([True], 1)


async def test_whole_answer_to_a_peer_that_has_gone_is_dropped() -> None:
    """There is nobody to wait for."""
    wire, told, gone = Wire(), [], asyncio.Event()
    at_once = _answering_at_once(told)

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await gone.wait()
        await at_once(scope, receive, send)

    connection = _open(late, wire)
    await _in_callback(lambda: connection.data_received(REQUEST))
    await _in_callback(lambda: connection.connection_lost(None))
    gone.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (told, wire.writes) == ([True], [])
