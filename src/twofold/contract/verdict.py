"""Whether a result keeps what its tool's output schema promised, found within bounds that no server can stretch.

Source: MCP 2026-07-28, tools, "Output Schema": clients SHOULD validate structured results; basic, "JSON Schema
usage": depth, cost and time of validating are to be bounded.
"""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, TypeAlias, cast

import jsonschema_rs
import msgspec

from twofold.contract.cost import measure_cost
from twofold.contract.document import REFERENCES, Schema, Subschema
from twofold.contract.explain import Explainer
from twofold.contract.patterns import (
    METER,
    Clock,
    Meter,
    MeteredPattern,
    OutOfTime,
    PatternKeys,
    is_light,
    list_patterns,
    weigh,
)
from twofold.contract.plain import Path, describe, find_foreign, format_path, format_pointer
from twofold.contract.schema import MAX_VALUE_DEPTH, CompiledSchema
from twofold.errors import InvalidDefinition
from twofold.protocol.structs import Json

Status: TypeAlias = Literal["valid", "invalid", "absent", "unchecked", "uncheckable"]

MAX_PROBLEMS = 20
"""Problems named in one verdict."""

MAX_WORK = 200_000_000
"""Subschemas tried on all of a value together: some 4 s, during which nothing else runs. A union of 50 models
over a million values has 100 million at most."""

MAX_UNWATCHED_WORK = 300_000_000
"""Characters times states of the patterns that may run unwatched: at most 3 s."""

PATTERN_SECONDS = 2.0
"""How long patterns that are watched may take, all of them together."""

EXPLAIN_SECONDS = 2.0
"""How long it may take to say what is wrong."""

_SLOW_PRICE = 100
"""Subschemas that a fraction compared or divided stands for: it is done exactly, in 1.7 µs (measured)."""

_META_PRICE = 100
"""Subschemas that a reference to a meta-schema stands for; the largest has some sixty."""


class VerdictProblem(msgspec.Struct, frozen=True):
    """One way in which a value breaks its schema.

    Attributes:
        pointer: Where, as a JSON Pointer (RFC 6901); empty for the whole value.
        expected: What the schema wants there.
        got: What came, cut to 80 characters; a value under a name that announces a secret is left out.
        message: Place, expected and got in one sentence.
    """

    pointer: str
    expected: str
    got: str
    message: str


class Verdict(msgspec.Struct, frozen=True):
    """What was found about a result's structure.

    Attributes:
        status: `valid`; `invalid`: it breaks the published schema; `absent`: a schema is published, and nothing
            came; `unchecked`: there is nothing to judge by; `uncheckable`: the schema cannot be used, or not
            within the bounds.
        problems: Of an invalid one, what is wrong; at most 20.
        reason: Why it is anything but valid or invalid.
    """

    status: Status
    problems: tuple[VerdictProblem, ...] = ()
    reason: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether nothing that was promised is broken or in doubt."""
        return self.status in ("valid", "unchecked")

    def __str__(self) -> str:
        """Say it in one line."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            return f"{self.status}: {self.problems[0].message}{more}"
        return f"{self.status}: {self.reason}" if self.reason else self.status


VALID = Verdict("valid")


class OutputSchema:
    """A schema published by somebody else, compiled when it is first needed; its fault is remembered.

    Args:
        schema: As it came: JSON of any size and depth.
        what: What it is the schema of, for messages: `tool 'add', output schema`.

    Attributes:
        schema: As it came.
        what: What it is the schema of, for messages.
        retry_at: Before this, on the clock of who completes it, nothing is gained by trying to.
    """

    __slots__ = ("_fault", "_judge", "retry_at", "schema", "what")

    def __init__(self, schema: Schema, *, what: str) -> None:
        self.schema = schema
        self.what = what
        self.retry_at = -math.inf
        self._judge: _Judge | None = None
        self._fault = ""

    @property
    def fault(self) -> str:
        """Why nothing can be judged by it, empty if it can be used; compiles it (a hostile one takes some 2 s)."""
        if self._judge is None and not self._fault:
            try:
                self._judge = _Judge(CompiledSchema.compile(self.schema, what=self.what))
            except InvalidDefinition as error:
                self._fault = str(error)
        return self._fault

    def judge(self, value: Json, *, size_bytes: int, clock: Clock) -> Verdict:
        """Judge a value; see the function `judge`."""
        fault, judge = self.fault, self._judge
        if judge is None:
            return Verdict("uncheckable", reason=fault)
        return judge.judge(value, size_bytes=size_bytes, clock=clock)

    def complete(self, bundle: Schema) -> None:
        """Judge from now on by a schema that holds the documents this one refers to.

        Raises:
            InvalidDefinition: It cannot be used; nothing has changed.
        """
        self._judge, self._fault = _Judge(CompiledSchema.compile(bundle, what=self.what)), ""

    def give_up(self, fault: str, *, retry_at: float) -> None:
        """Say why it cannot be completed, for good or for some time; one that can be used stays as it is."""
        self.retry_at = retry_at
        if self._judge is None:
            self._fault = fault


def judge(schema: OutputSchema, value: Json, *, size_bytes: int, clock: Clock) -> Verdict:
    """Judge a value by a published schema. Nothing is fetched, and `format` is an annotation.

    Args:
        schema: The schema.
        value: As a strict JSON decoder gives it: any JSON value, null too.
        size_bytes: Of its JSON text.
        clock: Gives seconds; ends what takes too long.

    Returns:
        `valid`, `invalid` or `uncheckable`. It takes milliseconds for what honest servers send; for what a
        hostile one can devise, some seconds, in which a thread of its own does not help (the validator holds the
        interpreter's lock).
    """
    return schema.judge(value, size_bytes=size_bytes, clock=clock)


class _Judge:
    """A compiled schema, what judging by it costs, and how its patterns are to be run."""

    def __init__(self, compiled: CompiledSchema) -> None:
        self._compiled = compiled
        document = compiled.document
        self._tries = measure_cost(document, _price).tries
        self._weight = measure_cost(document, _weigh_node).tries
        patterns = {one for node in document.subschemas.values() for one in _patterns_of(node)}
        self._is_light = all(map(is_light, patterns))
        self._metered: tuple[jsonschema_rs.Validator, PatternKeys] | None = None
        self._explainers: dict[bool, Explainer] = {}

    def judge(self, value: Json, *, size_bytes: int, clock: Clock) -> Verdict:
        reason = self._find_excess(value, size_bytes)
        if reason:
            return Verdict("uncheckable", reason=reason)
        is_watched = not self._is_light or self._weight * size_bytes > MAX_UNWATCHED_WORK
        if not is_watched:
            is_valid = self._compiled.is_valid(value)
        else:
            meter = Meter(clock, PATTERN_SECONDS)
            is_valid = self._try_watched(value, meter)
            if meter.spent:
                return Verdict("uncheckable", reason=meter.spent)
        if is_valid:
            return VALID
        return Verdict("invalid", self._explain(value, is_watched=is_watched, meter=Meter(clock, EXPLAIN_SECONDS)))

    def _find_excess(self, value: Json, size_bytes: int) -> str:
        """Say in what a value is more than can be judged in bounded time; empty if it is not."""
        if self._compiled.max_depth < MAX_VALUE_DEPTH:
            foreign = next(find_foreign(value, max_depth=self._compiled.max_depth), None)
            if foreign is not None:
                return f"{format_path(foreign[0]) or 'the value'}: {foreign[1]}, which this schema cannot judge"
        if self._tries * size_bytes // 2 > MAX_WORK:  # a value takes two bytes at least
            values = _count_values(value)
            if self._tries * values > MAX_WORK:
                return (
                    f"a value of {values} parts under a schema that may try {self._tries} subschemas on each is more "
                    f"than can be judged in bounded time (at most {MAX_WORK} tries)"
                )
        return ""

    def _try_watched(self, value: Json, meter: Meter) -> bool:
        if self._metered is None:
            named = {one for node in self._compiled.document.subschemas.values() for one in _named_patterns(node)}
            keys = PatternKeys(tuple(MeteredPattern({}, pattern, []) for pattern in sorted(named)))
            self._metered = (self._compiled.build_metered(), keys)
        validator, keys = self._metered
        token = METER.set(meter)
        try:
            keys.try_all(value, meter)
            return not meter.spent and validator.is_valid(value)
        finally:
            METER.reset(token)

    def _explain(self, value: Json, *, is_watched: bool, meter: Meter) -> tuple[VerdictProblem, ...]:
        if is_watched not in self._explainers:
            self._explainers[is_watched] = Explainer(self._compiled.document, self._build_part(is_watched=is_watched))
        found: list[tuple[Path, str]] = []
        token = METER.set(meter)
        try:
            for problem in islice(self._explainers[is_watched].explain(value), MAX_PROBLEMS):
                meter.check()
                found.append(problem)
        except OutOfTime:
            pass  # that it is wrong is known, and some of what is wrong perhaps
        finally:
            METER.reset(token)
        return tuple(_write(path, sentence, value) for path, sentence in found or [((), _UNEXPLAINED)])

    def _build_part(self, *, is_watched: bool) -> Any:
        def build(schema: dict[str, Any], registry: jsonschema_rs.Registry | None) -> jsonschema_rs.Validator:
            part = self._compiled.build_part(schema, registry, is_metered=is_watched)
            return cast("jsonschema_rs.Validator", _TimedValidator(part))

        return build


_UNEXPLAINED = "does not fit the schema; what exactly is wrong takes too long to find"


class _TimedValidator:
    """A validator of a part that is only asked while there is time."""

    __slots__ = ("_validator",)

    def __init__(self, validator: jsonschema_rs.Validator) -> None:
        self._validator = validator

    def is_valid(self, value: Json) -> bool:
        _check_meter()
        return self._validator.is_valid(value)

    def iter_errors(self, value: Json) -> Iterator[jsonschema_rs.ValidationError]:
        _check_meter()
        return self._validator.iter_errors(value)


def _check_meter() -> None:
    meter = METER.get()
    if meter is not None:
        meter.check()


def _write(path: Path, sentence: str, value: Json) -> VerdictProblem:
    """Take a sentence of the explainer apart into what was expected and what came."""
    place, is_there = value, True
    for step in path:
        try:
            place = place[step]
        except (LookupError, TypeError):  # what is missing has no value
            is_there = False
    got = describe(place, path=path) if is_there else "nothing"
    opening, separator, _ = sentence.partition(f", got {got}")
    expected = opening if separator else "a value" if sentence == "missing" else sentence
    for prefix in ("missing; expected ", "expected ", "unknown; "):
        expected = expected.removeprefix(prefix)
    pointer = format_pointer(path).removeprefix("#")
    return VerdictProblem(pointer, expected, got, f"{format_path(path) or 'the value'}: {sentence}")


def _patterns_of(node: Subschema) -> list[str]:
    return list_patterns(node.schema) if isinstance(node.schema, dict) else []


def _named_patterns(node: Subschema) -> list[str]:
    named = node.schema.get("patternProperties") if isinstance(node.schema, dict) else None
    return list(named) if isinstance(named, dict) else []


def _weigh_node(node: Subschema) -> int:
    return sum(map(weigh, _patterns_of(node)))


def _price(node: Subschema) -> int:
    """Count as how many subschemas one counts, beyond those inside it."""
    schema = node.schema
    if isinstance(schema, bool):
        return 1
    price = 1 + (_SLOW_PRICE if "multipleOf" in schema else 0)
    options = schema.get("enum")
    if isinstance(options, list) and not (_are_all(options, str) or _are_all(options, int)):
        fractions = sum(isinstance(one, float) for one in options)
        price += _count_values(options) + fractions * _SLOW_PRICE
    if isinstance(schema.get("const"), list | dict | float):
        price += _count_values(schema["const"])
    resolved = sum(part.keyword in REFERENCES for part in node.parts)
    named = sum(isinstance(schema.get(keyword), str) for keyword in REFERENCES)
    return price + _META_PRICE * max(0, named - resolved)


def _are_all(options: list[Any], kind: type) -> bool:
    """Tell whether values are all of one kind, so that they are looked up and not compared one by one."""
    return all(type(one) is kind for one in options)


def _count_values(value: Json) -> int:
    """Count a value and everything inside it, names left out."""
    count = 1
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            count += len(item)
            children = item.values() if isinstance(item, dict) else item
            stack.extend(child for child in children if isinstance(child, dict | list))
    return count
