"""One event stream: what is written is kept until it is sent, and after that where it can be resumed."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import islice

from twofold.protocol.eventstream import KEEP_ALIVE, encode_event
from twofold.transports.http.asgi import Event, Send
from twofold.transports.http.limits import Limits
from twofold.transports.http.reply import STREAM_HEADERS, Headers

logger = logging.getLogger("twofold")

PIECE_BYTES = 256 * 1024
"""Of a large event, sent at a time."""
HIGH_WATER_BYTES = 256 * 1024
"""With more unsent, whoever writes and can wait does wait."""


class Budget:
    """What the streams of an application keep together, and may."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.spent_bytes = 0

    @property
    def is_spent(self) -> bool:
        """Whether nothing more should be kept."""
        return self.spent_bytes > self.limit_bytes


class EventStream:
    """Messages on their way to one client, as server-sent events.

    Args:
        limits: What it may keep.
        name: Makes the stream resumable: events are named `name-place` and kept after they were sent.
        primes: Begins with an event that has only its name: a client can then resume before the first message.
        is_awaited: A client is about to read it, so that nothing is dropped meanwhile.
        budget: What it may keep together with others, as long as its call runs.
    """

    def __init__(
        self,
        limits: Limits,
        name: str | None = None,
        *,
        primes: bool = False,
        is_awaited: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.name = name
        self._limits = limits
        self._events: deque[bytes] = deque()
        self._first = 1  # the place of the oldest event that is kept
        self._last = 0  # the place of the newest
        self._sent = 0  # the place of the last event that was handed to a client
        self._dropped = 0  # unsent events that were dropped, and nobody was told
        self._unsent_bytes = 0
        self._kept_bytes = 0
        self._budget = budget or Budget(limits.running_bytes)
        self._is_ended = False
        self._is_awaited = is_awaited
        self._is_released = False
        self._reader: object | None = None
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.on_overflow: Callable[[], None] = self.release
        self.on_end: Callable[[], None] | None = None
        if primes:
            self._append(encode_event(b"", event_id=f"{name}-1", retry_milliseconds=limits.retry_milliseconds))

    @property
    def is_read(self) -> bool:
        """Whether a client is attached."""
        return self._reader is not None

    @property
    def is_resumable(self) -> bool:
        """Whether a client has, or will have, a name to resume after."""
        return self.name is not None and self._last > 0

    @property
    def has_unsent(self) -> bool:
        """Whether something waits for a client to take it."""
        return self._last > self._sent

    @property
    def kept_bytes(self) -> int:
        """What the stream holds in memory."""
        return self._kept_bytes

    def has(self, place: int) -> bool:
        """Tell whether an event of this place was ever written."""
        return 0 < place <= self._last

    def write(self, message: bytes) -> None:
        """Write one message; with too much unsent before it, its client is given up."""
        is_too_much = self._unsent_bytes > self._limits.unsent_bytes and self._is_wanted
        self._append(encode_event(message, event_id=None if self.name is None else f"{self.name}-{self._last + 1}"))
        if is_too_much:
            self.on_overflow()

    def end(self, answer: bytes | None = None) -> None:
        """Write the answer, of whatever size, and nothing more after it."""
        if answer is not None:
            self._append(encode_event(answer, event_id=None if self.name is None else f"{self.name}-{self._last + 1}"))
        if not self._is_ended:
            self._is_ended = True
            self._budget.spent_bytes -= self._kept_bytes  # what is finished is bounded elsewhere
        self._wake()
        if self.on_end is not None:
            self.on_end()

    def release(self) -> None:
        """Let the client go for now, after what is written already; also one that is only about to read."""
        self._is_released = self._reader is None and self._is_awaited
        self._reader = None
        self._is_awaited = False
        self._forget_oldest()
        self._wake()

    async def drain(self) -> None:
        """Wait until the client has taken most of it; a client that has gone for now is not waited for."""
        await self._has_room.wait()

    async def send_to(self, send: Send, *, headers: Headers = (), after: int | None = None) -> None:
        """Send the stream as one response, until it ends, is released, or another response takes over.

        Args:
            send: The ASGI callable.
            headers: More headers of the response.
            after: The place of the last event the client has; None goes on after the last that was sent.

        Raises:
            OSError: The client has gone, or takes nothing.
        """
        reader = object()
        is_for_now = self._is_released and after is None
        self._reader = reader
        self._is_awaited = self._is_released = False
        self._wake()  # whoever read it before sees that it is over
        self._go_to(after)
        try:
            await self._send(
                send, {"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]}
            )
            while self._reader is None or self._reader is reader:
                is_last = is_for_now or self._is_ended or self._reader is None  # what is written by now still goes out
                batch = self._take()
                for start in range(0, len(batch), PIECE_BYTES):  # the time is for each piece: it has to move on
                    piece = batch if len(batch) <= PIECE_BYTES else batch[start : start + PIECE_BYTES]
                    await self._send(send, {"type": "http.response.body", "body": piece, "more_body": True})
                if is_last:
                    break
                if not batch:
                    await self._wait(send)
            await self._send(send, {"type": "http.response.body", "body": b""})
        finally:
            if self._reader is reader:
                self.release()

    @property
    def _is_wanted(self) -> bool:
        """Whether a client reads it, or is about to."""
        return self._reader is not None or self._is_awaited

    def _wake(self) -> None:
        self._changed.set()
        self._has_room.set()

    async def _wait(self, send: Send) -> None:
        """Wait for something to send, and keep the connection open meanwhile."""
        self._changed.clear()
        try:
            async with asyncio.timeout(self._limits.keep_alive_seconds):
                await self._changed.wait()
        except TimeoutError:
            await self._send(send, {"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    async def _send(self, send: Send, event: Event) -> None:
        stall_seconds = self._limits.stall_seconds
        try:
            async with asyncio.timeout(stall_seconds) as stalling:
                await send(event)
        except TimeoutError:
            if not stalling.expired():
                raise
            raise ConnectionAbortedError(f"the client took nothing for {stall_seconds:g} seconds") from None

    def _append(self, event: bytes) -> None:
        self._events.append(event)
        self._last += 1
        self._unsent_bytes += len(event)
        self._keep(len(event))
        if self.name is not None:
            self._forget_oldest()
        if self._unsent_bytes > HIGH_WATER_BYTES and self._is_wanted:
            self._has_room.clear()
        self._changed.set()

    def _keep(self, size: int) -> None:
        self._kept_bytes += size
        if not self._is_ended:
            self._budget.spent_bytes += size

    def _forget_oldest(self) -> None:
        """Keep within bounds: the newest event stays, and what a client who is there has not taken yet."""
        while (self._kept_bytes > self._limits.kept_bytes or self._budget.is_spent) and len(self._events) > 1:
            if self._first > self._sent:
                if self._is_wanted:
                    return
                self._unsent_bytes -= len(self._events[0])
                self._sent = self._first
                self._dropped += 1
            self._keep(-len(self._events.popleft()))
            self._first += 1

    def _go_to(self, place: int | None) -> None:
        """Go on after an event, or after the last that was sent."""
        lost = self._dropped if place is None else max(0, self._first - 1 - place)
        if lost:
            logger.warning("stream %s is read on, but %d of its messages are no longer kept", self.name, lost)
        self._dropped = 0
        self._sent = max(self._sent if place is None else place, self._first - 1)
        self._unsent_bytes = sum(map(len, self._unsent()))

    def _unsent(self) -> list[bytes]:
        return list(islice(self._events, self._sent + 1 - self._first, None))

    def _take(self) -> bytes:
        """Take what is to be sent next."""
        if not self.has_unsent:
            return b""
        batch = b"".join(self._unsent())
        self._sent = self._last
        self._unsent_bytes = 0
        if self.name is None:  # nobody can come back for it
            self._first = self._last + 1
            self._events.clear()
            self._keep(-self._kept_bytes)
        else:
            self._forget_oldest()
        self._has_room.set()
        return batch
