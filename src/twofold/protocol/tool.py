"""A tool's definition as it stands in a listing: hints, icons, schemas.

Source: MCP 2026-07-28, schema `Tool`, `ToolAnnotations`, `Icon`.
"""

from typing import Literal

import msgspec

from twofold.protocol.structs import Json, Wire


class ToolAnnotations(Wire, frozen=True, forbid_unknown_fields=True):
    """Hints about what a tool does. What is not set is not sent, and counts as the pessimistic default.

    Attributes:
        title: A name for people; `Tool.title` comes before it.
        read_only_hint: The tool changes nothing. Default when absent: false.
        destructive_hint: It may delete or overwrite (only where it is not read-only). Default: true.
        idempotent_hint: Repeating a call with the same arguments changes nothing more. Default: false.
        open_world_hint: It deals with outside parties, such as the web. Default: true.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Icon(Wire, frozen=True, kw_only=False, forbid_unknown_fields=True):
    """A picture for a tool or a server.

    Attributes:
        src: An `https:` or `data:` URI.
        mime_type: The image's type, where the source does not say it.
        sizes: `WxH` each, or `any`.
        theme: The background it is drawn for.
    """

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class ToolDefinition(Wire, frozen=True):
    """What a client learns of a tool from `tools/list`."""

    name: str
    input_schema: dict[str, Json]
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Json] | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")
