"""What about a value does not fit a schema, in plain words.

jsonschema-rs can list its errors, but builds for each union everything that is wrong with every
alternative: one small value under a small recursive union takes seconds and gigabytes. So the
schema is followed here, one step at a time: whether a part fits is asked of a validator of that
part alone, and only what fails is looked into.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jsonschema_rs

from twofold.contract.alternatives import (
    UNIONS,
    choose_by_tag,
    find_property,
    flatten,
    kind_of,
    list_tags,
    phrase_all,
    phrase_node,
    schemas_in_place,
)
from twofold.contract.document import SAME, Document, Part, Subschema
from twofold.contract.forms import PATTERNS
from twofold.contract.plain import Path, cut, describe, format_path
from twofold.contract.sentences import fault_of, one_of
from twofold.protocol.structs import Json

Compile: TypeAlias = Callable[[dict[str, Any], jsonschema_rs.Registry | None], jsonschema_rs.Validator]

_ROOT_URI = "urn:twofold:schema"

_LEAF_KEYWORDS = frozenset(
    {"type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "required", "dependentRequired"}
)
"""Keywords that judge a value by itself, without a subschema."""

_NAMING = frozenset({"properties", "patternProperties"})
_TUPLES = frozenset({"prefixItems", "items"})

_READ_WHOLE = frozenset({"const", "enum", "uniqueItems"})
"""Those among them that look at all there is in a value."""

_BLAMED_LAST = ("not", "contains", "unevaluatedProperties", "unevaluatedItems")

_MAX_DEEPER = 200
"""Misfits of one list or object looked into; nobody reads more, and each costs some microseconds."""

_BATCH = 500
"""Members of a list or object judged at once; where none is wrong they cost a tenth of what they cost one by one."""

_FEW = 8
"""So few are judged one by one."""

_MAX_APART = 4
"""Alternatives of which is said why the value is none of them."""


class _Verdict(NamedTuple):
    """How a value stands to an `anyOf` or `oneOf`.

    Attributes:
        meant: The one alternative it is meant for, whose own faults tell more than any sentence here.
        faults: What is wrong otherwise.
    """

    meant: Subschema | None = None
    faults: Sequence[tuple[Path, str]] = ()


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
        has_fault = False
        for fault in self._walk(self._document.root, (), value):
            has_fault = True
            yield fault
        if not has_fault:  # references that only lead back to where they came from
            yield (), _last_resort(self._document.root, (), value)

    def _walk(self, root: Subschema, start: Path, value: Json, *, is_brief: bool = False) -> Iterator[tuple[Path, str]]:
        """Go through what does not fit a part of the schema.

        Args:
            root: A part that refuses the value.
            start: Where the value stands.
            value: The value.
            is_brief: Of unions is not told why the value is none of their alternatives: that would double
                the work at every step.
        """
        stack: list[tuple[Subschema, Path, Json]] = [(root, start, value)]
        seen: dict[Path, list[Subschema]] = {}
        missing: set[Path] = set()
        while stack:
            node, path, item = stack.pop()
            applied = seen.setdefault(path, [])
            if node in applied:
                continue
            applied.append(node)
            faults = list(itertools.islice(self._leaf_faults(node, path, item, applied=applied), _MAX_DEEPER))
            verdicts = [] if _lacks_tag(node, path, faults) else self._judge_unions(node, path, item, is_brief=is_brief)
            faults += [fault for verdict in verdicts for fault in verdict.faults]
            names = ((path, fault) for fault in self._name_faults(node, item))
            faults += itertools.islice(names, _MAX_DEEPER)
            for place, fault in faults:
                if not (fault.startswith("missing") and place in missing):
                    yield place, fault
            missing.update(place for place, fault in faults if fault.startswith("missing"))
            deeper = [(verdict.meant, path, item) for verdict in verdicts if verdict.meant]
            deeper += itertools.islice(self._failing_parts(node, path, item), _MAX_DEEPER)
            stack.extend(reversed(deeper))
            if not faults and not deeper:
                yield path, _last_resort(node, path, item)

    def _validator(self, purpose: str, path: Path, make: Callable[[], dict[str, Any]]) -> jsonschema_rs.Validator:
        validator = self._validators.get((purpose, path))
        if validator is None:
            schema = make()
            validator = self._compile(schema, self._registry if purpose in {"whole", "each"} else None)
            self._validators[purpose, path] = validator
        return validator

    def _fits(self, node: Subschema, item: Json) -> bool:
        """Ask whether a part of the schema takes a part of the value."""
        if isinstance(node.schema, bool):
            return node.schema
        whole = self._validator("whole", node.path, lambda: {"$ref": _ROOT_URI + node.uri_fragment})
        return whole.is_valid(item)

    def _fit_all(self, node: Subschema, items: Sequence[Json]) -> bool:
        """Ask whether a part of the schema takes every one of some values."""
        if len(items) <= _FEW or isinstance(node.schema, bool):
            return all(self._fits(node, item) for item in items)
        each = self._validator("each", node.path, lambda: {"items": {"$ref": _ROOT_URI + node.uri_fragment}})
        return each.is_valid(items)

    def _leaf_faults(
        self, node: Subschema, path: Path, item: Json, *, applied: Sequence[Subschema] = ()
    ) -> Iterator[tuple[Path, str]]:
        """Go through what is wrong with a value by itself; what was applied to it before may say what is missing."""
        schema = node.schema
        if isinstance(schema, bool):
            if not schema:
                yield path, f"nothing is allowed here, got {describe(item, path=path)}"
        elif not self._document.stands_alone(schema):
            outline = item if _READ_WHOLE & schema.keys() else _outline(item)
            for error in self._validator("leaf", node.path, lambda: _shallow(schema)).iter_errors(outline):
                yield from fault_of(
                    error,
                    schema=schema,
                    path=path,
                    value=item,
                    phrase_property=lambda name: _phrase_property(applied, name),
                )

    def _name_faults(self, node: Subschema, item: Json) -> Iterator[str]:
        """Go through the properties whose names do not fit."""
        names = [part.node for part in node.parts if part.keyword == "propertyNames"]
        for name in item if names and isinstance(item, dict) else ():
            for wanted in names:
                if not self._fits(wanted, name):
                    faults = [fault for _, fault in self._leaf_faults(wanted, (), name)]
                    yield f"the name {cut(repr(name))}: {faults[0] if faults else _last_resort(wanted, (), name)}"

    def _judge_unions(self, node: Subschema, path: Path, item: Json, *, is_brief: bool) -> list[_Verdict]:
        """See how a value stands to the unions of a subschema."""
        verdicts = []
        for keyword in UNIONS:
            alternatives = [part.node for part in node.parts if part.keyword == keyword]
            fitting = sum(self._fits(alternative, item) for alternative in alternatives)
            if keyword == "oneOf" and fitting > 1:
                fault = f"fits {fitting} alternatives where one is allowed, got {describe(item, path=path)}"
                verdicts.append(_Verdict(None, [(path, fault)]))
            elif alternatives and not fitting:
                verdicts.append(self._judge_misfit(alternatives, path, item, is_brief=is_brief))
        return verdicts

    def _judge_misfit(self, alternatives: list[Subschema], path: Path, item: Json, *, is_brief: bool) -> _Verdict:
        """Find the alternative that is meant, or say why it is none of them."""
        flat = flatten(alternatives, item, self._fits)
        possible = [one for one in flat if self._is_of_kind(one, item)]
        if len(possible) > 1 and isinstance(item, dict):
            possible, fault = choose_by_tag(possible, item, path=path, fits=self._fits)
            if fault is not None:
                return _Verdict(None, [fault])
        if len(possible) == 1 and not any(one.get("pattern") in PATTERNS for one in schemas_in_place(possible[0])):
            return _Verdict(possible[0])
        expected = phrase_all(flat)
        got = f"got {describe(item, path=path)}"
        if len(possible) <= 1:
            return _Verdict(None, [(path, f"expected {expected or 'another form'}, {got}")])
        head = f"expected {expected}" if expected and " or " in expected else f"fits none of {len(flat)} alternatives"
        sentence = f"{head}, {got}"
        return _Verdict(None, [(path, sentence)]) if is_brief else self._tell_apart(possible, path, item, sentence)

    def _tell_apart(self, alternatives: Sequence[Subschema], path: Path, item: Json, sentence: str) -> _Verdict:
        """Say of each alternative why the value is not it; in one sentence if all want the same place changed."""
        reasons = [
            list(itertools.islice(self._walk(one, path, item, is_brief=True), _FEW))
            for one in alternatives[:_MAX_APART]
        ]
        places = {place for faults in reasons for place, _ in faults}
        if len(places) == 1 and len(alternatives) <= _MAX_APART:
            (place,) = places
            if place != path and len({fault for faults in reasons for _, fault in faults}) == 1:
                return _Verdict(alternatives[0])  # they agree; what is wrong there is told in full
            merged = _merge([fault for faults in reasons for _, fault in faults])
            if merged is not None:
                return _Verdict(None, [(place, merged)])
        for number, (alternative, faults) in enumerate(zip(alternatives, reasons, strict=False), start=1):
            titles = [one["title"] for one in schemas_in_place(alternative) if isinstance(one.get("title"), str)]
            sentence += f"; {cut(titles[0]) if titles else f'alternative {number}'}: {_give_reason(faults, path)}"
        more = len(alternatives) - len(reasons)
        return _Verdict(None, [(path, sentence + (f"; and {more} more" if more else ""))])

    def _failing_parts(self, node: Subschema, path: Path, item: Json) -> Iterator[tuple[Subschema, Path, Json]]:
        """Go through the parts that must fit and do not; alternatives of unions are judged for themselves."""
        for part in node.parts:
            if part.place == SAME:
                if self._must_fit(node, part, item) and not self._fits(part.node, item):
                    yield part.node, path, item
            else:
                targets = self._targets(node, part, item)
                while batch := list(itertools.islice(targets, _BATCH)):
                    if self._fit_all(part.node, [child for _, child in batch]):
                        continue
                    for key, child in batch:
                        if not self._fits(part.node, child):
                            yield part.node, (*path, key), child

    def _must_fit(self, node: Subschema, part: Part, item: Json) -> bool:
        """Tell whether a part applied to the same value has to fit it."""
        match part.keyword:
            case "then" | "else":
                condition = next((other.node for other in node.parts if other.keyword == "if"), None)
                return condition is not None and self._fits(condition, item) is (part.keyword == "then")
            case "dependentSchemas" | "dependencies":
                return isinstance(item, dict) and part.key in item
            case "anyOf" | "oneOf" | "not" | "if":
                return False
            case _:
                return True

    def _is_of_kind(self, node: Subschema, item: Json) -> bool:
        """Tell whether a value has an alternative's type, and is one of the values it lists."""
        if isinstance(node.schema, bool):
            return node.schema
        reads_whole = any(_READ_WHOLE & schema.keys() for schema in schemas_in_place(node))
        outline = item if reads_whole else _outline(item)
        return self._validator("kind", node.path, lambda: kind_of(node)).is_valid(outline)

    def _targets(self, node: Subschema, part: Part, item: Json) -> Iterator[tuple[str | int, Json]]:
        """Go through the members of a value that a part is applied to."""
        targets: Iterable[tuple[str | int, Json]] = ()
        if isinstance(item, dict):
            match part.keyword:
                case "properties" if part.key in item:
                    targets = [(str(part.key), item[part.key])]
                case "additionalProperties" if part.node.schema is False:
                    pass  # what it refuses is named as unknown already
                case "additionalProperties" if isinstance(node.schema, dict) and not _NAMING & node.schema.keys():
                    targets = item.items()
                case "patternProperties" | "additionalProperties":
                    targets = ((key, child) for key, child in item.items() if self._is_meant(node, part, key))
        elif isinstance(item, list | tuple):
            match part.keyword, part.key:
                case "prefixItems" | "items", int(index):
                    targets = [(index, item[index])] if index < len(item) else []
                case "items" | "additionalItems", None:
                    before = sum(other.key is not None for other in node.parts if other.keyword in _TUPLES)
                    targets = itertools.islice(enumerate(item), before, None)
        return iter(targets)

    def _is_meant(self, node: Subschema, part: Part, key: str) -> bool:
        """Tell whether `patternProperties` or `additionalProperties` is meant for a property."""
        if part.keyword == "patternProperties":
            return self._matches(str(part.key), key)
        schema = node.schema if isinstance(node.schema, dict) else {}
        if key in schema.get("properties", ()):
            return False
        return not any(self._matches(pattern, key) for pattern in schema.get("patternProperties", ()))

    def _matches(self, pattern: str, key: str) -> bool:
        return self._validator("pattern", (pattern,), lambda: {"pattern": pattern}).is_valid(key)


def _outline(item: Json) -> Json:
    """Keep of a value what keywords without subschemas look at; what is inside would be converted for nothing."""
    if isinstance(item, dict):
        return dict.fromkeys(item)
    return [None] * len(item) if isinstance(item, list | tuple) else item


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


def _lacks_tag(node: Subschema, path: Path, faults: Sequence[tuple[Path, str]]) -> bool:
    """Tell whether the property is missing that a union is told apart by; nothing else can then be said of it."""
    discriminator = node.schema.get("discriminator") if isinstance(node.schema, dict) else None
    if not isinstance(discriminator, dict):
        return False
    return any(place == (*path, discriminator.get("propertyName")) for place, _ in faults)


def _phrase_property(applied: Sequence[Subschema], name: str) -> str | None:
    """Say what is expected of a property by all that applies to its object."""
    for node in applied:
        for found in find_property(node, name):
            phrase = phrase_node(found)
            if phrase is not None:
                return phrase
    for node in applied:
        tags = list_tags([part.node for part in node.parts if part.keyword in UNIONS], name)
        if tags:
            return one_of(tags)
    return None


def _merge(faults: Sequence[str]) -> str | None:
    """Make one sentence of several on one place: `expected an integer or a string, got null`."""
    openings, endings = ["missing; expected ", "expected "], {fault.partition(", got ")[2] for fault in faults}
    opening = next((one for one in openings if all(fault.startswith(one) for fault in faults)), None)
    if opening is None or len(endings) > 1:
        return None
    wanted = dict.fromkeys(fault.partition(", got ")[0].removeprefix(opening) for fault in faults)
    if len(wanted) == 1 and endings == {""}:
        return faults[0]
    ending = endings.pop()
    return f"{opening}{' or '.join(wanted)}" + (f", got {ending}" if ending else "")


def _give_reason(faults: Sequence[tuple[Path, str]], path: Path) -> str:
    """Say in few words why a value is not what an alternative wants: what is missing, or the first misfit."""
    if not faults:  # references that only lead back to where they came from
        return "does not fit"
    missing = [format_path(place[len(path) :]) for place, fault in faults if fault.startswith("missing")]
    if missing:
        return f"{', '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} missing"
    place, fault = faults[0]
    return f"{format_path(place[len(path) :])!r} {fault}" if place != path else fault


def _last_resort(node: Subschema, path: Path, item: Json) -> str:
    """Blame what judges the value as a whole."""
    schema = node.schema if isinstance(node.schema, dict) else {}
    blamed = [repr(keyword) for keyword in _BLAMED_LAST if keyword in schema]
    fault = f"does not fit {' and '.join(blamed) or 'the schema'} at {cut(node.pointer)}"
    return f"{fault}, got {describe(item, path=path)}"
