"""How a tool renders its own text: the `text=` option.

`"pretty"` and `"compact"` are JSON text; any other string is a template over the wire's names; a function
makes the text, or the blocks, from the value.
"""

import difflib
import inspect
import re
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from twofold.contract.forms import form_of
from twofold.contract.plain import cut, name_type
from twofold.errors import InvalidDefinition, ResultRefused
from twofold.protocol.content import ContentBlock
from twofold.protocol.messages import EncodedBlocks
from twofold.tools.results.content import encode_content, holds_content, write_blocks, write_text
from twofold.tools.results.dump import refuse_non_finite

Face: TypeAlias = Callable[[bytes, Any], EncodedBlocks | tuple[ContentBlock, ...]]
"""Makes the model's face from the value's JSON and the value itself."""

_MODES = ("pretty", "compact")
_LIKE_A_MODE = 0.8
"""Likeness from which a text is a misspelt mode: 'prety' and 'compct' have 0.9, 'impact' and 'compact' 0.77."""

_FIELD = r"(?P<name>[^.\[\]]+)(?P<path>(?:\[[^\[\]]+\])*)"
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
    if text in _MODES:
        is_indented, lists_objects = text == "pretty", _lists_objects(schema)
        return lambda raw, _value: write_blocks(raw, is_indented=is_indented, lists_objects=lists_objects)
    if isinstance(text, str):
        _check_mode(text, owner=owner)
        return _build_template_face(text, schema=schema, owner=owner)
    if not callable(text):
        raise InvalidDefinition(f"{owner}, text: expected a str or a function, got {cut(repr(text))}")
    if inspect.iscoroutinefunction(text):
        raise InvalidDefinition(f"{owner}, text: the function is async; text is made from the value alone, at once")
    _check_takes_value(text, owner=owner)
    return _build_function_face(text)


def _lists_objects(schema: Mapping[str, Any] | None) -> bool:
    """Tell whether a schema is of an array whose elements are surely objects."""
    items = (schema or {}).get("items")
    if not isinstance(items, dict) or (schema or {}).get("type") != "array" or "prefixItems" in (schema or {}):
        return False
    name = str(items.get("$ref", "")).removeprefix("#/$defs/")
    named = (schema or {}).get("$defs", {}).get(name, {}) if name else items
    return isinstance(named, dict) and named.get("type") == "object"


def _check_mode(text: str, *, owner: str) -> None:
    """Refuse what is surely meant to be one of the two modes, and text that tells a model nothing."""
    if "{" in text or "}" in text:
        return
    near = difflib.get_close_matches(text.strip().lower(), _MODES, 1, _LIKE_A_MODE)
    if near or not text.strip():
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        raise InvalidDefinition(
            f"{owner}, text: {cut(repr(text))} is neither 'pretty' nor 'compact', and no template{guess}; "
            "a template names fields of the result: {name}"
        )


def _check_takes_value(function: Callable[..., Any], *, owner: str) -> None:
    """Refuse a function that cannot be called with the value alone."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some of C have none that can be read
        return
    try:
        signature.bind(None)
    except TypeError:
        raise InvalidDefinition(
            f"{owner}, text: the function is called with the value and nothing else, and takes "
            f"{cut(str(signature.replace(return_annotation=signature.empty)))}; give it one parameter"
        ) from None


def _build_function_face(function: Callable[[Any], Any]) -> Face:
    def render(_raw: bytes, value: Any) -> EncodedBlocks | tuple[ContentBlock, ...]:
        made = function(value)
        if isinstance(made, str):
            return write_text(made)
        is_list = isinstance(made, list | tuple) and bool(made)
        if not (all(isinstance(item, str) or holds_content(item) for item in made) if is_list else holds_content(made)):
            raise ResultRefused(
                f"the function given as text= returned {name_type(made)}; "
                "it must return a str, a content block, or a list of these with at least one in it"
            )
        return encode_content(made, is_indented=True)

    return render


def _build_template_face(template: str, *, schema: Mapping[str, Any] | None, owner: str) -> Face:
    fields = _read_fields(template, owner=owner)
    names_object = schema is not None and schema.get("type") == "object"
    if schema is not None:
        _check_names(fields, schema, owner=owner)
        _check_formats(template, schema, owner=owner)

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
                f"the template given as text= does not fit this value ({type(error).__name__}: {cut(str(error))}); "
                "it sees the value as the wire has it, where a date is text; give a function of the value instead"
            ) from None

    return render


def _read_fields(template: str, *, owner: str) -> list[str]:
    try:
        fields = list(_walk_fields(template))
    except ValueError as error:
        raise InvalidDefinition(f"{owner}, text: {cut(repr(template))} is no template: {error}") from None
    for field in fields:
        match = re.fullmatch(_FIELD, field)
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
        match = re.fullmatch(_FIELD, field)
        if match is not None and match["name"] not in known:
            raise InvalidDefinition(
                f"{owner}, text: the result has no field {match['name']!r}; it has {', '.join(known) or 'none'}"
                f"{_explain_list(field, schema)}"
            )


def _explain_list(field: str, schema: Mapping[str, Any]) -> str:
    """Say how a template reaches into a list."""
    if schema.get("type") != "array":
        return ""
    name, bracket, rest = field.partition("[")
    return (
        f", a list: name one item's field as {{result[0][{name}]{bracket}{rest}}}, or give a function for all of them"
    )


def _check_formats(template: str, schema: Mapping[str, Any], *, owner: str) -> None:
    """Refuse formats that can never be applied: on the wire a date is text, which knows no `%Y`."""
    for _text, field, specification, conversion in string.Formatter().parse(template):
        if not field or not specification or "{" in specification:  # what is filled in later is known later
            continue
        place = _schema_of(field, schema)
        kinds = _kinds_of(place, schema)
        if conversion or not kinds or any(_takes(sample, specification) for kind in kinds for sample in _samples(kind)):
            continue
        forms = [form_of(part) for part in (place, *place.get("anyOf", ())) if isinstance(part, dict)]
        held = next(filter(None, forms), None) or " or ".join(f"a JSON {kind}" for kind in sorted(kinds))
        raise InvalidDefinition(
            f"{owner}, text: {{{field}:{specification}}} cannot be written: the result holds {held} there, which takes "
            f"no format {specification!r}; write {{{field}}}, or give a function of the value itself: "
            "text=lambda value: …"
        )


def _schema_of(field: str, schema: Mapping[str, Any]) -> Any:
    """Give the schema of what a template names; None where that cannot be told."""
    name, *keys = re.split(r"\]?\[", field.removesuffix("]"))
    is_object = schema.get("type") == "object"
    place: Any = schema.get("properties", {}).get(name) if is_object else schema
    for key in keys:
        place = _resolve(place, schema)
        if not isinstance(place, dict):
            return None
        is_array = place.get("type") == "array"
        place = place.get("items") if is_array and "prefixItems" not in place else place.get("properties", {}).get(key)
    return _resolve(place, schema)


def _resolve(place: Any, schema: Mapping[str, Any]) -> Any:
    """Follow a reference by name, once: what a generated schema refers to is no reference itself."""
    if not isinstance(place, dict) or "$ref" not in place:
        return place
    return schema.get("$defs", {}).get(str(place["$ref"]).removeprefix("#/$defs/"))


def _kinds_of(place: Any, schema: Mapping[str, Any]) -> set[str] | None:
    """Name the JSON types that a schema allows; None where it does not say."""
    place = _resolve(place, schema)
    if not isinstance(place, dict):
        return None
    if isinstance(place.get("anyOf"), list):
        parts = [_kinds_of(part, schema) for part in place["anyOf"]]
        return None if None in parts else {kind for part in parts for kind in part or ()}
    named = place.get("type")
    return {named} if isinstance(named, str) else set(named) if isinstance(named, list) else None


def _samples(kind: str) -> tuple[Any, ...]:
    """Give values as `_show` gives them of a JSON type; what is no number is text."""
    return {"integer": (0,), "number": (0, 0.5)}.get(kind, ("",))


def _takes(sample: Any, specification: str) -> bool:
    try:
        format(sample, specification)
    except ValueError:
        return False
    return True


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
