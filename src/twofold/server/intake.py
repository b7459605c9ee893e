"""One peer's lines on their way to its connection: held back while it has enough to do, never ignored.

A peer that sends faster than tools run, or does not take its answers, finds its requests waiting: each tool's in a
queue of its own, so that one that hangs holds up no other. What it says about requests (`notifications/cancelled`) is
heard at once, whatever the load, or it could never take them back.
"""

import asyncio
import contextlib
from collections.abc import Callable, Hashable
from typing import Protocol

import msgspec

from twofold.errors import InvalidRequest, ProtocolError, ServerBusy
from twofold.protocol.jsonrpc import Message, decode_message, recover_id
from twofold.server.connection import BATCH, Connection, is_batch, read_cancelled
from twofold.transports.shares import has_share

MAX_RUNNING = 256
"""Requests worked on at once; subscriptions, which cost nothing, do not count."""
CAREFREE_RUNNING = MAX_RUNNING * 3 // 4
"""With fewer running, no tool can be beyond its share, and nothing needs to be looked at."""
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 16 * 1024 * 1024
"""What may wait; beyond either bound a request is answered with an error that says to come again."""


_WORK = frozenset({"tools/call", "prompts/get", "subscriptions/listen"})
"""Methods that take time; the others are answered at once, so that a client can ask how the server is."""


class _Named(msgspec.Struct, frozen=True, gc=False):
    """What tells whose share a request counts for."""

    name: str = ""


_decode_named = msgspec.json.Decoder(_Named).decode


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
    """Takes the lines, hands them on as there is room: those of one tool in their order.

    Attributes:
        on_change: Called whenever `is_full` may have changed.
    """

    def __init__(self, connection: Connection, outlet: Outlet) -> None:
        self.on_change: Callable[[], None] | None = None
        self._connection = connection
        self._outlet = outlet
        self._queues: dict[str, dict[Hashable, bytes]] = {}
        self._queue_of: dict[Hashable, str] = {}
        self._waiting_bytes = 0
        self._is_ending = False
        connection.on_ended = self.release

    @property
    def is_full(self) -> bool:
        """Whether reading must stop: more waits than may, and no refusal could be written either."""
        return (self._is_ending or self._is_over_bound()) and not self._outlet.has_room

    def receive(self, line: bytes) -> None:
        """Take one line from the peer."""
        is_carefree = self._connection.running < CAREFREE_RUNNING and not self._queue_of and not self._is_ending
        if is_carefree and self._outlet.has_room:
            self._connection.receive(line)
            return
        try:
            message = decode_message(line)
        except ProtocolError:  # a batch, or what cannot be read: in its turn
            self._take(object(), BATCH if is_batch(line) else "", line)
            return
        if message.method and message.id is not msgspec.UNSET:
            if message.method not in _WORK and self._outlet.has_room:
                self._connection.receive(line)  # answered at once, without a place of its own
            else:
                self._take(message.id, _name_of(message), line)
        elif message.method != "notifications/cancelled" or not self._drop(read_cancelled(message)):
            self._connection.receive(line)

    def refuse_line(self, error: ProtocolError) -> None:
        """Answer a line that the transport could not even hand over."""
        self._connection.refuse(None, error)

    def release(self) -> None:
        """Hand on what waits, as far as there is room."""
        while (name := self._next_queue()) is not None:
            queue = self._queues.pop(name)
            key = next(iter(queue))
            line = queue.pop(key)
            if queue:
                self._queues[name] = queue  # the last in line now: each queue has its turn
            self._forget(key, line)
            self._connection.receive(line)
        if self.on_change is not None:
            self.on_change()

    async def close(self, *, grace_seconds: float) -> None:
        """Let what waits and runs finish for a while, then give it up; each request is told, also one that comes now.

        Args:
            grace_seconds: How long it may go on.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + grace_seconds
        self._is_ending = True
        self._connection.end_subscriptions()
        while self._queue_of and (left := end - loop.time()) > 0:
            if self._connection.running:
                await self._connection.wait_for_any(left)
            else:
                with contextlib.suppress(TimeoutError):  # the peer takes nothing more
                    await asyncio.wait_for(self._outlet.drain(), left)
            self.release()
        given_up = self._give_up_waiting()
        await self._connection.close(grace_seconds=max(0.0, end - loop.time()), given_up=given_up)

    def _give_up_waiting(self) -> int:
        """Tell whoever waits that it will not be served; gives how many they were."""
        lines = [line for queue in self._queues.values() for line in queue.values()]
        self._queues, self._queue_of, self._waiting_bytes = {}, {}, 0
        for line in lines:
            self._refuse_ending(line)
        return len(lines)

    def _refuse_ending(self, line: bytes) -> None:
        error = ServerBusy("the server ends: the request was not begun; send it to another one")
        try:
            request_id = decode_message(line).id
        except ProtocolError:
            request_id = recover_id(line)
        self._connection.refuse(request_id if isinstance(request_id, int | str) else None, error)

    def _next_queue(self) -> str | None:
        """Choose whose turn it is: what is for no tool first, then one that has less than its share."""
        if self._connection.running >= MAX_RUNNING or not self._outlet.has_room:
            return None
        if "" in self._queues:
            return ""
        return next((name for name in self._queues if self._has_share(name)), None)

    def _has_share(self, name: str) -> bool:
        return not name or has_share(self._connection.running_of(name), MAX_RUNNING - self._connection.running)

    def _is_over_bound(self) -> bool:
        return len(self._queue_of) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES

    def _take(self, key: Hashable, name: str, line: bytes) -> None:
        """Hand a request on if it is its turn already, else let it wait, or refuse it."""
        if self._is_ending:
            self._refuse_ending(line)
            return
        may_run = self._connection.running < MAX_RUNNING and self._outlet.has_room and self._has_share(name)
        if may_run and name not in self._queues and key not in self._queue_of:
            self._connection.receive(line)
        else:
            self._keep(key, name, line)

    def _keep(self, key: Hashable, name: str, line: bytes) -> None:
        request_id = key if isinstance(key, int | str) else None
        if key in self._queue_of and not self._outlet.has_room:
            key = object()  # refused in its turn: now the refusal could not be written
        if key in self._queue_of:
            error: ProtocolError = InvalidRequest(f"the id {key!r:.80} is in use by a request that is not answered yet")
            self._connection.refuse(request_id, error)
        elif self._is_over_bound() and self._outlet.has_room:
            running, waiting = self._connection.running, len(self._queue_of)
            error = ServerBusy(f"busy: {running} requests are running and {waiting} wait; send this one again later")
            self._connection.refuse(request_id, error)
        else:
            self._queue_of[key] = name
            self._queues.setdefault(name, {})[key] = line
            self._waiting_bytes += len(line)

    def _forget(self, key: Hashable, line: bytes) -> None:
        del self._queue_of[key]
        self._waiting_bytes -= len(line)

    def _drop(self, request_id: Hashable) -> bool:
        if self._connection.is_running(request_id):  # the one that runs is meant, not a second one of its id
            return False
        name = self._queue_of.get(request_id)
        if name is None:
            return False
        queue = self._queues[name]
        self._forget(request_id, queue.pop(request_id))
        if not queue:
            del self._queues[name]
        return True


def _name_of(message: Message) -> str:
    """Read whose share a request counts for; what names nothing is refused at once when its turn comes."""
    try:
        return _decode_named(message.params).name
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
