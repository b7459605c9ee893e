"""Typed MCP tools: a tool's result has two faces, text for the model and structure for programs."""

from twofold.errors import (
    ArgumentsRefused,
    InternalError,
    InvalidDefinition,
    InvalidParams,
    InvalidRequest,
    InvalidSignature,
    MethodNotFound,
    ParseError,
    ProtocolError,
    ResultRefused,
    ToolError,
    TransportError,
    TwofoldError,
    UnsupportedProtocolVersion,
)
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
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition
from twofold.server.mcpserver import MCPServer
from twofold.tools.checks.complaints import DefinitionWarning
from twofold.tools.checks.headers import Header
from twofold.tools.context import Context
from twofold.tools.declare import Tool, ToolOptions
from twofold.tools.results.media import Audio, Image
from twofold.tools.run import RateLimit

__version__ = "0.1.0"

__all__ = [
    "Annotations",
    "ArgumentsRefused",
    "Audio",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "ContentBlock",
    "Context",
    "DefinitionWarning",
    "EmbeddedResource",
    "Header",
    "Icon",
    "Image",
    "ImageContent",
    "InternalError",
    "InvalidDefinition",
    "InvalidParams",
    "InvalidRequest",
    "InvalidSignature",
    "MCPServer",
    "MethodNotFound",
    "ParseError",
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
    "UnsupportedProtocolVersion",
]
