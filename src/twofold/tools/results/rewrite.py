"""A type's core schema, rewritten once so that what it writes is what it publishes.

Left to itself pydantic writes NaN as `null`, bytes as text, and names instead of aliases; settings given
from outside do not reach the models, dataclasses and typed dicts inside a type. So each of them gets the
settings in its own schema, unless its author chose otherwise there.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from pydantic_core import core_schema

from twofold.errors import InvalidSignature
from twofold.tools.introspection.identity import is_encoded_bytes
from twofold.tools.results.binary import Stand, encode_base64, replace_bytes

STRICT_JSON: core_schema.CoreConfig = {"ser_json_inf_nan": "constants", "ser_json_bytes": "base64"}
"""NaN and infinities stay visible in the bytes, to be refused by name; bytes that no schema announces are base64."""

_RECORDS = ("model", "dataclass", "typed-dict")
_VALUES_BY_NAME = ("fields", "choices")
"""Schemas by a name of the author's, who may call a field `metadata`."""
_NO_SCHEMAS = frozenset(
    ("cls", "custom_error_context", "default", "expected", "function", "members", "metadata", "ref")
)
_CLOSED = frozenset(
    (
        *("bool", "bytes", "complex", "date", "datetime", "decimal", "dict", "enum", "float", "frozenset", "int"),
        *("list", "literal", "none", "set", "str", "time", "timedelta", "tuple", "url", "uuid"),
        *("multi-host-url", "named-tuple", "named-tuple-field", "nullable", "default", "union", "tagged-union"),
        *("definitions", "definition-ref", "model", "model-fields", "model-field", "dataclass", "computed-field"),
        *("dataclass-args", "dataclass-field", "typed-dict", "typed-dict-field"),
    )
)
"""Schemas under which pydantic never guesses a serialiser from the value."""
_ITEMS = {"list": "items_schema", "set": "items_schema", "frozenset": "items_schema", "dict": "values_schema"}
_VERBATIM = frozenset(("any", "bool", "dict", "float", "int", "list", "none", "nullable", "str"))
"""Schemas that write JSON's own types as they are, whatever else they may write."""
_DISTINCT_KEYS = frozenset(("int", "str", "uuid"))
"""Types of keys of which no two are written alike."""


class Rewritten(msgspec.Struct, frozen=True):
    """A core schema and what was learned on the way.

    Attributes:
        schema: The rewritten copy; the original belongs to the author's classes.
        is_open: Some part of a value is written by its own class, not as the schema says (`Any`, an
            author's serialiser): rewriting did not reach it.
        is_verbatim: A value made of nothing but JSON's own types is written as it is, and is all there is to see.
        has_keys: Some part is a dict.
        repeats_names: Two keys of a dict may be written alike (`1` and `"1"`).
        writes_bytes: Bytes may be inside.
        hides_input: An author asked that values be left out of error messages.
    """

    schema: core_schema.CoreSchema
    is_open: bool
    is_verbatim: bool
    has_keys: bool
    repeats_names: bool
    writes_bytes: bool
    hides_input: bool


def rewrite(schema: core_schema.CoreSchema, *, stand: Stand) -> Rewritten:
    """Rewrite a core schema.

    Args:
        schema: The core schema; it is not changed.
        stand: Gives what is written for an object, found under `Any`, that writes itself.

    Raises:
        InvalidSignature: Two fields of a class have the same name on the wire.
    """
    is_verbatim = _is_verbatim(schema)
    walk = _Walk(None if is_verbatim else stand)
    rewritten = walk.visit(schema, {})
    return Rewritten(
        rewritten,
        is_open=walk.is_open,
        is_verbatim=walk.is_open and is_verbatim,
        has_keys=walk.has_keys or walk.is_open,
        repeats_names=walk.repeats_names or walk.is_open,
        writes_bytes=walk.writes_bytes or walk.is_open,
        hides_input=walk.hides_input,
    )


def _is_verbatim(node: Any) -> bool:
    parts = [node[key] for key in ("schema", "items_schema", "keys_schema", "values_schema") if key in node]
    return node["type"] in _VERBATIM and "serialization" not in node and all(map(_is_verbatim, parts))


class _Walk:
    """One pass over a schema; `config` is that of the nearest record around."""

    def __init__(self, stand: Stand | None) -> None:
        self.is_open = False
        self.has_keys = False
        self.repeats_names = False
        self.writes_bytes = False
        self.hides_input = False
        self._stand = stand

    def visit(self, node: Any, config: dict[str, Any]) -> Any:
        if isinstance(node, list | tuple):
            return type(node)(self.visit(item, config) for item in node)
        if not isinstance(node, dict):
            return node
        kind = node.get("type")
        if kind in _RECORDS:
            config = node.get("config") or {}
            self.hides_input |= bool(config.get("hide_input_in_errors"))
        self._learn(node, config)
        if self._stand is not None:
            node = _name_items(node)
        visited = {key: self._visit_entry(key, value, config) for key, value in node.items()}
        if kind in _RECORDS:
            visited["config"] = {**STRICT_JSON, **config, "serialize_by_alias": True}
        elif kind in ("model-fields", "dataclass-args"):
            visited = _settle_names(visited, config, owner=node.get("model_name") or node.get("dataclass_name"))
        elif kind == "bytes":
            visited = _write_base64(visited, config)
        elif kind == "any" and self._stand is not None:
            visited = _write_anything(visited, config, self._stand)
        if kind == "typed-dict":
            visited = _settle_names(visited, config, owner=getattr(node.get("cls"), "__name__", None))
        return _encode_once(visited)

    def _visit_entry(self, key: str, value: Any, config: dict[str, Any]) -> Any:
        if key in _VALUES_BY_NAME and isinstance(value, dict):
            return {name: self.visit(item, config) for name, item in value.items()}
        return value if key in _NO_SCHEMAS or key == "config" else self.visit(value, config)

    def _learn(self, node: dict[str, Any], config: dict[str, Any]) -> None:
        kind = node.get("type")
        if kind is None:
            return
        self.is_open |= _is_open(node, config)
        self.writes_bytes |= kind == "bytes"
        if kind == "dict":
            self.has_keys = True
            self.repeats_names |= not _are_distinct(node.get("keys_schema", {}))


def _write_anything(node: dict[str, Any], config: dict[str, Any], stand: Stand) -> dict[str, Any]:
    """Have what stands under `Any` looked through; where everything does, the whole value is, before."""
    if "serialization" in node or config.get("ser_json_bytes") is not None:
        return node
    serialization = core_schema.plain_serializer_function_ser_schema(
        lambda value: replace_bytes(value, stand=stand), return_schema=core_schema.any_schema(), when_used="json"
    )
    return {**node, "serialization": serialization}


def _name_items(node: dict[str, Any]) -> dict[str, Any]:
    """Say of a bare `dict` or `list` that it holds anything, which pydantic leaves unsaid."""
    items = _ITEMS.get(str(node.get("type")))
    if items is None or items in node or "serialization" in node:
        return node
    return {**node, items: core_schema.any_schema()}


def _are_distinct(keys: dict[str, Any]) -> bool:
    """Say whether no two keys of a type are written alike."""
    kind = keys.get("type")
    if kind == "literal":
        return all(isinstance(key, str) for key in keys["expected"])
    if kind == "enum":
        return all(isinstance(member.value, str) for member in keys["members"]) and "serialization" not in keys
    return kind in _DISTINCT_KEYS and "serialization" not in keys


def _is_open(node: dict[str, Any], config: dict[str, Any]) -> bool:
    kind = node.get("type")
    if kind is None:
        return False
    items = _ITEMS.get(kind)
    return (
        kind not in _CLOSED
        or "serialization" in node
        or (items is not None and items not in node)
        or "allow" in (node.get("extra_behavior"), config.get("extra_fields_behavior"))
        or bool(config.get("polymorphic_serialization"))
    )


def _settle_names(node: dict[str, Any], config: dict[str, Any], *, owner: str | None) -> dict[str, Any]:
    """Give each field the one name it has on the wire, so that schema and value cannot differ in it."""
    fields = node["fields"]
    named: Iterable[tuple[str, dict[str, Any]]] = (
        fields.items() if isinstance(fields, dict) else ((field["name"], field) for field in fields)
    )
    taken: dict[str, str] = {}
    computed = [(field["property_name"], field) for field in node.get("computed_fields", ())]
    for name, field in (*named, *computed):
        key = "alias" if field["type"] == "computed-field" else "serialization_alias"
        if config.get("serialize_by_alias") is False:
            field.pop(key, None)
        if field.get("serialization_exclude"):
            continue
        wire_name = field.get(key, name)
        if wire_name in taken:
            raise InvalidSignature(
                f"{owner or 'a class'}: fields {taken[wire_name]!r} and {name!r} are both written as {wire_name!r}; "
                "give them different aliases"
            )
        taken[wire_name] = name
    return node


def _write_base64(node: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Write bytes in the standard alphabet (RFC 4648, section 4), and say so; pydantic's own is the URL-safe one."""
    if "serialization" in node or config.get("ser_json_bytes") is not None:
        return node
    text = core_schema.str_schema(metadata={"pydantic_js_updates": {"contentEncoding": "base64"}})
    node["serialization"] = core_schema.plain_serializer_function_ser_schema(
        encode_base64, return_schema=text, when_used="json"
    )
    return node


def _encode_once(node: dict[str, Any]) -> dict[str, Any]:
    """Let pydantic's `Base64Bytes` give text: the bytes it gives would be encoded a second time."""
    serialization = node.get("serialization") or {}
    encode: Any = serialization.get("function")
    if is_encoded_bytes(getattr(encode, "__self__", None)):
        node["serialization"] = {
            **serialization,
            "function": lambda value: encode(value).decode("ascii"),
            "return_schema": core_schema.str_schema(),
        }
    return node
