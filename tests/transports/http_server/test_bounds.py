"""Deadlines by a clock of the test's own; what they do to real connections is in tests/server/test_serve_http.py."""

import asyncio
from typing import Any

from tests.transports.http_server.wire import Wire
from twofold.transports.http_server.bounds import HttpLimits
from twofold.transports.http_server.protocol import HttpProtocol, Service

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def _open() -> tuple[HttpProtocol, Wire]:
    service = Service(_answer, HttpLimits(head_seconds=10, stall_seconds=60, keep_alive_seconds=100), {})
    connection, wire = HttpProtocol(service), Wire()
    connection.connection_made(wire)
    return connection, wire


async def test_each_head_has_its_own_deadline() -> None:
    """The time starts anew with each request, though every round finds one unfinished."""
    connection, wire = _open()
    connection.data_received(REQUEST[:9])
    for now in (0, 9, 18, 27):
        connection.check_deadlines(now)
        connection.data_received(REQUEST[9:])
        await asyncio.gather(*connection._service.tasks)
        connection.data_received(REQUEST[:9])
        connection.check_deadlines(now + 1)
    assert wire.written.count(b"HTTP/1.1 204") == 4
    connection.check_deadlines(38)
    assert not wire.is_ended
    connection.check_deadlines(38.1)
    assert wire.written.endswith(b"connection: close\r\n\r\nthe request did not come in time; send it at once\n")
    assert wire.is_ended
    connection.connection_lost(None)


async def test_reader_that_takes_anything_is_kept() -> None:
    """A slow reader is no vanished one: each byte it takes starts the time anew."""
    connection, wire = _open()
    connection.data_received(REQUEST)
    await asyncio.gather(*connection._service.tasks)
    for now, wire.unsent_bytes in ((0, 3), (60, 3), (61, 2), (62, 2), (122, 2)):
        assert not wire.is_closed
        connection.check_deadlines(now)
    assert not wire.is_closed
    connection.check_deadlines(122.1)
    assert wire.is_closed
    connection.connection_lost(None)


async def test_a_connection_without_requests_is_closed_in_time() -> None:
    """The time between two requests is bounded; it starts anew with each."""
    connection, wire = _open()
    connection.data_received(REQUEST)
    await asyncio.gather(*connection._service.tasks)
    for now in (0, 60, 100):
        connection.check_deadlines(now)
    connection.data_received(REQUEST)
    await asyncio.gather(*connection._service.tasks)
    connection.check_deadlines(101)
    connection.check_deadlines(201)
    assert not wire.is_closed
    connection.check_deadlines(201.1)
    assert wire.is_closed
    connection.connection_lost(None)
