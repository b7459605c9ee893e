"""How often a value is judged where alternatives that hold one another are not told apart.

Of `A | B` without a discriminator pydantic tries both on every object, and whatever either holds is tried
again by each: if both hold `A | B`, the work doubles with every level, and a few hundred bytes take all the
memory there is. Alternatives of different kinds (an object, an array, a scalar) cost nothing, as all but one fail
at once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from pydantic_core import from_json

from twofold.protocol.structs import Json
from twofold.tools.arguments.strictness import Node, parts_for_json, walk_type

_FREE_TRIES = 16
"""So often any value may be tried: that multiplies the time, but no more than a union of 16 objects does."""

_MAX_TRIES = 100_000
"""Tries of all arrays and objects of an argument together.

They take 0.1 s, or a second and 250 MB where only a format or an author's validator refuses every one of them.
"""

_SCALARS_A_TRY = 16
"""Scalars that cost as much as one object (some 50 ns and 1 µs, measured)."""

_LETTERS_A_TRY = 1_000
"""Letters of text that cost as much: each try makes the text anew, and may match a pattern with it."""

_LIGHT = 1_000
"""Up to here a misfit costs little enough to be found by the validator itself."""

_MAX_DEPTH = 200
"""Levels of a value: the JSON reader of pydantic goes no deeper."""

_MAPS = frozenset({"model-fields", "typed-dict", "dataclass-args", "dict", "ordered-dict", "frozendict", "counter"})
_LISTS = frozenset({"list", "tuple", "set", "frozenset", "deque", "generator"})
_EITHER = frozenset({"arguments", "arguments-v3", "named-tuple"})
_KINDS = {"object": _MAPS | _EITHER, "array": _LISTS | _EITHER}
_CONTAINERS = _MAPS | _LISTS | _EITHER

_Tries: TypeAlias = dict[int, int]
"""By the id of a container's node: how often one value some levels inside it is tried."""


class Load(msgspec.Struct, frozen=True):
    """What judging one argument costs.

    Attributes:
        depth: Arrays and objects inside one another.
        limit: The levels that can be judged, where these are too many; else None.
        is_light: It is cheap, whether it fits or not.
    """

    depth: int
    limit: int | None
    is_light: bool


class Growth(msgspec.Struct, frozen=True):
    """How the work grows with the levels of a value.

    Attributes:
        tries: How often a value at each level is tried at most, beginning with the argument itself; the last goes for
            all levels below.
        reads_text: There may be levels inside text too (`pydantic.Json`).
    """

    tries: tuple[int, ...]
    reads_text: bool

    def weigh(self, value: Json) -> Load:
        """Tell what it costs to judge a value, without judging it."""
        sizes: list[float] = []
        level = self._containers([value])
        while level:
            children = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
            inside = self._containers(children)
            letters = sum(len(one) for one in children if isinstance(one, str))
            scalars = len(children) - len(inside)
            sizes.append(len(level) + scalars / _SCALARS_A_TRY + letters / _LETTERS_A_TRY)
            level = inside
        return self._compare(sizes)

    def _containers(self, values: Iterable[Json]) -> list[dict[str, Json] | list[Json]]:
        if self.reads_text:
            values = [_read_text(one) if isinstance(one, str) else one for one in values]
        return [one for one in values if isinstance(one, dict | list)]

    def _compare(self, sizes: list[float]) -> Load:
        """Compare the tries of all levels with what is allowed; the alternatives of the first choice always are."""
        free = max(_FREE_TRIES, next(tries for tries in self.tries if tries > 1))
        allowed = max(_MAX_TRIES, free * sum(sizes))
        total = 0.0
        for index, size in enumerate(sizes):
            total += size * self.tries[min(index, len(self.tries) - 1)]
            if total > allowed:
                return Load(len(sizes), index, is_light=False)
        return Load(len(sizes), None, is_light=total <= _LIGHT)


def measure_growth(node: Node, definitions: Mapping[str, Node]) -> Growth | None:
    """Measure how the work to judge values of a type grows with their levels.

    Args:
        node: The type's core schema.
        definitions: Where its references lead; without them no type holds itself.

    Returns:
        None where the work stays in proportion to the value, however deep it is, as with nearly all types.
    """
    nodes = list(walk_type(node, definitions)) if definitions else []
    if not any(one.get("type") == "union" for one in nodes):
        return None
    containers = [one for one in nodes if one.get("type") in _CONTAINERS]
    inside: _Tries = {id(one): 1 for one in containers}
    levels: list[int] = []
    for _ in range(_MAX_DEPTH):
        count = _Count(inside, definitions)
        levels.append(count.most(node))
        deeper = {id(one): max(inside[id(one)], *map(count.most, parts_for_json(one)), 0) for one in containers}
        if deeper == inside:  # from here on it grows no more, or no more is counted
            if levels[-1] <= _MAX_TRIES:
                return None
            break
        inside = deeper
    return Growth(tuple(levels), reads_text=any(one.get("type") == "json" for one in nodes))


class _Count:
    """How often a node has one value some levels inside its own tried; of one level less it is known already."""

    def __init__(self, inside: _Tries, definitions: Mapping[str, Node]) -> None:
        self._inside = inside
        self._definitions = definitions
        self._known: dict[tuple[int, str], int] = {}

    def most(self, node: Node) -> int:
        """Give the count for the kind of value that is tried most often."""
        return max(self._count(node, kind) for kind in _KINDS)

    def _count(self, node: Node, kind: str) -> int:
        key = id(node), kind
        if key not in self._known:
            self._known[key] = 0  # what leads back here without a level in between tries nothing more
            self._known[key] = min(self._add_up(node, kind), _MAX_TRIES + 1)
        return self._known[key]

    def _add_up(self, node: Node, kind: str) -> int:
        name = node.get("type")
        if name == "definition-ref":
            return self._count(self._definitions[node["schema_ref"]], kind)
        if name in _CONTAINERS:
            return self._inside[id(node)] if name in _KINDS[kind] else 0
        tries = [self._count(one, kind) for one in parts_for_json(node)]
        return sum(tries) if name == "union" else max(tries, default=0)


def _read_text(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return text
