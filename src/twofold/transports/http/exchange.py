"""One POST and its answer: a single JSON object, or an event stream from the first message that is sent before it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from twofold.errors import HeaderMismatch, ServerBusy, UnsupportedProtocolVersion
from twofold.transports.deadline import notice_wait
from twofold.transports.exchange import Answer
from twofold.transports.http.asgi import Receive
from twofold.transports.http.inbound import Inbound
from twofold.transports.http.limits import Limits
from twofold.transports.http.peer import Connection
from twofold.transports.http.reply import send_empty, send_json, status_of
from twofold.transports.http.stream import EventStream

logger = logging.getLogger("twofold")


async def send_stream(stream: EventStream, inbound: Inbound, *, after: int | None = None) -> None:
    """Send a stream of a session until it is over or the client goes, which may come back for the rest.

    Args:
        stream: What is sent.
        inbound: The request it answers.
        after: The place of the last event the client has.
    """
    sending = asyncio.create_task(stream.send_to(inbound.send, headers=inbound.extra, after=after))
    watching = asyncio.create_task(_watch_until_gone(inbound.receive, sending.cancel))
    try:
        await asyncio.wait({sending})
    finally:
        sending.cancel()
        watching.cancel()
        await asyncio.wait({sending, watching})
    failure = None if sending.cancelled() else sending.exception()
    if isinstance(failure, OSError):
        logger.debug("a client left its stream: %s", failure)
    elif failure is not None:
        raise failure


async def _watch_until_gone(receive: Receive, on_gone: Callable[[], object]) -> None:
    """Tell when the client has closed the connection.

    Some middleware gives the same body again and again instead of waiting: then nothing can be learned here.
    """
    event = await receive()
    if event["type"] == "http.disconnect":
        on_gone()


def _status_in_session(answer: Answer) -> int:
    """Tell the status of an answer in a session: never 404, which would say that the session is gone."""
    if isinstance(answer.error, ServerBusy):
        return 503
    is_refused = answer.is_unreadable or isinstance(answer.error, HeaderMismatch | UnsupportedProtocolVersion)
    return 400 if is_refused else 200


class RequestExchange:
    """A request of revision 2026-07-28 or of a server without sessions: it lives as long as its connection.

    Args:
        inbound: The request, which has a place. One of 2026-07-28 is taken back where its client closes the connection.
        limits: Times and bounds.
        is_stopping: Tells whether the application is about to end.
    """

    # Until something happens that most requests never see.
    _stream: EventStream | None = None
    _watching: asyncio.Task[None] | None = None
    _pumping: asyncio.Task[None] | None = None
    _timer: asyncio.Handle | None = None
    _worker: asyncio.Task[object] | None = None
    _has_gone = False
    _is_answered = False

    def __init__(self, inbound: Inbound, *, limits: Limits, is_stopping: Callable[[], bool]) -> None:
        self.headers = inbound.head.headers
        self.principal = inbound.principal
        self._inbound = inbound
        self._limits = limits
        self._is_stopping = is_stopping

    async def serve(self, connection: Connection, body: bytes) -> Answer | None:
        """Have a message answered and send the answer.

        Args:
            connection: Takes it.
            body: Its bytes.

        Returns:
            What was answered; None if nothing was owed, or nobody is left.
        """
        try:
            answer = await self._work(connection, body)
            self._is_answered = True
            if not self._has_gone:
                await self._reply(answer)
            elif self._pumping is not None and self._pumping.done():
                self._pumping.result()  # a fault of sending is the ASGI server's to know
            return answer
        finally:
            for helper in (self._watching, self._pumping):
                if helper is not None:
                    helper.cancel()

    async def _work(self, connection: Connection, body: bytes) -> Answer | None:
        self._worker = asyncio.current_task()
        try:
            return await notice_wait(connection.answer(body, self), self._await_watch)
        except asyncio.CancelledError:
            if not self._has_gone or self._worker is None:
                raise
            self._worker.uncancel()
            logger.debug("a client closed its connection: its request was cancelled")
            return None
        finally:
            self._worker = None
            if self._timer is not None:
                self._timer.cancel()

    @property
    def _cancels(self) -> bool:
        """Whether a client that closes the connection takes the request back."""
        return self._inbound.head.is_per_request

    @property
    def is_taken_back(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._has_gone

    @property
    def is_ending(self) -> bool:
        """Whether the application is about to end."""
        return self._is_stopping()

    async def _reply(self, answer: Answer | None) -> None:
        if self._stream is not None and self._pumping is not None:
            self._stream.end(None if answer is None else answer.body)
            await self._pumping
        elif answer is None:
            await send_empty(self._inbound.reply, 202, self._inbound.extra)
        else:
            inbound = self._inbound
            await send_json(inbound.reply, answer.body, status=status_of(answer.error), headers=inbound.extra)

    def admit(self, name: str) -> None:
        """Let a call of a tool begin, if the tool has not taken its share of the places."""
        self._inbound.place.claim(name)

    def write(self, message: bytes) -> None:
        """Send a message about the request: from now on the answer is a stream."""
        if not (self._has_gone or self._is_answered):
            self._open_stream().write(message)

    async def drain(self) -> None:
        """Wait until the client has room for more."""
        if self._stream is not None:
            await self._stream.drain()

    def finish(self, answer: Answer | None) -> None:
        """Have no part in it: `serve` sends the answer."""

    def cancel(self) -> None:
        """Have no part in it: `serve` sees it."""

    def close_stream(self) -> None:
        """Keep the stream: nobody could resume it."""

    def _await_watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._limits.watch_after_seconds, self._begin_watch)

    def _begin_watch(self) -> None:
        if self._cancels:
            self._watching = asyncio.create_task(_watch_until_gone(self._inbound.receive, self._give_up))
        left_seconds = self._limits.keep_alive_seconds - self._limits.watch_after_seconds
        self._timer = asyncio.get_running_loop().call_later(left_seconds, self._open_stream)

    def _give_up(self) -> None:
        """Cancel the work; where it is done, there is nothing to cancel."""
        if not self._has_gone:
            self._has_gone = True
            if self._worker is not None and self._cancels:
                self._worker.cancel()

    def _overflow(self) -> None:
        logger.warning("a client takes nothing of what a call sends it: the call was given up")
        self._give_up()

    def _open_stream(self) -> EventStream:
        if self._stream is None:
            self._stream = EventStream(self._limits)
            self._stream.on_overflow = self._overflow
            self._pumping = asyncio.create_task(self._pump(self._stream))
        return self._stream

    async def _pump(self, stream: EventStream) -> None:
        try:
            await stream.send_to(self._inbound.send, headers=self._inbound.extra)
        except OSError as error:
            logger.debug("a stream was given up: %s", error)
            self._give_up()
        except BaseException:
            self._give_up()  # nobody is left to send to; what it was is raised where this task is waited for
            raise


class SessionExchange:
    """A message of a session: its work and its stream outlive the connection it came on.

    Args:
        principal: Who asks.
        headers: What came with it.
        limits: Times and bounds.
        admit: Lets a call of a tool begin, or raises.
        open_stream: Opens a stream in the session; told whether a client is about to read it.
        prefers_stream: The client names event streams before JSON in what it accepts.
        on_finished: Called once when the work is done.
    """

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        principal: object,
        *,
        limits: Limits,
        admit: Callable[[str], None],
        open_stream: Callable[[bool], EventStream],
        prefers_stream: bool,
        on_finished: Callable[[], None],
    ) -> None:
        self.headers = headers
        self.principal = principal
        self._limits = limits
        self.admit = admit
        self._open_in_session = open_stream
        self._prefers_stream = prefers_stream
        self._on_finished = on_finished
        self._stream: EventStream | None = None
        self._answer: Answer | None = None
        self._is_finished = False
        self._is_client_here = True
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_taken_back(self) -> bool:
        """Whether nobody waits for the answer any more: a client that goes may come back."""
        return False

    @property
    def is_ending(self) -> bool:
        """Whether the application is about to end: then the session's connection is closed."""
        return False

    def write(self, message: bytes) -> None:
        """Send a message about the request: from now on the answer is a stream."""
        if not self._is_finished:
            self._open_stream().write(message)

    async def drain(self) -> None:
        """Wait until the client has room for more."""
        if self._stream is not None:
            await self._stream.drain()

    def finish(self, answer: Answer | None) -> None:
        """Send the answer; a second one is none."""
        if self._is_finished:
            return
        is_refused = answer is not None and (answer.is_unreadable or isinstance(answer.error, ServerBusy))
        if answer is not None and self._prefers_stream and not is_refused:
            self._open_stream()
        self._is_finished = True
        self._on_finished()
        self._answer = answer
        if self._stream is not None:
            self._stream.end(None if answer is None else answer.body)
        self._decide()

    def cancel(self) -> None:
        """Send no answer: a stream that ends without one, since a request is answered with JSON or a stream."""
        if not self._is_finished:
            self._open_stream()
        self.finish(None)

    def close_stream(self) -> None:
        """Let the client go until it resumes the stream, if it has, or now gets, an event to resume after."""
        if self._is_finished:
            return
        stream = self._open_stream()
        if stream.is_resumable:
            stream.release()

    async def reply(self, inbound: Inbound) -> None:
        """Send the answer to the request it is for, when it is decided which kind it is."""
        try:
            if not self._decided.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.resumable_after_seconds):
                        await asyncio.shield(self._decided)
            if not self._is_finished or self._stream is not None:
                await send_stream(self._open_stream(), inbound)
            elif self._answer is None:
                await send_empty(inbound.reply, 202, inbound.extra)
            else:
                status = _status_in_session(self._answer)
                await send_json(inbound.reply, self._answer.body, status=status, headers=inbound.extra)
        finally:
            self._is_client_here = False
            if self._stream is not None and not self._stream.is_read:
                self._stream.release()

    def _open_stream(self) -> EventStream:
        if self._stream is None:
            self._stream = self._open_in_session(self._is_client_here)
            self._decide()
        return self._stream

    def _decide(self) -> None:
        if not self._decided.done():
            self._decided.set_result(None)
