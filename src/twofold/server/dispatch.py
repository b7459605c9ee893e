"""Method → handler, in one table. Which of them exist in an era is the codec's to say."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from twofold.errors import InvalidParams, InvalidRequest
from twofold.prompts.prompt import get_prompt
from twofold.protocol.jsonrpc import RequestId, decode_message
from twofold.protocol.messages import (
    ABSENT,
    LOG_LEVELS,
    Faces,
    InitializeParams,
    ListenParams,
    LogLevel,
    Params,
    SetLevelParams,
    SubscriptionFilter,
    WholeMeta,
)
from twofold.protocol.structs import Json
from twofold.protocol.wire import Codec
from twofold.protocol.wire.per_request import CLIENT_CAPABILITIES, CLIENT_INFO
from twofold.server.connection import Connection, Handler, Request, Subscription, Work
from twofold.tools.call import call, error_faces
from twofold.tools.context import Context
from twofold.transports.exchange import Exchange

MAX_SUBSCRIPTIONS = 1000
"""On one connection; each costs a few kilobytes for as long as it is open."""

T = TypeVar("T")


def _open_session(connection: Connection, request: Request) -> bytes:
    params = _decode(request, InitializeParams)
    if connection.session is not None:
        raise InvalidRequest(f"initialize: this session speaks {connection.session.revision} already")
    connection.session = connection.offer.codecs.for_handshake(params.protocol_version)
    connection.client_info = params.client_info
    connection.client_capabilities = params.capabilities
    connection.told_of_prompts = connection.offer.registry.prompts.was_used
    return connection.session.opening_result(offers_prompts=connection.told_of_prompts)


def _discover(connection: Connection, request: Request) -> bytes:
    return request.codec.opening_result(offers_prompts=connection.offer.registry.prompts.was_used)


def _ping(connection: Connection, request: Request) -> bytes:
    return request.codec.empty_result()


def _list_tools(connection: Connection, request: Request) -> bytes:
    return connection.offer.registry.tools.page(request.codec, request.params.cursor)


def _list_prompts(connection: Connection, request: Request) -> bytes:
    return connection.offer.registry.prompts.page(request.codec, request.params.cursor)


def _set_log_level(connection: Connection, request: Request) -> bytes:
    level = _decode(request, SetLevelParams).level
    if connection.session is None:
        raise InvalidRequest("logging/setLevel: this server keeps no sessions, so there is nothing to keep a level in")
    connection.log_level = level
    return request.codec.empty_result()


def _call_tool(connection: Connection, request: Request) -> Work:
    params = request.params
    if not params.name:
        raise InvalidParams("tools/call: params.name is missing; it names the tool")
    registered = connection.offer.registry.get(params.name)
    arguments = _arguments_of(params)

    async def work() -> list[bytes]:
        faces = await call(
            registered.tool,
            registered.runner,
            arguments,
            make_context=lambda: _make_context(connection, request, registered.tool.name),
        )
        return encode_call(request.codec, faces, tool_name=params.name)

    return work


def _get_prompt(connection: Connection, request: Request) -> Work:
    params = request.params
    if not params.name:
        raise InvalidParams("prompts/get: params.name is missing; it names the prompt")
    prompt = connection.offer.registry.prompts.get(params.name)
    arguments = _arguments_of(params)

    async def work() -> list[bytes]:
        messages = await get_prompt(
            prompt, arguments, make_context=lambda: _make_context(connection, request, params.name)
        )
        return [request.codec.prompt_result(prompt.definition.description, messages)]

    return work


def _arguments_of(params: Params) -> bytes:
    """Give the JSON of the arguments; none, and null, are an empty object."""
    arguments = b"{}" if params.arguments is ABSENT else bytes(params.arguments)
    return b"{}" if arguments == b"null" else arguments


def encode_call(codec: Codec, faces: Faces, *, tool_name: str) -> list[bytes]:
    """Write a call's result; what JSON cannot hold of the author's own blocks or `_meta` makes it an error."""
    try:
        return codec.call_result(faces)
    except ValueError as error:
        return codec.call_result(error_faces(f"Error executing tool {tool_name}: {error}"))


def _make_context(connection: Connection, request: Request, name: str) -> Context:
    known = request.params.meta
    channel = CallChannel(
        connection=connection,
        exchange=request.exchange,
        codec=request.codec,
        token=known.progress_token,
        log_level=known.log_level if known.protocol_version else connection.log_level,
    )
    meta = _decode(request, WholeMeta).meta
    info = meta.get(CLIENT_INFO, connection.client_info)
    capabilities = meta[CLIENT_CAPABILITIES] if known.protocol_version else connection.client_capabilities
    return Context(
        channel,
        request_id=request.id,
        tool_name=name,
        protocol_version=request.codec.revision,
        client_info=info,
        client_capabilities=capabilities,
        meta=meta,
        lifespan=connection.offer.lifespan,
        principal=request.exchange.principal,
    )


def _listen(connection: Connection, request: Request) -> Work:
    wanted = _decode(request, ListenParams).notifications
    if len(connection.subscriptions) >= MAX_SUBSCRIPTIONS:
        raise InvalidRequest(f"{MAX_SUBSCRIPTIONS} subscriptions are open on this connection; end one of them first")
    agreed = SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=(wanted.prompts_list_changed and connection.offer.registry.prompts.was_used) or None,
    )
    codec = connection.offer.codecs.per_request
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    entry = Subscription(agreed, request.exchange, ended)
    # Before anything else can be sent on it; what is only begun counts as a subscription, not as work.
    acknowledged = codec.acknowledged(request.id, agreed)
    connection.send(request.exchange, "notifications/subscriptions/acknowledged", acknowledged)
    connection.subscriptions[request.id] = entry

    async def work() -> list[bytes]:
        try:
            await ended
        finally:
            if connection.subscriptions.get(request.id) is entry:
                del connection.subscriptions[request.id]
        return [codec.listen_result(request.id)]

    return work


HANDLERS: Mapping[str, Handler] = {
    "initialize": _open_session,
    "server/discover": _discover,
    "ping": _ping,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "logging/setLevel": _set_log_level,
    "subscriptions/listen": _listen,
}


class CallChannel(msgspec.Struct, frozen=True):
    """A call's way back over its connection: progress for its token, log messages at its level or above."""

    connection: Connection
    exchange: Exchange
    codec: Codec
    token: RequestId | None
    log_level: LogLevel | None

    def progress(self, *, progress: float, total: float | None, message: str | None) -> None:
        """Send progress, if the request carried a token."""
        if self.token is not None:
            params = self.codec.progress(self.token, progress=progress, total=total, message=message)
            self.connection.send(self.exchange, "notifications/progress", params)

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> None:
        """Send a log message, if this level was asked for."""
        params = self.codec.log(level, data, logger=logger)  # checked even where nobody listens
        if self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level):
            self.connection.send(self.exchange, "notifications/message", params)

    async def drain(self) -> None:
        """Wait until the peer has room for more."""
        await self.exchange.drain()

    def close_sse_stream(self) -> None:
        """Let go of the call's stream until the client asks for it again."""
        self.connection.release_stream(self.exchange)


def _decode(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(decode_message(request.line).params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParams(f"{request.method}: the params do not fit: {error}") from None
