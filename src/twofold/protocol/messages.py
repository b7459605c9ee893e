"""Params and results in one neutral shape; only the codecs under `wire/` know how a revision writes them."""

from enum import Enum
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from twofold.protocol.content import ContentBlock
from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.structs import Json, Wire
from twofold.protocol.tool import Icon

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
"""RFC 5424's severities, from the least to the most severe."""

ListName: TypeAlias = Literal["tools", "prompts"]
"""A list whose changes are announced, as the methods about it spell it."""

ABSENT = msgspec.Raw(b"")
"""Stands where a message has nothing; told by identity."""


class RequestMeta(msgspec.Struct, frozen=True, gc=False):
    """The fields of a request's `_meta` that the protocol gives a meaning.

    Source: MCP 2026-07-28, "Per-request protocol fields"; `progressToken` is in every revision.
    """

    protocol_version: str = msgspec.field(default="", name="io.modelcontextprotocol/protocolVersion")
    client_capabilities: dict[str, msgspec.Raw] | None = msgspec.field(
        default=None, name="io.modelcontextprotocol/clientCapabilities"
    )
    client_info: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="io.modelcontextprotocol/clientInfo")
    log_level: LogLevel | None = msgspec.field(default=None, name="io.modelcontextprotocol/logLevel")
    progress_token: RequestId | None = msgspec.field(default=None, name="progressToken")


NO_META = RequestMeta()


class Params(msgspec.Struct, frozen=True, gc=False):
    """What any request may carry; methods with parameters of their own read theirs from the same bytes."""

    meta: RequestMeta = msgspec.field(default=NO_META, name="_meta")
    name: str = ""
    arguments: msgspec.Raw = ABSENT
    cursor: str | None = None


NO_PARAMS = Params()


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request, read at once as far as any request has to be; what does not fit is read by `decode_message`.

    Attributes:
        id: UNSET for a notification.
        method: Empty for a response.
    """

    jsonrpc: Literal["2.0"]
    method: str = ""
    id: RequestId | msgspec.UnsetType | None = msgspec.UNSET
    params: Params = NO_PARAMS


class WholeMeta(msgspec.Struct, frozen=True):
    """A request's whole `_meta`, for a tool that asks for its context."""

    meta: dict[str, Json] = msgspec.field(default_factory=dict, name="_meta")


class InitializeParams(msgspec.Struct, frozen=True, rename="camel"):
    """What a client of a handshake revision says of itself."""

    protocol_version: str
    capabilities: dict[str, Json]
    client_info: dict[str, Json]


class SetLevelParams(msgspec.Struct, frozen=True):
    """The least severe message a client of a handshake revision wants."""

    level: LogLevel


class CancelledParams(msgspec.Struct, frozen=True, rename="camel"):
    """Which request to give up, and why."""

    request_id: RequestId
    reason: str | None = None


class SubscriptionFilter(Wire, frozen=True):
    """Which notifications a subscription wants. Those this server never sends are not agreed to."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None

    def wants(self, changed: ListName) -> bool:
        """Tell whether changes of a list are to be told."""
        return bool(self.tools_list_changed if changed == "tools" else self.prompts_list_changed)


class ListenParams(msgspec.Struct, frozen=True):
    """A subscription's filter."""

    notifications: SubscriptionFilter


class Implementation(Wire, frozen=True):
    """Who a server says it is."""

    name: str
    version: str
    title: str | None = None
    icons: list[Icon] | None = None
    website_url: str | None = None


class ServerIdentity(msgspec.Struct, frozen=True, gc=False):
    """What a server tells before any tool: itself, and how to use it (text for the model)."""

    implementation: Implementation
    instructions: str | None = None


class CacheHints(msgspec.Struct, frozen=True, gc=False):
    """How long a listing stays fresh, and whether one caller's copy may serve another."""

    ttl_milliseconds: int
    scope: Literal["public", "private"]


class Wrapping(Enum):
    """When a value goes out inside `{"result": …}`."""

    NEVER = "never"
    """It is an object already, or a genuine result of the author's."""
    ALWAYS = "always"
    """Scalars, lists, unions: in every revision, as their published schema says."""
    EARLIER = "earlier"
    """`wrap=False`: bare in 2026-07-28, which allows any root; wrapped for earlier revisions, which do not."""


EncodedBlocks: TypeAlias = bytes
"""The JSON array of text blocks without `_meta` or annotations, which every revision writes alike."""


class Faces(msgspec.Struct, frozen=True, gc=False):
    """A tool's result: what the model reads, what programs get. The value's bytes are never parsed again.

    Attributes:
        content: The blocks; as bytes where all are plain text.
        structured: JSON of the value, not yet wrapped; None where there is none (JSON null is `b"null"`).
        wrapping: Whether `structured` goes out inside `{"result": …}`.
        is_error: The call failed and `content` says why.
        meta: The result's own `_meta`.
    """

    content: EncodedBlocks | tuple[ContentBlock, ...]
    structured: bytes | None = None
    wrapping: Wrapping = Wrapping.NEVER
    is_error: bool = False
    meta: dict[str, Json] | None = None


class CallToolResult(Wire, frozen=True):
    """What a call gives back: blocks for the model, structure for programs.

    A tool may return one of its own making. `structured_content` reads None both where it is absent and
    where it is JSON null; `has_structured_content` tells them apart.
    """

    content: list[ContentBlock] = msgspec.field(default_factory=list)
    structured: Json | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="structuredContent")
    is_error: bool = False
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")

    __also_named__: ClassVar = {"structured_content": "structured"}

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Give what there is, by the names that it is read by."""
        structure = [("structured_content", self.structured)] if self.has_structured_content else []
        return [("content", self.content), *structure, ("is_error", self.is_error), ("meta", self.meta)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    @property
    def structured_content(self) -> Json:
        """The value for programs, or None."""
        return None if self.structured is msgspec.UNSET else self.structured

    @property
    def has_structured_content(self) -> bool:
        """Whether there is a value for programs; JSON null is one."""
        return self.structured is not msgspec.UNSET
