"""Misbehaviours of an HTTP server; what they pour are whole responses, heads included."""

import itertools
import zlib
from collections.abc import Callable, Iterator

import msgspec

from twofold.testing.hostile.steps import EVER, Asked, Close, Misbehaviour, Play, Pour, Step

BOMB_BYTES = 200_000_000
"""What a gzip bomb becomes; more than three times what a client should take."""
_PIECE = 1_000_000
_EVENT_IDS = itertools.count()

HTTP_ANSWERS: dict[str, Misbehaviour] = {}
"""By name."""


def _on(method: str = "tools/call") -> Callable[[Play], Play]:
    """Put a misbehaviour into the table under its function's name; its docstring says what it is."""

    def put(play: Play) -> Play:
        name = play.__name__
        HTTP_ANSWERS[name] = Misbehaviour(name, (play.__doc__ or "").strip(), method, play, "http")
        return play

    return put


def head(status: str, *, content_type: str = "application/json", **fields: str) -> bytes:
    """Write the head of a response; `_` in a field's name stands for `-`."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def body(status: str, text: bytes, *, content_type: str = "application/json", **fields: str) -> bytes:
    """Write a response with its length."""
    return head(status, content_type=content_type, content_length=str(len(text)), **fields) + text


@_on()
def gzip_bomb(asked: Asked) -> Iterator[Step]:
    """A JSON body of 200 kB that becomes 200 MB."""
    yield Pour(_bomb(asked.answer_with(b'{"value":"')[:-3], content_type="application/json"))


@_on()
def gzip_event_bomb(_: Asked) -> Iterator[Step]:
    """An event of 200 kB that becomes 200 MB."""
    yield Pour(_bomb(b"data: {", content_type="text/event-stream"))


def _bomb(start: bytes, *, content_type: str) -> bytes:
    compressor = zlib.compressobj(9, wbits=31)
    parts = [compressor.compress(start)]
    parts += [compressor.compress(b"x" * _PIECE) for _ in range(BOMB_BYTES // _PIECE)]
    return body("200 OK", b"".join([*parts, compressor.flush()]), content_type=content_type, content_encoding="gzip")


@_on()
def endless_head(_: Asked) -> Iterator[Step]:
    """Header fields without an end."""
    yield Pour(b"HTTP/1.1 200 OK\r\n")
    while True:
        yield Pour(b"x-more: " + b"y" * 1000 + b"\r\n")


@_on()
def endless_field(_: Asked) -> Iterator[Step]:
    """One header field without an end."""
    yield Pour(b"HTTP/1.1 200 OK\r\nx-more: ")
    while True:
        yield Pour(b"y" * 10_000)


@_on()
def endless_comments(_: Asked) -> Iterator[Step]:
    """An event stream of comments without an end."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    while True:
        yield Pour(b": nothing yet\n\n" * 1000)


@_on()
def endless_event(_: Asked) -> Iterator[Step]:
    """One event of ever more lines."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    while True:
        yield Pour(b"data: [" + b"[" * 1000 + b"\n")


@_on()
def endless_events(_: Asked) -> Iterator[Step]:
    """Events without an end, none of them with data."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    while True:
        yield Pour(b"id: 1\nevent: nothing\n\n" * 1000)


@_on()
def endless_after_answer(asked: Asked) -> Iterator[Step]:
    """The answer on an event stream that then goes on without an end."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    yield Pour(b"data: %b\n\n" % asked.answer())
    while True:
        yield Pour(b": and on\n\n" * 1000)


def _open_stream(message: bytes) -> Iterator[Step]:
    """Say something on an event stream that then stays open."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    yield Pour(b"data: %b\n\n" % message)
    yield EVER


@_on()
def open_stream_late_id(asked: Asked) -> Iterator[Step]:
    """`NaN` in an answer whose id stands at its end, on an event stream that stays open."""
    whole = b'{"result":{"content":[],"structuredContent":{"text":"%b","value":NaN}},"jsonrpc":"2.0","id":%b}'
    yield from _open_stream(whole % (b"x" * 10_000, msgspec.json.encode(asked.id)))


@_on()
def open_stream_empty_batch(_: Asked) -> Iterator[Step]:
    """`[]` on an event stream that stays open."""
    yield from _open_stream(b"[]")


@_on()
def open_stream_other_id(asked: Asked) -> Iterator[Step]:
    """An answer to something else on an event stream that stays open."""
    yield from _open_stream(asked.answer(id=987_654_321))


@_on()
def open_stream_bad_progress(asked: Asked) -> Iterator[Step]:
    """A notification that cannot be read, then the answer, on an event stream that stays open."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    yield Pour(b'data: {"method":"notifications/progress","params":{"progress":NaN},"jsonrpc":"2.0"}\n\n')
    yield Pour(b"data: %b\n\n" % asked.answer())
    yield EVER


@_on()
def endless_resumption(_: Asked) -> Iterator[Step]:
    """An event stream that ends before the answer, after an event with a new id.

    With `endless_resumption@GET` whoever takes it up gets the same again, without an end.
    """
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    yield Pour(b"retry: 0\nid: %d\ndata: \n\n" % next(_EVENT_IDS))
    yield Close()


@_on()
def short_body(asked: Asked) -> Iterator[Step]:
    """A body that is shorter than its head says."""
    yield Pour(head("200 OK", content_length="1000000") + asked.answer())
    yield Close()


@_on()
def long_body(asked: Asked) -> Iterator[Step]:
    """A second response behind the one that was asked for, to be taken for the answer to the next request."""
    forged = asked.answer(id=(asked.id if isinstance(asked.id, int) else 0) + 1, result={"content": []})
    yield Pour(body("200 OK", asked.answer()) + body("200 OK", forged))


@_on()
def html_page(_: Asked) -> Iterator[Step]:
    """A page that asks to log in, with status 200."""
    yield Pour(body("200 OK", b"<!doctype html><title>Log in</title>", content_type="text/html"))


@_on()
def no_http(_: Asked) -> Iterator[Step]:
    """Bytes that are no HTTP."""
    yield Pour(b"SSH-2.0-OpenSSH_9.9\r\n" + b"\x00" * 100)
    yield Close()


@_on()
def accepted_only(_: Asked) -> Iterator[Step]:
    """Status 202 for a request, as if it were a notification."""
    yield Pour(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")


@_on()
def server_error(_: Asked) -> Iterator[Step]:
    """Status 500 with a megabyte of text."""
    yield Pour(body("500 Internal Server Error", b"\x1b[2J" * 250_000, content_type="text/plain"))


@_on()
def not_found(_: Asked) -> Iterator[Step]:
    """Status 404 for a request."""
    yield Pour(body("404 Not Found", b"no such path", content_type="text/plain"))


@_on()
def redirected(asked: Asked) -> Iterator[Step]:
    """A redirection to another place of the same server, whatever is asked, and so on without an end."""
    yield Pour(body("307 Temporary Redirect", b"", location=f"{asked.origin}/mcp"))


@_on()
def redirected_away(_: Asked) -> Iterator[Step]:
    """A redirection to another origin."""
    yield Pour(body("307 Temporary Redirect", b"", location="http://127.0.0.1:9/mcp"))


@_on()
def endless_interim(_: Asked) -> Iterator[Step]:
    """Interim responses (103) without an end."""
    while True:
        yield Pour(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 100)


@_on()
def silent_stream(_: Asked) -> Iterator[Step]:
    """The head of an event stream, and nothing on it."""
    yield Pour(head("200 OK", content_type="text/event-stream", connection="close"))
    yield EVER
