"""What JSON can hold, and how a place in it is written."""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from twofold.contract.sensitive import secret_word
from twofold.protocol.structs import Json

Path: TypeAlias = tuple[str | int, ...]

MAX_SHOWN = 80
"""Characters of a value shown in a message: enough to recognise it, too few to flood a model."""

_MAX_PATH = 200
"""Characters of a path shown; a longer one keeps its two ends."""

_MAX_INTEGER_BITS = 13_000
"""Some 3,900 digits: Python refuses to read or write integers of more than 4,300."""

_SMALL = 2.0**1023
"""Numbers between this and its negative are neither infinite, nor nan, nor of too many digits."""

_FEW = 16
"""So few members are looked at one by one."""

_CONTAINERS = frozenset({dict, list, tuple})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_KINDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a string"}

_Step = TypeVar("_Step", int, str)

_VOWELS = frozenset("aeio")
"""Letters that ask for `an`; a u mostly sounds like `you` (a UUID, a UserError)."""

_BARE_KEY = re.compile(r"[^\s.\[\]\"'~/\x00-\x1f\x7f]+\Z")


def format_path(path: Path) -> str:
    """Write a place in a value as a person would: `rows[2].name`, `["odd key"].x`; empty for the root."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE_KEY.match(step) and step.isprintable():  # no bidirectional overrides, no C1 controls
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step)}]"
    if len(text) > _MAX_PATH:
        return f"{text[:100]}…{text[-80:]}"
    return text


def format_pointer(path: Path) -> str:
    """Write a place in a schema as a JSON Pointer fragment (RFC 6901): `#/properties/a~1b`."""
    return "#" + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def cut(text: str) -> str:
    """Shorten a text to `MAX_SHOWN` characters and take the control characters out."""
    if len(text) <= MAX_SHOWN and text.isprintable():
        return text
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: MAX_SHOWN + 1])
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"


def describe(value: Json, *, path: Path = ()) -> str:
    """Say what a value is, without its content where the path names a secret: `a string ('two')`."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {cut(', '.join(map(repr, islice(value, MAX_SHOWN))))}" if value else "an empty object"
    kind = _KINDS.get(type(value), "a value")
    if any(isinstance(step, str) and secret_word(step) for step in path):
        return kind
    return f"{kind} ({show(value)})"


def name_kind(value: object) -> str:
    """Say what kind of value one is, and nothing of its content: `a string`, `an array`, `a Decimal`."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    return "null" if value is None else _KINDS.get(type(value)) or name_type(value)


def leave_value_out(sentence: str, *, path: Path, whole: Json) -> str:
    """Leave of a sentence on a misfit what `describe` said of the value: `expected an integer, got a string`.

    Args:
        sentence: As the schema's explainer gives it.
        path: Where the misfit stands.
        whole: What the path leads into.
    """
    value = whole
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):  # what is missing has no value
            return sentence
    expected, got, _ = sentence.partition(", got ")  # what follows may tell of the alternatives' values too
    return f"{expected}{got}{name_kind(value)}" if got else sentence


def show(value: Json) -> str:
    """Write a JSON value as it is written in Python for text, in JSON for the rest, cut to `MAX_SHOWN`."""
    if isinstance(value, str):
        return cut(repr(value[: MAX_SHOWN + 1]))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1024:
        return f"about {'-' if value < 0 else ''}2^{value.bit_length()}"
    try:
        return cut(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return cut(name_type(value))


def name_type(value: object) -> str:
    """Name a value's Python type with its article: `an int`, `a str`."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in _VOWELS else 'a'} {name}"


def find_foreign(value: Any, *, max_depth: int, max_values: float = math.inf) -> Iterator[tuple[Path, str]]:
    """Find what JSON cannot hold, without recursion.

    Args:
        value: What is said to be JSON: dict, list, tuple, str, int, float, bool, None.
        max_depth: Containers inside one another that are still fine.
        max_values: Values in all that are still fine; an object that stands in two places counts twice.

    Yields:
        The path of each fault and a clause on it, such as `nan is not a JSON number`.
    """
    stack: list[tuple[Path, Any]] = [((), value)]
    seen = 0
    while stack:
        path, item = stack.pop()
        seen += 1
        fault = _foreign(item, depth=len(path), max_depth=max_depth)
        if fault is not None:
            yield path, fault
        elif isinstance(item, dict):
            members = _suspects(item.items(), item.values())
            stack.extend(((*path, key), child) for key, child in reversed(members))
            seen += len(item) - len(members)
        elif isinstance(item, list | tuple):
            indexed = _suspects(enumerate(item), item)
            stack.extend(((*path, index), child) for index, child in reversed(indexed))
            seen += len(item) - len(indexed)
        if seen > max_values:
            yield (), f"it holds more than {max_values} values"
            return


def _suspects(members: Iterable[tuple[_Step, Any]], values: Collection[Any]) -> list[tuple[_Step, Any]]:
    """Keep the members that must be looked at: plain scalars, which are most, are judged all at once."""
    kinds = set(map(type, values)) if len(values) > _FEW else _CONTAINERS
    if kinds <= _CONTAINERS:
        return list(members)
    texts = [one for one in values if type(one) is str] if str in kinds else []
    numbers = [one for one in values if type(one) is int or type(one) is float] if kinds & {int, float} else []
    if _broken_text("".join(texts)) or not all(-_SMALL < one < _SMALL for one in numbers):
        return list(members)
    return [(step, one) for step, one in members if type(one) not in _SCALARS]


def _foreign(item: Any, *, depth: int, max_depth: int) -> str | None:  # noqa: PLR0911 - one a kind
    """Say what is wrong with one value, its children left out."""
    if item is None:
        return None
    if isinstance(item, int):
        return "an integer of more than 3,900 digits" if item.bit_length() > _MAX_INTEGER_BITS else None
    if isinstance(item, str):
        return _broken_text(item)
    if isinstance(item, float):
        return None if math.isfinite(item) else f"{item} is not a JSON number"
    if not isinstance(item, dict | list | tuple):
        return f"not JSON but a Python value of type {type(item).__name__}"
    if depth >= max_depth:
        return f"nested deeper than {max_depth} levels"
    if isinstance(item, dict) and not _has_plain_keys(item):
        for key in item:
            if not isinstance(key, str):
                return f"the key {cut(repr(key))} is not a string"
            if _broken_text(key):
                return f"the key {cut(repr(key))} holds half of a surrogate pair"
    return None


def _has_plain_keys(item: dict[Any, Any]) -> bool:
    try:
        return "".join(item).isascii()
    except TypeError:  # a key that is no text
        return False


def _broken_text(text: str) -> str | None:
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "text with half of a surrogate pair"
    return None
