"""One event stream: what is written is kept until it is sent, and after that where it can be resumed."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from twofold.protocol.eventstream import KEEP_ALIVE, encode_event
from twofold.transports.http.reply import STREAM_HEADERS, Headers

logger = logging.getLogger("twofold")

KEEP_ALIVE_SECONDS = 15.0
"""A stream that is silent for so long gets a comment, or proxies between us and the client close it."""
STALL_SECONDS = 60.0
"""A client that takes nothing for so long has gone."""
HIGH_WATER_BYTES = 256 * 1024
"""With more unsent, whoever writes and can wait does wait."""
MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""With more unsent, the client is given up: whoever writes cannot wait, or does not."""
MAX_KEPT_BYTES = 4 * 1024 * 1024
"""What one stream keeps for a client that comes back."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class EventStream:
    """Messages on their way to one client, as server-sent events.

    Args:
        name: Makes the stream resumable: events are named `name-place` and kept after they were sent.
        primes: Begins with an event that has only its name: a client can then resume before the first message.
        retry_milliseconds: Told in that event: how long to wait before resuming.
    """

    def __init__(self, name: str | None = None, *, primes: bool = False, retry_milliseconds: int | None = None) -> None:
        self.name = name
        self._events: deque[bytes] = deque()
        self._first = 1  # the place of the oldest event that is kept
        self._last = 0  # the place of the newest
        self._sent = 0  # the place of the last event that was handed to a client
        self._unsent_bytes = 0
        self._kept_bytes = 0
        self._is_ended = False
        self._is_released = False
        self._reader: object | None = None
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.on_overflow: Callable[[], None] | None = None
        self.on_end: Callable[[], None] | None = None
        if primes:
            self._append(encode_event(b"", event_id=f"{name}-1", retry_milliseconds=retry_milliseconds))

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will be written."""
        return self._is_ended

    @property
    def is_read(self) -> bool:
        """Whether a client is attached."""
        return self._reader is not None

    @property
    def is_resumable(self) -> bool:
        """Whether a client has, or will have, a name to resume after."""
        return self.name is not None and self._last > 0

    @property
    def kept_bytes(self) -> int:
        """What the stream holds in memory."""
        return self._kept_bytes

    def write(self, message: bytes) -> None:
        """Write one message."""
        self._append(encode_event(message, event_id=None if self.name is None else f"{self.name}-{self._last + 1}"))
        if self.name is None and self._unsent_bytes > MAX_UNSENT_BYTES and self.on_overflow is not None:
            self.on_overflow()

    def end(self) -> None:
        """Write nothing more: whoever reads it is done after the last event."""
        self._is_ended = True
        self._changed.set()
        self._has_room.set()
        if self.on_end is not None:
            self.on_end()

    def release(self) -> None:
        """Let the client go for now, after what is written already; also one that is only about to read."""
        self._is_released = self._reader is None
        self._reader = None
        self._changed.set()
        self._has_room.set()

    async def drain(self) -> None:
        """Wait until the client has taken most of it; a client that has gone for now is not waited for."""
        await self._has_room.wait()

    def has(self, place: int) -> bool:
        """Tell whether an event of this place was ever written."""
        return 0 < place <= self._last

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
        self._reader = reader
        self._changed.set()  # whoever read it before sees that it is over
        self._go_to(self._sent if after is None else after)
        try:
            await self._send(
                send, {"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]}
            )
            while self._reader is None or self._reader is reader:
                # What is written by now still goes out.
                is_last = self._is_ended or self._reader is None or (self._is_released and after is None)
                batch = self._take()
                if batch:
                    await self._send(send, {"type": "http.response.body", "body": batch, "more_body": True})
                if is_last:
                    break
                if not batch:
                    await self._wait(send)
            await self._send(send, {"type": "http.response.body", "body": b""})
        finally:
            if self._reader is reader:
                self._reader = None
                self._has_room.set()
            self._is_released = False

    async def _wait(self, send: Send) -> None:
        """Wait for something to send, and keep the connection open meanwhile."""
        self._changed.clear()
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            await self._send(send, {"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    async def _send(self, send: Send, event: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await send(event)
        except TimeoutError:
            raise ConnectionAbortedError(f"the client took nothing for {STALL_SECONDS:g} seconds") from None

    def _append(self, event: bytes) -> None:
        self._events.append(event)
        self._last += 1
        self._unsent_bytes += len(event)
        self._kept_bytes += len(event)
        if self.name is not None:
            self._forget_oldest()
        if self._unsent_bytes > HIGH_WATER_BYTES and self._reader is not None:
            self._has_room.clear()
        self._changed.set()

    def _forget_oldest(self) -> None:
        """Keep within bounds: the newest stay, the answer among them."""
        while self._kept_bytes > MAX_KEPT_BYTES and len(self._events) > 1:
            event = self._events.popleft()
            self._kept_bytes -= len(event)
            if self._first > self._sent:
                self._unsent_bytes -= len(event)
                self._sent = self._first
                logger.warning("a message on stream %s was dropped: its client does not come for it", self.name)
            self._first += 1

    def _go_to(self, place: int) -> None:
        if place + 1 < self._first:
            lost = self._first - 1 - place
            logger.warning("stream %s is resumed, but %d of its messages are no longer kept", self.name, lost)
        self._sent = max(place, self._first - 1)
        self._unsent_bytes = sum(map(len, self._unsent()))

    def _unsent(self) -> list[bytes]:
        return [self._events[index] for index in range(self._sent - self._last, 0)]

    def _take(self) -> bytes:
        """Take what is to be sent next."""
        if self._unsent_bytes == 0:
            return b""
        batch = b"".join(self._unsent())
        self._sent = self._last
        self._unsent_bytes = 0
        if self.name is None:  # nobody can come back for it
            self._first = self._last + 1
            self._events.clear()
            self._kept_bytes = 0
        self._has_room.set()
        return batch
