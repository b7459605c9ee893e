"""Sessions of the handshake revisions: bounded in number, in idle time and in what they keep for resumption."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from twofold.errors import InternalError, InvalidRequest
from twofold.transports.http.limits import Limits
from twofold.transports.http.peer import Connection
from twofold.transports.http.reply import Refusal
from twofold.transports.http.stream import Budget, EventStream

logger = logging.getLogger("twofold")

_PRIMING_SINCE = "2025-11-25"
"""Clients of earlier revisions take an event without data for a broken message."""


class Session:
    """One client between its `initialize` and its DELETE.

    Attributes:
        id: Cannot be guessed.
        principal: Who opened it; nobody else may use it.
    """

    def __init__(
        self,
        principal: object,
        limits: Limits,
        budget: Budget,
        *,
        now: float,
        retain: Callable[["Session", EventStream], None],
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.principal = principal
        self.used_at = now
        self._limits = limits
        self._budget = budget
        self._connection: Connection | None = None
        self._retain = retain
        self._streams: dict[str, EventStream] = {}
        self._next_stream = 1
        self._primes = False
        self._unasked: EventStream | None = None
        self._unheard: set[bytes] = set()

    @property
    def connection(self) -> Connection:
        """The server's end."""
        if self._connection is None:
            raise RuntimeError("the session is not open yet")
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether `initialize` was answered in it."""
        return self._connection is not None

    @property
    def is_busy(self) -> bool:
        """Whether something runs in it, or somebody listens."""
        return self.connection.running > 0 or any(stream.is_read for stream in self._streams.values())

    def open(self, connection: Connection) -> None:
        """Take the connection on which `initialize` was answered."""
        self._connection = connection
        self._primes = connection.session.revision >= _PRIMING_SINCE

    def open_stream(self, is_awaited: bool) -> EventStream:
        """Open the stream of one request; told whether a client is about to read it."""
        name = str(self._next_stream)
        self._next_stream += 1
        stream = EventStream(self._limits, name, primes=self._primes, is_awaited=is_awaited, budget=self._budget)
        stream.on_end = partial(self._retain, self, stream)
        self._streams[name] = stream
        return stream

    @property
    def unasked(self) -> EventStream:
        """The stream of messages that are about no request, which a GET reads."""
        if self._unasked is None:
            self._unasked = EventStream(self._limits, "0", primes=self._primes, is_awaited=False, budget=self._budget)
            self._streams["0"] = self._unasked
        return self._unasked

    def find_event(self, event_id: str) -> tuple[EventStream, int]:
        """Find the stream of an event, and its place there.

        Raises:
            Refusal: There is none of that name, or it is no longer kept.
        """
        name, _, place = event_id.partition("-")
        stream = self._streams.get(name)
        is_place = place.isascii() and place.isdigit() and len(place) <= 15
        if stream is None or not is_place or not stream.has(int(place)):
            error = InvalidRequest(
                f"Last-Event-ID {event_id!r:.80} is of no stream of this session that is still kept; "
                "send the request again if its answer has not come"
            )
            raise Refusal(400, error)
        return stream, int(place)

    def forget(self, stream: EventStream) -> None:
        """Keep a finished stream no longer."""
        if stream.name is not None:
            self._streams.pop(stream.name, None)

    # As the writer of the connection: messages about no request.

    def write(self, message: bytes) -> None:
        """Send a message to whoever listens, or as soon as somebody does; then what was said once is enough."""
        unasked = self.unasked
        if unasked.is_read or not unasked.has_unsent:
            self._unheard.clear()
        if not unasked.is_read:
            if message in self._unheard:
                return
            self._unheard.add(message)
        unasked.write(message)

    async def drain(self) -> None:
        """Wait until there is room for more."""
        await self.unasked.drain()

    async def close(self, *, grace_seconds: float) -> None:
        """End what runs and whoever listens."""
        await self.connection.close(grace_seconds=grace_seconds)
        for stream in list(self._streams.values()):
            stream.on_end = None
            stream.end()


def _is_same(one: object, other: object) -> bool:
    """Compare principals, whose `==` is the author's own."""
    try:
        return bool(one == other)
    except Exception:
        logger.exception("principals cannot be compared; the session is taken for somebody else's")
        return False


class _Retained(msgspec.Struct, frozen=True, eq=False):
    session: Session
    stream: EventStream
    until: float
    size: int


class Sessions:
    """All sessions of one application on one event loop.

    Args:
        limits: How many, and what they may keep.
        on_end: Called with each connection that has ended.
    """

    def __init__(self, limits: Limits, on_end: Callable[[Connection], None]) -> None:
        self._limits = limits
        self._on_end = on_end
        self._budget = Budget(limits.running_bytes)
        self._sessions: dict[str, Session] = {}
        self._retained: deque[_Retained] = deque()
        self._retained_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def prepare(self, principal: object) -> Session:
        """Make a session that is not known yet: it is, once `admit` is called."""
        return Session(principal, self._limits, self._budget, now=self._loop.time(), retain=self._retain)

    def admit(self, session: Session, connection: Connection) -> None:
        """Take a session in.

        Raises:
            Refusal: There are too many, and all are in use.
        """
        if len(self._sessions) >= self._limits.sessions:
            self._make_place()
        session.open(connection)
        self._sessions[session.id] = session
        self._schedule_sweep()

    def find(self, session_id: bytes, principal: object) -> Session:
        """Find a session for its client.

        Raises:
            Refusal: There is none; or it is somebody else's, which is not told apart.
        """
        session = self._sessions.get(session_id.decode("latin-1"))
        if session is not None and not _is_same(session.principal, principal):
            logger.warning("a session was asked for by somebody else than who opened it")
            session = None
        if session is None:
            error = InvalidRequest("Mcp-Session-Id: there is no such session (any more); send initialize for a new one")
            raise Refusal(404, error)
        session.used_at = self._loop.time()
        return session

    async def end(self, session: Session) -> None:
        """End a session and what runs in it."""
        if self._sessions.pop(session.id, None) is not None:
            await self._close(session, grace_seconds=0.0)

    def stop_streams(self) -> None:
        """Let everybody go who only listens: the server is about to end."""
        for session in self._sessions.values():
            session.unasked.end()

    async def close(self, *, grace_seconds: float) -> None:
        """End all sessions, after what runs in them had some time."""
        self._is_closed = True
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*self._ending, *(self._close(each, grace_seconds=grace_seconds) for each in sessions))
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()

    async def _close(self, session: Session, *, grace_seconds: float) -> None:
        """Close a session that nobody finds any more, and forget what was kept for it."""
        try:
            await session.close(grace_seconds=grace_seconds)
        finally:
            self._on_end(session.connection)
            left = [kept for kept in self._retained if kept.session is not session]
            self._retained = deque(left)
            self._retained_bytes = sum(kept.size for kept in left)

    def _make_place(self) -> None:
        now = self._loop.time()
        yielding_since = now - self._limits.session_yielding_seconds
        idle = [each for each in self._sessions.values() if each.used_at <= yielding_since and not each.is_busy]
        if not idle:
            error = InternalError(f"busy: {len(self._sessions)} sessions are open, and all are in use; try again later")
            raise Refusal(503, error, headers=[(b"retry-after", b"%d" % self._limits.session_yielding_seconds)])
        self._end_soon(min(idle, key=lambda each: each.used_at))

    def _end_soon(self, session: Session) -> None:
        del self._sessions[session.id]  # at once: whoever comes next counts without it
        task = self._loop.create_task(self._close(session, grace_seconds=0.0))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _schedule_sweep(self) -> None:
        if self._sweep_timer is None and not self._is_closed:
            self._sweep_timer = self._loop.call_later(self._limits.sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweep_timer = None
        now = self._loop.time()
        self._release_retained(now)
        for session in list(self._sessions.values()):
            if session.is_busy:
                session.used_at = now
            elif now - session.used_at >= self._limits.session_idle_seconds:
                logger.info("a session was ended: it was idle for %g seconds", self._limits.session_idle_seconds)
                self._end_soon(session)
        if self._sessions or self._retained:
            self._schedule_sweep()

    def _retain(self, session: Session, stream: EventStream) -> None:
        """Keep a finished stream for a while."""
        now = self._loop.time()
        kept = _Retained(session, stream, now + self._limits.retention_seconds, stream.kept_bytes)
        self._retained.append(kept)
        self._retained_bytes += kept.size
        self._release_retained(now)
        self._schedule_sweep()

    def _release_retained(self, now: float) -> None:
        bound = self._limits.retained_bytes
        while self._retained and (self._retained[0].until <= now or self._retained_bytes > bound):
            oldest = self._retained.popleft()
            self._retained_bytes -= oldest.size
            oldest.session.forget(oldest.stream)
