"""The wire vocabulary, for `from twofold.types import …`."""

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
from twofold.protocol.messages import CallToolResult, Implementation, LogLevel
from twofold.protocol.prompt import PromptMessage
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition

__all__ = [
    "Annotations",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "ContentBlock",
    "EmbeddedResource",
    "Icon",
    "ImageContent",
    "Implementation",
    "LogLevel",
    "PromptMessage",
    "ResourceContents",
    "ResourceLink",
    "TextContent",
    "TextResourceContents",
    "ToolAnnotations",
    "ToolDefinition",
]
