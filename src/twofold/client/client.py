"""`Client`: one server, whatever it is reached by, held to its word."""

import asyncio
import importlib.metadata
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from twofold.client.cache import ToolCache
from twofold.client.conversation import AnswerTooDeep, Conversation, OnLog, OnProgress
from twofold.client.listing import ListedTool, Listing, ToolListing
from twofold.client.negotiate import AUTO, REVISION_CHOICES, Introduction, ServerDescription, negotiate
from twofold.client.results import (
    Check,
    CheckedResult,
    check_result,
    find_validator,
    raise_unless_kept,
    read_as,
    read_questions,
    read_result,
)
from twofold.client.schema_fetching import SchemaFetching
from twofold.client.targets import check_target
from twofold.contract.verdict import Verdict
from twofold.errors import (
    HeaderMismatch,
    HttpStatusError,
    InputRequired,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    SessionGone,
    TransportError,
    TwofoldError,
)
from twofold.protocol.headers import mirror_parameters
from twofold.protocol.messages import Implementation, LogLevel
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.wire import HANDSHAKE_REVISIONS
from twofold.tools.workers import Workers
from twofold.transports.child_process import ChildProcessLink, StdioServer
from twofold.transports.deadline import Deadline, notice_wait
from twofold.transports.link import Link
from twofold.transports.memory import MemoryLink, ServedInMemory

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger("twofold")

T = TypeVar("T")
Target: TypeAlias = "str | StdioServer | ServedInMemory"

LARGE_BYTES = 64 * 1024
"""Larger results are judged in a thread, off the event loop."""
_REFUSED_BEFORE = frozenset({400, 401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 421, 429, 431, 307, 308})
"""Statuses of a request that was not looked at; any other may come from a proxy that had handed it on."""
OPEN_SECONDS = 30.0
"""So long opening a connection may take, where a call may take longer."""

_NO_ARGUMENTS = msgspec.Raw(b"{}")

_workers = Workers()


class Client:
    """A client of one server.

    ```python
    async with Client(StdioServer(command="python", args=["shop.py"])) as client:
        result = await client.call_tool("product_details", {"name": "Travel mug"})
        print(result.structured_content, result.verdict)
    ```

    Args:
        target: A URL, a `StdioServer`, or an `MCPServer` in this process, with which the same bytes are exchanged.
        revision: `"auto"` finds out which the server speaks; or one, such as `"2025-11-25"`.
        timeout_seconds: How long an answer is waited for, where a call does not say.
        check: What is done about a result that breaks its tool's contract: `"raise"` a `ContractError`, `"mark"` it
            in `result.verdict`, or `"off"`: do not look.
        client_info: Who the client says it is.
        log_level: The least severe log message wanted; None for none.
        on_log: Called with level, data and logger of each; may be async.
        on_tools_changed: Called when the server says that its tools have changed.
        http_client: Over HTTP, the client to send with: proxies, certificates, authentication are its affair.
        auth: Over HTTP, what authenticates each request.
        http_headers: Over HTTP, sent with each request.
        schema_fetching: What may be fetched where an output schema refers to other documents; None for nothing at all.

    Attributes:
        server: What the server said of itself; None before the connection is open.
    """

    def __init__(
        self,
        target: Target,
        *,
        revision: str = AUTO,
        timeout_seconds: float = 60.0,
        check: Check = "raise",
        client_info: Implementation | None = None,
        log_level: LogLevel | None = None,
        on_log: OnLog | None = None,
        on_tools_changed: Callable[[], Awaitable[None] | None] | None = None,
        http_client: "httpx2.AsyncClient | None" = None,
        auth: "httpx2.Auth | None" = None,
        http_headers: Mapping[str, str] | None = None,
        schema_fetching: SchemaFetching | None = None,
    ) -> None:
        if revision not in REVISION_CHOICES:
            raise ValueError(f"revision: expected one of {', '.join(REVISION_CHOICES)}, got {revision!r:.80}")
        _check_choice(check)
        _check_seconds(timeout_seconds)
        http = {"http_client": http_client, "auth": auth, "http_headers": http_headers}
        self._make_link = _choose_link(target, {name: each for name, each in http.items() if each is not None})
        self._revision = revision
        self._timeout_seconds = timeout_seconds
        self._check = check
        self._introduction = Introduction(client_info or _introduce(), {}, log_level)
        self._on_log = on_log
        self._on_tools_changed = on_tools_changed
        if not isinstance(schema_fetching, SchemaFetching | None):
            raise TypeError(f"schema_fetching: expected a SchemaFetching, got {type(schema_fetching).__name__}")
        self._schema_fetcher = schema_fetching.open_fetcher() if schema_fetching is not None else None
        self._open_conversation: Conversation | None = None
        self._cache: ToolCache | None = None
        self._session_lock = asyncio.Lock()
        self._generation = 0  # of sessions: which one a request was sent in
        self._renewing: asyncio.Task[None] | None = None
        self._found: str | None = None
        self._was_open = False
        self.server: ServerDescription | None = None

    async def __aenter__(self) -> "Client":
        """Open the connection and agree on a revision.

        Raises:
            TransportError: It cannot be opened, or there is no answer.
            ProtocolError: The server refuses.
        """
        if self._open_conversation is not None:
            raise RuntimeError("the client is open already")
        seconds = min(self._timeout_seconds, OPEN_SECONDS)
        self._session_lock, self._was_open = asyncio.Lock(), True
        try:
            async with asyncio.timeout(3 * seconds) as limit:  # a probe, the opening, what is asked after it
                self.server = await self._agree(seconds)
                await self._ask_to_be_told(self._conversation, self.server, seconds)
        except TimeoutError:
            await self.close()
            if not limit.expired():
                raise
            raise TransportError(f"the connection could not be opened within {3 * seconds:.3g} seconds") from None
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; whoever waits for an answer is told. Leaves no process, task or socket behind."""
        conversation = self._open_conversation
        if conversation is not None:
            try:
                await conversation.close()
            finally:
                if self._open_conversation is conversation:
                    self._open_conversation = None

    @property
    def revision(self) -> str | None:
        """The revision that is spoken; None before the connection is open."""
        return None if self.server is None else self.server.revision

    @property
    def rejected_tools(self) -> dict[str, str]:
        """Tools that were left out of the listing, by name, each with the reason."""
        return {} if self._cache is None else self._cache.rejected

    async def list_tools(self, *, timeout_seconds: float | None = None) -> ToolListing:
        """List the server's tools, all pages in one; again only if the listing is no longer fresh.

        Args:
            timeout_seconds: For all of them.

        Raises:
            TransportError: There was no answer.
            ProtocolError: The server answered with an error.
        """
        seconds = self._timeout_seconds if timeout_seconds is None else _check_seconds(timeout_seconds)
        try:
            async with asyncio.timeout(seconds) as deadline:
                return (await self._in_session(self._fresh_listing)).tools
        except TimeoutError:
            if not deadline.expired():
                raise
            raise TransportError(
                f"{self._conversation.link.name} did not list its tools within {seconds:.3g} seconds"
            ) from None

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Json] | None = None,
        *,
        timeout_seconds: float | None = None,
        as_type: Any = None,
        on_progress: OnProgress | None = None,
        check: Check | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> CheckedResult:
        """Call a tool, and judge its result by the schema that the server published.

        Args:
            name: The tool's name.
            arguments: JSON values by name, or what has a form in JSON: pydantic models (by their aliases), dataclasses,
                dates, times, durations, UUIDs, decimals, enums, sets, and bytes as base64.
            timeout_seconds: For the whole call, judging included.
            as_type: A type the structure is rebuilt as: `result.value`, which stays None where the tool reported an
                error (`is_error`).
            on_progress: Called with progress, total and message; may be async.
            check: As for the client.
            meta: Sent along in `_meta`.

        Returns:
            The result; of an error (`is_error`) too, which is never judged.

        Raises:
            ContractError: The result breaks its contract, or cannot be judged; it carries the result.
            ResultTypeMismatch: The result is not of the type asked for; it carries the result.
            OutcomeUnknown: The call may have been carried out, and there is no answer.
            InputRequired: The server asks something first.
            TransportError: The call was certainly not carried out.
            ProtocolError: The server answered with an error of the protocol.
            TypeError: The arguments, or `meta`, cannot be written as JSON.
        """
        check = self._check if check is None else _check_choice(check)
        seconds = self._timeout_seconds if timeout_seconds is None else _check_seconds(timeout_seconds)
        deadline = asyncio.get_running_loop().time() + seconds
        if as_type is not None:
            find_validator(as_type)  # what cannot be read as such is known before anything is done
        if meta:
            meta = msgspec.json.decode(_encode_given(name, meta, what="meta"))
        call = _Call(name, _encode_arguments(name, arguments), on_progress, meta)
        raw = await self._send_call(call, deadline)
        limit = Deadline(deadline - asyncio.get_running_loop().time())
        try:
            result = await notice_wait(self._judge(call, raw, check, deadline), limit.start)
        except asyncio.CancelledError:
            if not limit.take_back():
                raise
            result = self._unjudged(call.name, raw, seconds)
        finally:
            limit.stop()
        result = raise_unless_kept(result, tool_name=name, check=check)
        return result if as_type is None else await self._read_as(result, as_type, name)

    def _unjudged(self, name: str, raw: msgspec.Raw, seconds: float) -> CheckedResult:
        """Give a result that there was no time to judge: it is there, and that is said."""
        result = check_result(read_result(raw), self._tools.known(name), tool_name=name, is_judged=False)
        verdict = Verdict("uncheckable", reason=f"there was no time to judge it within {seconds:.3g} seconds")
        return msgspec.structs.replace(result, verdict=verdict)

    async def _read_as(self, result: CheckedResult, as_type: Any, name: str) -> CheckedResult:
        if len(result.structured_json) > LARGE_BYTES:
            read: CheckedResult = await _workers.submit(partial(read_as, result, as_type, tool_name=name))
            return read
        return read_as(result, as_type, tool_name=name)

    async def _agree(self, seconds: float) -> ServerDescription:
        """Open the connection and agree on a revision: first the one that was found earlier, if any."""
        found, self._found = self._found, None
        if found is not None and found != self._revision:
            try:
                return await self._agree_on(found, seconds)
            except (ProtocolError, TransportError) as error:
                logger.info("the server no longer speaks %s: %s", found, error)
                await self.close()
        return await self._agree_on(self._revision, seconds)

    async def _agree_on(self, revision: str, seconds: float) -> ServerDescription:
        """Open the connection and agree; anew, for a server that takes a probe amiss."""
        conversation = await self._open()
        server = await negotiate(conversation, self._introduction, revision=revision, timeout_seconds=seconds)
        if server is None:
            await conversation.close()
            conversation = await self._open()
            server = await negotiate(
                conversation, self._introduction, revision=HANDSHAKE_REVISIONS[0], timeout_seconds=seconds
            )
        if server is None:
            raise TransportError(f"{conversation.link.name} ended the connection twice before it said who it is")
        self._found = server.revision
        return server

    async def _ask_to_be_told(self, conversation: Conversation, server: ServerDescription, seconds: float) -> None:
        """Ask for log messages and for changes of the list, where the revision wants to be asked for them."""
        log_level = self._introduction.log_level
        if conversation.asking.is_per_request:
            # Over HTTP it takes a connection of its own: only for a program that wants to know.
            is_wanted = self._on_tools_changed is not None or not conversation.link.has_own_streams
            tools = server.capabilities.get("tools")
            if is_wanted and isinstance(tools, dict) and tools.get("listChanged"):
                conversation.listen({"notifications": {"toolsListChanged": True}})
        elif log_level is not None and "logging" in server.capabilities:
            try:
                await conversation.request("logging/setLevel", {"level": log_level}, timeout_seconds=seconds)
            except (ProtocolError, TransportError) as error:
                logger.warning("%s sends no log messages: %s", conversation.link.name, error)

    async def _open(self) -> Conversation:
        link = self._make_link()
        asking = self._introduction.asking("2026-07-28")
        conversation = Conversation(link, asking, on_log=self._on_log, on_list_changed=self._take_change)
        self._open_conversation = conversation
        self._cache = ToolCache(link.name, self._ask_page)
        await link.open(conversation)
        return conversation

    async def _in_session(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in a session that lives; where the server has ended it, once more in a new one."""
        generation = self._generation
        if self._conversation.link.has_lost_session:
            await self._renew(generation)
        try:
            return await work()
        except SessionGone:
            await self._renew(generation)
            return await work()

    async def _renew(self, generation: int) -> None:
        """Have a new session begun, once for all who miss the old one; it goes on if one of them is cancelled."""
        async with self._session_lock:
            if self._generation == generation or self._conversation.link.has_lost_session:
                if self._renewing is None or self._renewing.done():
                    self._renewing = asyncio.create_task(self._begin_anew())
                await asyncio.shield(self._renewing)

    async def _begin_anew(self) -> None:
        conversation = self._conversation
        seconds = min(self._timeout_seconds, OPEN_SECONDS)
        revision = self.server.revision if self.server is not None else self._revision
        async with asyncio.timeout(2 * seconds):
            server = await negotiate(conversation, self._introduction, revision=revision, timeout_seconds=seconds)
            if server is not None:
                self.server = server
                await self._ask_to_be_told(conversation, server, seconds)
        self._generation += 1
        self._take_change()

    @property
    def _conversation(self) -> Conversation:
        if self._open_conversation is None:
            if self._was_open:
                raise NotSent("the client was closed")
            raise RuntimeError("the client is not open; use it in 'async with Client(…) as client:'")
        return self._open_conversation

    async def _send_call(self, call: "_Call", deadline: float) -> msgspec.Raw:
        """Send a call; once more, after reading the list again, if the server finds that headers are missing."""
        await self._find_in_time(call.name, deadline)
        reason = self._tools.rejected.get(call.name) if self._tools.known(call.name) is None else None
        if reason is not None:
            raise NotSent(f"tool {call.name!r:.80} was left out of the listing, so it is not called: {reason}")
        try:
            return await self._in_session(partial(self._ask, call, deadline))
        except ProtocolError as error:
            if error.code != HeaderMismatch.fixed_code or not self._mirrors:
                raise
            logger.info("%s: %s; its tools are listed again", self._conversation.link.name, error.message)
        self._tools.mark_changed()
        await self._find_in_time(call.name, deadline)
        return await self._ask(call, deadline)

    async def _find_in_time(self, name: str, deadline: float) -> None:
        """Have the listing read before a call is sent, within the call's time."""
        if not (self._tools.is_due or self._conversation.link.has_lost_session):
            return
        try:
            async with asyncio.timeout_at(deadline) as limit:
                await self._in_session(partial(self._find, name))
        except TimeoutError:
            if not limit.expired():
                raise
            raise NotSent(f"tool {name!r:.80} was not called: the time was over before its listing was read") from None

    async def _ask(self, call: "_Call", deadline: float) -> msgspec.Raw:
        conversation = self._conversation
        listed = self._tools.known(call.name)
        mirrored: Mapping[str, str] = {}
        if listed is not None and self._mirrors:
            # read from what is sent, so that headers and body say the same
            mirrored = mirror_parameters(listed.parameters, msgspec.json.decode(call.arguments))
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise NotSent(f"tool {call.name!r:.80} was not called: the time was over before")
        try:
            return await conversation.request(
                "tools/call",
                {"name": call.name, "arguments": call.arguments},
                timeout_seconds=left,
                name=call.name,
                mirrored=mirrored,
                on_progress=call.on_progress,
                meta=call.meta,
            )
        except NotSent:
            raise
        except HttpStatusError as error:
            if error.status in _REFUSED_BEFORE:
                raise
            raise _lost(call.name, error) from error
        except TransportError as error:
            raise _lost(call.name, error) from error

    async def _judge(self, call: "_Call", raw: msgspec.Raw, check: Check, deadline: float) -> CheckedResult:
        """Read and judge a result; by the newest schema before it is found to break an old one."""
        result = await self._check_result(call.name, raw, check)
        if not result.verdict.is_kept and self._tools.is_stale():
            result = await self._judge_anew(call.name, raw, check, result)
        if result.verdict.status == "uncheckable" and await self._complete_schema(call.name, deadline):
            result = await self._check_result(call.name, raw, check)
        for note in result.notes:
            logger.warning("%s", note)
        return result

    async def _judge_anew(self, name: str, raw: msgspec.Raw, check: Check, before: CheckedResult) -> CheckedResult:
        """Judge by a fresh listing; where there is none, by the old one: the call was carried out all the same."""
        self._tools.mark_changed()
        try:
            await self._in_session(partial(self._find, name))
        except TwofoldError as error:
            logger.warning("the result of tool %.80r is judged by an old listing: %s", name, error)
            return before
        return await self._check_result(name, raw, check)

    async def _check_result(self, name: str, raw: msgspec.Raw, check: Check) -> CheckedResult:
        """Read and judge once, off the loop where that takes long."""
        listed = self._tools.known(name)

        def work() -> CheckedResult:
            try:
                read = read_result(raw)
                if read.result_type != "complete":
                    raise _unfinished(name, read.result_type, raw)
                return check_result(read, listed, tool_name=name, is_judged=check != "off")
            except ValueError as error:
                said = f"tool {name!r:.80} has answered, but its result cannot be read: {error}"
                raise OutcomeUnknown(said, tool=name, reason=str(error)) from error

        return await _workers.submit(work) if len(raw) > LARGE_BYTES else work()

    async def _complete_schema(self, name: str, deadline: float) -> bool:
        """Fetch what a tool's output schema refers to, where the program allows it; tell whether it is now another."""
        listed = self._tools.known(name)
        if self._schema_fetcher is None or listed is None or listed.output is None:
            return False
        left = deadline - asyncio.get_running_loop().time()
        return await self._schema_fetcher.complete(listed.output, timeout_seconds=left)

    # The listing.

    @property
    def _tools(self) -> ToolCache:
        if self._cache is None:
            raise RuntimeError("the client is not open; use it in 'async with Client(…) as client:'")
        return self._cache

    @property
    def _mirrors(self) -> bool:
        """Whether parameters are mirrored into headers, so that tools which break its rules are left out."""
        conversation = self._conversation
        return conversation.link.has_own_streams and conversation.asking.is_per_request

    async def _find(self, name: str) -> ListedTool | None:
        return await self._tools.find(name, drops_bad_headers=self._mirrors)

    async def _fresh_listing(self) -> Listing:
        return await self._tools.fresh(drops_bad_headers=self._mirrors)

    async def _ask_page(self, cursor: str | None) -> msgspec.Raw:
        params: dict[str, Json] = {} if cursor is None else {"cursor": cursor}
        try:
            return await self._conversation.request("tools/list", params, timeout_seconds=self._timeout_seconds)
        except AnswerTooDeep as error:
            if not error.result:
                raise
            return error.result  # which costs the definitions it was cut in

    def _take_change(self) -> None:
        if self._cache is not None:
            self._cache.mark_changed()
        if self._on_tools_changed is not None and self._open_conversation is not None:
            self._open_conversation.call_back(self._on_tools_changed)


class _Call(msgspec.Struct, frozen=True):
    """A call, as the program asked for it."""

    name: str
    arguments: msgspec.Raw
    on_progress: OnProgress | None
    meta: Mapping[str, Json] | None


def _introduce() -> Implementation:
    """Say who asks, where the program does not."""
    return Implementation(name="twofold", version=importlib.metadata.version("twofold"))


def _lost(name: str, error: TransportError) -> OutcomeUnknown:
    said = f"tool {name!r:.80} may have been called, but there is no answer: {error}"
    return OutcomeUnknown(said, tool=name, reason=str(error))


def _unfinished(name: str, kind: str, raw: msgspec.Raw) -> InputRequired | OutcomeUnknown:
    """Say what became of a call whose answer is no result yet."""
    if kind != "input_required":
        said = f"tool {name!r:.80} has answered with a result of the type {kind!r:.80}, which is not known here"
        return OutcomeUnknown(said, tool=name, reason="a result of an unknown type")
    requests = read_questions(raw)
    asked = ", ".join(
        f"{key!r:.40} ({each.get('method', '?')!s:.40})" if isinstance(each, dict) else f"{key!r:.40}"
        for key, each in list(requests.items())[:5]
    )
    said = f"tool {name!r:.80} asks something before it goes on, and this client answers no questions: {asked or '?'}"
    return InputRequired(said, tool=name, requests=requests)


def _choose_link(target: Any, http: dict[str, Any]) -> Callable[[], Link]:
    """Decide what a target is reached by.

    Raises:
        TypeError: It is no target, or an option is for another kind of target.
    """
    if isinstance(target, str):
        from twofold.transports.http_client.link import HttpLink  # noqa: PLC0415 - an HTTP client is loaded by who needs it

        renamed = {"http_client": "client", "auth": "auth", "http_headers": "headers"}

        def make_link() -> Link:
            check_target(target)
            return HttpLink(target, **{renamed[name]: each for name, each in http.items()})

        return make_link
    if http:
        raise TypeError(f"{min(http)} is for a server that is reached by a URL")
    if isinstance(target, StdioServer):
        return lambda: ChildProcessLink(target)
    if hasattr(target, "live") and hasattr(target, "connect"):
        return lambda: MemoryLink(target)
    raise TypeError(
        "expected a URL, StdioServer(command=…, args=[…]) or an MCPServer, "
        f"got {type(target).__name__} ({target!r:.80})"
    )


def _encode_arguments(name: Any, arguments: Any) -> msgspec.Raw:
    """Write arguments as JSON.

    Raises:
        TypeError: They are none that JSON can say; the caller's mistake, as in `MCPServer.call_tool`.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"a tool's name is text, got {name!r:.80}")
    if arguments is None:
        return _NO_ARGUMENTS
    if not isinstance(arguments, Mapping):
        raise TypeError(f"tool {name!r:.80}: arguments are given by name, got {type(arguments).__name__}")
    return _encode_given(name, arguments, what="arguments")


def _encode_given(name: str, given: Mapping[str, Json], *, what: str) -> msgspec.Raw:
    try:
        return msgspec.Raw(encode_json(given if type(given) is dict else dict(given), what=what))
    except ValueError as error:  # which opens with what it is of
        raise TypeError(f"tool {name!r:.80}, {error}") from error.__cause__


def _check_choice(check: Any) -> Check:
    if check not in ("raise", "mark", "off"):
        raise ValueError(f"check: expected 'raise', 'mark' or 'off', got {check!r:.80}")
    return check  # type: ignore[no-any-return]  # one of the three


def _check_seconds(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= sys.float_info.max:
        raise ValueError(f"timeout_seconds: expected a positive number, got {seconds!r:.80}")
    return float(seconds)
