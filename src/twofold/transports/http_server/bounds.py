"""What stands between a connection and uvicorn's protocol for it: bounds on bytes, time and number.

`BoundedProtocol` comes before one of uvicorn's protocol classes among the bases of a class (`bounded_protocol`). It
hands that class one well-formed request at a time, so that nothing of a later request is parsed before the earlier one
has been answered, and closes connections that keep a server waiting. One round a second over all of them
(`check_deadlines`) keeps the time, so that a request costs no timer.
"""

import asyncio
import contextvars
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import msgspec

from twofold.transports.http_server.framing import MAX_FIELDS, MAX_HEAD_BYTES, METHODS, RequestFraming, RequestRefused

if TYPE_CHECKING:  # uvicorn is optional, and its two protocols have what is used here in common
    from uvicorn.protocols.http.h11_impl import H11Protocol as _UvicornProtocol
else:
    _UvicornProtocol = asyncio.Protocol

RETRY_AFTER_SECONDS = 5
"""What a client is told that finds all connections taken."""
MAX_HELD_BYTES = 64 * 1024
"""Of requests sent ahead of an answer; then the peer is not read on."""
MAX_WRITE_BYTES = 64 * 1024
"""Of an answer the peer does not take; then the app's `send` waits."""
_REASONS = {
    400: "Bad Request",
    405: "Method Not Allowed",
    408: "Request Timeout",
    417: "Expectation Failed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_MORE_FIELDS = {
    405: ["allow: " + ", ".join(sorted(method.decode() for method in METHODS))],
    503: [f"retry-after: {RETRY_AFTER_SECONDS}"],
}
_NO_LINGER = struct.pack("ii", 1, 0)


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection may take; times are in seconds.

    Attributes:
        max_head_bytes: Of request line and header fields; a longer head is answered with 431.
        max_fields: Header fields of one request; more are answered with 431.
        head_seconds: From the opening of a connection, or the first byte of a request, to the end of its head; also for
            the rest of a body that was answered before it had come.
        keep_alive_seconds: Between an answer and the next request. Longer than the minute after which the usual proxies
            and load balancers drop an idle connection, so that it is not closed just as they send a request on it.
        stall_seconds: Without the peer taking a byte of what is written to it.
        linger_seconds: Between the last answer and the closing, in which what the peer still sends is thrown away;
            closing at once would let the answer be lost with it.
        grace_seconds: For running requests when the server stops.
        max_connections: More are answered with 503. An open connection costs some 10 KiB and a file descriptor.
    """

    max_head_bytes: int = MAX_HEAD_BYTES
    max_fields: int = MAX_FIELDS
    head_seconds: float = 10.0
    keep_alive_seconds: float = 65.0
    stall_seconds: float = 60.0
    linger_seconds: float = 2.0
    grace_seconds: float = 5.0
    max_connections: int = 1000

    @property
    def shortest_seconds(self) -> float:
        """The shortest time that `BoundedProtocol.check_deadlines` keeps."""
        return min(self.head_seconds, self.stall_seconds, self.linger_seconds)


class BoundedProtocol(_UvicornProtocol):
    """The checks before uvicorn's protocol; `bounded_protocol` makes the class that is used."""

    limits: HttpLimits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a connection, or say that there are too many."""
        self._framing = RequestFraming(max_head_bytes=self.limits.max_head_bytes, max_fields=self.limits.max_fields)
        self._context = contextvars.copy_context()
        self._is_ending = False
        self._owing_since: float | None = None
        self._stalled_since: float | None = None
        self._unsent_bytes = 0
        self._wire = transport
        super().connection_made(cast("asyncio.Transport", _LingeringTransport(transport, self._close)))
        transport.set_write_buffer_limits(high=MAX_WRITE_BYTES)
        excess = len(self.connections) - self.limits.max_connections
        if excess > self.limits.max_connections // 8:  # those that are told are connections too
            self._is_ending = True
            transport.abort()
        elif excess > 0:
            self._refuse(RequestRefused(503, "all connections of this server are taken; come again"))

    def data_received(self, data: bytes) -> None:
        """Take bytes; they are handed on when it is their turn."""
        if self._is_ending:
            return
        self._framing.receive(data)
        self._hand_on()
        if self._framing.held_bytes > MAX_HELD_BYTES and self._is_answering:
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """Go on with the next request when one has been answered."""
        super().on_response_complete()
        if self._framing.awaits_continue:  # the peer may leave out the body now, or not: nobody knows what comes next
            self._end()
        elif self._framing.held_bytes:
            self._hand_on()

    def shutdown(self) -> None:
        """Close the connection as soon as it has nothing to answer."""
        if self._is_ending:
            self._wire.close()
        else:
            super().shutdown()

    def leave(self) -> None:
        """Take no further request: the one that is being answered is the last."""
        self._is_ending = True

    def tell_end(self) -> None:
        """Answer for a request that nobody answers, if no answer has begun."""
        if self._is_answering and not self.cycle.response_started and not self._wire.is_closing():
            self._refuse(RequestRefused(503, "the server ends: the request was given up before it had an answer"))

    def check_deadlines(self, now: float) -> None:
        """Close the connection if the peer has kept it waiting for too long; called in equal intervals.

        Args:
            now: The event loop's time.
        """
        unsent_bytes = self._wire.get_write_buffer_size()
        if unsent_bytes == 0 or unsent_bytes < self._unsent_bytes:
            self._stalled_since = None
        elif self._stalled_since is None:
            self._stalled_since = now
        elif now - self._stalled_since > self.limits.stall_seconds:
            self.drop()
        self._unsent_bytes = unsent_bytes
        if not self._is_owing:
            self._owing_since = None
        elif self._owing_since is None:
            self._owing_since = now
        elif now - self._owing_since > (self.limits.linger_seconds if self._is_ending else self.limits.head_seconds):
            self._give_up()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _is_owing(self) -> bool:
        """Whether the peer has to send, or to close, before anything can go on."""
        has_to_send = self.cycle is None or self._framing.is_unfinished
        return self._is_ending or (has_to_send and not self._is_answering)

    def _hand_on(self) -> None:
        """Hand on what has come, but no second request before the first one has been answered."""
        while not (self._is_ending or self._wire.is_closing()):
            if self._framing.is_between_requests and self._is_answering:
                return
            try:
                piece = self._framing.take()
            except RequestRefused as refusal:
                self._refuse(refusal)
                return
            if not piece:
                self._await_more()
                return
            self._owing_since = None
            # The loop calls us in the context of whoever last resumed the reading, which may be an earlier request.
            self._context.run(super().data_received, piece)

    def _await_more(self) -> None:
        """Read on, if it is the peer's turn."""
        if not self._is_answering:
            self.flow.resume_reading()
            if self._framing.is_unfinished:
                self._unset_keepalive_if_required()  # from here on it is `head_seconds` that counts

    def _give_up(self) -> None:
        """End the waiting: with 408 if there is a request to be answered."""
        if self._is_ending or not self._framing.is_between_requests or not self._framing.held_bytes:
            self._wire.close()
        else:
            self._refuse(RequestRefused(408, "the request did not come in time; send it at once"))

    def drop(self) -> None:
        """Give the connection up, with what the system still holds to be sent; it would keep that for minutes."""
        self._wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._wire.abort()

    def _refuse(self, refusal: RequestRefused) -> None:
        """Answer with an error and end, or only end if an answer has begun."""
        if self._is_answering and self.cycle.response_started:
            self._leave_request()
            self.transport.close()
            return
        text = f"{refusal}\n".encode()
        head = [
            f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(text)}",
            "connection: close",
            *_MORE_FIELDS.get(refusal.status, []),
        ]
        self._leave_request()
        self._wire.write("\r\n".join([*head, "", ""]).encode() + text)
        self._end()

    def _leave_request(self) -> None:
        """Let the app of a request whose body is broken know that there is nobody to answer."""
        if self._is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _end(self) -> None:
        """Say that nothing more will be sent, and wait for the peer to close or for `linger_seconds`."""
        self._is_ending = True
        self._owing_since = None
        self._framing = RequestFraming()
        self._unset_keepalive_if_required()
        if not self._wire.is_closing():
            self.flow.resume_reading()
            self._wire.write_eof()

    def _close(self) -> None:
        """Close as uvicorn asks for, but not while the peer sends what nobody will read."""
        if self._framing.is_unfinished and not self._is_ending:
            self._end()
        else:
            self._wire.close()


class _LingeringTransport:
    """The transport as uvicorn sees it, with another `close`.

    The system resets a connection that is closed with bytes unread, and the last answer is lost with it, or its client
    sees an error where it sends and does not look for an answer (RFC 9112, 9.6).
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.close = close


def bounded_protocol(protocol: type[asyncio.Protocol], limits: HttpLimits) -> type[BoundedProtocol]:
    """Put the bounds before one of uvicorn's protocol classes.

    Args:
        protocol: `H11Protocol` or `HttpToolsProtocol`, for `Config(http=…)`.
        limits: What each connection may take.
    """
    return type("BoundedProtocol", (BoundedProtocol, protocol), {"limits": limits})
