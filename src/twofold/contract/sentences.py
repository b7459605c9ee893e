"""Plain sentences for what one keyword of a schema finds wrong with one value."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from twofold.contract.forms import PATTERNS, form_of
from twofold.contract.plain import Path, cut, describe, show
from twofold.protocol.structs import Json

_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
TYPES = tuple(_NOUNS)
"""The types JSON Schema knows."""

_MAX_LISTED = 12
"""Values or names listed in one sentence; more would bury the point."""

_MAX_GUESSED = 20
"""Unknown names of one object that get a guess; a guess costs some microseconds for each name that is known."""


def phrase(schemas: Sequence[dict[str, Any]]) -> str | None:
    """Name what is expected where these schemas apply together: `an integer`, `an object (Cat)`.

    Returns:
        None where none of them names a type or values.
    """
    for schema in schemas:
        if "const" in schema:
            return show(schema["const"])
        if isinstance(schema.get("enum"), list | tuple):
            return one_of(schema["enum"])
    for schema in schemas:
        named = schema.get("type")
        types = [named] if isinstance(named, str) else named
        if types:
            title = schema.get("title")
            suffix = f" ({show(title)[1:-1]})" if isinstance(title, str) and types == ["object"] else ""
            return join_types(types, schema) + suffix
    return None


def join_types(types: Sequence[str], schema: dict[str, Any]) -> str:
    """Name JSON types: `an integer or null`; a string in the form the schema wants it to have."""
    form = form_of(schema) if "string" in types else None
    return " or ".join(form if form and name == "string" else _NOUNS.get(name, name) for name in types)


def one_of(values: Sequence[Json]) -> str:
    """List the values that are allowed."""
    shown = ", ".join(show(value) for value in values[:_MAX_LISTED])
    more = f" and {len(values) - _MAX_LISTED} more" if len(values) > _MAX_LISTED else ""
    return shown if len(values) == 1 else f"one of {shown}{more}"


def unknown_name(name: str, known: Sequence[str], *, guesses: bool = True) -> str:
    """Say that a name is not known, with its nearest neighbour and what there is."""
    if not known:
        return "unknown; none is allowed here"
    near = difflib.get_close_matches(name, known, 1) if guesses else []
    guess = f"did you mean {show(near[0])}? " if near else ""
    return f"unknown; {guess}allowed: {', '.join(show(one)[1:-1] for one in known[:_MAX_LISTED])}" + (
        " and more" if len(known) > _MAX_LISTED else ""
    )


def fault_of(
    error: ValidationError,
    *,
    schema: dict[str, Any],
    path: Path,
    value: Json,
    phrase_property: Callable[[str], str | None] = lambda _name: None,
) -> Iterator[tuple[Path, str]]:
    """Turn an error of a keyword without subschemas into paths and sentences.

    Args:
        error: What jsonschema-rs found; its instance path is empty.
        schema: The subschema the keyword stands in.
        path: Where the value stands.
        value: The value.
        phrase_property: Names what is expected of a property, if anything is known of it.
    """
    properties: dict[str, Any] = schema.get("properties") or {}
    match error.kind:
        case Kind.Required(property=name):
            expected = phrase_property(name)
            yield (*path, name), f"missing; expected {expected}" if expected else "missing"
        case Kind.AdditionalProperties(unexpected=names):
            for index, name in enumerate(names):
                yield (*path, name), unknown_name(name, list(properties), guesses=index < _MAX_GUESSED)
        case _:
            yield path, f"{_expectation(error.kind, schema)}, got {describe(value, path=path)}"


def _expectation(kind: Kind, schema: dict[str, Any]) -> str:  # noqa: PLR0911, PLR0912 - one line a keyword
    """Say what one keyword expects."""
    match kind:
        case Kind.Type(types=types):
            return f"expected {join_types(types, schema)}"
        case Kind.Enum(options=options):
            return f"expected {one_of(options)}"
        case Kind.Constant(expected_value=constant):
            return f"expected {show(constant)}"
        case Kind.Minimum(limit=limit):
            return f"expected at least {_show_number(limit)}"
        case Kind.Maximum(limit=limit):
            return f"expected at most {_show_number(limit)}"
        case Kind.ExclusiveMinimum(limit=limit):
            return f"expected more than {_show_number(limit)}"
        case Kind.ExclusiveMaximum(limit=limit):
            return f"expected less than {_show_number(limit)}"
        case Kind.MultipleOf(multiple_of=step):
            return f"expected a multiple of {_show_number(step)}"
        case Kind.MinLength(limit=1) if form := form_of(schema):
            return f"expected {form}"
        case Kind.MinLength(limit=limit):
            return f"expected at least {_count(limit, 'character')}"
        case Kind.MaxLength(limit=limit):
            return f"expected at most {_count(limit, 'character')}"
        case Kind.MinItems(limit=limit):
            return f"expected at least {_count(limit, 'item')}"
        case Kind.MaxItems(limit=limit) | Kind.AdditionalItems(limit=limit):
            return f"expected at most {_count(limit, 'item')}"
        case Kind.MinProperties(limit=limit):
            return f"expected at least {_count(limit, 'property')}"
        case Kind.MaxProperties(limit=limit):
            return f"expected at most {_count(limit, 'property')}"
        case Kind.UniqueItems():
            return "expected no item twice"
        case Kind.Pattern(pattern=pattern) | Kind.Custom(keyword="pattern", message=pattern):
            return f"expected {PATTERNS.get(pattern) or f'text that matches {show_pattern(pattern)}'}"
        case Kind.BacktrackLimitExceeded() | Kind.RegexEngineFailure():
            return "its pattern takes too many steps on this text to be checked"
        case _:
            return f"does not fit {kind.name!r}"


def _show_number(number: Json) -> str:
    """Write a bound: 3.0, which pydantic publishes for a `Decimal`'s 3, is 3."""
    return show(int(number) if isinstance(number, float) and number.is_integer() else number)


def show_pattern(pattern: str) -> str:
    """Write a regular expression as its author did: nothing in it is escaped once more."""
    return f"'{cut(pattern)}'"


def _count(number: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else plural}"
