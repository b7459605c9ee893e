"""A prompt as it stands in a listing, and the messages it becomes.

Source: MCP 2026-07-28, schema `Prompt`, `PromptArgument`, `PromptMessage`.
"""

from typing import Literal

import msgspec

from twofold.protocol.content import ContentBlock
from twofold.protocol.structs import Json, Wire
from twofold.protocol.tool import Icon

PROMPT_METHODS = frozenset({"prompts/list", "prompts/get"})
"""They exist in every revision, but only where the server has prompts."""


class PromptArgument(Wire, frozen=True):
    """A text that a prompt takes."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class PromptDefinition(Wire, frozen=True):
    """What a client learns of a prompt from `prompts/list`."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")


class PromptMessage(Wire, frozen=True):
    """One message of a prompt: who says it, `"user"` or `"assistant"`, and one content block."""

    role: Literal["user", "assistant"]
    content: ContentBlock
