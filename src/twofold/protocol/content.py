"""Content blocks, what the model reads of a result, and their annotations.

Source: MCP 2026-07-28, schema `ContentBlock`; which revision can carry which block is the codecs' affair.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from twofold.protocol.structs import Json, Wire
from twofold.protocol.tool import Icon

Priority = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Annotations(Wire, frozen=True):
    """For whom a block is meant, how much it matters (0 to 1), when it was last changed (ISO 8601)."""

    audience: list[Literal["user", "assistant"]] | None = None
    priority: Priority | None = None
    last_modified: str | None = None


class TextContent(Wire, frozen=True, kw_only=False, tag_field="type", tag="text"):
    """Text for the model."""

    text: str
    annotations: Annotations | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class ImageContent(Wire, frozen=True, tag_field="type", tag="image"):
    """A picture: base64 text and its MIME type."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class AudioContent(Wire, frozen=True, tag_field="type", tag="audio"):
    """Sound: base64 text and its MIME type. Not in revision 2024-11-05."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class ResourceLink(Wire, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to a resource the client may read. Since revision 2025-06-18."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class ResourceContents(Wire, frozen=True):
    """What a resource holds: either `text`, or bytes as base64 text in `blob`.

    The specification has a type for each (`TextResourceContents`, `BlobResourceContents`); one that
    knows it holds exactly one of the two says the same, and both names stand for it.
    """

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")

    def __post_init__(self) -> None:
        """Refuse contents with neither or both."""
        if (self.text is None) is (self.blob is None):
            raise ValueError("resource contents have either text or blob")


TextResourceContents = BlobResourceContents = ResourceContents


class EmbeddedResource(Wire, frozen=True, tag_field="type", tag="resource"):
    """A resource's contents inside a result."""

    resource: ResourceContents
    annotations: Annotations | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
CONTENT_BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
