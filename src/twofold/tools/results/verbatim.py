"""Values that are JSON as they are, and JSON that says what it seems to say.

Where nothing is known of a value but the value, most are made of JSON's own types. msgspec writes those
three times as fast as pydantic, and reading them back proves that nothing was lost on the way. What pydantic
writes instead is looked at here for names that stand twice and for numbers that no reader takes.
"""

import json
from typing import Any, NoReturn

import msgspec

from twofold.contract.plain import Path, cut, find_foreign, format_path
from twofold.errors import ResultRefused

_MAX_DEPTH = 10_000
"""Levels looked through for a fault; pydantic itself writes some 250."""
_MAX_DIGITS = 4300
"""Digits of an integer that Python, and so most clients written in it, reads."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def write_verbatim(value: Any) -> bytes | None:
    """Write a value made of nothing but JSON's own types.

    Returns:
        The bytes; None where JSON would not give the same value back: it holds other types, keys that are no
        text, numbers that are none, half a surrogate pair, itself.
    """
    try:
        raw = _encode(value)
        return raw if _decode(raw) == value else None
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def check_names(raw: bytes, *, at: Path = ()) -> None:
    """Refuse bytes that no reader takes, or in which an object has a name twice: each reader would take another.

    Args:
        raw: As a serialiser wrote it.
        at: Where the value stands in the result, for the message.

    Raises:
        ResultRefused: Naming the place.
    """
    try:
        again = _encode(_decode(raw))
    except msgspec.DecodeError:
        explain_no_json(raw, at=at)
    # Written again, a name that stood twice stands once. Else only the form of large numbers may differ;
    # then names are counted by the `":` after each, which text can hold only after a backslash.
    if again == raw or (b'\\"' not in raw and again.count(b'":') == raw.count(b'":')):
        return
    tree = json.loads(raw, object_pairs_hook=_read_object)
    for path, _clause in find_foreign(tree, max_depth=_MAX_DEPTH):
        found = step_into(tree, path)
        if isinstance(found, _Repeated):
            raise ResultRefused(
                f"{format_path((*at, *path)) or 'the result'}: two of its keys are both written as "
                f"{cut(repr(found.name))}; make text of the keys, each its own"
            )


class _Repeated(msgspec.Struct, frozen=True):
    """Stands for an object in which a name stands twice."""

    name: str


def _read_object(pairs: list[tuple[str, Any]]) -> Any:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    names = [name for name, _ in pairs]
    return _Repeated(next(name for name in names if names.count(name) > 1))


def step_into(tree: Any, path: Path) -> Any:
    """Give what stands at a place in a tree."""
    for step in path:
        tree = tree[step]
    return tree


def explain_no_json(raw: bytes, *, at: Path = ()) -> NoReturn:
    """Say what makes bytes of a dump no JSON.

    Raises:
        ResultRefused: Always.
    """
    tree = json.loads(raw, parse_int=_read_integer)
    for path, clause in find_foreign(tree, max_depth=_MAX_DEPTH):
        place = format_path((*at, *path)) or "the result"
        if isinstance(step_into(tree, path), _TooLong):
            raise ResultRefused(f"{place}: an integer of more digits than a reader takes; send it as text")
        raise ResultRefused(f"{place}: {clause}; send null or text instead, and annotate it so")
    raise ResultRefused(f"{format_path(at) or 'the result'}: the value cannot be written as JSON")


class _TooLong:
    """Stands for an integer of too many digits."""


def _read_integer(digits: str) -> Any:
    return 0 if len(digits.lstrip("-")) <= _MAX_DIGITS else _TooLong()
