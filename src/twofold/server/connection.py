"""One peer: its era, its running calls, its subscriptions. Lines in, messages out; no file or socket here."""

import asyncio
import collections
import contextlib
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from twofold.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    UnsupportedProtocolVersion,
)
from twofold.protocol.headers import PROTOCOL_VERSION, check_request
from twofold.protocol.jsonrpc import (
    Message,
    RequestId,
    decode_batch,
    decode_message,
    encode_error,
    encode_notification,
    encode_result,
    recover_id,
)
from twofold.protocol.messages import Call, CancelledParams, ListName, LogLevel, Params, RequestMeta, SubscriptionFilter
from twofold.protocol.prompt import PROMPT_METHODS
from twofold.protocol.structs import Json
from twofold.protocol.wire import PER_REQUEST_REVISIONS, SUPPORTED_REVISIONS, Codec, Codecs
from twofold.protocol.wire.handshake import HandshakeCodec
from twofold.server.mirrored import check_mirrored
from twofold.server.registry import Registry
from twofold.transports.eager import start_task
from twofold.transports.exchange import Answer, Exchange, LineExchange, Writer

logger = logging.getLogger("twofold")

UNREADABLE_ID = "unreadable"
"""Stands in an error about a message whose id could not be read, where the revision insists on one."""

MAX_BATCH = 1000
"""Messages in one batch."""
BATCH_PLACES = 64
"""Of these, so many at once: a batch takes no more of the server than as many requests by themselves would."""
_ID_TYPES = (int, str)
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
CANCEL_SECONDS = 1.0
"""So long a cancelled call may take to clean up while the server ends."""
QUICK_SECONDS = 0.001
"""A tool whose first step took longer is not begun while answers of others wait to be sent."""
TURN_SECONDS = 0.002
"""First steps that took so long together are enough for one turn of the event loop; what comes then is begun later."""
BATCH = "["
"""Counts as the name of what runs in batches; no tool can have it."""

_decode_call = msgspec.json.Decoder(Call).decode
_decode_params = msgspec.json.Decoder(Params).decode
_decode_cancelled = msgspec.json.Decoder(CancelledParams).decode


class Offer(msgspec.Struct, frozen=True, eq=False):
    """What a server has for its connections while it is live.

    Attributes:
        lifespan: What the server's `lifespan` yielded, else None.
    """

    registry: Registry
    codecs: Codecs
    lifespan: object = None


class Request(msgspec.Struct, frozen=True):
    """A request whose era is known.

    Attributes:
        params: What any request may carry, decoded.
        line: The whole message, for methods with parameters of their own.
        exchange: Its way back.
    """

    id: RequestId
    method: str
    params: Params
    line: bytes
    codec: Codec
    exchange: Exchange


Work: TypeAlias = Callable[[], Awaitable[list[bytes]]]
Pending: TypeAlias = tuple[RequestId, str, Work]
"""Work that is to be done for a request, and the name of its tool or prompt; empty where it is for none."""
Handler: TypeAlias = Callable[["Connection", Request], bytes | Work]
"""Gives the result's bytes, or work that will, in parts, in a task of its own."""


class Subscription(msgspec.Struct, frozen=True):
    """A `subscriptions/listen` that is open: what it wants, where that goes, what ends it."""

    wanted: SubscriptionFilter
    exchange: Exchange
    ended: asyncio.Future[None]


class Connection:
    """The server's end of one connection.

    `receive` takes a line and finishes its exchange when the answer is ready; `answer` gives it back instead. What
    a method does stands in `handlers`, by its name.

    Attributes:
        writer: Where messages go that are about no request.
        session: What `initialize` agreed on.
        told_of_prompts: Whether its answer said that there are prompts: only then are changes of theirs told.
        assumed: What holds without `initialize`, where a server of several processes keeps no sessions.
        on_ended: Called when a request that had to wait has been worked off.
        before_slow: Called before something is begun that may hold up the event loop: what is said already is sent.
    """

    # Over HTTP there is one for each request: what most of them never change is not set for each.
    session: HandshakeCodec | None = None
    told_of_prompts = False
    client_info: dict[str, Json] | None = None
    log_level: LogLevel | None = None
    on_ended: Callable[[], None] | None = None
    before_slow: Callable[[], None] | None = None
    _running_in_batches = 0
    _is_closing = False
    _spent_seconds = 0.0
    _is_turn_spent = False

    def __init__(
        self,
        offer: Offer,
        writer: Writer,
        handlers: Mapping[str, Handler],
        *,
        assumed: HandshakeCodec | None = None,
    ) -> None:
        self.offer = offer
        self.handlers = handlers
        self.writer = writer
        self.assumed = assumed
        self.client_capabilities: dict[str, Json] = {}
        self.subscriptions: dict[RequestId, Subscription] = {}
        self._in_flight: dict[RequestId, asyncio.Task[Any]] = {}
        self._tasks: dict[asyncio.Task[Any], tuple[RequestId | None, str, Exchange]] = {}
        self._stopped: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._due: set[ListName] = set()
        self._lines = LineExchange(writer)
        self._posted: collections.deque[None] = collections.deque()
        self._quick: set[str] = set()

    @property
    def running(self) -> int:
        """How many requests are being worked on; subscriptions only wait."""
        return len(self._tasks) - len(self.subscriptions) + self._running_in_batches

    def receive(self, line: bytes, exchange: Exchange | None = None) -> None:
        """Take one line from the peer.

        Args:
            line: The bytes of a message, or of a batch.
            exchange: Its way back; None where everything goes to the connection's writer.
        """
        exchange = exchange or self._lines
        if is_batch(line):
            self._spawn(self._respond_to_batch(line, exchange), None, exchange, name=BATCH)
            return
        pending = self._open(line, exchange)
        if pending is None or isinstance(pending, Answer):
            exchange.finish(pending)
        else:
            request_id, name, work = pending
            self._spawn(self._respond(request_id, work, exchange, name), request_id, exchange, name=name)

    async def answer(self, line: bytes, exchange: Exchange | None = None) -> Answer | None:
        """Take one line and give back the answer to it, or None if none is owed; the work is done in this task."""
        exchange = exchange or self._lines
        if is_batch(line):
            return await self._answer_batch(line, exchange)
        pending = self._open(line, exchange)
        if pending is None or isinstance(pending, Answer):
            return pending
        request_id, _, work = pending
        return await self._complete(request_id, work, exchange)

    def running_of(self, name: str) -> int:
        """Tell how many requests of a tool or prompt, or of `BATCH`, are being worked on; asked only under load."""
        running = sum(name == each for _, each, _ in self._tasks.values())
        return running + self._running_in_batches if name == BATCH else running

    def is_running(self, request_id: object) -> bool:
        """Tell whether a request of this id is being worked on."""
        return request_id in self._in_flight

    def send(self, writer: Writer, method: str, params: bytes) -> None:
        """Send a notification, from any thread."""
        message = encode_notification(method, params)
        if threading.get_ident() == self._thread:
            writer.write(message)
        else:
            self._posted.append(None)  # of a deque, both ends are atomic
            self._loop.call_soon_threadsafe(self._write_posted, writer, message)

    def release_stream(self, exchange: Exchange) -> None:
        """Let go of a request's way back for now, from any thread, after what was sent on it."""
        if threading.get_ident() == self._thread:
            exchange.close_stream()
        else:
            self._loop.call_soon_threadsafe(exchange.close_stream)

    def _write_posted(self, writer: Writer, message: bytes) -> None:
        self._posted.pop()
        writer.write(message)

    def announce(self, changed: ListName) -> None:
        """Tell the peer, if it asked, that a list has changed, from any thread; many changes at once are told once."""
        if changed not in self._due and not self._loop.is_closed():  # its loop may have ended without a goodbye
            self._due.add(changed)
            self._loop.call_soon_threadsafe(self._announce, changed)

    def refuse(self, request_id: RequestId | None, error: ProtocolError) -> None:
        """Answer, with an error, a line that was not handed over; None if its id is not known."""
        self.writer.write(self._refuse(request_id, error).body)

    def end_subscriptions(self) -> None:
        """Answer every `subscriptions/listen`, which says that it has ended in order."""
        for subscription in self.subscriptions.values():
            if not subscription.ended.done():
                subscription.ended.set_result(None)

    async def wait_for_any(self, timeout_seconds: float) -> None:
        """Wait until a request has been worked off, or the time is over."""
        await asyncio.wait(self._tasks, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)

    async def close(self, *, grace_seconds: float, given_up: int = 0) -> None:
        """End subscriptions, let running calls finish for a while, cancel the rest.

        Args:
            grace_seconds: How long they may go on; what does not heed its cancellation is left as it is.
            given_up: How many more were given up before they were begun.
        """
        self.end_subscriptions()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_seconds)
        self._is_closing = True
        if self._tasks or given_up:
            logger.warning("a connection ends: %d of its calls were given up", len(self._tasks) + given_up)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CANCEL_SECONDS)
        for task, (request_id, _, exchange) in list(
            self._tasks.items()
        ):  # what heeds no cancellation: its peer is told
            if request_id is not None and self._in_flight.get(request_id) is task:
                del self._in_flight[request_id]  # from now on its own answer is not wanted
                exchange.finish(self._give_up(request_id))

    def _open(self, line: bytes, exchange: Exchange, *, in_batch: bool = False) -> Answer | Pending | None:
        """Read a line as far as its handler: an answer, work that will give one, or nothing."""
        try:
            call: Call | None = _decode_call(line)
        except _UNREADABLE:
            call = None
        if call is None or not call.method or type(call.id) not in _ID_TYPES:
            return self._open_other(line, exchange)
        request_id: RequestId = call.id  # type: ignore[assignment]  # as was asked above
        try:
            codec = self._accept(call, exchange, in_batch=in_batch)
            request = Request(request_id, call.method, call.params, line, codec, exchange)
            result = self.handlers[call.method](self, request)
            name = call.params.name
            if name and not isinstance(result, bytes):
                exchange.admit(name)
        except ProtocolError as error:
            return Answer(encode_error(request_id, error), error)
        except Exception:  # noqa: BLE001 - the connection loop: one request's fault must not swallow the next ones
            return self._answer_fault(request_id, call.method)
        if isinstance(result, bytes):
            return Answer(encode_result(request_id, result))
        return request_id, name, result

    def _open_other(self, line: bytes, exchange: Exchange) -> Answer | None:
        """Read what is no request, or none that can be served: its faults are named one by one."""
        try:
            message = decode_message(line)
        except ProtocolError as error:
            return self._refuse(recover_id(line), error)
        request_id = message.id
        if not message.method or request_id is None or isinstance(request_id, msgspec.UnsetType):
            return self._take_notice(message, exchange)
        fault = "nested too deeply"
        try:
            _decode_params(message.params)
        except _UNREADABLE as error:
            fault = str(error)
        refused = InvalidParams(f"{message.method}: the params do not fit: {fault}")
        return Answer(encode_error(request_id, refused), refused)

    def _accept(self, call: Call, exchange: Exchange, *, in_batch: bool) -> Codec:
        """Tell the era of a request; refuse what it does not have, and an id that is in use."""
        headers = exchange.headers
        method, meta = call.method, call.params.meta
        if meta.protocol_version in PER_REQUEST_REVISIONS and meta.client_capabilities is not None:
            codec: Codec = self.offer.codecs.per_request
        else:
            codec = self._find_codec(method, meta, headers)
        if in_batch and codec is not self.handshake:
            raise InvalidRequest(f"{method}: a batch holds messages of its session's revision only")
        if headers is not None and codec is self.offer.codecs.per_request:
            check_mirrored(headers, method=method, params=call.params, registry=self.offer.registry)
        if method not in codec.methods or not self._serves(method):
            raise MethodNotFound(f"method {method!r:.80} is not served in revision {codec.revision}")
        if call.id in self._in_flight:
            raise InvalidRequest(f"the id {call.id!r:.80} is in use by a request that is not answered yet")
        return codec

    def _serves(self, method: str) -> bool:
        """Tell whether this server has a method in any revision; those of prompts, once there was a prompt."""
        return method in self.handlers and (method not in PROMPT_METHODS or self.offer.registry.prompts.was_used)

    @property
    def handshake(self) -> HandshakeCodec | None:
        """What holds for a request that does not carry its own version."""
        return self.session or self.assumed

    def _find_codec(self, method: str, meta: RequestMeta, headers: Mapping[bytes, bytes] | None) -> Codec:
        """Tell the era: a version in `_meta` is the request's own, else the session's holds."""
        if not meta.protocol_version:
            if headers is not None:
                self._check_version_header(method, headers)
            return self._session_codec(method)
        if meta.protocol_version not in PER_REQUEST_REVISIONS:
            if headers is not None:  # first of all the two have to agree
                check_request(headers, protocol_version=meta.protocol_version, method=method, name=None)
            raise UnsupportedProtocolVersion(
                "Unsupported protocol version"
                + ("; it opens with initialize" if meta.protocol_version in self.offer.codecs.handshake else ""),
                {"supported": list(SUPPORTED_REVISIONS), "requested": meta.protocol_version},
            )
        if meta.client_capabilities is None:
            raise InvalidParams("_meta lacks io.modelcontextprotocol/clientCapabilities, an object; {} says none")
        return self.offer.codecs.per_request

    def _check_version_header(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request without a version of its own whose header names one that needs it, or that nobody speaks."""
        said = headers.get(PROTOCOL_VERSION)
        if said is None:
            return
        version = said.decode("latin-1").strip()
        if version in PER_REQUEST_REVISIONS:
            raise InvalidParams(
                f"{method}: _meta lacks io.modelcontextprotocol/protocolVersion (and clientCapabilities), which each "
                f"request of revision {version} carries"
            )
        if version not in self.offer.codecs.handshake:
            raise UnsupportedProtocolVersion(
                f"MCP-Protocol-Version: unsupported protocol version {version!r:.80}",
                {"supported": list(SUPPORTED_REVISIONS), "requested": version[:80]},
            )

    def _session_codec(self, method: str) -> Codec:
        if self.handshake is not None:
            return self.handshake
        if method in ("initialize", "ping"):
            return self.offer.codecs.for_handshake("")
        if not self._serves(method):
            raise MethodNotFound(f"method {method!r:.80} is not served in any revision")
        raise InvalidParams(
            f"{method}: _meta lacks io.modelcontextprotocol/protocolVersion (and clientCapabilities), and no session "
            "was opened: send them with each request, or send initialize first"
        )

    def _take_notice(self, message: Message, exchange: Exchange) -> Answer | None:
        """Take what needs no answer; a response over HTTP outside a session is sent by mistake, and told so."""
        if message.method == "notifications/cancelled":
            request_id = read_cancelled(message)
            task = self._in_flight.pop(request_id, None) if request_id is not None else None
            if request_id is not None and task is not None:
                self.subscriptions.pop(request_id, None)  # a task that has not begun cannot do it itself
                self._stopped.add(task)
                task.cancel()
        elif not message.method:
            if exchange.headers is not None and self.handshake is None:
                return self._refuse(None, InvalidRequest("a response was sent, but this server asks nothing"))
            logger.warning("a response to no request of ours was ignored")
        return None

    async def _complete(self, request_id: RequestId, work: Work, exchange: Exchange) -> Answer | None:
        """Do a request's work in this task; None if it was cancelled meanwhile, since then nobody wants it."""
        task = asyncio.current_task(self._loop)
        if task is not None:
            self._in_flight[request_id] = task
        try:
            answer = Answer(encode_result(request_id, *await work()))
            if self._posted:
                await asyncio.sleep(0)  # what threads have sent comes before the answer
            if task is not None and task.cancelling() and task not in self._stopped and not exchange.is_taken_back:
                await _absorb_cancellation(task)  # the tool cancelled its task, and went on without waiting
        except ProtocolError as error:
            answer = Answer(encode_error(request_id, error), error)
        except asyncio.CancelledError:
            if task is None or task in self._stopped or exchange.is_taken_back:
                raise
            task.uncancel()
            if self._ends(exchange):
                answer = self._give_up(request_id)
            else:  # nobody outside did: the tool cancelled the task it runs in
                answer = self._answer_fault(request_id, "a request that cancelled itself")
        except Exception:  # noqa: BLE001 - the connection loop: whoever asked is answered
            answer = self._answer_fault(request_id, "a request")
        finally:
            self._stopped.discard(task)  # of a batch, nobody else would
            is_wanted = self._in_flight.get(request_id) is task
            if is_wanted:
                del self._in_flight[request_id]
        return answer if is_wanted else None

    @staticmethod
    def _give_up(request_id: RequestId) -> Answer:
        told = InternalError("the server ends: the call was given up before it had an answer")
        return Answer(encode_error(request_id, told), told)

    def _answer_fault(self, request_id: RequestId, what: str) -> Answer:
        reference = os.urandom(4).hex()
        logger.exception("a fault of the server's own while answering %s, reference %s", what, reference)
        error = InternalError(f"the server failed to answer (reference {reference})")
        return Answer(encode_error(request_id, error), error)

    async def _respond(self, request_id: RequestId, work: Work, exchange: Exchange, name: str) -> None:
        exchange.finish(await self._complete(request_id, work, exchange))
        if name not in self._quick and self.before_slow is not None:
            self.before_slow()  # the next one may be as slow
        await exchange.drain()

    async def _respond_to_batch(self, line: bytes, exchange: Exchange) -> None:
        exchange.finish(await self._answer_batch(line, exchange))
        await exchange.drain()

    async def _answer_batch(self, line: bytes, exchange: Exchange) -> Answer | None:
        """Answer a batch with one array, its requests having run side by side."""
        spoken = self.handshake
        try:
            if spoken is None or not spoken.carries.has_batches:
                when = "before initialize" if spoken is None else f"in revision {spoken.revision}"
                raise InvalidRequest(f"batches do not exist {when}; send each message on its own")
            elements = decode_batch(line)
            if len(elements) > MAX_BATCH:
                raise InvalidRequest(
                    f"a batch holds at most {MAX_BATCH} messages, got {len(elements)}; send it in parts"
                )
        except ProtocolError as error:
            return self._refuse(None, error)
        places = asyncio.Semaphore(BATCH_PLACES)
        taken = min(len(elements), BATCH_PLACES) - 1  # the batch's own task counts as one already
        self._running_in_batches += taken
        tasks = [self._loop.create_task(self._answer_element(each, exchange, places)) for each in elements]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)
            task = asyncio.current_task(self._loop)
            if task is None or not self._ends(exchange):
                raise
            task.uncancel()  # each of its requests was told
        finally:
            self._running_in_batches -= taken
        owed = [answer.body for answer in (each.result() for each in tasks) if answer is not None]
        return Answer(b"[" + b",".join(owed) + b"]") if owed else None

    async def _answer_element(self, element: bytes, exchange: Exchange, places: asyncio.Semaphore) -> Answer | None:
        """Answer one message of a batch, in a task of its own, so that it can be cancelled alone."""
        try:
            async with places:
                pending = self._open(element, exchange, in_batch=True)
                if pending is None or isinstance(pending, Answer):
                    return pending
                request_id, _, work = pending
                return await self._complete(request_id, work, exchange)
        except asyncio.CancelledError:
            return self._give_up_element(element) if self._ends(exchange) else None

    def _give_up_element(self, element: bytes) -> Answer | None:
        """Answer what had not begun when the server ended; a notification is owed nothing."""
        try:
            message = decode_message(element)
        except ProtocolError as error:
            return self._refuse(recover_id(element), error)
        if not message.method or not isinstance(message.id, int | str):
            return None
        return self._give_up(message.id)

    def _ends(self, exchange: Exchange) -> bool:
        """Tell whether a cancellation comes from the server's own end."""
        return self._is_closing or exchange.is_ending

    def _spawn(
        self, work: Coroutine[Any, Any, None], request_id: RequestId | None, exchange: Exchange, *, name: str
    ) -> None:
        if asyncio.current_task(self._loop) is None and not self._is_turn_spent:  # else a client in this process calls
            if name not in self._quick and self.before_slow is not None:
                self.before_slow()
            began = time.perf_counter()
            task = start_task(work, self._loop)
            self._note_step(name, time.perf_counter() - began)
            if task.done():
                self._look_after(task, exchange)
                return
        else:
            task = self._loop.create_task(work)
            if request_id is not None and not task.done():  # else it does, or has done, so itself
                self._in_flight[request_id] = task
        self._tasks[task] = request_id, name, exchange
        task.add_done_callback(partial(self._end_task, exchange))

    def _note_step(self, name: str, seconds: float) -> None:
        """Note how long a first step took: what is begun at once must not keep the event loop from everything else."""
        if seconds < QUICK_SECONDS:
            self._quick.add(name)
        else:
            self._quick.discard(name)
        self._spent_seconds += seconds
        if self._spent_seconds > TURN_SECONDS:
            self._is_turn_spent = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._spent_seconds, self._is_turn_spent = 0.0, False

    def _end_task(self, exchange: Exchange, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        self._stopped.discard(task)
        if self.on_ended is not None:
            self.on_ended()
        self._look_after(task, exchange)

    def _look_after(self, task: asyncio.Task[Any], exchange: Exchange) -> None:
        """See that a request whose task has ended is not left open."""
        if task.cancelled():
            exchange.cancel()  # also where it was cancelled before it began
        elif (fault := task.exception()) is not None:
            logger.error("a fault of the server's own while answering", exc_info=fault)
            exchange.cancel()

    def _refuse(self, request_id: RequestId | None, error: ProtocolError) -> Answer:
        """Answer what is no message."""
        if request_id is None and self.handshake is not None and not self.handshake.carries.has_error_without_id:
            request_id = UNREADABLE_ID
        return Answer(encode_error(request_id, error), error, is_unreadable=True)

    def _announce(self, changed: ListName) -> None:
        self._due.discard(changed)
        method = f"notifications/{changed}/list_changed"
        if self.session is not None and (changed == "tools" or self.told_of_prompts):
            self.send(self.writer, method, b"{}")
        for request_id, subscription in self.subscriptions.items():
            if subscription.wanted.wants(changed):
                self.send(subscription.exchange, method, self.offer.codecs.per_request.subscribed(request_id))


async def _absorb_cancellation(task: asyncio.Task[Any]) -> None:
    """Take a cancellation that is still to come."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    task.uncancel()


def is_batch(line: bytes) -> bool:
    """Tell a batch from a message, by its first byte."""
    return line.lstrip()[:1] == b"["


def read_cancelled(message: Message) -> RequestId | None:
    """Read which request a `notifications/cancelled` takes back; None if it does not say."""
    try:
        cancelled = _decode_cancelled(message.params)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        logger.warning("a malformed notifications/cancelled was ignored: %s", error)
        return None
    logger.debug("request %r was cancelled: %s", cancelled.request_id, cancelled.reason)
    return cancelled.request_id
