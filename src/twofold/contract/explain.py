"""What about a value does not fit a schema, in plain words.

jsonschema-rs can list its errors, but builds for each union everything that is wrong with every
alternative: one small value under a small recursive union takes seconds and gigabytes. So the
schema is followed here, one step at a time: whether a part fits is asked of a validator of that
part alone, and only what fails is looked into.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import jsonschema_rs

from twofold.contract.document import SAME, Document, Part, Subschema
from twofold.contract.plain import Path, cut, describe
from twofold.contract.sentences import fault_of, phrase
from twofold.protocol.structs import Json

Compile: TypeAlias = Callable[[dict[str, Any], jsonschema_rs.Registry | None], jsonschema_rs.Validator]

_ROOT_URI = "urn:twofold:schema"

_LEAF_KEYWORDS = frozenset(
    {"type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "required", "dependentRequired"}
)
"""Keywords that judge a value by itself, without a subschema."""

_BLAMED_LAST = ("not", "contains", "unevaluatedProperties", "unevaluatedItems")

_MAX_PHRASES = 12
"""Alternatives named in one sentence."""

_MAX_DEEPER = 200
"""Misfits of one list or object looked into; nobody reads more, and each costs some microseconds."""

_MAX_IN_PLACE = 50
"""Subschemas looked at to tell whether an alternative is meant; enough for any chain of references seen."""


@dataclass(frozen=True, slots=True)
class _Union:
    """How a value stands to an `anyOf` or `oneOf`.

    Attributes:
        keyword: Which of the two.
        alternatives: All alternatives; empty where the keyword is absent.
        fitting: How many the value fits.
        meant: The one it is meant for by type and fixed properties, if it fits none.
    """

    keyword: str
    alternatives: list[Subschema]
    fitting: int
    meant: Subschema | None

    def fault(self, item: Json, path: Path) -> str | None:
        """Say in one sentence what is wrong, unless the alternative that is meant can tell more."""
        if self.keyword == "oneOf" and self.fitting > 1:
            return f"fits {self.fitting} alternatives where one is allowed, got {describe(item, path=path)}"
        if not self.alternatives or self.fitting or self.meant:
            return None
        phrases = list(dict.fromkeys(phrase(_in_place(one)) for one in self.alternatives))
        shown = phrases[:_MAX_PHRASES] + (["another form"] if len(phrases) > _MAX_PHRASES else [])
        return f"expected {' or '.join(shown)}, got {describe(item, path=path)}"


class Explainer:
    """Explains misfits of one document; validators of parts are made when first needed and kept.

    Args:
        document: The schema taken apart.
        compile_part: Compiles a schema as the document itself was, given what it may refer to.
    """

    def __init__(self, document: Document, compile_part: Compile) -> None:
        self._document = document
        self._compile = compile_part
        self._registry = jsonschema_rs.Registry([(_ROOT_URI, document.root.schema)])
        self._validators: dict[tuple[str, Path], jsonschema_rs.Validator] = {}

    def explain(self, value: Json) -> Iterator[tuple[Path, str]]:
        """Go through what does not fit.

        Args:
            value: A JSON value that the whole schema refuses.

        Yields:
            The path in the value, and a sentence.
        """
        stack: list[tuple[Subschema, Path, Json]] = [(self._document.root, (), value)]
        seen: set[tuple[Path, Path]] = set()
        has_fault = False
        while stack:
            node, path, item = stack.pop()
            if (node.path, path) in seen:
                continue
            seen.add((node.path, path))
            unions = [self._judge_union(node, keyword, item) for keyword in ("anyOf", "oneOf")]
            faults = list(self._leaf_faults(node, path, item))
            faults += [(path, fault) for union in unions if (fault := union.fault(item, path))]
            faults += [(path, fault) for fault in self._name_faults(node, item)]
            yield from faults
            meant = {id(union.meant) for union in unions}
            deeper = list(itertools.islice(self._failing_parts(node, path, item, meant=meant), _MAX_DEEPER))
            stack.extend(reversed(deeper))
            if not faults and not deeper:
                yield path, _last_resort(node, path, item)
            has_fault = has_fault or bool(faults) or not deeper
        if not has_fault:  # references that only lead back to where they came from
            yield (), _last_resort(self._document.root, (), value)

    def _validator(self, purpose: str, path: Path, make: Callable[[], dict[str, Any]]) -> jsonschema_rs.Validator:
        validator = self._validators.get((purpose, path))
        if validator is None:
            schema = make()
            validator = self._compile(schema, self._registry if purpose == "whole" else None)
            self._validators[purpose, path] = validator
        return validator

    def _fits(self, node: Subschema, item: Json) -> bool:
        """Ask whether a part of the schema takes a part of the value."""
        if isinstance(node.schema, bool):
            return node.schema
        whole = self._validator("whole", node.path, lambda: {"$ref": _ROOT_URI + node.uri_fragment})
        return whole.is_valid(item)

    def _leaf_faults(self, node: Subschema, path: Path, item: Json) -> Iterator[tuple[Path, str]]:
        """Go through what is wrong with a value by itself."""
        schema = node.schema
        if isinstance(schema, bool):
            if not schema:
                yield path, f"nothing is allowed here, got {describe(item, path=path)}"
        elif not self._document.stands_alone(schema):
            for error in self._validator("leaf", node.path, lambda: _shallow(schema)).iter_errors(item):
                yield from fault_of(error, schema=schema, path=path, value=item)

    def _name_faults(self, node: Subschema, item: Json) -> Iterator[str]:
        """Go through the properties whose names do not fit."""
        names = [part.node for part in node.parts if part.keyword == "propertyNames"]
        for name in item if names and isinstance(item, dict) else ():
            for wanted in names:
                if not self._fits(wanted, name):
                    faults = [fault for _, fault in self._leaf_faults(wanted, (), name)]
                    yield f"the name {cut(repr(name))}: {faults[0] if faults else _last_resort(wanted, (), name)}"

    def _judge_union(self, node: Subschema, keyword: str, item: Json) -> "_Union":
        """See which alternatives of `anyOf` or `oneOf` a value fits, or which one it is meant for."""
        alternatives = [part.node for part in node.parts if part.keyword == keyword]
        fitting = sum(self._fits(alternative, item) for alternative in alternatives)
        possible = [one for one in alternatives if self._is_of_kind(one, item)] if not fitting else []
        return _Union(keyword, alternatives, fitting, possible[0] if len(possible) == 1 else None)

    def _failing_parts(
        self, node: Subschema, path: Path, item: Json, *, meant: set[int]
    ) -> Iterator[tuple[Subschema, Path, Json]]:
        """Go through the parts that must fit and do not; of a union only the alternative that is meant."""
        for part in node.parts:
            if part.place == SAME:
                if self._must_fit(node, part, item, meant=meant) and not self._fits(part.node, item):
                    yield part.node, path, item
            else:
                for key, child in self._targets(node, part, item):
                    if not self._fits(part.node, child):
                        yield part.node, (*path, key), child

    def _must_fit(self, node: Subschema, part: Part, item: Json, *, meant: set[int]) -> bool:
        """Tell whether a part applied to the same value has to fit it."""
        match part.keyword:
            case "anyOf" | "oneOf":
                return id(part.node) in meant
            case "then" | "else":
                condition = next((other.node for other in node.parts if other.keyword == "if"), None)
                return condition is not None and self._fits(condition, item) is (part.keyword == "then")
            case "dependentSchemas" | "dependencies":
                return isinstance(item, dict) and part.key in item
            case "not" | "if":
                return False
            case _:
                return True

    def _is_of_kind(self, node: Subschema, item: Json) -> bool:
        """Tell whether a value has an alternative's type, and the values it fixes (`kind: {const: …}`)."""
        if isinstance(node.schema, bool):
            return node.schema
        kind = self._validator("kind", node.path, lambda: {"allOf": [_kind(one) for one in _in_place(node)]})
        return kind.is_valid(item)

    def _targets(self, node: Subschema, part: Part, item: Json) -> Iterator[tuple[str | int, Json]]:
        """Go through the members of a value that a part is applied to."""
        if isinstance(item, dict):
            match part.keyword:
                case "properties" if part.key in item:
                    yield str(part.key), item[part.key]
                case "patternProperties" | "additionalProperties":
                    yield from ((key, child) for key, child in item.items() if self._is_meant(node, part, key))
        elif isinstance(item, list | tuple):
            match part.keyword, part.key:
                case "prefixItems" | "items", int(index):
                    yield from [(index, item[index])] if index < len(item) else []
                case "items" | "additionalItems", None:
                    indexed = {other.key for other in node.parts if other.keyword in {"prefixItems", "items"}}
                    yield from ((index, child) for index, child in enumerate(item) if index not in indexed)

    def _is_meant(self, node: Subschema, part: Part, key: str) -> bool:
        """Tell whether `patternProperties` or `additionalProperties` is meant for a property."""
        if part.keyword == "patternProperties":
            return self._matches(str(part.key), key)
        schema = node.schema if isinstance(node.schema, dict) else {}
        if part.node.schema is False or key in schema.get("properties", ()):
            return False  # what `additionalProperties: false` refuses is named as unknown already
        return not any(self._matches(pattern, key) for pattern in schema.get("patternProperties", ()))

    def _matches(self, pattern: str, key: str) -> bool:
        return self._validator("pattern", (pattern,), lambda: {"pattern": pattern}).is_valid(key)


def _shallow(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep of a schema what judges a value by itself, names of properties included."""
    shallow = {keyword: value for keyword, value in schema.items() if keyword in _LEAF_KEYWORDS}
    if schema.get("additionalProperties") is False:
        shallow["additionalProperties"] = False
        for keyword in ("properties", "patternProperties"):
            shallow[keyword] = {key: {} for key in schema.get(keyword, ())}
    dependencies = schema.get("dependencies", {})
    shallow["dependencies"] = {key: names for key, names in dependencies.items() if isinstance(names, list)}
    return shallow


def _kind(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep of a schema what tells which alternative of a union is meant."""
    kind: dict[str, Any] = {keyword: schema[keyword] for keyword in ("type", "const", "enum") if keyword in schema}
    fixed = {
        key: {keyword: child[keyword] for keyword in ("const", "enum") if keyword in child}
        for key, child in schema.get("properties", {}).items()
        if isinstance(child, dict)
    }
    return {**kind, "properties": fixed}


def _in_place(node: Subschema) -> list[dict[str, Any]]:
    """Gather what certainly applies to the same value: the subschema, what it refers to, its `allOf`."""
    found = [node]
    for one in found:
        for part in one.parts:
            is_new = part.keyword in {"$ref", "allOf"} and part.node not in found
            if is_new and len(found) < _MAX_IN_PLACE:
                found.append(part.node)
    return [one.schema for one in found if isinstance(one.schema, dict)]


def _last_resort(node: Subschema, path: Path, item: Json) -> str:
    """Blame what judges the value as a whole."""
    schema = node.schema if isinstance(node.schema, dict) else {}
    blamed = [repr(keyword) for keyword in _BLAMED_LAST if keyword in schema]
    fault = f"does not fit {' and '.join(blamed) or 'the schema'} at {node.pointer}"
    return f"{fault}, got {describe(item, path=path)}"
