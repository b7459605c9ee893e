"""One peer's lines on their way to its connection: held back while it has enough to do, never ignored.

A peer that sends faster than tools run, or does not take its answers, finds its requests waiting. What it says
about requests (`notifications/cancelled`) is heard at once, whatever the load, or it could never take them back.
"""

import asyncio
import contextlib
from collections.abc import Callable, Hashable
from typing import Protocol

import msgspec

from twofold.errors import InternalError, InvalidRequest, ProtocolError
from twofold.protocol.jsonrpc import decode_message
from twofold.server.connection import Connection, read_cancelled

MAX_RUNNING = 256
"""Requests worked on at once; subscriptions, which cost nothing, do not count."""
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 16 * 1024 * 1024
"""What may wait; beyond either bound a request is answered with an error that says to come again."""


_WORK = frozenset({"tools/call", "prompts/get", "subscriptions/listen"})
"""Methods that take time; the others are answered at once, so that a client can ask how the server is."""


class Outlet(Protocol):
    """What tells whether the peer takes its answers."""

    @property
    def has_room(self) -> bool:
        """Whether more can be written now."""
        ...

    async def drain(self) -> None:
        """Wait until there is room."""
        ...


class Intake:
    """Takes the lines, hands them on in their order as there is room.

    Attributes:
        on_change: Called whenever `is_full` may have changed.
    """

    def __init__(self, connection: Connection, outlet: Outlet) -> None:
        self.on_change: Callable[[], None] | None = None
        self._connection = connection
        self._outlet = outlet
        self._waiting: dict[Hashable, bytes] = {}
        self._waiting_bytes = 0
        connection.on_ended = self.release

    @property
    def is_full(self) -> bool:
        """Whether reading must stop: more waits than may, and no refusal could be written either."""
        return self._is_over_bound() and not self._outlet.has_room

    def receive(self, line: bytes) -> None:
        """Take one line from the peer."""
        if not self._waiting and self._may_hand_on():
            self._connection.receive(line)
            return
        try:
            message = decode_message(line)
        except ProtocolError:  # a batch, or what cannot be read: in its turn
            self._keep(object(), line)
            return
        if message.method and message.id is not msgspec.UNSET:
            if message.method not in _WORK and self._outlet.has_room:
                self._connection.receive(line)  # answered at once, without a place of its own
            else:
                self._keep(message.id, line)
        elif message.method != "notifications/cancelled" or not self._drop(read_cancelled(message)):
            self._connection.receive(line)

    def refuse_line(self, error: ProtocolError) -> None:
        """Answer a line that the transport could not even hand over."""
        self._connection.refuse(None, error)

    def release(self) -> None:
        """Hand on what waits, as far as there is room."""
        while self._waiting and self._may_hand_on():
            line = self._waiting.pop(next(iter(self._waiting)))
            self._waiting_bytes -= len(line)
            self._connection.receive(line)
        if self.on_change is not None:
            self.on_change()

    async def close(self, *, grace_seconds: float) -> None:
        """Let what waits and runs finish for a while, then give it up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + grace_seconds
        self._connection.end_subscriptions()
        while self._waiting and (left := end - loop.time()) > 0:
            if self._connection.running:
                await self._connection.wait_for_any(left)
            else:
                with contextlib.suppress(TimeoutError):  # the peer takes nothing more
                    await asyncio.wait_for(self._outlet.drain(), left)
            self.release()
        await self._connection.close(grace_seconds=max(0.0, end - loop.time()), given_up=len(self._waiting))

    def _may_hand_on(self) -> bool:
        return self._connection.running < MAX_RUNNING and self._outlet.has_room

    def _is_over_bound(self) -> bool:
        return len(self._waiting) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES

    def _keep(self, key: Hashable, line: bytes) -> None:
        request_id = key if isinstance(key, int | str) else None
        if key in self._waiting and not self._outlet.has_room:
            key = object()  # refused in its turn: now the refusal could not be written
        if key in self._waiting:
            error: ProtocolError = InvalidRequest(f"the id {key!r:.80} is in use by a request that is not answered yet")
            self._connection.refuse(request_id, error)
        elif self._is_over_bound() and self._outlet.has_room:
            running, waiting = self._connection.running, len(self._waiting)
            error = InternalError(f"busy: {running} requests are running and {waiting} wait; send this one again later")
            self._connection.refuse(request_id, error)
        else:
            self._waiting[key] = line
            self._waiting_bytes += len(line)

    def _drop(self, request_id: Hashable) -> bool:
        if self._connection.is_running(request_id):  # the one that runs is meant, not a second one of its id
            return False
        line = self._waiting.pop(request_id, None)
        if line is None:
            return False
        self._waiting_bytes -= len(line)
        return True
