"""How a tool renders its own text: the `text=` option.

`"pretty"` and `"compact"` are JSON text; any other string is a template over the wire's names; a function
makes the text, or the blocks, from the value.
"""

import inspect
import re
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from twofold.contract.plain import cut
from twofold.errors import InvalidDefinition, ResultRefused
from twofold.protocol.content import ContentBlock
from twofold.protocol.messages import EncodedBlocks
from twofold.tools.results.content import encode_content, holds_content, write_blocks, write_text
from twofold.tools.results.dump import refuse_non_finite

Face: TypeAlias = Callable[[bytes, Any], EncodedBlocks | tuple[ContentBlock, ...]]
"""Makes the model's face from the value's JSON and the value itself."""

_FIELD = re.compile(r"(?P<name>[^.\[\]]+)(?P<path>(?:\[[^\[\]]+\])*)")
"""What a template may name: a field, and what stands in it by key or index; attributes are Python's, not the wire's."""


def build_face(text: str | Callable[[Any], Any], *, schema: Mapping[str, Any] | None, owner: str) -> Face:
    """Make the function that renders text.

    Args:
        text: `"pretty"`, `"compact"`, a template (`"{name}: {price:.2f}"`, `"{result}"` where the value is no
            object), or a function of the value that returns a str, a content block or a list of them.
        schema: The value's own schema, not wrapped; None where none is known.
        owner: Whose option it is, for messages (`tool 'x'`).

    Raises:
        InvalidDefinition: A template that cannot work, or an async function.
    """
    if text == "pretty":
        return lambda raw, _value: write_blocks(raw, is_indented=True)
    if text == "compact":
        return lambda raw, _value: write_blocks(raw, is_indented=False)
    if isinstance(text, str):
        return _build_template_face(text, schema=schema, owner=owner)
    if not callable(text):
        raise InvalidDefinition(f"{owner}, text: expected a str or a function, got {cut(repr(text))}")
    if inspect.iscoroutinefunction(text):
        raise InvalidDefinition(f"{owner}, text: the function is async; text is made from the value alone, at once")
    return _build_function_face(text)


def _build_function_face(function: Callable[[Any], Any]) -> Face:
    def render(_raw: bytes, value: Any) -> EncodedBlocks | tuple[ContentBlock, ...]:
        made = function(value)
        if isinstance(made, str):
            return write_text(made)
        is_list = isinstance(made, list | tuple) and bool(made)
        if not (all(isinstance(item, str) or holds_content(item) for item in made) if is_list else holds_content(made)):
            raise ResultRefused(
                f"the function given as text= returned a {type(made).__name__}; "
                "it must return a str, a content block, or a list of these with at least one in it"
            )
        return encode_content(made, is_indented=True)

    return render


def _build_template_face(template: str, *, schema: Mapping[str, Any] | None, owner: str) -> Face:
    fields = _read_fields(template, owner=owner)
    names_object = schema is not None and schema.get("type") == "object"
    if schema is not None:
        _check_names(fields, schema, owner=owner)

    def render(raw: bytes, _value: Any) -> EncodedBlocks:
        refuse_non_finite(raw)
        value = msgspec.json.decode(raw)
        names = {"result": value}
        if isinstance(value, dict) and (names_object or schema is None):
            names |= value
        try:
            return write_text(template.format_map({name: _show(item) for name, item in names.items()}))
        except (LookupError, TypeError, ValueError) as error:
            raise ResultRefused(
                f"the template given as text= does not fit this value ({type(error).__name__}: {cut(str(error))})"
            ) from None

    return render


def _read_fields(template: str, *, owner: str) -> list[str]:
    try:
        fields = list(_walk_fields(template))
    except ValueError as error:
        raise InvalidDefinition(f"{owner}, text: {cut(repr(template))} is no template: {error}") from None
    for field in fields:
        match = _FIELD.fullmatch(field)
        if match is None or field.isdecimal():
            raise InvalidDefinition(
                f"{owner}, text: cannot read {{{field}}}; name a field of the result, "
                "and what stands in it by key or index: {user[name]}, {items[0]}"
            )
    return fields


def _walk_fields(template: str) -> Iterator[str]:
    """Give what a template names, the fields inside its format specifications too."""
    for _text, field, specification, _conversion in string.Formatter().parse(template):
        if field is not None:
            yield field
        if specification:
            yield from _walk_fields(specification)


def _check_names(fields: list[str], schema: Mapping[str, Any], *, owner: str) -> None:
    """Refuse names that can never be there; an object that takes any property may hold any name."""
    is_object = schema.get("type") == "object"
    known = list(schema.get("properties", {})) if is_object else ["result"]
    if is_object and (schema.get("additionalProperties") or "properties" not in schema):
        return
    for field in fields:
        match = _FIELD.fullmatch(field)
        if match is not None and match["name"] not in known:
            raise InvalidDefinition(
                f"{owner}, text: the result has no field {match['name']!r}; it has {', '.join(known) or 'none'}"
            )


def _show(value: Any) -> Any:
    """Give what a template formats: numbers and text as they are, the rest as JSON text."""
    if isinstance(value, dict | list):
        return _Tree(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value


class _Tree:
    """An object or array in a template: its parts by key or index, itself as JSON text."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, key: Any) -> Any:
        return _show(self._value[str(key) if isinstance(self._value, dict) else key])

    def __str__(self) -> str:
        return msgspec.json.encode(self._value).decode()

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)
