"""A server over Streamable HTTP: each message a request of its own, its answer JSON or an event stream.

Importing this module imports httpx2, an optional dependency: only who talks HTTP imports it.

Source: MCP 2026-07-28 and 2025-11-25, Streamable HTTP.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from twofold.errors import HttpStatusError, NotSent, TransportError
from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.wire import PER_REQUEST_REVISIONS
from twofold.transports.http_client.answers import is_answer, read_refusal
from twofold.transports.link import Handler

try:
    import httpx2
except ModuleNotFoundError as missing:
    raise TransportError(
        f"talking to a server over HTTP takes the package {missing.name!r}, which is not installed: "
        "pip install 'twofold[http]'"
    ) from missing

from twofold.errors import SessionGone
from twofold.transports.http_client.endpoint import Endpoint, read_endpoint
from twofold.transports.http_client.events import Cursor, follow
from twofold.transports.http_client.failures import CONNECT_SECONDS, explain_failure, explain_status, show

__all__ = ["HttpLink", "SessionGone"]

logger = logging.getLogger("twofold")

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Of a JSON body, or of one event, once decompressed: a server cannot take all memory with one."""
MAX_REFUSAL_BYTES = 1024 * 1024
"""Of what comes with a status that refuses; more is not read."""
MAX_IGNORED_BYTES = 64 * 1024
"""Of a body that says nothing."""
CLOSE_SECONDS = 2.0
"""For the session to be ended, and for messages that are still on their way."""
KEEP_ALIVE_SECONDS = 4.0
"""A connection that was idle for longer is not used again: many servers close theirs after five."""
MAX_REDIRECTS = 3

_JSON, _STREAM = "application/json", "text/event-stream"
_VERSION, _SESSION = "mcp-protocol-version", "mcp-session-id"
_POST_HEADERS = {"content-type": _JSON, "accept": f"{_JSON}, {_STREAM}"}
# A call takes as long as it takes: its caller ends the wait. Only making a connection has a time of its own.
_TIMEOUT = httpx2.Timeout(None, connect=CONNECT_SECONDS)
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,4096}\Z")
_FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_FIELD_VALUE = re.compile(r"[\x20-\x7e\t]*\Z")


class HttpLink:
    """The connection to one server over HTTP.

    Redirections are followed, and remembered, where they keep the message as it is (307, 308) and lead to the same
    origin; others are told. Proxies and certificates are taken from the environment, but for loopback addresses.

    Args:
        url: The MCP endpoint. User and password in it are used as basic authentication, and shown nowhere.
        client: Sends the requests, and stays open; its redirect and time settings are not used. It is its owner's
            affair what it logs: the query of the URL, say. None makes one.
        auth: What authorizes requests; what it raises is raised by `send`.
        headers: Sent with each request.
        max_answer_bytes: What a JSON body, or an event, may have once decompressed.

    Raises:
        NotSent: The URL is none.
        ValueError: A header that cannot be sent, or that is the transport's own.
    """

    def __init__(
        self,
        url: str,
        *,
        client: httpx2.AsyncClient | None = None,
        auth: httpx2.Auth | None = None,
        headers: Mapping[str, str] | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._endpoint = read_endpoint(url)
        self._name = self._endpoint.name
        self._given_client = client
        self._auth = _choose_auth(auth, client, self._endpoint)
        self._headers = _check_headers(headers or {})
        self._max_bytes = max_answer_bytes
        self._client: httpx2.AsyncClient | None = None
        self._handler: Handler | None = None
        self._session: str | None = None
        self.has_lost_session = False
        self._revision: str | None = None
        self._standing: dict[str, str] = self._headers
        self._listening: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Timeout] = set()
        self._all_sent = asyncio.Event()

    @property
    def name(self) -> str:
        """The URL, without user, password and query."""
        return self._name

    @property
    def has_own_streams(self) -> bool:
        """Each request has its own."""
        return True

    async def open(self, handler: Handler) -> None:
        """Get ready; the first message makes the first connection.

        Raises:
            NotSent: The client that was given is closed, or the link was opened before.
        """
        if self._handler is not None:
            raise NotSent(f"{self.name}: the link was opened before; make a new one")
        if self._given_client is not None and self._given_client.is_closed:
            raise NotSent(f"{self.name}: the HTTP client that was given is closed; give one that is open")
        self._handler = handler
        self._client = self._given_client or _make_client(self._endpoint)

    def settle(self, revision: str) -> None:
        """Learn which revision was agreed on: it is sent with each message, and a session's own stream is opened."""
        self._revision = revision
        self._update_standing()
        if self._session is not None and revision not in PER_REQUEST_REVISIONS and self._client is not None:
            self._stop_listening()
            self._listening = asyncio.create_task(self._listen(self._client))

    async def send(self, message: bytes, *, request_id: RequestId | None, headers: Mapping[str, str]) -> None:
        """Send a message, and hand on what the server says about it, until that has ended.

        With an answer on an event stream it returns a quarter of a second later at the latest. It may return without
        one, if the server sent something else as its JSON.

        Raises:
            NotSent: Nothing of it has reached the server.
            SessionGone: The server no longer knows the session; the link has forgotten it.
            HttpStatusError: The server refused it by its status.
            ProtocolError: The server refused it with an error that is about no request of this id.
            TransportError: It may have arrived, and nothing more will come of it.
        """
        if self._client is None:
            raise NotSent(f"{self.name}: the link is not open; use the client inside its `async with`")
        sending = asyncio.timeout(None)
        self._sending.add(sending)
        try:
            async with sending:
                await self._exchange(message, request_id, headers)
        except TimeoutError:
            if not sending.expired():
                raise
            raise TransportError(f"{self.name}: the client was closed before there was an answer") from None
        finally:
            self._sending.discard(sending)
            if not self._sending:
                self._all_sent.set()

    async def close(self) -> None:
        """End what is on its way and the session, and close the client unless it was given."""
        client, self._client = self._client, None
        if client is None:
            return
        try:
            listening = self._stop_listening()
            for sending in self._sending:
                if not sending.expired():
                    sending.reschedule(0.0)
            async with asyncio.timeout(CLOSE_SECONDS):
                if listening is not None:
                    await asyncio.wait({listening})
                if self._sending:
                    self._all_sent.clear()
                    await self._all_sent.wait()
                await self._end_session(client)
        except TimeoutError:
            logger.debug("%s: not everything ended within %g seconds", self.name, CLOSE_SECONDS)
        finally:
            if client is not self._given_client:
                await client.aclose()

    async def _end_session(self, client: httpx2.AsyncClient) -> None:
        if self._session is None:
            return
        try:
            async with self._ask(client, "DELETE", {}) as response:
                logger.debug("%s: the end of the session was answered %d", self.name, response.status_code)
        except Exception as error:  # noqa: BLE001 - closing never raises, whatever an `auth` from outside does
            logger.debug("%s: the session was not ended: %s", self.name, type(error).__name__)

    # One message.

    async def _exchange(self, message: bytes, request_id: RequestId | None, headers: Mapping[str, str]) -> None:
        client, session = self._client, self._session
        if client is None:
            raise NotSent(f"{self.name}: the client was closed")
        cursor = Cursor()
        own = {name.lower(): value for name, value in headers.items()}  # in one spelling, to replace what stands
        is_per_request = own.get(_VERSION, self._revision) in PER_REQUEST_REVISIONS
        try:
            async with self._ask(client, "POST", {**_POST_HEADERS, **own}, message) as response:
                if not 200 <= response.status_code < 300:
                    await self._take_refusal(response, request_id, session)
                    return
                if session is None and not is_per_request:
                    self._take_session(response)
                if request_id is None:
                    await _finish(response)
                    return
                if await self._take_answer(response, request_id, cursor):
                    return
        except httpx2.HTTPError as error:
            raise explain_failure(error, name=self.name) from error
        if is_per_request or cursor.last_event_id is None:
            raise self._explain_break(cursor)
        await self._resume(client, cursor, request_id)

    async def _take_answer(self, response: httpx2.Response, request_id: RequestId, cursor: Cursor) -> bool:
        """Hand on what answers a request; False where its stream ended before the answer."""
        media_type = _media_type(response)
        if media_type == _STREAM:
            return await follow(response, cursor, self._taker(request_id), max_event_bytes=self._max_bytes)
        body, is_whole = await _read(response, self._max_bytes if media_type == _JSON else MAX_REFUSAL_BYTES)
        if media_type == _JSON and is_whole and body.strip():
            self._hand_on(body, request_id)
            return True
        if media_type == _JSON and not is_whole:
            what = f"with more than {self._max_bytes} bytes, which is the limit here; it must send less at once"
        elif not body.strip():
            what = f"a request with {response.status_code} and nothing else; is this URL the MCP endpoint?"
        else:
            text = show(body[:400].decode("utf-8", "replace"))
            what = f"as {show(media_type)} ({text}), expected {_JSON} or {_STREAM}; is this URL the MCP endpoint?"
        raise TransportError(f"{self.name}: the server answered {what}")

    async def _take_refusal(self, response: httpx2.Response, request_id: RequestId | None, session: str | None) -> None:
        """Take a status that refuses: an error about the request is its answer, all else is raised."""
        body, _ = await _read(response, MAX_REFUSAL_BYTES)
        refusal = read_refusal(body)
        has_id = refusal is not None and request_id is not None and refusal[0] == request_id
        if response.status_code == 404 and session is not None and not has_id:
            self._forget_session(session)
            raise explain_status(response, body, name=self.name, is_session=True)
        if refusal is None or (response.status_code in (401, 403) and not has_id):
            raise explain_status(response, body, name=self.name)  # with its challenge
        if not has_id:
            raise refusal[1]
        self._hand_on(body, request_id)

    def _explain_break(self, cursor: Cursor) -> TransportError:
        """Say that there was a stream, and no answer on it: so the message has arrived, whatever failed since."""
        how = "ended" if cursor.broken_by is None else f"broke ({type(cursor.broken_by).__name__})"
        return TransportError(f"{self.name}: the event stream {how} before the answer")

    def _taker(self, request_id: RequestId | None) -> Callable[[bytes], bool]:
        """Make what hands on the messages of a stream, and says which one is the answer."""

        def take(message: bytes) -> bool:
            self._hand_on(message, request_id)
            return is_answer(message, request_id)

        return take

    def _hand_on(self, message: bytes, request_id: RequestId | None) -> None:
        if self._handler is not None and self._client is not None:  # else the link is closed
            self._handler.take(message, about=request_id)

    # Sessions, and streams that are taken up again.

    def _take_session(self, response: httpx2.Response) -> None:
        session = response.headers.get(_SESSION)
        if session is None or self._session is not None:
            return
        if _SESSION_ID.match(session) is None:
            logger.warning("%s: the server gave a session id that no header can carry; it is not used", self.name)
            return
        self._session = session
        self.has_lost_session = False
        self._update_standing()

    def _forget_session(self, session: str) -> None:
        if self._session == session:  # else there is a new one already
            self._stop_listening()
            self._session = self._revision = None
            self.has_lost_session = True
            self._update_standing()

    def _update_standing(self) -> None:
        """Prepare the headers that go with each request from now on."""
        settled = {_VERSION: self._revision, _SESSION: self._session}
        self._standing = self._headers | {name: value for name, value in settled.items() if value is not None}

    async def _resume(self, client: httpx2.AsyncClient, cursor: Cursor, request_id: RequestId) -> None:
        """Go on with a stream that ended before its answer.

        Raises:
            TransportError: The server does not let it, or nothing comes of it.
        """
        try:
            if await self._keep_following(client, cursor, self._taker(request_id)):
                return
        except HttpStatusError as error:
            raise TransportError(f"{self._explain_break(cursor)}, and cannot be resumed: {error}") from error
        raise self._explain_break(cursor)

    async def _keep_following(self, client: httpx2.AsyncClient, cursor: Cursor, take: Callable[[bytes], bool]) -> bool:
        """Take a stream up again, as often as something comes of it; tell whether what is waited for has come.

        Raises:
            HttpStatusError: The server does not let it.
            TransportError: An event is too large.
        """
        while not cursor.is_exhausted:
            await asyncio.sleep(cursor.next_delay_seconds())
            try:
                if await self._follow_once(client, cursor, take):
                    return True
            except httpx2.HTTPError as error:
                cursor.broken_by = error
            except HttpStatusError as error:
                if error.status != 429 and error.status < 500:
                    raise
        return False

    async def _follow_once(self, client: httpx2.AsyncClient, cursor: Cursor, take: Callable[[bytes], bool]) -> bool:
        last = {} if cursor.last_event_id is None else {"last-event-id": cursor.last_event_id}
        async with self._ask(client, "GET", {"accept": _STREAM, **last}) as response:
            if response.status_code != 200 or _media_type(response) != _STREAM:
                body, _ = await _read(response, MAX_REFUSAL_BYTES)
                raise explain_status(response, body, name=self.name)
            return await follow(response, cursor, take, max_event_bytes=self._max_bytes)

    async def _listen(self, client: httpx2.AsyncClient) -> None:
        """Hear what the server says of itself, as long as the session lasts."""
        cursor, take = Cursor(), self._taker(None)
        try:
            try:
                await self._follow_once(client, cursor, take)
            except httpx2.HTTPError as error:
                cursor.broken_by = error
            await self._keep_following(client, cursor, take)
            logger.warning(
                "%s: its stream of notifications broke too often, and is not listened to any more", self.name
            )
        except HttpStatusError as error:  # 405: many servers have no such stream
            logger.debug("%s: no notifications of its own: %s", self.name, error)
        except TransportError as error:
            if self._handler is not None:
                self._handler.take_broken(b"", error)
        except Exception:  # what an `auth` from outside raised: nobody waits for this task
            logger.exception("%s: listening for notifications failed", self.name)

    def _stop_listening(self) -> asyncio.Task[None] | None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
        return listening

    # One HTTP request.

    @contextlib.asynccontextmanager
    async def _ask(
        self, client: httpx2.AsyncClient, method: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request, where it is redirected within the origin too, and read the head of its answer."""
        response = await self._ask_once(client, method, headers, content)
        for _ in range(MAX_REDIRECTS):
            moved = (
                self._endpoint.follow(response.headers.get("location", ""))
                if response.status_code in (307, 308)
                else None
            )
            if moved is None:
                break
            await _finish(response)
            self._endpoint = moved
            response = await self._ask_once(client, method, headers, content)
        try:
            yield response
        finally:
            await response.aclose()

    async def _ask_once(
        self, client: httpx2.AsyncClient, method: str, headers: Mapping[str, str], content: bytes | None
    ) -> httpx2.Response:
        url, extensions = self._endpoint.url, {}
        if url.query and client is not self._given_client:  # httpx2 logs URLs; this way it knows of no query
            url, extensions = url.copy_with(query=None), {"target": url.raw_path}
        request = client.build_request(
            method, url, headers={**self._standing, **headers}, content=content, timeout=_TIMEOUT, extensions=extensions
        )
        options: dict[str, Any] = {} if self._auth is None else {"auth": self._auth}
        return await client.send(request, stream=True, follow_redirects=False, **options)


def _make_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_SECONDS)
    if endpoint.is_loopback and endpoint.url.scheme == "http":
        # No proxy can reach it for us; and no certificate is looked at, whose authorities take long to load.
        return httpx2.AsyncClient(limits=limits, trust_env=False, verify=False)
    return httpx2.AsyncClient(limits=limits, trust_env=not endpoint.is_loopback)


def _choose_auth(auth: httpx2.Auth | None, client: httpx2.AsyncClient | None, endpoint: Endpoint) -> httpx2.Auth | None:
    """Choose what authorizes: what was given, else what the client has, else what the URL says."""
    if auth is None and endpoint.credentials is not None and (client is None or client.auth is None):
        return httpx2.BasicAuth(*endpoint.credentials)
    return auth


def _check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Refuse headers that cannot be sent, without showing what they say."""
    for name, value in headers.items():
        if _FIELD_NAME.match(name) is None:
            raise ValueError(f"headers: {name!r:.80} is no header's name; write it like X-Api-Key")
        if not isinstance(value, str) or _FIELD_VALUE.match(value) is None or value != value.strip(" \t"):
            raise ValueError(f"headers: the value of {name!r:.80} is not printable ASCII without blanks around it")
        if name.lower() in ("content-type", "accept", "content-length") or name.lower().startswith("mcp-"):
            raise ValueError(f"headers: {name!r:.80} is set by the transport; leave it out")
    return dict(headers)


def _media_type(response: httpx2.Response) -> str:
    """Give the type of a body; what it says of a charset is nothing, since JSON and event streams are UTF-8."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


async def _read(response: httpx2.Response, max_bytes: int) -> tuple[bytes, bool]:
    """Read a body, decompressed; gives what was read, and whether that is all of it."""
    parts: list[bytes] = []
    size = 0
    async with contextlib.aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            parts.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                return b"".join(parts), False
    return b"".join(parts), True


async def _finish(response: httpx2.Response) -> None:
    """End a response whose body says nothing; what was read to its end leaves the connection to the next message."""
    if _media_type(response) != _STREAM:
        await _read(response, MAX_IGNORED_BYTES)
    await response.aclose()
