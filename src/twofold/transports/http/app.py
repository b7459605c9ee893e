"""Streamable HTTP as a plain ASGI application: both eras at one endpoint.

Source: MCP 2026-07-28 and 2025-11-25, "Streamable HTTP".
"""

import asyncio
import logging
import traceback
from typing import Any

from twofold.errors import Forbidden, HeaderMismatch, InternalError, InvalidRequest, MethodNotFound, Unauthorized
from twofold.protocol.headers import LAST_EVENT_ID, METHOD, PROTOCOL_VERSION, SESSION_ID
from twofold.protocol.jsonrpc import is_request
from twofold.transports.http.asgi import Receive, Scope, Send
from twofold.transports.http.authorization import (
    Authorize,
    ProtectedResource,
    authorize,
    challenge,
    describe_request,
    hide_token,
    read_bearer,
)
from twofold.transports.http.exchange import RequestExchange, SessionExchange, send_stream
from twofold.transports.http.guard import Guard, read_authority
from twofold.transports.http.inbound import Inbound
from twofold.transports.http.lifespan import Lifespan
from twofold.transports.http.limits import Limits
from twofold.transports.http.peer import Connection, Server
from twofold.transports.http.places import Places
from twofold.transports.http.reply import (
    JSON_TYPE,
    STREAM_TYPE,
    Headers,
    Refusal,
    send_empty,
    send_json,
    send_refusal,
    status_of,
)
from twofold.transports.http.request import (
    Head,
    check_accepted,
    check_posted_type,
    read_body,
    read_head,
    too_large,
)
from twofold.transports.http.sessions import Session, Sessions

logger = logging.getLogger("twofold")

GRACE_SECONDS = 4.5
"""So long running calls of sessions may go on when the application is about to end; then each is told."""
MAX_NOTICE_BYTES = 4096
"""A message of a session that is no longer may be a notification, which is heard whatever the load."""
_UNSAID = b"2025-03-26"
"""The revision of a client that sends no `MCP-Protocol-Version`, where no session says which."""


class Discarding:
    """The writer of a connection that has nowhere to send what is about no request."""

    def write(self, message: bytes) -> None:
        """Send it nowhere: whoever wants such messages asks with a request of its own."""

    async def drain(self) -> None:
        """There is always room."""


_NOWHERE = Discarding()


class StreamableHTTP:
    """Serves one server over HTTP: an ASGI application, to be run by an ASGI server or mounted in another one.

    Args:
        server: What is served.
        path: The MCP endpoint, below where the application is mounted.
        guard: Decides which hosts and origins may ask.
        max_body_bytes: What a request's body may have.
        limits: Times and bounds.
        stateless: Serves the handshake revisions without sessions, for several processes behind one address.
        hook: The author's `authorize`, if any.
        resource: What is published of a protected resource, if anything.
    """

    def __init__(
        self,
        server: Server,
        *,
        path: str,
        guard: Guard,
        max_body_bytes: int,
        limits: Limits,
        stateless: bool,
        hook: Authorize | None,
        resource: ProtectedResource | None,
    ) -> None:
        self.path = path
        self._server = server
        self._paths = frozenset({path, path + "/"} if path != "/" else {"/", ""})
        self._guard = guard
        self._max_body_bytes = max_body_bytes
        self._limits = limits
        self._is_stateless = stateless
        self._hook = hook
        self._resource = resource
        self._lifespan = Lifespan(server)
        self._offer: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: Sessions | None = None
        self._connections: set[Connection] = set()
        self._requests = Places(limits.requests, "requests are running")
        self._streams = Places(limits.streams, "streams are open")
        self._notices = Places(limits.requests, "notifications are being read")
        self._is_stopping = False
        self._ending: asyncio.Task[None] | None = None
        self._key = object()  # of what is noted about a head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI scope."""
        if scope["type"] == "http":
            await self._answer(Inbound(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    def stop(self) -> None:
        """End everything that only waits, since the process is about to end; calls go on for a while."""
        if self._is_stopping:
            return
        self._is_stopping = True
        for connection in list(self._connections):
            connection.end_subscriptions()
        if self._sessions is not None:
            self._sessions.stop_streams()
            self._ending = asyncio.create_task(self._sessions.close(grace_seconds=GRACE_SECONDS))

    async def _live(self, receive: Receive, send: Send) -> None:
        """Follow the lifespan events, where somebody sends them."""
        while True:
            event = await receive()
            what = event["type"]
            try:
                await (self._open() if what == "lifespan.startup" else self._close())
            except Exception as failure:  # the author's lifespan; the ASGI server reports it
                logger.exception("the lifespan of server %r failed", self._server.name)
                await send({"type": f"{what}.failed", "message": f"{type(failure).__name__}: {failure}"})
                return
            await send({"type": f"{what}.complete"})
            if what == "lifespan.shutdown":
                return

    async def _open(self) -> None:
        """Go live on this event loop: once, or anew where an earlier loop has ended."""
        loop = asyncio.get_running_loop()
        offer = await self._lifespan.open()
        if self._loop is not loop:
            for connection in list(self._connections):  # of a loop that ended without a goodbye
                self._forget(connection)
            self._loop = loop
            self._sessions = Sessions(self._limits, self._forget)
            self._is_stopping, self._ending = False, None
        self._offer = offer

    async def _close(self) -> None:
        if self._sessions is not None:
            self.stop()
        if self._ending is not None:
            await self._ending
        self._loop = self._sessions = self._offer = None  # whoever comes now begins anew
        await self._lifespan.close()

    def _forget(self, connection: Connection) -> None:
        self._server.disconnect(connection)
        self._connections.discard(connection)

    def _connect(self, *, assumed_revision: str | None = None, session: Session | None = None) -> Connection:
        connection = self._server.connect(session or _NOWHERE, self._offer, assumed_revision=assumed_revision)
        self._connections.add(connection)
        return connection

    async def _answer(self, inbound: Inbound) -> None:
        """Answer one request; whatever stands in its way is said with a status of its own."""
        try:
            head = self._read_head(inbound)
            if head.path not in self._paths:
                await self._answer_elsewhere(inbound)
                return
            inbound.place = self._places_for(head).take()
            try:
                await self._answer_endpoint(inbound)
            finally:
                inbound.place.leave()
        except Refusal as refusal:
            logger.info("a request was refused with %d: %s", refusal.status, refusal)
            version = inbound.scope.get("http_version", "1.1")
            await send_refusal(inbound.reply, refusal, headers=inbound.extra, http_version=version)

    def _read_head(self, inbound: Inbound) -> Head:
        """Read the head and check who calls: once for requests of a connection that are alike in all that is read."""
        known, scope = inbound.known, inbound.scope
        if known is None:
            inbound.head = read_head(scope)
            inbound.extra = self._check_caller(inbound.head)
            return inbound.head
        read = scope["method"], scope["path"], scope.get("root_path"), scope.get("client")  # beside the headers
        noted: tuple[object, Head, Headers] | None = known.notes.get(self._key)
        if noted is None or noted[0] != read:
            head = read_head(scope)
            noted = known.notes[self._key] = read, head, self._check_caller(head)
        _, inbound.head, inbound.extra = noted
        return inbound.head

    def _places_for(self, head: Head) -> Places:
        """Choose where a request takes its place; what may take a call back, or end a session, always finds one."""
        if _only_waits(head):
            return self._streams
        return self._notices if self._requests.is_full and _may_be_notice(head) else self._requests

    def _check_caller(self, head: Head) -> Headers:
        """Check host and origin before anything else; gives the headers that let a web page read the answer."""
        host = head.headers.get(b"host")
        reason = self._guard.refuse_host(host)
        if reason is not None:
            is_malformed = not host or read_authority(host.decode("latin-1")) is None
            raise Refusal(400 if is_malformed else 421, InvalidRequest(reason))
        origin = head.headers.get(b"origin")
        if origin is None:
            return ()
        reason = self._guard.refuse_origin(origin, host=host or b"")
        if reason is not None:
            raise Refusal(403, InvalidRequest(reason))
        return self._guard.cors_headers(origin)

    async def _answer_elsewhere(self, inbound: Inbound) -> None:
        head, resource = inbound.head, self._resource
        if resource is not None and head.whole_path == resource.metadata_path and head.method in ("GET", "HEAD"):
            await send_json(inbound.reply, resource.metadata(), headers=inbound.extra)
            return
        error = MethodNotFound(f"there is nothing at {head.path!r:.80}; the MCP endpoint is {self.path}")
        raise Refusal(404, error)

    async def _answer_endpoint(self, inbound: Inbound) -> None:
        head = inbound.head
        if head.method == "OPTIONS":
            await self._answer_preflight(inbound)
            return
        if head.method not in ("POST", "GET", "DELETE"):
            raise _not_allowed(head.method, *(() if self._is_stateless else ("GET", "DELETE")))
        if self._hook is not None:
            inbound.principal = await self._authorize(self._hook, head)
        if self._is_stopping and _only_waits(head):
            raise Refusal(503, InternalError("the server is being shut down"), headers=[(b"retry-after", b"5")])
        if self._loop is not asyncio.get_running_loop():
            await self._open_lazily()
        if head.method == "POST":
            await self._answer_post(inbound)
        else:
            await self._answer_session_method(inbound)

    async def _answer_preflight(self, inbound: Inbound) -> None:
        """Tell a browser what a page of an allowed origin may send."""
        headers = inbound.head.headers
        origin = headers.get(b"origin")
        if origin is None or b"access-control-request-method" not in headers or not inbound.extra:
            raise _not_allowed(inbound.head.method)
        requested = headers.get(b"access-control-request-headers", b"")
        await send_empty(inbound.reply, 204, self._guard.preflight_headers(origin, requested))

    async def _authorize(self, hook: Authorize, head: Head) -> object:
        """Ask the author who calls."""
        token: str | None = None
        deadline: asyncio.Timeout | None = None
        try:
            token = read_bearer(head.headers.get(b"authorization"))
            request = describe_request(
                head.headers,
                http_method=head.method,
                path=head.path,
                client_address=head.client,
                is_mirrored=head.is_per_request,
            )
            async with asyncio.timeout(self._limits.authorize_seconds) as deadline:
                return await authorize(hook, token, request)
        except HeaderMismatch as error:
            raise Refusal(400, error) from None
        except (Unauthorized, Forbidden) as error:
            status, value = challenge(error, had_token=token is not None, resource=self._resource)
            refused = InvalidRequest(error.message)
            raise Refusal(status, refused, headers=[(b"www-authenticate", value)]) from None
        except Exception as failure:  # noqa: BLE001 - the author's own code: nothing of it is sent
            if deadline is not None and deadline.expired():
                logger.error("authorize did not say within %g seconds who calls", self._limits.authorize_seconds)  # noqa: TRY400
                busy = InternalError("the authorization could not be checked in time; send the request again later")
                raise Refusal(503, busy, headers=[(b"retry-after", b"5")]) from None
            told = "".join(traceback.format_exception(failure))
            logger.error("authorize failed: %s", hide_token(told, token or ""))  # noqa: TRY400 - without the token
            raise Refusal(500, InternalError("the server failed to check the authorization")) from None

    async def _open_lazily(self) -> None:
        try:
            await self._open()
        except Exception:  # the author's lifespan
            logger.exception("the lifespan of server %r failed", self._server.name)
            raise Refusal(500, InternalError("the server failed to start; its log says why")) from None

    async def _read_body(self, inbound: Inbound) -> bytes | None:
        """Read the body; None if the client has gone meanwhile."""
        seconds = self._limits.body_seconds
        return await read_body(inbound.head, inbound.receive, max_bytes=self._max_body_bytes, seconds=seconds)

    async def _answer_post(self, inbound: Inbound) -> None:
        """Answer a message."""
        head = inbound.head
        headers = head.headers
        check_posted_type(headers)
        check_accepted(headers, JSON_TYPE, STREAM_TYPE)
        body = inbound.take_body()
        if body is None:
            body = await self._read_body(inbound)
        elif len(body) > self._max_body_bytes:
            raise too_large(f"{len(body)} bytes came", self._max_body_bytes)
        if body is None:  # the client has gone
            return
        if head.is_per_request:
            await self._answer_alone(self._connect(), inbound, body)
        elif self._is_stateless:
            await self._answer_alone(self._connect(assumed_revision=_assumed_revision(headers)), inbound, body)
        elif SESSION_ID not in headers:
            await self._answer_opening(inbound, body)
        else:
            await self._answer_in_session(headers[SESSION_ID], inbound, body)

    async def _answer_alone(self, connection: Connection, inbound: Inbound, body: bytes) -> None:
        """Answer a message that belongs to no session."""
        try:
            await self._make_exchange(inbound).serve(connection, body)
        finally:
            self._forget(connection)

    def _make_exchange(self, inbound: Inbound) -> RequestExchange:
        return RequestExchange(inbound, limits=self._limits, is_stopping=self._tell_stopping)

    def _tell_stopping(self) -> bool:
        return self._is_stopping

    async def _answer_in_session(self, session_id: bytes, inbound: Inbound, body: bytes) -> None:
        """Answer a message of a session that is open."""
        session = self._live_sessions.find(session_id, inbound.principal)
        place, headers = inbound.place, inbound.head.headers
        if place.is_of(self._notices) and is_request(body):
            raise self._requests.refusal()
        exchange = SessionExchange(
            headers,
            inbound.principal,
            limits=self._limits,
            admit=place.claim,
            open_stream=session.open_stream,
            prefers_stream=_prefers_stream(headers),
            on_finished=place.share(),  # a call whose client has gone still counts
        )
        session.connection.receive(body, exchange)
        await exchange.reply(inbound)

    async def _answer_opening(self, inbound: Inbound, body: bytes) -> None:
        """Answer `initialize`, which opens a session; anything else that comes without one says what is missing."""
        session = self._live_sessions.prepare(inbound.principal)
        connection = self._connect(session=session)
        extra = inbound.extra
        try:
            # Nothing that waits is served without a session.
            answer = await connection.answer(body, self._make_exchange(inbound))
            if answer is None:
                raise Refusal(400, InvalidRequest("Mcp-Session-Id is missing; send initialize first"))
            if connection.session is not None:
                self._live_sessions.admit(session, connection)
                extra = [*extra, (b"mcp-session-id", session.id.encode())]
        finally:
            if not session.is_open:
                self._forget(connection)
        await send_json(inbound.reply, answer.body, status=status_of(answer.error), headers=extra)

    async def _answer_session_method(self, inbound: Inbound) -> None:
        """Answer GET, which listens in a session or resumes one of its streams, and DELETE, which ends it."""
        head = inbound.head
        session_id = head.headers.get(SESSION_ID)
        if self._is_stateless or head.is_per_request:
            raise _not_allowed(head.method)
        if session_id is None:
            if PROTOCOL_VERSION in head.headers:
                raise Refusal(400, InvalidRequest("Mcp-Session-Id is missing; send initialize first"))
            raise _not_allowed(f"{head.method} without Mcp-Session-Id")
        session = self._live_sessions.find(session_id, inbound.principal)
        if head.method == "DELETE":
            await self._live_sessions.end(session)
            await send_empty(inbound.reply, 204, inbound.extra)
            return
        check_accepted(head.headers, STREAM_TYPE)
        if await self._read_body(inbound) is None:
            return
        last_event_id = head.headers.get(LAST_EVENT_ID)
        if last_event_id is None:
            await send_stream(session.unasked, inbound)
        else:
            stream, place = session.find_event(last_event_id.decode("latin-1"))
            await send_stream(stream, inbound, after=place)

    @property
    def _live_sessions(self) -> Sessions:
        if self._sessions is None:
            raise Refusal(503, InternalError("the server is being shut down"))
        return self._sessions


def _only_waits(head: Head) -> bool:
    """Tell what costs nothing but a connection: streams of changes, by what their head says."""
    is_listening = head.is_per_request and head.headers.get(METHOD) == b"subscriptions/listen"  # the body has to agree
    return head.method == "GET" or is_listening


def _may_be_notice(head: Head) -> bool:
    """Tell what may say something about a session rather than ask for work: a small message, or DELETE."""
    if head.is_per_request or SESSION_ID not in head.headers:
        return False
    size = head.headers.get(b"content-length", b"")
    return head.method == "DELETE" or (size.isdigit() and len(size) < 9 and int(size) <= MAX_NOTICE_BYTES)


def _assumed_revision(headers: dict[bytes, bytes]) -> str:
    """Tell the handshake revision of a client without a session; one that nobody speaks is refused later, by name."""
    return headers.get(PROTOCOL_VERSION, _UNSAID).decode("latin-1").strip()


def _prefers_stream(headers: dict[bytes, bytes]) -> bool:
    """Tell whether event streams stand before JSON in what a client accepts."""
    accepted = headers.get(b"accept", b"")
    return 0 <= accepted.find(STREAM_TYPE) < accepted.find(JSON_TYPE)


def _not_allowed(method: str, *also_allowed: str) -> Refusal:
    error = InvalidRequest(f"{method} is not served here; send messages with POST")
    return Refusal(405, error, headers=[(b"allow", ", ".join(("POST", *also_allowed)).encode())])
