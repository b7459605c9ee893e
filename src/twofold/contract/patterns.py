r"""The regular expressions of a schema: what they may cost, and how they are run where they may cost much.

A pattern without look-around runs in linear time, but each character may take as many steps as the pattern has
states: `[ab]*a[ab]{300}` takes 3 µs for one. With look-around the time is quadratic at least, and no backtracking
limit sees it: `(?=[a-z])(?:[a-z]{1,50}){1,50}b` ran for 14 s on 1,000 characters (measured). Neither can be
interrupted, so nothing is begun that may take longer than a second or two, and all together end by the clock.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

import jsonschema_rs
import msgspec

from twofold.contract.plain import Path, cut, format_pointer
from twofold.contract.sentences import show_pattern
from twofold.errors import InvalidDefinition

Clock: TypeAlias = Callable[[], float]
"""Gives seconds, from any beginning."""

MAX_WEIGHT = 500_000
"""States of all patterns of a schema together; compiling this many takes some 2 s at most (measured)."""

_LIGHT = 1_000
"""States up to which a pattern may run unwatched: at most 10 µs a character."""

_MAX_LINEAR_WORK = 300_000_000
"""Characters times states, for a pattern that runs in linear time: at most 3 s."""

_MAX_QUADRATIC_WORK = 300_000_000
"""Characters squared times states, for one with look-around: at most 2 s. An address of 250 characters by a pattern
of 40 states has 2,500,000."""

BACKTRACK_LIMIT = 100_000
"""Steps back of a pattern that needs look-around or back-references; all others take none."""

_UNICODE_CLASS = 500
"""States of `\\p{L}` and its like, which list hundreds of ranges."""

_TOKEN = re.compile(
    r"(?P<wide>\\[pP](?:\{[^}]*\}|.))|(?P<repeat>\{(?P<low>\d+)(?:,(?P<high>\d*))?\})|(?P<open>\()|(?P<close>\))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|\\.|.",
    re.DOTALL,
)
_LOOKING = re.compile(r"\(\?(?![a-zA-Z-]+[:)]|:|P?<[A-Za-z_])|\\[1-9kKgG]|[*+?}]\+")
"""Look-around, atomic groups, conditions, back-references, possessive repetition: what a finite automaton has not."""


def weigh(pattern: str) -> int:
    """Estimate the states of a pattern's automaton: its characters, repeated as often as it says."""
    sums, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            sums.append(0)
            last = 0
        elif token["close"] and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        elif token["repeat"]:
            times = _clip(token["high"] or token["low"])
            sums[-1] += last * (max(times, 1) - 1)
            last *= max(times, 1)
        else:
            wide = token[0].count("\\p") + token[0].count("\\P") if token["wide"] or token["set"] else 0
            last = 1 + wide * _UNICODE_CLASS
            sums[-1] += last
        sums[-1] = min(sums[-1], MAX_WEIGHT + 1)
    return max(1, min(sum(sums), MAX_WEIGHT + 1))


def _clip(digits: str) -> int:
    return int(digits) if len(digits) < 8 else MAX_WEIGHT + 1  # of thousands of digits, reading takes long


def is_linear(pattern: str) -> bool:
    """Tell whether a pattern runs in linear time; in doubt it does not."""
    return _LOOKING.search(pattern) is None


def is_light(pattern: str) -> bool:
    """Tell whether a pattern may run unwatched on any text of reasonable size."""
    return is_linear(pattern) and weigh(pattern) <= _LIGHT


def list_patterns(schema: dict[str, Any]) -> list[str]:
    """List the patterns that a subschema applies by itself, without those of the subschemas inside it."""
    pattern, named = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else []), *(named if isinstance(named, dict) else ())]


def check_patterns(schema: Any, *, what: str) -> None:
    """Refuse a schema whose patterns would take too long to compile.

    Args:
        schema: JSON of bounded depth and size.
        what: What it is the schema of, for the message.

    Raises:
        InvalidDefinition: They have too many states.
    """
    total = 0
    for pattern, path in dict(_find_patterns(schema)).items():
        weight = weigh(pattern)
        total += weight
        if weight > MAX_WEIGHT:
            raise InvalidDefinition(
                f"{what}, at {cut(format_pointer(path))}: the pattern {show_pattern(pattern)} is no regular expression "
                "that can be run in bounded time"
            )
        if total > MAX_WEIGHT:
            raise InvalidDefinition(
                f"{what}: its patterns together are too large to be compiled in bounded time, "
                f"{show_pattern(pattern)} among them; repeat less, or check such text elsewhere"
            )


def _find_patterns(schema: Any) -> Iterator[tuple[str, Path]]:
    stack: list[tuple[Path, Any]] = [((), schema)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                yield node["pattern"], (*path, "pattern")
            if isinstance(node.get("patternProperties"), dict):
                yield from ((key, (*path, "patternProperties", key)) for key in node["patternProperties"])
            stack.extend(((*path, key), child) for key, child in node.items() if isinstance(child, dict | list | tuple))
        elif isinstance(node, list | tuple):
            stack.extend(
                ((*path, index), child) for index, child in enumerate(node) if isinstance(child, dict | list | tuple)
            )


class OutOfTime(Exception):
    """A judgement has taken the time it had: no error but an end, which never leaves this floor."""


class Meter:
    """What one judgement may still spend.

    Args:
        clock: The clock.
        seconds: How long it may take.

    Attributes:
        spent: Why the judgement is worth nothing; empty as long as it is.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self.spent = ""

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() > self._end

    def check(self) -> None:
        """End what takes too long.

        Raises:
            OutOfTime: The time is up.
        """
        if self.spent or self.is_over:
            raise OutOfTime


METER: ContextVar[Meter | None] = ContextVar("METER", default=None)
"""The meter of the judgement that runs in this thread or task."""


class MeteredPattern:
    """The keyword `pattern` as jsonschema-rs calls it where patterns are watched.

    A text that cannot be tried within the bounds does not fit, and the meter says that this means nothing.
    """

    def __init__(self, parent: dict[str, Any], pattern: Any, path: list[str | int]) -> None:  # noqa: ARG002 - its caller decides
        self._pattern = str(pattern)
        self._validator = jsonschema_rs.Draft202012Validator({"pattern": self._pattern}, pattern_options=OPTIONS)
        weight = weigh(self._pattern)
        is_quick = is_linear(self._pattern)
        self._max_characters = _MAX_LINEAR_WORK // weight if is_quick else math.isqrt(_MAX_QUADRATIC_WORK // weight)

    def validate(self, text: Any) -> None:
        """Try a value.

        Raises:
            ValueError: It does not fit, or may not be tried.
        """
        if not isinstance(text, str):
            return
        meter = METER.get()
        if meter is not None:
            self._admit(text, meter)
        try:
            self._validator.validate(text)
        except jsonschema_rs.ValidationError as error:
            match error.kind:
                case jsonschema_rs.ValidationErrorKind.Pattern():
                    pass
                case _ if meter is not None:
                    meter.spent = (
                        f"the pattern {show_pattern(self._pattern)} takes too many steps on a text of "
                        f"{len(text)} characters"
                    )
            raise ValueError(self._pattern) from None

    def _admit(self, text: str, meter: Meter) -> None:
        if not meter.spent and len(text) > self._max_characters:
            meter.spent = (
                f"the pattern {show_pattern(self._pattern)} may take too long on a text of {len(text)} characters; "
                f"at most {self._max_characters} are tried"
            )
        elif not meter.spent and meter.is_over:
            meter.spent = f"its patterns, {show_pattern(self._pattern)} among them, take too long on this value"
        if meter.spent:
            raise ValueError(meter.spent)


OPTIONS = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
"""How every pattern is compiled."""


class PatternKeys(msgspec.Struct, frozen=True):
    """Names of properties are judged by jsonschema-rs itself; each is tried here first, by the clock.

    Attributes:
        patterns: Those of `patternProperties`.
    """

    patterns: tuple[MeteredPattern, ...]

    def try_all(self, value: Any, meter: Meter) -> None:
        """Try every pattern on every name; the meter tells what came of it."""
        for name in _find_names(value) if self.patterns else ():
            for pattern in self.patterns:
                try:
                    pattern.validate(name)
                except ValueError:
                    if meter.spent:
                        return


def _find_names(value: Any) -> set[str]:
    names: set[str] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            names.update(item)
            stack.extend(child for child in item.values() if isinstance(child, dict | list))
        elif isinstance(item, list):
            stack.extend(child for child in item if isinstance(child, dict | list))
    return names
