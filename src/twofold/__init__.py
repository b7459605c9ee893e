"""Typed MCP tools: a tool's result has two faces, text for the model and structure for programs."""

import importlib
from typing import TYPE_CHECKING, Any

from twofold.errors import (
    ArgumentsRefused,
    AuthorizationError,
    ContractError,
    Forbidden,
    HeaderMismatch,
    HttpStatusError,
    InputRequired,
    InternalError,
    InvalidDefinition,
    InvalidParams,
    InvalidRequest,
    InvalidSignature,
    MethodNotFound,
    MissingRequiredClientCapability,
    NotSent,
    OutcomeUnknown,
    ParseError,
    ProtocolError,
    ResultRefused,
    ResultTypeMismatch,
    SessionGone,
    ToolError,
    TransportError,
    TwofoldError,
    Unauthorized,
    UnsupportedProtocolVersion,
)
from twofold.prompts.declare import PromptOptions
from twofold.protocol.content import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from twofold.protocol.messages import CallToolResult
from twofold.protocol.prompt import PromptMessage
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition
from twofold.server.mcpserver import MCPServer
from twofold.tools.checks.complaints import DefinitionWarning
from twofold.tools.checks.headers import Header
from twofold.tools.context import Context
from twofold.tools.declare import Tool, ToolOptions
from twofold.tools.results.media import Audio, Image
from twofold.tools.run import RateLimit

if TYPE_CHECKING:
    from twofold.client.client import Client
    from twofold.client.listing import ToolListing
    from twofold.client.results import CheckedResult, UnknownContent
    from twofold.client.schema_fetching import SchemaFetching
    from twofold.contract.verdict import Verdict
    from twofold.transports.child_process import StdioServer
    from twofold.transports.http.authorization import Authorize, HttpRequest, ProtectedResource
    from twofold.transports.http.limits import Limits

__version__ = "0.1.0"

_CLIENT = {
    "CheckedResult": "twofold.client.results",
    "Client": "twofold.client.client",
    "SchemaFetching": "twofold.client.schema_fetching",
    "StdioServer": "twofold.transports.child_process",
    "ToolListing": "twofold.client.listing",
    "UnknownContent": "twofold.client.results",
    "Verdict": "twofold.contract.verdict",
}
"""What only clients need, and where it stands."""

__all__ = [
    "Annotations",
    "ArgumentsRefused",
    "Audio",
    "AudioContent",
    "AuthorizationError",
    "Authorize",
    "BlobResourceContents",
    "CallToolResult",
    "CheckedResult",
    "Client",
    "ContentBlock",
    "Context",
    "ContractError",
    "DefinitionWarning",
    "EmbeddedResource",
    "Forbidden",
    "Header",
    "HeaderMismatch",
    "HttpRequest",
    "HttpStatusError",
    "Icon",
    "Image",
    "ImageContent",
    "InputRequired",
    "InternalError",
    "InvalidDefinition",
    "InvalidParams",
    "InvalidRequest",
    "InvalidSignature",
    "Limits",
    "MCPServer",
    "MethodNotFound",
    "MissingRequiredClientCapability",
    "NotSent",
    "OutcomeUnknown",
    "ParseError",
    "PromptMessage",
    "PromptOptions",
    "ProtectedResource",
    "ProtocolError",
    "RateLimit",
    "ResourceContents",
    "ResourceLink",
    "ResultRefused",
    "ResultTypeMismatch",
    "SchemaFetching",
    "SessionGone",
    "StdioServer",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "ToolAnnotations",
    "ToolDefinition",
    "ToolError",
    "ToolListing",
    "ToolOptions",
    "TransportError",
    "TwofoldError",
    "Unauthorized",
    "UnknownContent",
    "UnsupportedProtocolVersion",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    """Load what only clients, or servers over HTTP, need when it is asked for: it takes time that others save."""
    if name in ("Authorize", "HttpRequest", "ProtectedResource"):
        from twofold.transports.http import authorization  # noqa: PLC0415 - see above

        return getattr(authorization, name)
    if name in _CLIENT:
        return getattr(importlib.import_module(_CLIENT[name]), name)
    if name == "Limits":
        from twofold.transports.http.limits import Limits  # noqa: PLC0415 - see above

        return Limits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
