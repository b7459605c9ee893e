"""Typed MCP tools: a tool's result has two faces, text for the model and structure for programs."""

from typing import TYPE_CHECKING, Any

from twofold.errors import (
    ArgumentsRefused,
    AuthorizationError,
    Forbidden,
    HeaderMismatch,
    InternalError,
    InvalidDefinition,
    InvalidParams,
    InvalidRequest,
    InvalidSignature,
    MethodNotFound,
    MissingRequiredClientCapability,
    ParseError,
    ProtocolError,
    ResultRefused,
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
    from twofold.transports.http.authorization import Authorize, HttpRequest, ProtectedResource
    from twofold.transports.http.limits import Limits

__version__ = "0.1.0"

__all__ = [
    "Annotations",
    "ArgumentsRefused",
    "Audio",
    "AudioContent",
    "AuthorizationError",
    "Authorize",
    "BlobResourceContents",
    "CallToolResult",
    "ContentBlock",
    "Context",
    "DefinitionWarning",
    "EmbeddedResource",
    "Forbidden",
    "Header",
    "HeaderMismatch",
    "HttpRequest",
    "Icon",
    "Image",
    "ImageContent",
    "InternalError",
    "InvalidDefinition",
    "InvalidParams",
    "InvalidRequest",
    "InvalidSignature",
    "Limits",
    "MCPServer",
    "MethodNotFound",
    "MissingRequiredClientCapability",
    "ParseError",
    "PromptMessage",
    "PromptOptions",
    "ProtectedResource",
    "ProtocolError",
    "RateLimit",
    "ResourceContents",
    "ResourceLink",
    "ResultRefused",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "ToolAnnotations",
    "ToolDefinition",
    "ToolError",
    "ToolOptions",
    "TransportError",
    "TwofoldError",
    "Unauthorized",
    "UnsupportedProtocolVersion",
]


def __getattr__(name: str) -> Any:
    """Load what only servers over HTTP need when it is asked for: it takes milliseconds that others save."""
    if name in ("Authorize", "HttpRequest", "ProtectedResource"):
        from twofold.transports.http import authorization  # noqa: PLC0415 - see above

        return getattr(authorization, name)
    if name == "Limits":
        from twofold.transports.http.limits import Limits  # noqa: PLC0415 - see above

        return Limits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
