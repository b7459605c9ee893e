"""When schemas are compiled: where it is plain that they can be, not before a value has to be judged.

Most schemas that are made from types use a dozen keywords and some references. For them everything that
`CompiledSchema.compile` looks for can be seen in one short walk. Nearly all tools are then registered, and called with
arguments that fit, without their schemas ever being compiled, or the compiler being loaded.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold.contract.document import Schema
    from twofold.contract.schema import CompiledSchema

_MAX_VISITS = 300
"""Subschemas, those behind references counted each time: far below what compiling allows, and no circle fits in."""

_MAX_LETTERS = 20_000
"""Letters of all names and texts."""

_MAX_DEPTH = 20
_MAX_INTEGER_BITS = 64
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
_DEFINITIONS = "#/$defs/"


def compile_schema(schema: "Schema", *, what: str) -> "CompiledSchema":
    """Compile a schema; see `CompiledSchema.compile`."""
    from twofold.contract.schema import CompiledSchema  # noqa: PLC0415 - 8 ms of start-up that most servers never need

    return CompiledSchema.compile(schema, what=what)


def is_simple(schema: Any) -> bool:
    """Tell whether `CompiledSchema.compile` surely takes a schema.

    Args:
        schema: Anything. In doubt it is not simple, as with patterns, circular references or keywords that are rare
            in schemas made from types.
    """
    if not isinstance(schema, dict):
        return False
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict) or not all(isinstance(one, str) and _NAME.match(one) for one in definitions):
        return False
    walk = _Walk(definitions)
    words = {word: value for word, value in schema.items() if word != "$defs"}
    return all(walk.takes(one) for one in (words, *definitions.values()))


class _Walk:
    """Counts what has been seen of one schema."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._visits = 0
        self._letters = 0

    def takes(self, schema: Any) -> bool:
        """Tell whether a subschema, and all that it applies, is simple."""
        stack = [(schema, 0)]
        while stack:
            node, depth = stack.pop()
            self._visits += 1
            if self._visits > _MAX_VISITS or depth > _MAX_DEPTH:
                return False
            if isinstance(node, bool):
                continue
            if not isinstance(node, dict):
                return False
            for word, value in node.items():
                parts = self._parts(word, value)
                if parts is None:
                    return False
                stack.extend((part, depth + 1) for part in parts)
        return True

    def _parts(self, word: str, value: Any) -> tuple[Any, ...] | list[Any] | None:
        """Give the subschemas under a keyword; None where the keyword is not simple."""
        if word in _IS_FIT:
            if isinstance(value, str):
                return () if _IS_FIT[word](value) and self._counts(value) else None
            return () if _IS_FIT[word](value) else None
        if word in ("default", "enum", "examples"):
            values = value if word != "default" else [value]
            return () if isinstance(values, list) and all(map(self._is_plain_value, values)) else None
        if word == "properties":
            return list(value.values()) if isinstance(value, dict) and all(map(self._is_plain_name, value)) else None
        if word == "required":
            is_list = isinstance(value, list) and all(map(self._is_plain_name, value))
            return () if is_list and len(set(value)) == len(value) else None
        return self._applied(word, value)

    def _applied(self, word: str, value: Any) -> tuple[Any, ...] | list[Any] | None:
        if word in ("items", "additionalProperties"):
            return (value,)
        if word in ("anyOf", "prefixItems"):
            return value if isinstance(value, list) and value else None
        if word == "$ref" and isinstance(value, str) and value.startswith(_DEFINITIONS):
            name = value.removeprefix(_DEFINITIONS)
            return (self._definitions[name],) if name in self._definitions else None
        return None

    def _counts(self, text: str) -> bool:
        """Count a text's letters; one that is not ASCII may hold half a surrogate pair, and is not looked into."""
        self._letters += len(text)
        return self._letters <= _MAX_LETTERS and text.isascii()

    def _is_plain_name(self, name: Any) -> bool:
        return isinstance(name, str) and name[:1] != "$" and self._counts(name)

    def _is_plain_value(self, value: Any) -> bool:
        if isinstance(value, str):
            return self._counts(value)
        return value is None or value in ([], {}) or isinstance(value, bool) or _is_number(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _MAX_INTEGER_BITS


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


_IS_FIT: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    **dict.fromkeys(("title", "description", "format", "contentEncoding"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
}
"""Keywords that apply no subschema, and whether a value may stand there."""
