"""One POST and its answer: a single JSON object, or an event stream from the first message that is sent before it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from twofold.errors import HeaderMismatch, UnsupportedProtocolVersion
from twofold.transports.exchange import Answer
from twofold.transports.http.peer import Connection
from twofold.transports.http.reply import Headers, send_empty, send_json, status_of
from twofold.transports.http.request import Receive, Send
from twofold.transports.http.stream import KEEP_ALIVE_SECONDS, EventStream

logger = logging.getLogger("twofold")

RESUMABLE_AFTER_SECONDS = 1.0
"""A call of a session that takes longer is answered as a stream, so that its client can resume it."""
WATCH_AFTER_SECONDS = 0.02
"""A call that takes longer has somebody watch whether its client stays, which costs more than a small call."""


async def send_stream(
    stream: EventStream, receive: Receive, send: Send, *, headers: Headers, after: int | None = None
) -> None:
    """Send a stream of a session until it is over or the client goes, which may come back for the rest.

    Args:
        stream: What is sent.
        receive: The ASGI callable.
        send: The ASGI callable.
        headers: More headers of the response.
        after: The place of the last event the client has.
    """
    sending = asyncio.create_task(stream.send_to(send, headers=headers, after=after))
    watching = asyncio.create_task(_watch_until_gone(receive))
    try:
        await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        watching.cancel()
        await asyncio.wait({sending, watching})
    if not sending.cancelled() and isinstance(failure := sending.exception(), OSError):
        logger.debug("a client left its stream: %s", failure)


async def _watch_until_gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _status_in_session(answer: Answer) -> int:
    """Tell the status of an answer in a session: never 404, which would say that the session is gone."""
    is_refused = answer.is_unreadable or isinstance(answer.error, HeaderMismatch | UnsupportedProtocolVersion)
    return 400 if is_refused else 200


class RequestExchange:
    """A request of revision 2026-07-28 or of a server without sessions: it lives as long as its connection.

    Args:
        headers: What must agree with the body.
        principal: Who asks.
        receive: The ASGI callable.
        send: The ASGI callable.
        extra: More headers of the answer.
        cancels: A client that closes the connection takes the request back.
    """

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        principal: object,
        *,
        receive: Receive,
        send: Send,
        extra: Headers,
        cancels: bool,
    ) -> None:
        self.headers = headers
        self.principal = principal
        self._receive = receive
        self._send = send
        self._extra = extra
        self._cancels = cancels
        self._stream: EventStream | None = None
        self._watching: asyncio.Task[None] | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._timer: asyncio.Handle | None = None
        self._worker: asyncio.Task[object] | None = None
        self._has_gone = False

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
            if not self._has_gone:
                await self._reply(answer)
            return answer
        finally:
            for helper in (self._watching, self._pumping):
                if helper is not None:
                    helper.cancel()

    async def _work(self, connection: Connection, body: bytes) -> Answer | None:
        loop = asyncio.get_running_loop()
        self._worker = asyncio.current_task(loop)
        # The loop's next turn comes before the answer only if the work has to wait for something.
        self._timer = loop.call_soon(self._await_watch)
        try:
            return await connection.answer(body, self)
        except asyncio.CancelledError:
            if not self._has_gone or self._worker is None:
                raise
            self._worker.uncancel()
            logger.debug("a client closed its connection: its request was cancelled")
            return None
        finally:
            self._worker = None
            self._timer.cancel()

    async def _reply(self, answer: Answer | None) -> None:
        if self._stream is not None and self._pumping is not None:
            if answer is not None:
                self._stream.write(answer.body)
            self._stream.end()
            await asyncio.wait({self._pumping})
        elif answer is None:
            await send_empty(self._send, 202, self._extra)
        else:
            await send_json(self._send, answer.body, status=status_of(answer.error), headers=self._extra)

    def write(self, message: bytes) -> None:
        """Send a message about the request: from now on the answer is a stream."""
        if not self._has_gone:
            self._open_stream().write(message)

    async def drain(self) -> None:
        """Wait until the client has room for more."""
        if self._stream is not None:
            await self._stream.drain()

    def finish(self, answer: Answer | None) -> None:
        """Have no part in it: `serve` sends the answer."""

    def close_stream(self) -> None:
        """Keep the stream: nobody could resume it."""

    def _await_watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self._begin_watch)

    def _begin_watch(self) -> None:
        if self._cancels:
            self._watching = asyncio.create_task(self._watch())
        self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._open_stream)

    async def _watch(self) -> None:
        await _watch_until_gone(self._receive)
        self._give_up()

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
            self._stream = EventStream()
            self._stream.on_overflow = self._overflow
            self._pumping = asyncio.create_task(self._pump(self._stream))
        return self._stream

    async def _pump(self, stream: EventStream) -> None:
        try:
            await stream.send_to(self._send, headers=self._extra)
        except OSError as error:
            logger.debug("a stream was given up: %s", error)
            self._give_up()


class SessionExchange:
    """A message of a session: its work and its stream outlive the connection it came on.

    Args:
        principal: Who asks.
        headers: What came with it.
        open_stream: Opens a stream in the session.
        prefers_stream: The client names event streams before JSON in what it accepts.
        on_finished: Called once when the work is done.
    """

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        principal: object,
        *,
        open_stream: Callable[[], EventStream],
        prefers_stream: bool,
        on_finished: Callable[[], None],
    ) -> None:
        self.headers = headers
        self.principal = principal
        self._open_in_session = open_stream
        self._prefers_stream = prefers_stream
        self._on_finished = on_finished
        self._stream: EventStream | None = None
        self._answer: Answer | None = None
        self._is_finished = False
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write(self, message: bytes) -> None:
        """Send a message about the request: from now on the answer is a stream."""
        self._open_stream().write(message)

    async def drain(self) -> None:
        """Wait until the client has room for more."""
        if self._stream is not None:
            await self._stream.drain()

    def finish(self, answer: Answer | None) -> None:
        """Send the answer; a second one is none."""
        if self._is_finished:
            return
        self._is_finished = True
        self._on_finished()
        self._answer = answer
        if self._stream is None and answer is not None and self._prefers_stream and not answer.is_unreadable:
            self._open_stream()
        if self._stream is not None:
            if answer is not None:
                self._stream.write(answer.body)
            self._stream.end()
        self._decide()

    def close_stream(self) -> None:
        """Let the client go until it resumes the stream, if it has, or now gets, an event to resume after."""
        stream = self._open_stream()
        if stream.is_resumable:
            stream.release()

    async def reply(self, receive: Receive, send: Send, *, extra: Headers) -> None:
        """Send the answer when it is decided which kind it is.

        Args:
            receive: The ASGI callable.
            send: The ASGI callable.
            extra: More headers of the answer.
        """
        if not self._decided.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RESUMABLE_AFTER_SECONDS):
                    await asyncio.shield(self._decided)
        if not self._is_finished or self._stream is not None:
            await send_stream(self._open_stream(), receive, send, headers=extra)
        elif self._answer is None:
            await send_empty(send, 202, extra)
        else:
            await send_json(send, self._answer.body, status=_status_in_session(self._answer), headers=extra)

    def _open_stream(self) -> EventStream:
        if self._stream is None:
            self._stream = self._open_in_session()
            self._decide()
        return self._stream

    def _decide(self) -> None:
        if not self._decided.done():
            self._decided.set_result(None)
