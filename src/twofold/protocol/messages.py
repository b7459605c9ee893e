"""Results in one neutral shape; only the codecs under `wire/` know how a revision writes them."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import msgspec

from twofold.protocol.content import ContentBlock
from twofold.protocol.structs import Json, Wire


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


@dataclass(frozen=True, slots=True)
class Faces:
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

    __also_named__ = {"structured_content": "structured"}

    @property
    def structured_content(self) -> Json:
        """The value for programs, or None."""
        return None if self.structured is msgspec.UNSET else self.structured

    @property
    def has_structured_content(self) -> bool:
        """Whether there is a value for programs; JSON null is one."""
        return self.structured is not msgspec.UNSET
