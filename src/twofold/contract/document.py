"""A schema taken apart: its subschemas, which applies to what, and where each reference leads.

Nothing here is recursive and nothing is fetched: a reference leads into the document, to one of the
published meta-schemas (which jsonschema-rs carries with it), or it is a fault.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from twofold.contract.dialect import Dialect, read_dialect
from twofold.contract.plain import Path, cut, format_pointer
from twofold.errors import InvalidDefinition

Schema: TypeAlias = dict[str, Any] | bool

MAX_SUBSCHEMAS = 10_000
"""Subschemas of one schema. Large ones have some hundred; compiling this many takes 0.1 s."""

# What a keyword's subschemas are applied to. The keywords of all dialects stand together: one that a
# dialect does not know is ignored there, and reading it costs nothing.
SAME = "same"
ANY_PROPERTY = "property "
ANY_ITEM = "item "
_PLACES = {
    "$ref": SAME,
    "$dynamicRef": SAME,
    "$recursiveRef": SAME,
    "allOf": SAME,
    "anyOf": SAME,
    "oneOf": SAME,
    "not": SAME,
    "if": SAME,
    "then": SAME,
    "else": SAME,
    "dependentSchemas": SAME,
    "dependencies": SAME,
    "properties": ANY_PROPERTY,
    "patternProperties": ANY_PROPERTY,
    "additionalProperties": ANY_PROPERTY,
    "unevaluatedProperties": ANY_PROPERTY,
    "propertyNames": "names",
    "prefixItems": ANY_ITEM,
    "items": ANY_ITEM,
    "additionalItems": ANY_ITEM,
    "unevaluatedItems": ANY_ITEM,
    "contains": ANY_ITEM,
}
_HOLD_ONE = frozenset(
    {"not", "if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames", "items"}
    | {"additionalItems", "unevaluatedItems", "contains", "contentSchema"}
)
_HOLD_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_HOLD_MAP = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_KNOWN_DOCUMENTS = ("https://json-schema.org/draft/", "http://json-schema.org/draft-0")


class Part(msgspec.Struct, frozen=True):
    """A subschema that another one applies.

    Attributes:
        keyword: By which keyword.
        key: Under which name or index of that keyword, if it holds several.
        node: The subschema.
    """

    keyword: str
    key: str | int | None
    node: "Subschema"

    @property
    def place(self) -> str:
        """What it is applied to: the same value, any or one certain property, any or one certain item."""
        place = _PLACES[self.keyword]
        if self.keyword == "properties" or (place == ANY_ITEM and self.key is not None):
            return f"{place}{self.key}"
        return place


class Subschema(msgspec.Struct, eq=False):
    """One schema within a document.

    Attributes:
        path: Where it stands, from the root.
        schema: Itself.
        uri: What references in it are relative to: the nearest identifier, or empty.
        parts: The subschemas it applies.
    """

    path: Path
    schema: Schema
    uri: str
    parts: list[Part] = msgspec.field(default_factory=list)

    @property
    def pointer(self) -> str:
        """Where it stands, as a JSON Pointer fragment for people."""
        return format_pointer(self.path)

    @property
    def uri_fragment(self) -> str:
        """Where it stands, as a fragment that can be part of a URI (RFC 6901, section 6)."""
        from urllib.parse import quote  # noqa: PLC0415 - 3 ms of start-up that most schemas never need

        return "#" + quote(self.pointer[1:], safe="/~")


class Document:
    """A whole schema and its subschemas.

    Args:
        schema: Plain JSON, bounded in depth and size, valid under its meta-schema.
        what: What the schema is of, for messages.
        dialect: The dialect of the root.

    Attributes:
        root: The whole.
        subschemas: Every subschema by its path.

    Raises:
        InvalidDefinition: A reference that leaves the document or leads nowhere, too many subschemas, or
            an embedded schema of an unknown dialect.
    """

    def __init__(self, schema: Schema, *, what: str, dialect: Dialect) -> None:
        self.dialect = dialect
        self.subschemas: dict[Path, Subschema] = {}
        self._what = what
        self._resources: dict[str, Subschema] = {}
        self._anchors: dict[tuple[str, str], Subschema] = {}
        self._unresolved: list[Subschema] = []
        self.root = self._read((), schema, uri="")
        self._resources.setdefault("", self.root)
        while self._unresolved:
            self._resolve(self._unresolved.pop())

    def stands_alone(self, schema: Schema) -> bool:
        """Whether a `$ref` in it makes everything beside it void."""
        return self.dialect.ref_stands_alone and isinstance(schema, dict) and isinstance(schema.get("$ref"), str)

    def _read(self, path: Path, schema: Schema, *, uri: str) -> Subschema:
        """Read a subschema and all below it."""
        first = self._add(path, schema, uri=uri)
        stack = [first]
        while stack:
            parent = stack.pop()
            is_void = self.stands_alone(parent.schema)
            for keyword, key, child in _children(parent.schema):
                path = (*parent.path, keyword) if key is None else (*parent.path, keyword, key)
                known = self.subschemas.get(path)
                node = known or self._add(path, child, uri=parent.uri)
                if keyword in _PLACES and not is_void:
                    parent.parts.append(Part(keyword, key, node))
                if known is None:
                    stack.append(node)
        return first

    def _add(self, path: Path, schema: Schema, *, uri: str) -> Subschema:
        if len(self.subschemas) >= MAX_SUBSCHEMAS:
            raise InvalidDefinition(
                f"{self._what}: more than {MAX_SUBSCHEMAS} subschemas; split the tool or loosen its types"
            )
        node = Subschema(path, schema, uri)
        self.subschemas[path] = node
        if isinstance(schema, dict):
            if path and isinstance(schema.get("$schema"), str):
                read_dialect(schema, what=f"{self._what}, at {cut(node.pointer)}")
            if not self.stands_alone(schema):
                self._identify(node, schema)
            if any(isinstance(schema.get(keyword), str) for keyword in REFERENCES):
                self._unresolved.append(node)
        return node

    def _identify(self, node: Subschema, schema: dict[str, Any]) -> None:
        """Note the identifier and the anchors a subschema carries."""
        name = schema.get(self.dialect.id_keyword)
        if isinstance(name, str) and name.startswith("#"):  # an anchor, up to draft-07
            self._anchors.setdefault((node.uri, name[1:]), node)
        elif isinstance(name, str):
            node.uri = self._absolute(node.uri, name.partition("#")[0], node)
            self._resources.setdefault(node.uri, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := schema.get(keyword), str):
                self._anchors.setdefault((node.uri, name), node)

    def _resolve(self, node: Subschema) -> None:
        """Find where a subschema's references lead."""
        for keyword in REFERENCES:
            reference = node.schema.get(keyword) if isinstance(node.schema, dict) else None
            if isinstance(reference, str):
                target = self._target(node, reference)
                if target is not None:
                    node.parts.append(Part(keyword, None, target))

    def _target(self, node: Subschema, reference: str) -> Subschema | None:
        """Find what a reference means; None is one of the published meta-schemas."""
        uri, _, fragment = reference.partition("#")
        uri = self._absolute(node.uri, uri, node) if uri else node.uri
        resource = self._resources.get(uri)
        if resource is None:
            if uri.startswith(_KNOWN_DOCUMENTS):
                return None
            raise self._fault(
                node,
                f"the reference {cut(reference)!r} leads out of the schema; network and file references are "
                "never opened, so put what it names under $defs and refer to that",
            )
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            anchored = self._anchors.get((uri, _unquote(fragment)))
            if anchored is None:
                raise self._fault(
                    node, f"the reference {cut(reference)!r} leads nowhere: the schema has no such anchor"
                )
            return anchored
        return self._follow(node, resource, reference, fragment)

    def _follow(self, node: Subschema, resource: Subschema, reference: str, fragment: str) -> Subschema:
        """Follow a JSON Pointer from a resource's root."""
        value: Any = resource.schema
        path = resource.path
        for raw in _unquote(fragment)[1:].split("/"):
            step: str | int = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list | tuple) and raw.isdecimal() and int(raw) < len(value):
                step = int(raw)
            elif not isinstance(value, dict) or step not in value:
                raise self._fault(
                    node, f"the reference {cut(reference)!r} leads nowhere: {cut(repr(step))} is not there"
                )
            value = value[step]
            path = (*path, step)
        if not isinstance(value, dict | bool):
            raise self._fault(node, f"the reference {cut(reference)!r} leads to something that is no schema")
        return self.subschemas.get(path) or self._read(path, value, uri=resource.uri)

    def _absolute(self, base: str, reference: str, node: Subschema) -> str:
        from urllib.parse import urljoin  # noqa: PLC0415 - 3 ms of start-up that most schemas never need

        try:
            return urljoin(base, reference)
        except ValueError as error:
            raise self._fault(node, f"{cut(reference)!r} is no URI reference ({error})") from None

    def _fault(self, node: Subschema, clause: str) -> InvalidDefinition:
        return InvalidDefinition(f"{self._what}, at {cut(node.pointer)}: {clause}")


def _unquote(fragment: str) -> str:
    if "%" not in fragment:
        return fragment
    from urllib.parse import unquote  # noqa: PLC0415 - 3 ms of start-up that most schemas never need

    return unquote(fragment)


def _children(schema: Schema) -> Iterator[tuple[str, str | int | None, Schema]]:
    """Go through the subschemas directly inside one, each with its keyword and its name or index there."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        held: Iterable[tuple[str | int | None, Any]] = ()
        if isinstance(value, dict | bool) and keyword in _HOLD_ONE:
            held = [(None, value)]
        elif isinstance(value, list | tuple) and keyword in _HOLD_LIST:
            held = enumerate(value)
        elif isinstance(value, dict) and keyword in _HOLD_MAP:
            held = value.items()
        for key, child in held:
            if isinstance(child, dict | bool):
                yield keyword, key, child
