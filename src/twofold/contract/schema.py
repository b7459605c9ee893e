"""A JSON Schema compiled once: dialect known, references inside the document, cost bounded.

Source: MCP 2026-07-28, "JSON Schema usage": 2020-12 unless `$schema` says otherwise; references over the
network are not to be followed; depth and cost are to be bounded.
"""

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import msgspec

from twofold.contract.cost import measure_cost
from twofold.contract.dialect import read_dialect
from twofold.contract.document import Document, Schema
from twofold.contract.patterns import OPTIONS, MeteredPattern, check_patterns
from twofold.contract.plain import Path, cut, find_foreign, format_path, format_pointer, name_type, show
from twofold.contract.sentences import TYPES, fault_of, show_pattern
from twofold.errors import InvalidDefinition
from twofold.protocol.structs import Json

if TYPE_CHECKING:
    from twofold.contract.explain import Explainer

MAX_DEPTH = 200
"""Arrays and objects inside one another in a schema; jsonschema-rs itself ends at 255. A union of unions
80 times over has 160 and is fine."""

MAX_VALUES = 100_000
"""Values of any kind in a schema: ends the reading of one whose parts contain each other over and over."""

MAX_BYTES = 1_000_000
"""A schema's JSON text; with descriptions the largest seen in the field are some ten thousand."""

MAX_TRIES = 100_000
"""Subschemas tried on any one value; about 5 ms of work. A union of 100 unions of 100 has 10,000."""

MAX_CHAIN = 200
"""Subschemas inside one another that judge the very same value, references counted."""

MAX_VALUE_DEPTH = 1_000
"""Levels of a value; the strict JSON decoder ends a little below (the interpreter's recursion limit)."""

_MAX_FRAMES = 16_000
"""Steps inside one another while a value is checked: half of what fits in a stack of 8 MB (measured)."""


class Problem(msgspec.Struct, frozen=True):
    """One way in which a value does not fit a schema.

    Attributes:
        path: Where, as `rows[2].name`; empty for the value itself.
        message: What was expected and what came; a value under a name that announces a secret is left out.
    """

    path: str
    message: str


class CompiledSchema:
    """A schema ready to judge values. Made by `compile`; safe to use from several threads."""

    __slots__ = ("_document", "_explainer", "_max_depth", "_validator")

    def __init__(self, validator: jsonschema_rs.Validator, document: Document, max_depth: int) -> None:
        self._validator = validator
        self._document = document
        self._max_depth = max_depth
        self._explainer: Explainer | None = None

    @classmethod
    def compile(cls, schema: Schema, *, what: str) -> "CompiledSchema":
        """Check and compile a schema. Nothing is fetched, whatever it refers to.

        Args:
            schema: A JSON Schema of 2020-12 or the dialect its `$schema` names (2019-09, draft-07, -06, -04).
            what: What it is the schema of, to open messages with: `tool 'add', input schema`.

        Raises:
            InvalidDefinition: It is no schema of its dialect; the dialect is not known; a reference leaves
                the document or leads nowhere; it is too deep, too large, or too costly to check values with.
                The message names the place in the schema.
        """
        _check_bounds(schema, what=what)
        check_patterns(schema, what=what)
        dialect = read_dialect(schema, what=what)
        try:
            jsonschema_rs.meta.validate(schema)
        except jsonschema_rs.ValidationError as error:
            raise _meta_fault(error, what=what) from None
        except jsonschema_rs.ReferencingError as error:
            raise InvalidDefinition(f"{what}: {cut(str(error))}") from None
        document = Document(schema, what=what, dialect=dialect)
        cost = measure_cost(document)
        if cost.tries > MAX_TRIES or cost.chain > MAX_CHAIN:
            raise InvalidDefinition(
                f"{what}: too costly to check, as one value may be tried against {min(cost.tries, 10**9)} "
                f"subschemas, {cost.chain} of them inside one another (at most {MAX_TRIES} and {MAX_CHAIN})"
            )
        try:
            validator = _build(schema)
        except jsonschema_rs.ValidationError as error:
            raise _meta_fault(error, what=what) from None
        except jsonschema_rs.ReferencingError as error:
            raise InvalidDefinition(f"{what}: {cut(str(error))}") from None
        max_depth = min(MAX_VALUE_DEPTH, _MAX_FRAMES // cost.chain if cost.is_recursive else MAX_VALUE_DEPTH)
        return cls(validator, document, max_depth)

    def is_valid(self, value: Json) -> bool:
        """Tell whether a value fits.

        Args:
            value: As a strict JSON decoder gives it. jsonschema-rs takes nan and infinities for null, and
                this check does not look for them; `problems` does.
        """
        if self._max_depth < MAX_VALUE_DEPTH and next(find_foreign(value, max_depth=self._max_depth), None):
            return False
        try:
            return self._validator.is_valid(value)
        except ValueError:  # a key, a type or half a surrogate pair that JSON does not have
            return False

    def problems(self, value: Any, limit: int = 20) -> list[Problem]:
        """Name what does not fit, in plain words.

        Args:
            value: Any Python value; what JSON cannot hold is a problem too, nan and infinities included.
            limit: The most problems named.

        Returns:
            The problems in the order of the schema; none where the value fits. `format` is not a reason: in
            2020-12 it is an annotation.
        """
        return [Problem(format_path(path), message) for path, message in self.find_problems(value, limit)]

    def find_problems(self, value: Any, limit: int = 20, *, is_json: bool = False) -> list[tuple[Path, str]]:
        """Name what does not fit, each with its path step by step; see `problems`.

        Args:
            value: Any Python value.
            limit: The most problems named.
            is_json: It comes from a strict JSON decoder, finite and of at most `MAX_DEPTH` levels, so that it is
                not searched for what JSON cannot hold (half the time for a large value).
        """
        is_foreign_possible = not is_json or self._max_depth < MAX_DEPTH
        foreign = list(islice(find_foreign(value, max_depth=self._max_depth), limit)) if is_foreign_possible else []
        if foreign or self._validator.is_valid(value):
            return foreign
        if self._explainer is None:
            from twofold.contract.explain import Explainer  # noqa: PLC0415 - 2 ms that only a failure needs

            self._explainer = Explainer(self._document, self.build_part)
        return list(islice(self._explainer.explain(value), limit))

    @property
    def document(self) -> Document:
        """The schema taken apart."""
        return self._document

    @property
    def max_depth(self) -> int:
        """Levels of a value up to which it can be judged."""
        return self._max_depth

    def build_metered(self) -> jsonschema_rs.Validator:
        """Compile the schema once more, for values whose texts take long to try; see `MeteredPattern`."""
        return _build(self._document.root.schema, is_metered=True)

    def build_part(
        self, schema: dict[str, Any], registry: jsonschema_rs.Registry | None, *, is_metered: bool = False
    ) -> jsonschema_rs.Validator:
        """Compile another schema in the dialect of this one."""
        root = self._document.root.schema
        if isinstance(root, dict) and "$schema" in root:
            schema = {"$schema": root["$schema"], **schema}
        return _build(schema, registry, is_metered=is_metered)


def _build(
    schema: Schema, registry: jsonschema_rs.Registry | None = None, *, is_metered: bool = False
) -> jsonschema_rs.Validator:
    """Compile, with every way out of the process closed."""
    return jsonschema_rs.validator_for(
        schema,
        registry=registry,
        offline=True,
        validate_formats=False,
        pattern_options=OPTIONS,
        keywords={"pattern": MeteredPattern} if is_metered else None,
    )


def _check_bounds(schema: Any, *, what: str) -> None:
    """Refuse what is no JSON, too deep or too large, before anything recursive reads it."""
    if not isinstance(schema, dict | bool):
        raise InvalidDefinition(f"{what}: a JSON Schema is an object or a boolean, got {name_type(schema)}")
    for path, fault in find_foreign(schema, max_depth=MAX_DEPTH, max_values=MAX_VALUES):
        raise InvalidDefinition(f"{what}, at {cut(format_pointer(path))}: {fault}")
    size = len(json.dumps(schema))
    if size > MAX_BYTES:
        raise InvalidDefinition(f"{what}: {size} bytes of schema; at most {MAX_BYTES} are taken")


def _meta_fault(error: jsonschema_rs.ValidationError, *, what: str) -> InvalidDefinition:
    """Say what makes it no schema of its dialect."""
    place = f"{what}, at {cut(format_pointer(tuple(error.instance_path)))}"
    value = error.instance
    match error.kind:
        case jsonschema_rs.ValidationErrorKind.Format(format="regex"):
            clause = f"the pattern {show_pattern(str(value))} is no regular expression that can be run in bounded time"
        case jsonschema_rs.ValidationErrorKind.Referencing(error=reason):
            clause = cut(str(reason))
        case jsonschema_rs.ValidationErrorKind.AnyOf() if error.instance_path[-1:] == ["type"]:
            clause = f"unknown type {show(value)}; there are {', '.join(TYPES)}"
        case jsonschema_rs.ValidationErrorKind.AnyOf():
            clause = f"not a valid schema: {show(value)} is nothing that may stand here"
        case _:
            ((_, sentence),) = list(fault_of(error, schema={}, path=(), value=value))[:1]
            clause = f"not a valid schema: {sentence}"
    return InvalidDefinition(f"{place}: {clause}")
