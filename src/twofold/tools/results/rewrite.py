"""A type's core schema, rewritten once so that what it writes is what it publishes.

Left to itself pydantic writes NaN as `null`, bytes as text, and names instead of aliases; settings given
from outside do not reach the models, dataclasses and typed dicts inside a type. So each of them gets the
settings in its own schema, unless its author chose otherwise there.
"""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec
from pydantic.types import EncodedBytes
from pydantic_core import PydanticSerializationUnexpectedValue, core_schema

from twofold.errors import InvalidSignature

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


class Rewritten(msgspec.Struct, frozen=True):
    """A core schema and what was learned on the way.

    Attributes:
        schema: The rewritten copy; the original belongs to the author's classes.
        is_open: Some part of a value is written by its own class, not as the schema says (`Any`, an
            author's serialiser): rewriting did not reach it.
        hides_input: An author asked that values be left out of error messages.
    """

    schema: core_schema.CoreSchema
    is_open: bool
    hides_input: bool


def rewrite(schema: core_schema.CoreSchema) -> Rewritten:
    """Rewrite a core schema.

    Raises:
        InvalidSignature: Two fields of a class have the same name on the wire.
    """
    walk = _Walk()
    rewritten = walk.visit(schema, {})
    return Rewritten(rewritten, walk.is_open, walk.hides_input)


class _Walk:
    """One pass over a schema; `config` is that of the nearest record around."""

    def __init__(self) -> None:
        self.is_open = False
        self.hides_input = False

    def visit(self, node: Any, config: dict[str, Any]) -> Any:
        if isinstance(node, list | tuple):
            return type(node)(self.visit(item, config) for item in node)
        if not isinstance(node, dict):
            return node
        kind = node.get("type")
        if kind in _RECORDS:
            config = node.get("config") or {}
            self.hides_input |= bool(config.get("hide_input_in_errors"))
        self.is_open |= _is_open(node, config)
        visited = {key: self._visit_entry(key, value, config) for key, value in node.items()}
        if kind in _RECORDS:
            visited["config"] = {**STRICT_JSON, **config, "serialize_by_alias": True}
        elif kind in ("model-fields", "dataclass-args"):
            visited = _settle_names(visited, config, owner=node.get("model_name") or node.get("dataclass_name"))
        elif kind == "bytes":
            visited = _write_base64(visited, config)
        if kind == "typed-dict":
            visited = _settle_names(visited, config, owner=getattr(node.get("cls"), "__name__", None))
        return _encode_once(visited)

    def _visit_entry(self, key: str, value: Any, config: dict[str, Any]) -> Any:
        if key in _VALUES_BY_NAME and isinstance(value, dict):
            return {name: self.visit(item, config) for name, item in value.items()}
        return value if key in _NO_SCHEMAS or key == "config" else self.visit(value, config)


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


def encode_base64(value: Any) -> str:
    """Write bytes as base64 text.

    Raises:
        PydanticSerializationUnexpectedValue: It is something else; pydantic then tries the next type of a union.
    """
    if not isinstance(value, bytes | bytearray):
        raise PydanticSerializationUnexpectedValue(f"expected bytes, got {type(value).__name__}")
    return base64.b64encode(value).decode("ascii")


def _encode_once(node: dict[str, Any]) -> dict[str, Any]:
    """Let pydantic's `Base64Bytes` give text: the bytes it gives would be encoded a second time."""
    serialization = node.get("serialization") or {}
    encode: Any = serialization.get("function")
    if isinstance(getattr(encode, "__self__", None), EncodedBytes):
        node["serialization"] = {
            **serialization,
            "function": lambda value: encode(value).decode("ascii"),
            "return_schema": core_schema.str_schema(),
        }
    return node
