"""Hints about what a tool does, and those that contradict each other.

Source: MCP 2026-07-28, schema `ToolAnnotations`.
"""

from collections.abc import Mapping
from typing import Any

from twofold.contract.plain import name_type
from twofold.errors import InvalidDefinition
from twofold.protocol.tool import ToolAnnotations
from twofold.tools.checks.complaints import warn_author

DEFAULTS = {
    "read_only_hint": False,
    "destructive_hint": True,
    "idempotent_hint": False,
    "open_world_hint": True,
}
"""What counts where a hint is not set: the pessimistic answer to each."""


def check_hints(annotations: ToolAnnotations | Mapping[str, Any], *, tool_name: str, strict: bool) -> ToolAnnotations:
    """Check a tool's hints.

    Args:
        annotations: The hints, also as a mapping, in Python's spelling or the wire's.
        tool_name: For messages.
        strict: Makes a contradiction an error instead of a warning.

    Returns:
        The hints as given. What is not set stays unset.

    Raises:
        InvalidDefinition: A misspelt hint (the message has the nearest), a value of the wrong type, or,
            under `strict`, `destructive_hint=True` beside `read_only_hint=True`.
    """
    if not isinstance(annotations, ToolAnnotations | Mapping):
        raise InvalidDefinition(
            f"tool {tool_name!r}, annotations: expected ToolAnnotations or a mapping, got {name_type(annotations)}"
        )
    if not isinstance(annotations, ToolAnnotations):
        try:
            annotations = ToolAnnotations(**annotations)
        except TypeError as error:
            raise InvalidDefinition(f"tool {tool_name!r}, annotations: {error}") from None
    if annotations.read_only_hint and annotations.destructive_hint:
        fault = (
            f"tool {tool_name!r}: destructive_hint=True means nothing beside read_only_hint=True, "
            "a tool that changes nothing destroys nothing; drop one of the two"
        )
        if strict:
            raise InvalidDefinition(fault)
        warn_author(fault)
    return annotations
