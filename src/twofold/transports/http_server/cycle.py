"""One request and its answer as an application sees them: ASGI's `receive` and `send` on a connection.

Source: ASGI 3, "HTTP Connection Scope"; RFC 9112, sections 6 and 9 for how an answer ends.
"""

import asyncio
import functools
import logging
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Protocol

from twofold.transports.http.asgi import AsgiApp, Event, Scope
from twofold.transports.http_server.framing import Piece, RequestHead

logger = logging.getLogger("twofold")

MAX_BODY_HELD = 64 * 1024
"""Of a body that the application has not asked for; then the peer is not read on."""
_LARGE_BYTES = 64 * 1024
_BODILESS = frozenset({204, 304})
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
"""In lower case, as ASGI has it."""
_SHORT = 64
"""Bytes of a field's value that may be remembered."""
_LINE_END = re.compile(rb"[\r\n\0]")


class Connection(Protocol):
    """What a cycle needs of its connection."""

    def write(self, data: bytes) -> None:
        """Send bytes."""
        ...

    async def drain(self) -> None:
        """Wait until the peer has taken enough that there is room."""
        ...

    def pause_reading(self) -> None:
        """Read no further."""
        ...

    def resume_reading(self) -> None:
        """Read on."""
        ...

    def close(self) -> None:
        """Close, once everything is written."""
        ...

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop."""
        ...

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether the peer keeps up."""
        ...

    @property
    def common_field(self) -> bytes:
        """The header line that every answer has: `date`."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether each answer is the last one on its connection."""
        ...


class Cycle:
    """A request, from its head to the end of its answer.

    Args:
        connection: Where it came from.
        piece: Its head, and what has come of its body.
        awaits_continue: The peer sends its body when it is told to.

    Attributes:
        fields: The head's; with `notes`, `take_body` and `answer` this is a `Request` of `transports/http/asgi.py`.
        notes: What the application made of this very head before.
        disconnected: The peer has gone.
        response_started: The head of the answer was sent, or is about to be.
        response_complete: All of the answer was sent.
        keeps_alive: The connection can be used for another request.
        is_beginning: The application takes its first step; whoever began it sends the head afterwards, if there is one.
    """

    def __init__(self, connection: Connection, head: RequestHead, piece: Piece, *, awaits_continue: bool) -> None:
        self.disconnected = self.response_started = self.response_complete = False
        self.is_beginning = False
        self.keeps_alive = head.keeps_alive
        self._connection = connection
        self._head = head
        self.fields = head.fields
        self.notes = head.notes
        self._awaits_continue = awaits_continue
        self._body = piece.body
        self._is_body_whole = piece.is_last
        self._is_untouched = True
        self._has_news = bool(piece.body) or piece.is_last
        self._news: asyncio.Event | None = None
        self._unsent_head = b""
        self._sending_head: asyncio.Handle | None = None
        self._has_body = True
        self._is_chunked = False
        self._left_bytes: int | None = None  # of an answer whose length was said

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        """Have the application answer; where it does not, say so to the peer and in the log."""
        try:
            await app(scope, self.receive, self.send)
        except asyncio.CancelledError:  # after the grace of the end; whoever has no answer yet is told
            self._fail(503)
        except BaseException:
            logger.exception("the application failed to answer %s %.80r", self._head.method, self._head.target)
            self._fail(500)
        else:
            if not (self.response_complete or self.disconnected):
                logger.error("the application left %s %.80r without an answer", self._head.method, self._head.target)
                self._fail(500)

    def feed(self, piece: Piece) -> None:
        """Take more of the body; of one that was answered already, nothing is kept."""
        if self.response_complete:
            return
        self._body = self._body + piece.body if self._body else piece.body
        self._is_body_whole = piece.is_last
        self._awaits_continue = False
        if len(self._body) > MAX_BODY_HELD:
            self._connection.pause_reading()
        self._tell()

    def disconnect(self) -> None:
        """Let the application know that nobody is left to be answered."""
        self.disconnected = True
        self._tell()

    def _tell(self) -> None:
        self._has_news = True
        if self._news is not None:
            self._news.set()

    def take_body(self) -> bytes | None:
        """Take the whole body, if it is there and nothing of it was given yet."""
        if not (self._is_body_whole and self._is_untouched and self._has_news):
            return None
        self._has_news = False
        body, self._body = self._body, b""
        return body

    async def receive(self) -> Event:
        """Give the next part of the body, or tell that the peer has gone, or has all of its answer."""
        if self._awaits_continue and not self._connection.is_closing:
            self._awaits_continue = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._has_news or self.disconnected or self.response_complete):
            self._connection.resume_reading()
            if self._news is None:
                self._news = asyncio.Event()
            self._news.clear()
            await self._news.wait()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        self._has_news = self._is_untouched = False
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": not self._is_body_whole}

    async def send(self, event: Event) -> None:
        """Send the head of the answer, or a part of its body.

        Raises:
            RuntimeError: The events do not follow each other as ASGI says, or the body is not as long as was said.
        """
        if not (self._connection.has_room or self.disconnected):
            await self._connection.drain()
        if self.disconnected:
            return
        kind = event["type"]
        if kind == "http.response.start" and not self.response_started:
            self._start(event["status"], event.get("headers", ()))
            if not self.is_beginning:
                self._sending_head = self._connection.loop.call_soon(self.send_head)
        elif kind == "http.response.body" and self.response_started and not self.response_complete:
            self._continue(event.get("body", b""), has_more=event.get("more_body", False))
        else:
            raise RuntimeError(f"the application sent {kind!r} where ASGI has no place for it")

    def answer(self, status: int, fields: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a whole answer; False where the peer does not keep up, and `send` has to wait for it.

        Raises:
            RuntimeError: An answer has begun, or the body is not as long as was said.
        """
        if self.disconnected:
            return True
        if not self._connection.has_room:
            return False
        if self.response_started:
            raise RuntimeError("the application answered a request twice")
        self._start(status, fields)
        self._continue(body, has_more=False)
        return True

    def _start(self, status: int, fields: Iterable[tuple[bytes, bytes]]) -> None:
        """Make the head; it goes out with the first part of the body, or on the loop's next turn."""
        # A peer that was not told to go on may leave its body out or not: nobody knows what comes next.
        says_close = self._connection.is_ending or self._awaits_continue
        self._awaits_continue = False
        lines = [_status_line(status), self._connection.common_field]
        for name, value in fields:
            if name == b"content-length":
                self._left_bytes = int(value)
                lines.append(b"content-length: %d\r\n" % self._left_bytes)
            elif name == b"connection":
                says_close = says_close or b"close" in value.lower()
            elif name != b"transfer-encoding":  # that is this side's to say
                lines.append(_field_line(name, value) if len(value) <= _SHORT else _write_field(name, value))
        self._choose_framing(status, lines, says_close=says_close)
        lines.append(b"\r\n")
        self.response_started = True
        self._unsent_head = b"".join(lines)

    def _choose_framing(self, status: int, lines: list[bytes], *, says_close: bool) -> None:
        """Say how the answer ends, and whether the connection does."""
        is_http_1_0 = self._head.is_http_1_0
        self._has_body = self._head.method != "HEAD" and status not in _BODILESS
        if self._has_body and self._left_bytes is None:
            self._is_chunked = not is_http_1_0
            says_close = says_close or is_http_1_0  # its end is the end of the connection
            if self._is_chunked:
                lines.append(b"transfer-encoding: chunked\r\n")
        self.keeps_alive = self.keeps_alive and not says_close
        if not self.keeps_alive:
            lines.append(b"connection: close\r\n")
        elif is_http_1_0:
            lines.append(b"connection: keep-alive\r\n")

    def send_head(self) -> None:
        """Send the head of an answer whose body is still to come."""
        head, self._unsent_head = self._unsent_head, b""
        if head:
            self._connection.write(head)

    def _continue(self, body: bytes, *, has_more: bool) -> None:
        part = self._frame(body, has_more=has_more)
        if self._sending_head is not None:
            self._sending_head.cancel()
            self._sending_head = None
        head, self._unsent_head = self._unsent_head, b""
        if len(part) < _LARGE_BYTES:
            part = head + part if head else part
        elif head:  # rather a second call than a second copy
            self._connection.write(head)
        if part:
            self._connection.write(part)
        if not has_more:
            self._complete()

    def _frame(self, body: bytes, *, has_more: bool) -> bytes:
        """Give a part of the body as it is sent."""
        if not self._has_body:
            return b""
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk if has_more else chunk + b"0\r\n\r\n"
        if self._left_bytes is not None:
            left = self._left_bytes - len(body)
            if left < 0 or (left and not has_more):
                raise RuntimeError("the application sent a body of another length than its content-length")
            self._left_bytes = left
        return body

    def _complete(self) -> None:
        self.response_complete = True
        self._tell()
        if not self.keeps_alive:
            self._connection.close()
        self._connection.on_response_complete()

    def _fail(self, status: int) -> None:
        """Answer with an error of the server's own; where an answer has begun, cut it off."""
        if self.disconnected or self.response_complete:
            return
        if self._unsent_head:  # the answer that had begun has not gone yet
            self._unsent_head = b""
        elif self.response_started or self._connection.is_closing:
            self._connection.close()
            return
        self.response_started = True
        self.keeps_alive = False
        text = HTTPStatus(status).phrase.encode()
        kind = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
        shown = b"" if self._head.method == "HEAD" else text
        self._connection.write(b"".join((_status_line(status), self._connection.common_field, kind, shown)))
        self._complete()


def _write_field(name: bytes, value: bytes) -> bytes:
    if _LINE_END.search(value) or not _NAME.fullmatch(name):
        raise RuntimeError(f"the application sent a header that would break its answer: {name!r:.80}")
    return b"%b: %b\r\n" % (name, value)


_field_line = functools.lru_cache(maxsize=256)(_write_field)
"""Most answers have the same few fields."""


@functools.lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return f"HTTP/1.1 {status} {reason}\r\n".encode()
