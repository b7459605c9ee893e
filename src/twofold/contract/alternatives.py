"""The alternatives of a union: which of them a value is meant for, and how to name them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from twofold.contract.document import Subschema
from twofold.contract.plain import Path, describe
from twofold.contract.sentences import one_of, phrase
from twofold.protocol.structs import Json

Fits: TypeAlias = Callable[[Subschema, Json], bool]

UNIONS = ("anyOf", "oneOf")

_MAX_IN_PLACE = 50
"""Subschemas looked at to tell whether an alternative is meant; enough for any chain of references seen."""

_MAX_PHRASES = 12
"""Alternatives named in one sentence."""


class Tagged(NamedTuple):
    """What the properties that every alternative fixes say of an object.

    Attributes:
        meant: The alternatives whose fixed properties it has.
        fault: Where and what, if it has those of none of them.
    """

    meant: list[Subschema]
    fault: tuple[Path, str] | None


def gather_in_place(node: Subschema) -> list[Subschema]:
    """Gather what certainly applies to the same value: the subschema, what it refers to, its `allOf`."""
    found = [node]
    for one in found:
        for part in one.parts:
            is_new = part.keyword in {"$ref", "allOf"} and part.node not in found
            if is_new and len(found) < _MAX_IN_PLACE:
                found.append(part.node)
    return [one for one in found if isinstance(one.schema, dict)]


def schemas_in_place(node: Subschema) -> list[dict[str, Any]]:
    """Give what `gather_in_place` gathers, as schemas."""
    return [one.schema for one in gather_in_place(node) if isinstance(one.schema, dict)]


def find_property(node: Subschema, name: str) -> Iterator[Subschema]:
    """Go through what is said of a property where a subschema applies."""
    for one in gather_in_place(node):
        yield from (part.node for part in one.parts if part.keyword == "properties" and part.key == name)


def list_alternatives(node: Subschema) -> list[Subschema]:
    """Give the alternatives that stand in place of a subschema which is nothing but a union; none otherwise."""
    found = gather_in_place(node)
    if phrase(schemas_in_place(node)) is not None:
        return []
    return [part.node for one in found for part in one.parts if part.keyword in UNIONS]


def flatten(alternatives: Sequence[Subschema], item: Json, fits: Fits) -> list[Subschema]:
    """Put in the place of each alternative that is itself a union what it offers, if the value fits none of it."""
    flat: list[Subschema] = []
    stack = list(reversed(alternatives))
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        inner = list_alternatives(node)
        if inner and not any(fits(one, item) for one in inner):
            stack.extend(reversed(inner))
        else:
            flat.append(node)
    return flat


def phrase_node(node: Subschema) -> str | None:
    """Name what a subschema expects, its alternatives included; None where it says nothing of it."""
    named = phrase(schemas_in_place(node))
    return named if named is not None else phrase_all(flatten(list_alternatives(node), None, lambda *_: False))


def phrase_all(alternatives: Sequence[Subschema]) -> str | None:
    """Name what alternatives expect, joined by `or`; None where one of them cannot be named."""
    phrases = list(dict.fromkeys(phrase(schemas_in_place(one)) for one in alternatives))
    if not phrases or None in phrases:
        return None
    shown = [str(one) for one in phrases[:_MAX_PHRASES]]
    return " or ".join(shown + (["another form"] if len(phrases) > _MAX_PHRASES else []))


def choose_by_tag(alternatives: list[Subschema], item: dict[str, Json], *, path: Path, fits: Fits) -> Tagged:
    """Tell by the properties that every alternative fixes (`kind: {const: …}`) which ones an object is meant for.

    Args:
        alternatives: Objects, several of them.
        item: The object.
        path: Where it stands.
        fits: Asks whether a part of the schema takes a value.
    """
    for name in _find_tags(alternatives):
        if name in item and not any(_fits_tag(one, name, item, fits=fits) for one in alternatives):
            place = (*path, name)
            expected = one_of(list_tags(alternatives, name))
            return Tagged([], (place, f"expected {expected}, got {describe(item[name], path=place)}"))
    meant = _prefer(alternatives, item, fits=fits)
    if len(meant) > 1:
        for name in _find_tags(meant):
            if name not in item and all(_requires(one, name) for one in meant):
                return Tagged([], ((*path, name), f"missing; expected {one_of(list_tags(meant, name))}"))
    return Tagged(meant, None)


def _prefer(alternatives: list[Subschema], item: dict[str, Json], *, fits: Fits) -> list[Subschema]:
    """Keep those that fix a property to what the object has, else those that fix none to something else."""
    agreeing: list[Subschema] = []
    open_to_it: list[Subschema] = []
    for one in alternatives:
        answers = [_fits_tag(one, name, item, fits=fits) for name in _find_tags([one]) if name in item]
        if all(answers):
            (agreeing if answers else open_to_it).append(one)
    return agreeing or open_to_it or alternatives


def _fits_tag(alternative: Subschema, name: str, item: dict[str, Json], *, fits: Fits) -> bool:
    return all(fits(fixed, item[name]) for fixed in find_property(alternative, name))


def list_tags(alternatives: Sequence[Subschema], name: str) -> list[Json]:
    """List the values that alternatives fix a property to, each once."""
    values: list[Json] = []
    for alternative in alternatives:
        values += [value for value in _fixed_values(alternative, name) if value not in values]
    return values


def _find_tags(alternatives: Sequence[Subschema]) -> list[str]:
    """Give the properties that every one of the alternatives fixes."""
    first, *others = alternatives
    names = dict.fromkeys(key for schema in schemas_in_place(first) for key in schema.get("properties", ()))
    return [name for name in names if all(_fixed_values(one, name) for one in (first, *others))]


def _fixed_values(alternative: Subschema, name: str) -> list[Json]:
    for node in find_property(alternative, name):
        for schema in schemas_in_place(node):
            if "const" in schema:
                return [schema["const"]]
            if isinstance(schema.get("enum"), list | tuple):
                return list(schema["enum"])
    return []


def _requires(alternative: Subschema, name: str) -> bool:
    return any(name in schema.get("required", ()) for schema in schemas_in_place(alternative))


def kind_of(node: Subschema) -> dict[str, Any]:
    """Keep of an alternative what tells by itself which kind of value it takes."""
    kept = ("type", "const", "enum")
    return {"allOf": [{name: one[name] for name in kept if name in one} for one in schemas_in_place(node)]}
