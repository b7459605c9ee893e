"""Bytes among values of which only the value is known: base64 in the standard alphabet, as where a schema says so.

pydantic has one setting for such bytes, and its base64 is of the URL-safe alphabet (RFC 4648, section 5).
"""

import base64
from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationUnexpectedValue

from twofold.contract.plain import Path, cut, format_path
from twofold.errors import ResultRefused

_BYTES = (bytes, bytearray)
_CONTAINERS = (dict, list, tuple, set, frozenset)
_PLAIN: frozenset[type] = frozenset((str, int, float, bool, type(None)))
"""Looked at first: most values are of these."""
_MAX_DEPTH = 256
"""Levels replaced; pydantic writes no more, and says so."""

Stand: TypeAlias = Callable[[Any], Any]
"""Gives what is to be written for an object that writes itself; the object itself where nothing has to be done."""


def encode_base64(value: Any) -> str:
    """Write bytes as base64 text in the standard alphabet (RFC 4648, section 4).

    Raises:
        PydanticSerializationUnexpectedValue: It is something else; pydantic then tries the next type of a union.
    """
    if not isinstance(value, _BYTES):
        raise PydanticSerializationUnexpectedValue(f"expected bytes, got {type(value).__name__}")
    return base64.b64encode(value).decode("ascii")


def replace_bytes(value: Any, *, stand: Stand, at: Path = ()) -> Any:
    """Put base64 text in the place of the bytes in dicts, lists, tuples and sets.

    Args:
        value: Anything.
        stand: Asked about every other object.
        at: Where the value stands in the result, for the message.

    Returns:
        The very same object where there is nothing to replace, else a copy.

    Raises:
        ResultRefused: Two keys of a dict become the same text.
    """
    return _Replacing(stand).replace(value, at) if _needs_change(value, stand) else value


def _needs_change(value: Any, stand: Stand) -> bool:
    stack = [value] if type(value) not in _PLAIN else []
    seen: set[int] = set()
    settled = set(_PLAIN)  # what is done with an object depends on its class alone
    while stack:
        item = stack.pop()
        if isinstance(item, _CONTAINERS):
            if id(item) in seen:
                continue
            seen.add(id(item))
            children: Any = item
            if isinstance(item, dict):
                children = item.values()
                for key in item:
                    if type(key) not in settled:
                        stack.append(key)  # noqa: PERF401 - most are small: a comprehension takes twice as long
            for child in children:
                if type(child) not in settled:
                    stack.append(child)  # noqa: PERF401 - as above
        elif isinstance(item, _BYTES) or stand(item) is not item:
            return True
        else:
            settled.add(type(item))
    return False


class _Replacing:
    """One copying. What holds itself stays in the copy as it is, for pydantic to refuse."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._around: set[int] = set()

    def replace(self, item: Any, at: Path) -> Any:
        if type(item) in _PLAIN:
            return item
        if isinstance(item, _BYTES):
            return encode_base64(item)
        if not isinstance(item, _CONTAINERS):
            return self._stand(item)
        if id(item) in self._around or len(self._around) > _MAX_DEPTH:
            return item
        self._around.add(id(item))
        made = self._copy(item, at)
        self._around.discard(id(item))
        return made

    def _copy(self, item: Any, at: Path) -> Any:
        if not isinstance(item, dict):
            return [self.replace(child, (*at, index)) for index, child in enumerate(item)]
        made: dict[Any, Any] = {}
        for key, child in item.items():
            name = encode_base64(key) if isinstance(key, _BYTES) else key
            if name in made:
                raise ResultRefused(
                    f"{format_path(at) or 'the result'}: two of its keys are both written as {cut(repr(name))}; "
                    "make text of the keys, each its own"
                )
            made[name] = self.replace(child, (*at, str(name)))
        return made
