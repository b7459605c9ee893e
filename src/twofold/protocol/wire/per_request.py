"""Revision 2026-07-28: no handshake, every request carries its version, every result its type."""

from collections.abc import Sequence

import msgspec

from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.messages import (
    CacheHints,
    Faces,
    LogLevel,
    ServerIdentity,
    SubscriptionFilter,
    Wrapping,
)
from twofold.protocol.prompt import PROMPT_METHODS, PromptDefinition, PromptMessage
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.tool import ToolDefinition
from twofold.protocol.wire.codec import declare_capabilities

PREFIX = "io.modelcontextprotocol/"
CLIENT_INFO = PREFIX + "clientInfo"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
SERVER_INFO = PREFIX + "serverInfo"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"


class PerRequestCodec(msgspec.Struct, frozen=True, gc=False):
    """Writes revision 2026-07-28; the parts that never change are made once."""

    supported: tuple[str, ...]
    identity: ServerIdentity
    cache: CacheHints
    _result_tail: bytes
    _cache_fields: bytes

    revision = "2026-07-28"
    methods = PROMPT_METHODS | {"server/discover", "tools/list", "tools/call", "subscriptions/listen"}
    allows_any_root = True

    @classmethod
    def of(cls, identity: ServerIdentity, *, supported: tuple[str, ...], cache: CacheHints) -> "PerRequestCodec":
        """Prepare the codec of one server."""
        info = msgspec.json.encode({SERVER_INFO: identity.implementation})
        cache_fields = b',"ttlMs":%d,"cacheScope":"%b"' % (cache.ttl_milliseconds, cache.scope.encode())
        return cls(supported, identity, cache, b',"_meta":%b}' % info, cache_fields)

    def opening_result(self, *, offers_prompts: bool) -> bytes:
        """Answer `server/discover`."""
        body = {
            "resultType": "complete",
            "supportedVersions": self.supported,
            "capabilities": declare_capabilities(offers_prompts=offers_prompts),
        }
        if self.identity.instructions is not None:
            body["instructions"] = self.identity.instructions
        return msgspec.json.encode(body)[:-1] + self._cache_fields + self._result_tail

    def definition(self, definition: ToolDefinition) -> bytes:
        """Write one tool: this revision carries every field."""
        return encode_json(definition, what=f"tool {definition.name!r}")

    def tools_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `tools/list` with bytes made once."""
        return self._page(b"tools", definitions, next_cursor)

    def prompt_definition(self, definition: PromptDefinition) -> bytes:
        """Write one prompt: this revision carries every field."""
        return encode_json(definition, what=f"prompt {definition.name!r}")

    def prompts_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `prompts/list` with bytes made once."""
        return self._page(b"prompts", definitions, next_cursor)

    def _page(self, key: bytes, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        cursor = b"" if next_cursor is None else b',"nextCursor":' + msgspec.json.encode(next_cursor)
        listed = b",".join(definitions)
        return b"".join(
            (
                b'{"resultType":"complete","%b":[' % key,
                listed,
                b"]",
                cursor,
                self._cache_fields,
                self._result_tail,
            )
        )

    def prompt_result(self, description: str | None, messages: Sequence[PromptMessage]) -> bytes:
        """Answer `prompts/get`."""
        about = b"" if description is None else b'"description":%b,' % msgspec.json.encode(description)
        shown = msgspec.json.encode(messages)
        return b"".join((b'{"resultType":"complete",', about, b'"messages":', shown, self._result_tail))

    def call_result(self, faces: Faces) -> list[bytes]:
        """Answer `tools/call`, in parts: the value's bytes are embedded as they are."""
        content = faces.content
        if not isinstance(content, bytes):
            content = encode_json(content, what="content")
        parts = [b'{"resultType":"complete","content":', content]
        if faces.structured is not None:
            if faces.wrapping is Wrapping.ALWAYS:
                parts += (b',"structuredContent":{"result":', faces.structured, b"}")
            else:
                parts += (b',"structuredContent":', faces.structured)
        parts.append(b',"isError":true' if faces.is_error else b',"isError":false')
        if faces.meta is None:
            parts.append(self._result_tail)
        else:
            meta = {**faces.meta, SERVER_INFO: self.identity.implementation}
            parts += (b',"_meta":', encode_json(meta, what="meta"), b"}")
        return parts

    def empty_result(self) -> bytes:
        """Answer with nothing but success."""
        return b'{"resultType":"complete"' + self._result_tail

    def progress(self, token: RequestId, *, progress: float, total: float | None, message: str | None) -> bytes:
        """Write the params of `notifications/progress`."""
        return encode_progress(token, progress=progress, total=total, message=message)

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> bytes:
        """Write the params of `notifications/message`."""
        return encode_log(level, data, logger=logger)

    def acknowledged(self, subscription: RequestId, agreed: SubscriptionFilter) -> bytes:
        """Write the params of `notifications/subscriptions/acknowledged`, a stream's first message."""
        return msgspec.json.encode({"_meta": {SUBSCRIPTION_ID: subscription}, "notifications": agreed})

    def subscribed(self, subscription: RequestId) -> bytes:
        """Write the params of a notification that carries nothing but its subscription."""
        return msgspec.json.encode({"_meta": {SUBSCRIPTION_ID: subscription}})

    def listen_result(self, subscription: RequestId) -> bytes:
        """Answer `subscriptions/listen` when the server ends it."""
        meta = {SUBSCRIPTION_ID: subscription, SERVER_INFO: self.identity.implementation}
        return msgspec.json.encode({"resultType": "complete", "_meta": meta})


def encode_progress(token: RequestId, *, progress: float, total: float | None, message: str | None) -> bytes:
    """Write progress, which every era spells alike; what is not known is left out."""
    params: dict[str, Json] = {"progressToken": token, "progress": progress}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return encode_json(params, what="progress")


def encode_log(level: LogLevel, data: Json, *, logger: str | None) -> bytes:
    """Write a log message, which every era spells alike."""
    params: dict[str, Json] = {"level": level, "data": data}
    if logger is not None:
        params["logger"] = logger
    return encode_json(params, what="log message")
