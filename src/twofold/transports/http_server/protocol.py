"""HTTP/1 on one connection: an asyncio protocol that has an ASGI application answer, one request after the other.

Nothing of a later request is read before the earlier one has been answered, and a connection that keeps the server
waiting is closed. One round a second over all of them (`check_deadlines`) keeps the time, so that a request costs no
timer.
"""

import asyncio
import contextlib
import contextvars
import socket
import struct
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from twofold.transports.eager import start_task
from twofold.transports.http.asgi import REQUEST, AsgiApp, Request, Scope
from twofold.transports.http_server.bounds import HttpLimits, count_unacknowledged
from twofold.transports.http_server.cycle import Cycle
from twofold.transports.http_server.framing import METHODS, Piece, RequestFraming, RequestHead, RequestRefused

TURN_SECONDS = 0.002
"""So long requests that one peer has sent ahead are begun in one turn of the event loop."""
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
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_SCOPE = object()
"""Where a head's notes have what the scopes of its requests have in common."""
_NO_LINGER = struct.pack("ii", 1, 0)


class Service:
    """What all connections of one server share.

    Args:
        app: What answers.
        limits: What each connection may take.
        lifespan_state: What the app shares with its requests.

    Attributes:
        connections: The open ones.
        tasks: Requests that are being answered.
        date_field: The header line of every answer.
        is_ending: Each answer is the last one on its connection.
    """

    def __init__(self, app: AsgiApp, limits: HttpLimits, lifespan_state: dict[str, Any]) -> None:
        self.app = app
        self.limits = limits
        self.lifespan_state = lifespan_state
        self.connections: set[HttpProtocol] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.date_field = b""
        self.update_date()
        self.is_ending = False

    def update_date(self) -> None:
        """Write the date anew; it is as exact as often this is called."""
        self.date_field = f"date: {formatdate(usegmt=True)}\r\n".encode()


class HttpProtocol(asyncio.Protocol):
    """One connection.

    Args:
        service: What it shares with others.
    """

    _wire: asyncio.Transport

    def __init__(self, service: Service) -> None:
        self._service = service
        self.limits = service.limits
        self.loop = asyncio.get_running_loop()
        self._framing = RequestFraming(max_head_bytes=self.limits.max_head_bytes, max_fields=self.limits.max_fields)
        self._context = contextvars.copy_context()
        self._cycle: Cycle | None = None
        self._is_ending = False
        self._is_handing_on = False
        self._is_paused = False
        self._has_room: asyncio.Event | None = None  # made when the peer does not keep up for the first time
        self._owing_since: float | None = None
        self._idle_since: float | None = None
        self._stalled_since: float | None = None
        self._unsent_bytes = 0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection, or say that there are too many."""
        self._wire = transport  # type: ignore[assignment]  # of a stream, and each event loop has a class of its own
        self._scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self._server = _address(transport.get_extra_info("sockname"))
        self._client = _address(transport.get_extra_info("peername"))
        self._service.connections.add(self)
        self._wire.set_write_buffer_limits(high=MAX_WRITE_BYTES)
        excess = len(self._service.connections) - self.limits.max_connections
        if excess > self.limits.max_connections // 8:  # those that are told are connections too
            self._is_ending = True
            self._wire.abort()
        elif excess > 0:
            self._refuse(RequestRefused(503, "all connections of this server are taken; come again"))

    def data_received(self, data: bytes) -> None:
        """Take bytes; they are handed on when it is their turn."""
        if self._is_ending:
            return
        self._framing.receive(data)
        self._hand_on()
        if self._framing.held_bytes > MAX_HELD_BYTES and self._is_answering:
            self.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Let the application know that nobody is there any more."""
        self._service.connections.discard(self)
        if self._is_answering and self._cycle is not None:
            self._cycle.disconnect()
        self.resume_writing()

    def pause_writing(self) -> None:
        """The peer does not keep up."""
        if self._has_room is None:
            self._has_room = asyncio.Event()
        self._has_room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        if self._has_room is not None:
            self._has_room.set()

    # What a cycle asks for.

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._wire.is_closing()

    @property
    def is_ending(self) -> bool:
        """Whether each answer is the last one."""
        return self._service.is_ending

    @property
    def has_room(self) -> bool:
        """Whether the peer keeps up."""
        return self._has_room is None or self._has_room.is_set()

    @property
    def common_field(self) -> bytes:
        """The header line that every answer has."""
        return self._service.date_field

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._wire.write(data)

    async def drain(self) -> None:
        """Wait until the peer has taken enough."""
        if self._has_room is not None:
            await self._has_room.wait()

    def pause_reading(self) -> None:
        """Read no further."""
        if not (self._is_paused or self._wire.is_closing()):
            self._is_paused = True
            self._wire.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._is_paused and not self._wire.is_closing():
            self._is_paused = False
            self._wire.resume_reading()

    def close(self) -> None:
        """Close, but not while the peer sends what nobody will read.

        The system resets a connection that is closed with bytes unread, and the last answer is lost with it, or its
        client sees an error where it sends and does not look for an answer (RFC 9112, 9.6).
        """
        if self._framing.is_unfinished and not self._is_ending:
            self._end()
        else:
            self._wire.close()

    def on_response_complete(self) -> None:
        """Go on with the next request when one has been answered."""
        if self._wire.is_closing() or self._is_handing_on:
            return
        if self._framing.awaits_continue:  # the peer may leave out the body now, or not: nobody knows what comes next
            self._end()
        elif self._framing.held_bytes:
            self._hand_on()
        else:
            self.resume_reading()

    # What the server does with all of them.

    def shutdown(self) -> None:
        """Close the connection as soon as it has nothing to answer."""
        if self._is_ending:
            self._wire.close()
        elif self._is_answering and self._cycle is not None:
            self._cycle.keeps_alive = False
        else:
            self.close()

    def leave(self) -> None:
        """Take no further request: the one that is being answered is the last."""
        self._is_ending = True

    def tell_end(self) -> None:
        """Answer for a request that nobody answers, if no answer has begun."""
        if (
            self._is_answering
            and self._cycle is not None
            and not self._cycle.response_started
            and not self._wire.is_closing()
        ):
            self._refuse(RequestRefused(503, "the server ends: the request was given up before it had an answer"))

    def check_deadlines(self, now: float) -> None:
        """Close the connection if the peer has kept it waiting for too long; called in equal intervals.

        Args:
            now: The event loop's time.
        """
        unsent_bytes = self._wire.get_write_buffer_size()
        if unsent_bytes:
            unsent_bytes += count_unacknowledged(self._wire.get_extra_info("socket"))
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
        if unsent_bytes or not self._is_idle:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since > self.limits.keep_alive_seconds:
            self._wire.close()

    @property
    def _is_answering(self) -> bool:
        return self._cycle is not None and not self._cycle.response_complete

    @property
    def _is_idle(self) -> bool:
        """Whether a request was answered, and nothing of the next one has come."""
        is_begun = self._cycle is None or self._framing.is_unfinished
        return not (is_begun or self._is_answering or self._is_ending)

    @property
    def _is_owing(self) -> bool:
        """Whether the peer has to send, or to close, before anything can go on."""
        has_to_send = self._cycle is None or self._framing.is_unfinished
        return self._is_ending or (has_to_send and not self._is_answering)

    def _hand_on(self) -> None:
        """Hand on what has come, but no second request before the first one has been answered."""
        self._is_handing_on = True
        until = self.loop.time() + TURN_SECONDS
        try:
            while not (self._is_ending or self._wire.is_closing()):
                if self._framing.is_between_requests and (self._is_answering or not self._framing.held_bytes):
                    break
                try:
                    piece = self._framing.take()
                except RequestRefused as refusal:
                    self._refuse(refusal)
                    return
                if piece is None:
                    break
                if piece.head is not None or self._is_answering:  # else nobody waits for what comes
                    self._owing_since = self._idle_since = None
                if piece.head is not None:
                    self._begin(piece.head, piece)
                elif self._cycle is not None:
                    self._cycle.feed(piece)
                if self._framing.awaits_continue and not self._is_answering:
                    self._end()  # see `on_response_complete`
                elif not self._framing.held_bytes:
                    break
                elif self.loop.time() > until:
                    self._resume_soon()
                    return
        finally:
            self._is_handing_on = False
        if not self._is_answering:
            self.resume_reading()

    def _resume_soon(self) -> None:
        """Leave the rest of what a peer has sent ahead to the loop's next turn: others wait too."""
        self.pause_reading()
        self.loop.call_soon(self._hand_on)

    def _begin(self, head: RequestHead, piece: Piece) -> None:
        """Have the application begin with a request; most are answered when this returns."""
        cycle = self._cycle = Cycle(self, head, piece, awaits_continue=self._framing.awaits_continue)
        work = cycle.run(self._service.app, self._make_scope(head, cycle))
        # The loop calls us in the context of whoever last resumed the reading, which may be an earlier request.
        if asyncio.current_task(self.loop) is None:
            cycle.is_beginning = True
            task = self._context.run(start_task, work, self.loop)
            cycle.is_beginning = False
            if task.done():
                return
            cycle.send_head()
        else:
            task = self.loop.create_task(work, context=self._context.copy())
        self._service.tasks.add(task)
        task.add_done_callback(self._service.tasks.discard)

    def _make_scope(self, head: RequestHead, cycle: Cycle) -> Scope:
        known: dict[str, Any] | None = head.notes.get(_SCOPE)
        if known is None:
            known = head.notes[_SCOPE] = self._describe(head)
        offered: Request = cycle
        scope = known.copy()
        scope["asgi"] = _ASGI.copy()
        scope["headers"] = list(head.fields)
        scope["state"] = self._service.lifespan_state.copy()
        scope["extensions"] = {REQUEST: offered}
        return scope

    def _describe(self, head: RequestHead) -> dict[str, Any]:
        """Say what is the same for each request of one head."""
        path, _, query = head.target.partition(b"?")
        return {
            "type": "http",
            "http_version": "1.0" if head.is_http_1_0 else "1.1",
            "method": head.method,
            "scheme": self._scheme,
            "path": unquote(path.decode()) if b"%" in path else path.decode(),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "client": self._client,
            "server": self._server,
        }

    def _give_up(self) -> None:
        """End the waiting: with 408 if there is a request to be answered."""
        if self._is_ending or not self._framing.is_between_requests or not self._framing.held_bytes:
            self._wire.close()
        else:
            self._refuse(RequestRefused(408, "the request did not come in time; send it at once"))

    def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        self._wire.abort()

    def drop(self) -> None:
        """Give the connection up, with what the system still holds to be sent; it would keep that for minutes."""
        with contextlib.suppress(OSError):  # it is reset already
            self._wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._wire.abort()

    def _refuse(self, refusal: RequestRefused) -> None:
        """Answer with an error and end, or only end if an answer has begun."""
        if self._is_answering and self._cycle is not None and self._cycle.response_started:
            self._leave_request()
            self.close()
            return
        text = f"{refusal}\n".encode()
        head = [
            f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}",
            "content-type: text/plain; charset=utf-8",
            self.common_field.decode().rstrip(),
            f"content-length: {len(text)}",
            "connection: close",
            *_MORE_FIELDS.get(refusal.status, []),
        ]
        self._leave_request()
        self._wire.write("\r\n".join([*head, "", ""]).encode() + text)
        self._end()

    def _leave_request(self) -> None:
        """Let the app of a request whose body is broken know that there is nobody to answer."""
        if self._is_answering and self._cycle is not None:
            self._cycle.disconnect()

    def _end(self) -> None:
        """Say that nothing more will be sent, and wait for the peer to close or for `linger_seconds`."""
        self._is_ending = True
        self._owing_since = None
        self._framing = RequestFraming()
        if not self._wire.is_closing():
            self.resume_reading()
            try:
                self._wire.write_eof()
            except OSError:  # the peer has closed in the meantime, which the event loop has not told yet
                self._wire.abort()


def _address(found: object) -> tuple[str, int] | None:
    """Give host and port of an address of the internet; others have none."""
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and len(found) >= 2 else None
