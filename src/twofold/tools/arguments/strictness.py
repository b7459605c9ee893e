"""pydantic's validator held to the published schema: it takes exactly what JSON Schema says.

pydantic converts generously by default (`"yes"` for a bool), and its strict mode is not JSON Schema's
either: it refuses 1.0 for an integer and takes true for `Literal[1]`. `restrict` rewrites a core schema, the
description that pydantic compiles, so that both agree. Where they cannot, `examine` says so, and the
published schema is asked besides.
"""

import base64
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

import msgspec
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema, to_jsonable_python

from twofold.protocol.structs import Json
from twofold.tools.arguments.keys import find_written, write_key
from twofold.tools.introspection.identity import is_encoded_bytes

Node: TypeAlias = Any
"""A node of a core schema: a dict with `type`."""

_SCALARS = frozenset(
    {"bool", "int", "float", "str", "bytes", "decimal", "fraction", "complex"}
    | {"date", "time", "datetime", "timedelta", "uuid", "url", "multi-host-url"}
)
_ARRAYS = frozenset({"list", "set", "frozenset", "tuple"})
_OBJECTS = frozenset({"dict", "ordered-dict", "frozendict", "counter"})
_PARTS = (
    *("schema", "items_schema", "keys_schema", "values_schema", "extras_schema", "extras_keys_schema"),
    *("arguments_schema", "var_args_schema", "var_kwargs_schema", "steps", "choices", "fields"),
    *("json_schema", "python_schema", "lax_schema", "strict_schema"),
)
"""Keys of a node under which other nodes stand: one, a list, or a dict of them."""

_FUNCTIONS_FIRST = frozenset({"function-before", "function-wrap", "function-plain"})
"""The author's function gets the value before anything has judged it."""

_LAX = ":lax"
"""Added to a definition's reference: the copy of it that is not judged strictly."""

_ANNOTATIONS = frozenset(
    {"title", "description", "examples", "default", "deprecated", "readOnly", "writeOnly", "format"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "$comment"}
)
"""Keywords of a schema that refuse no value; `x-…` are others."""

_ANNOTATING_MODULES = ("pydantic.types", "pydantic.networks", "twofold.")
"""Modules whose changes to a published schema only annotate it."""


class Facts(msgspec.Struct, frozen=True):
    """What must be known of a type beyond its core schema.

    Attributes:
        is_proven: Whatever binds is valid under the published schema, so that it need not be asked.
        is_lenient: The author asked for conversions (`strict=False`) that the published schema refuses.
        holds_any: Numbers may reach the function that nothing has looked at.
    """

    is_proven: bool
    is_lenient: bool
    holds_any: bool


def restrict(schema: Node, *, fails_fast: bool = False) -> Node:
    """Rewrite a core schema so that its validator takes from JSON what the published schema says.

    Strict throughout, but a whole number written `1.0` is an integer; bytes come from base64; literals and
    enums tell true from 1; a lazy `Iterable` is read at once. What an author's own validator hands on is
    not judged strictly: it need not be JSON any more. `Field(strict=False)` stays as the author wants it.

    Args:
        schema: The core schema; it is not changed.
        fails_fast: Only the first item of a list that does not fit is told of.

    Returns:
        A new one. Build its validator without prebuilt parts, or nested models use their own.
    """
    return _Restriction(read_definitions(schema), fails_fast=fails_fast).rewrite(schema)


def read_definitions(schema: Node) -> dict[str, Node]:
    """Give the definitions of a core schema by their reference."""
    return {one["ref"]: one for one in schema.get("definitions", ())}


def walk_type(root: Node, definitions: Mapping[str, Node]) -> Iterator[Node]:
    """Go through everything a type is made of, each definition once.

    Args:
        root: The type's core schema, as pydantic made it.
        definitions: Where its references lead.
    """
    stack = [root]
    seen: set[str] = set()
    while stack:
        node = stack.pop()
        if node.get("type") == "definition-ref":
            if node["schema_ref"] in seen:
                continue
            seen.add(node["schema_ref"])
            node = definitions[node["schema_ref"]]
        yield node
        stack.extend(parts_for_json(node))


def examine(schema: Node, definitions: Mapping[str, Node]) -> Facts:
    """Look through everything a type is made of.

    Args:
        schema: The type's core schema, as pydantic made it.
        definitions: Where its references lead.
    """
    is_proven, is_lenient, holds_any = True, False, False
    for node in walk_type(schema, definitions):
        is_proven = is_proven and _is_proven(node, definitions)
        is_lenient = is_lenient or _is_lenient(node)
        holds_any = holds_any or _holds_any(node)
    return Facts(is_proven, is_lenient, holds_any)


def parts_for_json(node: Node) -> Iterator[Node]:
    """Go through the parts of a node that judge JSON values."""
    match node.get("type"):
        case "json-or-python":
            yield node["json_schema"]
        case "lax-or-strict":
            yield node["strict_schema"]
        case "chain":  # what follows the first step can only refuse more
            yield node["steps"][0]
        case _:
            for key in _PARTS:
                yield from _nodes_of(node.get(key))


def _nodes_of(part: Any) -> Iterator[Node]:
    if isinstance(part, dict):
        yield from [part] if _is_node(part) else part.values()
    elif isinstance(part, list):
        for one in part:
            found = one[0] if isinstance(one, tuple) else one
            if isinstance(found, dict):
                yield found


def _is_node(part: dict[str, Any]) -> bool:
    """Tell a node from a dict of nodes, whose keys are an author's names: `type` and `name` may be among them."""
    return isinstance(part.get("type"), str) or isinstance(part.get("name"), str)


def _is_lenient(node: Node) -> bool:
    asked = node if node.get("type") in _SCALARS else node.get("config", {})
    return asked.get("strict") is False


def _holds_any(node: Node) -> bool:
    match node.get("type"):
        case "any" | "json":
            return True
        case "list" | "set" | "frozenset" | "deque" | "generator" | "tuple":
            return "items_schema" not in node
        case "dict" | "ordered-dict" | "frozendict":
            return "values_schema" not in node
        case kind if kind in _FUNCTIONS_FIRST:
            return True
    allows = "allow" in (node.get("extra_behavior"), node.get("config", {}).get("extra_fields_behavior"))
    return bool(node.get("custom_init")) or allows


def _is_proven(node: Node, definitions: Mapping[str, Node]) -> bool:  # noqa: PLR0911 - one a kind
    """Say whether one node, its parts left out, refuses all that the schema published for it refuses."""
    if not _only_annotates(node):
        return False
    match node.get("type"):
        case "decimal" | "set" | "frozenset" | "named-tuple" | "call" | "arguments" | "arguments-v3":
            return False
        case kind if kind in _FUNCTIONS_FIRST:
            return False
        case "float":  # pydantic allows for rounding, JSON Schema does not
            return "multiple_of" not in node
        case "str":
            return not any(node.get(name) for name in ("strip_whitespace", "to_lower", "to_upper"))
        case kind if kind in _OBJECTS and "keys_schema" in node:
            written = find_written(node["keys_schema"], definitions)
            return str(written["type"]) in ("str", "any")
        case "default":
            return "on_error" not in node
        case "tagged-union":
            return not callable(node["discriminator"])
    config = node.get("config", {})
    changes = ("validate_by_name", "str_strip_whitespace", "str_to_lower", "str_to_upper")
    is_renamed = not isinstance(node.get("validation_alias", ""), str)
    return not (node.get("custom_init") or is_renamed or any(config.get(name) for name in changes))


def _only_annotates(node: Node) -> bool:
    """Say whether what the author adds to the published schema by hand leaves its meaning alone."""
    metadata = node.get("metadata", {})
    extras = [metadata.get("pydantic_js_updates"), metadata.get("pydantic_js_extra")]
    config = getattr(node.get("cls"), "model_config", None) or getattr(node.get("cls"), "__pydantic_config__", None)
    extras.append((config or {}).get("json_schema_extra"))
    for extra in extras:
        if callable(extra) or any(key not in _ANNOTATIONS and key[:2] != "x-" for key in extra or ()):
            return False
    by_types = metadata.get("pydantic_js_functions", ())
    by_annotations = metadata.get("pydantic_js_annotation_functions", ())
    return all(_module_of(one).startswith("pydantic.") for one in by_types) and all(
        _module_of(one).startswith(_ANNOTATING_MODULES) for one in by_annotations
    )


def _module_of(function: Any) -> str:
    return getattr(function, "__module__", None) or ""


class _Restriction:
    """One rewriting. A definition reached both from JSON and from an author's validator becomes two."""

    def __init__(self, definitions: dict[str, Node], *, fails_fast: bool) -> None:
        self._definitions = definitions
        self._fails_fast = fails_fast
        self._wanted_lax: list[str] = []

    def rewrite(self, schema: Node) -> Node:
        """Rewrite a whole core schema, definitions included."""
        if schema["type"] != "definitions":
            return self._visit(schema, is_lax=False)
        made = [self._visit(one, is_lax=False) for one in self._definitions.values()]
        root = self._visit(schema["schema"], is_lax=False)
        done: set[str] = set()
        while self._wanted_lax:
            reference = self._wanted_lax.pop()
            if reference not in done:
                done.add(reference)
                made.append(self._visit(self._definitions[reference], is_lax=True))
        return core_schema.definitions_schema(root, made)

    def _visit(self, node: Node, *, is_lax: bool, opens_integers: bool = True) -> Node:
        if is_lax or "ref" not in node:
            return self._visit_kind(node, is_lax=is_lax, opens_integers=opens_integers)
        # a definition, which others refer to: whatever is made of it answers to its name
        unnamed = {key: value for key, value in node.items() if key != "ref"}
        return self._visit_kind(unnamed, is_lax=False, opens_integers=opens_integers) | {"ref": node["ref"]}

    def _visit_kind(self, node: Node, *, is_lax: bool, opens_integers: bool) -> Node:  # noqa: PLR0911 - one a kind
        kind = node.get("type")
        if kind == "definition-ref":
            if not is_lax:
                return node
            self._wanted_lax.append(node["schema_ref"])
            return node | {"schema_ref": node["schema_ref"] + _LAX}
        if is_lax:
            return self._visit_parts(node, is_lax=True)
        if _is_lenient(node):
            return node if kind in _SCALARS else self._visit_parts(node, is_lax=True)
        if kind in ("literal", "enum"):
            return _restrict_choice(node)
        if kind == "bytes":
            return _read_base64(node)
        if kind in _SCALARS:
            return _restrict_scalar(node, opens_integers=opens_integers)
        return self._visit_container(node)

    def _visit_container(self, node: Node) -> Node:  # noqa: PLR0911 - one a kind
        """Rewrite a node that is judged strictly and has parts."""
        match node.get("type"):
            case "chain":
                steps = [self._visit(one, is_lax=index > 0) for index, one in enumerate(node["steps"])]
                return node | {"steps": steps}
            case "function-before" | "function-wrap":
                return node | {"schema": self._visit(node["schema"], is_lax=True)}
            case "function-after" if is_encoded_bytes(_owner_of(node)):  # it decodes the text itself
                return node
            case "lax-or-strict":
                return self._visit_parts(node | {"strict": True}, is_lax=False)
            case "generator":  # lazy: what does not fit would be noticed inside the function
                return self._visit_parts(node | {"type": "list"}, is_lax=False)
            case "union":
                return self._visit_union(node)
            case kind if kind in _OBJECTS and "keys_schema" in node:
                rest = {key: value for key, value in node.items() if key != "keys_schema"}
                keys = self._visit_key(node["keys_schema"])
                return self._visit_parts(rest, is_lax=False) | {"keys_schema": keys}
        return self._visit_parts(node, is_lax=False)

    def _visit_union(self, node: Node) -> Node:
        """Rewrite a union; one with a float in it keeps 1.0 as it came, if the float takes it."""
        choices = [one if isinstance(one, tuple) else (one,) for one in node["choices"]]
        has_float = any(find_written(one[0], self._definitions)["type"] == "float" for one in choices)
        visited = [(self._visit(one[0], is_lax=False, opens_integers=not has_float), *one[1:]) for one in choices]
        union = node | {"choices": [one if len(one) > 1 else one[0] for one in visited]}
        integers = [one[0] for one in choices if one[0]["type"] == "int"]
        if not (has_float and integers):
            return union
        opened = [self._visit(one, is_lax=False) for one in integers]
        return core_schema.union_schema([union, *opened], mode="left_to_right")

    def _visit_key(self, node: Node) -> Node:
        """Rewrite the type of an object's keys. They are text, and other scalars are read from it."""
        written = find_written(node, self._definitions)
        if written["type"] not in ("literal", "enum"):
            return self._visit(node, is_lax=False) if written["type"] == "str" else node
        members = written.get("members", written.get("expected"))
        return _choose([(write_key(member), member) for member in members])

    def _visit_parts(self, node: Node, *, is_lax: bool) -> Node:
        changed = {key: self._visit_part(node[key], is_lax=is_lax) for key in _PARTS if key in node}
        if is_lax and "ref" in node:
            changed["ref"] = node["ref"] + _LAX
        if self._fails_fast and node.get("type") in _ARRAYS:
            changed["fail_fast"] = True
        return node | changed

    def _visit_part(self, part: Any, *, is_lax: bool) -> Any:
        if isinstance(part, dict):
            if _is_node(part):
                return self._visit(part, is_lax=is_lax)
            return {key: self._visit_part(value, is_lax=is_lax) for key, value in part.items()}
        if isinstance(part, list):
            return [self._visit_part(one, is_lax=is_lax) for one in part]
        if isinstance(part, tuple):  # a union's member and its label
            return (self._visit_part(part[0], is_lax=is_lax), *part[1:])
        return part


def _owner_of(node: Node) -> Any:
    return getattr(node["function"]["function"], "__self__", None)


def _restrict_scalar(node: Node, *, opens_integers: bool) -> Node:
    strict = node | {"strict": True}
    if node["type"] == "float":
        return strict | {"allow_inf_nan": False}
    if node["type"] != "int" or not opens_integers:
        return strict
    whole: Node = core_schema.no_info_plain_validator_function(_read_whole_number)
    if any(name in node for name in ("ge", "gt", "le", "lt", "multiple_of")):
        whole = core_schema.chain_schema([whole, strict])
    return core_schema.union_schema([strict, whole], mode="left_to_right")


def _read_whole_number(value: Any) -> int:
    """Take 1.0 for 1; a JSON integer is any number without a fraction (JSON Schema 2020-12, 6.1.1)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise PydanticKnownError("int_type")


def _read_base64(node: Node) -> Node:
    step = core_schema.no_info_plain_validator_function(_decode_base64)
    return core_schema.chain_schema([step, node])


def _decode_base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise PydanticKnownError("bytes_type")
    try:  # both alphabets of RFC 4648
        return base64.b64decode(value.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except ValueError as error:
        raise PydanticCustomError("base64", "expected base64 text ({reason})", {"reason": str(error)}) from None


def _restrict_choice(node: Node) -> Node:
    """Leave text to pydantic, and tell other values apart as JSON Schema does."""
    members = node.get("members", node.get("expected"))
    if all(type(_value_of(member)) in (str, type(None)) for member in members):
        return {key: value for key, value in node.items() if key != "missing"}
    return _choose([(to_jsonable_python(_value_of(member)), member) for member in members])


def _value_of(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member


def _choose(members: list[tuple[Json, Any]]) -> Node:
    """Make a node that takes one of some JSON values for the member it stands for."""

    def choose(value: Any) -> Any:
        for written, member in members:
            if _is_same(written, value):
                return member
        raise PydanticCustomError("choice", "not one of the values that are allowed")

    return core_schema.no_info_plain_validator_function(choose)


def _is_same(one: Json, other: Json) -> bool:
    """Compare JSON values: 1 is 1.0 and is not true (JSON Schema 2020-12, 4.2.2)."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
