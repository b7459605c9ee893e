"""An event stream from a server, over as many connections as it takes."""

import asyncio
import contextlib
import re
from collections.abc import Callable

import httpx2

from twofold.errors import TransportError
from twofold.protocol.eventstream import EventStreamDecoder

MAX_ATTEMPTS = 10
"""So often a stream is taken up again without anything coming of it."""
RETRY_SECONDS = 1.0
"""Before a stream is taken up again, where the server does not say."""
MAX_RETRY_SECONDS = 30.0
MIN_RETRY_SECONDS = 0.01
"""Whatever the server says: it does not have this client ask without a pause."""
HELD_SECONDS = 5.0
"""A connection that held for so long was of use, even if nothing came: some proxies end silent ones each minute."""
LINGER_SECONDS = 0.25
"""After an answer, so long is waited for the end of its stream, since the connection can then be used again."""

_EVENT_ID = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?\Z")
"""What a header can carry back; another id is as good as none."""


class Cursor:
    """Where a client is in a stream, from one connection to the next.

    Attributes:
        last_event_id: After which event to go on; None if there was none with an id that can be sent back.
        broken_by: What ended the last connection, if that was a fault.
    """

    def __init__(self) -> None:
        self.last_event_id: str | None = None
        self.broken_by: httpx2.HTTPError | None = None
        self._retry_seconds = RETRY_SECONDS
        self._vain_attempts = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether it was tried often enough."""
        return self._vain_attempts >= MAX_ATTEMPTS

    def next_delay_seconds(self) -> float:
        """Tell how long to wait before the next attempt, and count it: as the server said, then ever longer."""
        delay = self._retry_seconds * float(2**self._vain_attempts)
        self._vain_attempts += 1
        return min(max(delay, MIN_RETRY_SECONDS), MAX_RETRY_SECONDS)

    def note(self, decoder: EventStreamDecoder) -> None:
        """Take over what a connection said about going on."""
        event_id = decoder.last_event_id
        if event_id is not None and event_id != self.last_event_id and _EVENT_ID.match(event_id) is not None:
            self.last_event_id = event_id
            self._vain_attempts = 0
        if decoder.retry_milliseconds is not None:
            self._retry_seconds = min(decoder.retry_milliseconds / 1000, MAX_RETRY_SECONDS)

    def note_progress(self) -> None:
        """The connection was of use."""
        self._vain_attempts = 0


async def follow(
    response: httpx2.Response, cursor: Cursor, take: Callable[[bytes], bool], *, max_event_bytes: int
) -> bool:
    """Hand on the messages of one connection until it ends, be it by a fault.

    Args:
        response: Its head was read; closed by whoever opened it.
        cursor: Learns how far it went.
        take: Given each message; says whether it was the one that is waited for.
        max_event_bytes: What an event may have.

    Returns:
        Whether the message that is waited for has come.

    Raises:
        TransportError: An event is larger than that.
    """
    decoder = EventStreamDecoder(max_event_bytes)
    loop = asyncio.get_running_loop()
    began = loop.time()
    has_come = False
    cursor.broken_by = None
    try:
        async with asyncio.timeout(None) as lingering, contextlib.aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                for event in decoder.feed(chunk):
                    if event.event == "message" and event.data.strip():
                        cursor.note_progress()
                        has_come = take(event.data) or has_come
                cursor.note(decoder)
                if has_come and lingering.when() is None:
                    lingering.reschedule(loop.time() + LINGER_SECONDS)
    except TimeoutError:
        if not lingering.expired():
            raise
    except httpx2.HTTPError as error:
        cursor.broken_by = error
    except TransportError:
        if not has_come:
            raise
    if loop.time() - began > HELD_SECONDS:
        cursor.note_progress()
    return has_come
