"""Requests and their answers over one link: ids, progress, time, what the server says unasked."""

import asyncio
import inspect
import itertools
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from twofold.errors import MethodNotFound, NotSent, ProtocolError, TransportError
from twofold.protocol.jsonrpc import (
    BEFORE_MESSAGE,
    Message,
    NestedTooDeeply,
    RequestId,
    cut_depth,
    decode_batch,
    decode_message,
    recover_id,
)
from twofold.protocol.messages import LogLevel
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.wire.asking import Asking, encode_error, encode_notification, encode_result
from twofold.transports.link import Link

logger = logging.getLogger("twofold")

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
OnLog: TypeAlias = Callable[[LogLevel, Json, str | None], Awaitable[None] | None]

TELL_SECONDS = 5.0
"""So long telling a server that a request was given up may take."""
LINGER_SECONDS = 0.25
"""So long a stream may take to end after the answer on it."""
MAX_PAUSE_SECONDS = 60.0
"""Between two attempts to listen for changes."""
MAX_MESSAGE = 4000
"""Characters of an error's message that are kept; what a terminal would obey is taken out."""
MAX_CALLBACKS = 1_000
"""Async callbacks that run at once; what comes while so many are behind is dropped, with a warning."""
MAX_ANSWERS = 100
"""Answers to a server's own requests that may be on their way at once; more requests are ignored."""
MAX_CUT = 1024 * 1024
"""Bytes of a message nested too deeply of which the rest is looked for, which takes up to half a second."""


class AnswerTooDeep(TransportError):
    """An answer nested too deeply to be read.

    Attributes:
        result: The result, with `TOO_DEEP` in place of what lies too deep; empty where it is an error.
    """

    def __init__(self, message: str, *, result: msgspec.Raw) -> None:
        super().__init__(message)
        self.result = result


class _Progress(msgspec.Struct, frozen=True, rename="camel"):
    progress_token: RequestId
    progress: float
    total: float | None = None
    message: str | None = None


class _Log(msgspec.Struct, frozen=True):
    level: LogLevel
    data: Json = None
    logger: str | None = None


class _Fault(msgspec.Struct, frozen=True):
    code: int
    message: str = ""
    data: Json = None


class _Waiting(msgspec.Struct):
    """A request without its answer.

    Attributes:
        until: When its time is over, by the event loop's clock.
        task: Which waits; cancelled when its time is over.
        cancelling: How often it was cancelled before.
        is_sent: Only the answer is waited for.
        is_overdue: Its time is over, and the task was cancelled for it.
        unread: The last that came meanwhile and answered nothing: it may have been meant for this.
    """

    answer: asyncio.Future[msgspec.Raw]
    on_progress: OnProgress | None
    until: float
    task: asyncio.Task[Any] | None
    cancelling: int
    is_sent: bool = False
    is_overdue: bool = False
    unread: TransportError | None = None

    def expire(self) -> None:
        """End the waiting, for room to send too; an answer that is here is not thrown away."""
        if self.task is not None and not (self.is_sent and self.answer.done()):
            self.is_overdue = True
            self.task.cancel()

    def take_back(self) -> bool:
        """Take back the cancellation that its time has caused; tells whether the task goes on: there is no other."""
        if not self.is_overdue or self.task is None:
            return False
        self.is_overdue = False
        return self.task.uncancel() <= self.cancelling


class Conversation:
    """One client's end of a link.

    Attributes:
        asking: How messages are written; replaced when the revision is agreed on.
        on_log: Called with each log message.
        on_list_changed: Called when the server says that its tools have changed.
    """

    def __init__(
        self, link: Link, asking: Asking, *, on_log: OnLog | None, on_list_changed: Callable[[], None]
    ) -> None:
        self.link = link
        self.asking = asking
        self._on_log = on_log
        self._on_list_changed = on_list_changed
        self._waiting: dict[RequestId, _Waiting] = {}
        self._ids = itertools.count(1)
        self._tasks: set[asyncio.Future[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._end: TransportError | None = None
        self._timer: asyncio.TimerHandle | None = None  # one for all that wait
        self._timer_at = math.inf
        self._warned: dict[str, int] = {}
        self._callbacks = 0  # that are async, and not done yet
        self._answers = 0  # to the server's own requests, on their way

    @property
    def is_lost(self) -> bool:
        """Whether nothing more will come over the link."""
        return self._end is not None

    async def request(
        self,
        method: str,
        params: Mapping[str, Json],
        *,
        timeout_seconds: float | None,
        name: str | None = None,
        mirrored: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> msgspec.Raw:
        """Ask, and give the result's bytes.

        Args:
            method: What is asked.
            params: Its parameters.
            timeout_seconds: How long the answer is waited for; None for ever.
            name: What it names, mirrored over HTTP.
            mirrored: Headers of parameters.
            on_progress: Called with each progress notification.
            meta: More of `_meta`.

        Raises:
            ProtocolError: The server answered with an error.
            NotSent: Nothing has reached the server.
            TransportError: There is no answer: none came in time, or the connection or the answer is broken.
            ValueError: The params cannot be written as JSON.
        """
        if self._end is not None:
            raise NotSent(str(self._end))
        request_id = next(self._ids)
        token = request_id if on_progress is not None else None
        message = self.asking.request(request_id, method, params, progress_token=token, meta=meta)
        sends_alone = self.link.has_own_streams
        headers = self._headers(method, name=name, mirrored=mirrored or {})
        waiting = self._expect(on_progress, timeout_seconds)
        self._waiting[request_id] = waiting
        sending = self._loop.create_task(self._deliver(message, request_id, headers, waiting)) if sends_alone else None
        is_over = False
        try:
            if sending is None:
                await self.link.send(message, request_id=request_id, headers=headers)
            waiting.is_sent = True
            result = await waiting.answer
            is_over = True
            return result
        except asyncio.CancelledError:
            if not waiting.take_back():
                raise
            meanwhile = "" if waiting.unread is None else f"; meanwhile {waiting.unread}"
            raise TransportError(
                f"{self.link.name} did not answer {method} within {timeout_seconds or 0:.3g} seconds{meanwhile}"
            ) from None
        except (ProtocolError, TransportError):
            is_over = True
            raise
        finally:
            waiting.take_back()  # also where sending made another error of it
            self._waiting.pop(request_id, None)
            if not waiting.answer.cancel() and not waiting.answer.cancelled():
                waiting.answer.exception()  # looked at, so that nobody complains
            if not is_over and method not in _OPENING:  # the opening is not taken back
                self._take_back(request_id)
            if sending is not None and not sending.done():
                self._let_end(sending, at_once=not waiting.answer.done() or waiting.answer.cancelled())

    def _headers(self, method: str, *, name: str | None, mirrored: Mapping[str, str]) -> Mapping[str, str]:
        """Give what is mirrored into headers, where the link has any."""
        return self.asking.headers(method, name=name, mirrored=mirrored) if self.link.has_own_streams else {}

    def _expect(self, on_progress: OnProgress | None, timeout_seconds: float | None) -> _Waiting:
        """Begin to wait for an answer, in this task."""
        until = math.inf if timeout_seconds is None else self._loop.time() + timeout_seconds
        task = asyncio.current_task(self._loop)
        waiting = _Waiting(self._loop.create_future(), on_progress, until, task, task.cancelling() if task else 0)
        if until < self._timer_at:
            self._set_timer(until)
        return waiting

    def _set_timer(self, at: float) -> None:
        """See to it that the first whose time will be over is told; a timer for each would cost more than the rest."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = None if at == math.inf else self._loop.call_at(at, self._end_overdue)

    def _end_overdue(self) -> None:
        """End all whose time is over; goes through all that wait, each time that one's time is over."""
        over, left = max(self._timer_at, self._loop.time()), math.inf
        for waiting in list(self._waiting.values()):
            if waiting.until <= over:
                waiting.expire()
            else:
                left = min(left, waiting.until)
        self._set_timer(left)

    def listen(self, params: Mapping[str, Json]) -> None:
        """Keep a subscription open until the end; a server that has none is done without."""
        self._keep(self._loop.create_task(self._listen(params)))

    async def _listen(self, params: Mapping[str, Json]) -> None:
        """Listen; again after a break, in which changes may have been missed."""
        pause_seconds = 1.0
        while not self.is_lost:
            try:
                await self.request("subscriptions/listen", params, timeout_seconds=None)
            except ProtocolError as error:
                logger.info("%s tells of no changes: %s", self.link.name, error)
                return
            except TransportError as error:
                logger.info("%s no longer tells of changes: %s", self.link.name, error)
            self._on_list_changed()
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, MAX_PAUSE_SECONDS)

    async def notify(self, method: str, params: bytes = b"{}") -> None:
        """Send a notification.

        Raises:
            TransportError: It could not be sent.
        """
        message = encode_notification(method, params)
        await self.link.send(message, request_id=None, headers=self._headers(method, name=None, mirrored={}))

    async def close(self) -> None:
        """End: whoever waits is told, the link is closed, whatever callbacks do."""
        self.lost(TransportError(f"{self.link.name}: the client was closed"))
        await asyncio.sleep(0)  # what is still to be told begins: a call that was given up just now is taken back
        left = self._tasks - {asyncio.current_task()}  # a callback may be what closes
        try:
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=TELL_SECONDS)
        finally:
            await asyncio.shield(self.link.close())
            self._set_timer(math.inf)

    # What the link hands over.

    def take(self, message: bytes, *, about: RequestId | None = None) -> None:
        """Take a message, or a batch of them."""
        try:
            parts = decode_batch(message) if message.lstrip()[:1] == b"[" else [message]
        except ProtocolError as error:
            self.take_broken(
                message[:4096],
                TransportError(f"{self.link.name} sent a batch that cannot be read: {error}"),
                about=about,
            )
            return
        for part in parts:
            try:
                decoded = decode_message(part)
            except NestedTooDeeply as error:
                self._take_deep(part, error, about=about)
            except ProtocolError as error:
                told = TransportError(f"{self.link.name} sent what cannot be read: {error}")
                self.take_broken(part[:4096], told, about=about)
            else:
                self._take_decoded(decoded, about=about)

    def take_broken(self, head: bytes, error: TransportError, *, about: RequestId | None = None) -> None:
        """Fail the request that a broken message answers; where nobody can tell which, all that wait."""
        request_id = recover_id(head)
        if request_id is None and about in self._waiting and _is_no_notice(head):
            request_id = about
        if request_id in self._waiting:
            self._fail(self._waiting[request_id], error)
        elif (
            request_id is None
            and not self.link.has_own_streams
            and _may_be_answer(head, is_alone=len(self._waiting) == 1)
        ):
            for waiting in list(self._waiting.values()):
                self._fail(waiting, error)
        else:
            self._note_unread("what cannot be read", error)

    def _take_deep(self, part: bytes, error: ProtocolError, *, about: RequestId | None) -> None:
        """Fail what is answered by more levels than can be read; all but what lies deep down goes with it."""
        told = f"{self.link.name} sent what cannot be read: {error}"
        cut = cut_depth(part) if len(part) <= MAX_CUT else None
        try:
            message = None if cut is None else decode_message(cut)
        except ProtocolError:
            message = None
        if message is None or message.method or not isinstance(message.id, int | str):
            self.take_broken(part[:4096], TransportError(told), about=about)
        elif message.id in self._waiting:
            self._fail(self._waiting[message.id], AnswerTooDeep(told, result=message.result))

    def lost(self, error: TransportError) -> None:
        """Fail everything that waits: nothing more will come."""
        if self._end is None:
            self._end = error
            for waiting in list(self._waiting.values()):
                self._fail(waiting, error)

    async def _deliver(
        self, message: bytes, request_id: RequestId, headers: Mapping[str, str], waiting: _Waiting
    ) -> None:
        """Send over a stream of its own, which ends without more to come."""
        try:
            await self.link.send(message, request_id=request_id, headers=headers)
        except Exception as error:  # noqa: BLE001 - also what a program's own authentication raises
            self._fail(waiting, error)
        else:
            self._fail(waiting, TransportError(f"{self.link.name} ended its answer without a result"))

    def _let_end(self, sending: asyncio.Task[None], *, at_once: bool) -> None:
        """Close a request's own stream; after its answer it ends by itself, and the connection can be used again."""
        if at_once:
            sending.cancel()
        else:
            timer = self._loop.call_later(LINGER_SECONDS, sending.cancel)
            sending.add_done_callback(lambda _: timer.cancel())
        self._keep(sending)

    def _take_decoded(self, message: Message, *, about: RequestId | None) -> None:
        if not message.method:
            self._take_answer(message, about=about)
        elif message.id is msgspec.UNSET:
            self._take_notice(message)
        else:
            self._answer(message)

    def _take_answer(self, message: Message, *, about: RequestId | None) -> None:
        waiting = self._waiting.get(message.id) if isinstance(message.id, int | str) else None
        if waiting is None and (asked := self._find_misnamed(message, about=about)) is not None:
            given = "none" if isinstance(message.id, msgspec.UnsetType) else f"{message.id!r:.80}"
            said = f"; it says: {self._read_error(message.error)}" if message.error and message.error != b"null" else ""
            self._fail(asked, TransportError(f"{self.link.name} sent an answer with a wrong id: {given}{said}"))
        elif waiting is None or waiting.answer.done():
            self._note_unread(
                "answers to nothing",
                TransportError(f"{self.link.name} sent an answer to nothing that was asked: id {message.id!r:.80}"),
            )
        elif message.error and message.error != b"null":
            waiting.answer.set_exception(self._read_error(message.error))
        else:
            waiting.answer.set_result(message.result)

    def _find_misnamed(self, message: Message, *, about: RequestId | None) -> _Waiting | None:
        """Find what an answer is about whose id is none: a number as text, or nothing where one request can be meant.

        An id of another request is believed: nobody knows whether the right answer is still to come.
        """
        if isinstance(message.id, str):
            return next((each for request_id, each in self._waiting.items() if str(request_id) == message.id), None)
        if isinstance(message.id, int):
            return None
        if about is not None:
            return self._waiting.get(about)
        is_alone = len(self._waiting) == 1 and not self.link.has_own_streams
        return next(iter(self._waiting.values())) if is_alone else None

    def _read_error(self, raw: msgspec.Raw) -> ProtocolError | TransportError:
        try:
            fault = msgspec.json.decode(raw, type=_Fault)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return TransportError(f"{self.link.name} sent an error that cannot be read: {error}")
        said = fault.message[:MAX_MESSAGE]
        shown = "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in said)
        return ProtocolError(fault.code, shown, fault.data)

    def _take_notice(self, message: Message) -> None:
        try:
            if message.method == "notifications/progress":
                progress = msgspec.json.decode(message.params, type=_Progress)
                waiting = self._waiting.get(progress.progress_token)
                if waiting is not None and waiting.on_progress is not None:
                    self.call_back(waiting.on_progress, progress.progress, progress.total, progress.message)
            elif message.method == "notifications/message":
                if self._on_log is not None:
                    log = msgspec.json.decode(message.params, type=_Log)
                    self.call_back(self._on_log, log.level, log.data, log.logger)
            elif message.method == "notifications/tools/list_changed":
                self._on_list_changed()
            else:
                logger.debug("%s sent %.80r, which is not used", self.link.name, message.method)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._warn("malformed notices", "%s sent a malformed %s: %.200s", self.link.name, message.method, error)

    def call_back(self, function: Callable[..., Any], *args: Any) -> None:
        """Call what the program gave; its fault is its own."""
        if self._callbacks >= MAX_CALLBACKS:
            self._warn(
                "callbacks", "%s tells more than the callbacks keep up with; what it told is dropped", self.link.name
            )
            return
        try:
            result = function(*args)
        except Exception as failure:  # noqa: BLE001 - the program's own
            self._tell_failure(failure)
            return
        if inspect.isawaitable(result):
            self._callbacks += 1
            calling = asyncio.ensure_future(result)
            calling.add_done_callback(self._count_callback)
            self._keep(calling)

    def _count_callback(self, _: object) -> None:
        self._callbacks -= 1

    def _answer(self, message: Message) -> None:
        """Answer a request of the server's: nothing is done for it but to say that one is there."""
        if self._answers >= MAX_ANSWERS or not isinstance(message.id, int | str):
            self._warn("requests", "%s asks too much: a request was ignored", self.link.name)
            return
        if message.method == "ping":
            answer = encode_result(message.id, b"{}")
        else:
            self._warn("requests", "%s asked for %.80r, which this client does not do", self.link.name, message.method)
            answer = encode_error(message.id, MethodNotFound(f"this client does not serve {message.method!r:.80}"))
        self._answers += 1
        telling = self._loop.create_task(self._tell(answer))
        telling.add_done_callback(self._count_answer)
        self._keep(telling)

    def _count_answer(self, _: object) -> None:
        self._answers -= 1

    def _take_back(self, request_id: RequestId) -> None:
        """Tell the server that nobody waits any more; over a stream of its own, closing that says it."""
        if self.link.has_own_streams and self.asking.is_per_request:
            return
        params = encode_json({"requestId": request_id, "reason": "nobody waits for the answer any more"}, what="params")
        self._keep(self._loop.create_task(self._tell(encode_notification("notifications/cancelled", params))))

    async def _tell(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                await self.link.send(message, request_id=None, headers={})
        except (TransportError, ProtocolError, TimeoutError) as error:
            logger.debug("%s could not be told something: %s", self.link.name, error)

    def _tell_failure(self, failure: BaseException) -> None:
        self._warn("callback failures", "a callback of the client failed", exc_info=failure)

    def _warn(self, kind: str, text: str, *args: object, exc_info: BaseException | None = None) -> None:
        """Log a warning; of each kind only the first, the tenth, the hundredth, or a flood would flood the log."""
        count = self._warned[kind] = self._warned.get(kind, 0) + 1
        if str(count).strip("0") == "1":
            logger.warning(text, *args, exc_info=exc_info)

    def _note_unread(self, kind: str, error: TransportError) -> None:
        """Warn of something that may have been an answer, and tell it to whoever waits in vain."""
        self._warn(kind, "%s", error)
        for waiting in self._waiting.values():
            waiting.unread = error

    def _keep(self, task: asyncio.Future[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._tell_failure(failure)

    def _fail(self, waiting: _Waiting, error: Exception) -> None:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)


_OPENING = ("initialize", "server/discover")


def _is_no_notice(head: bytes) -> bool:
    """Tell whether something broken on a request's own stream is its answer: all else there has a method."""
    return head.lstrip(BEFORE_MESSAGE)[:1] in (b"{", b"[") and b'"method"' not in head


def _may_be_answer(head: bytes, *, is_alone: bool) -> bool:
    """Tell whether something broken may be an answer: servers also write logs where only messages belong."""
    head = head.replace(b"\0", b"")  # UTF-16 and UTF-32 have one beside each letter
    start = head.lstrip(BEFORE_MESSAGE)
    if start[:1] == b"":
        return True  # nothing but blanks, more than any message has
    is_message = start[:1] in (b"{", b"[") and b'"jsonrpc"' in head and b'"method"' not in head
    return is_message or (is_alone and start[:1] in (b"{", b"[") and len(head) >= _LONG_HEAD)


_LONG_HEAD = 4096
