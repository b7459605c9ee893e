"""The JSON Schema of what leaves, with an object at its root.

Source: MCP 2026-07-28, tools, "Output Schema" (any root); until 2025-11-25 the root is an object.
"""

from typing import Any

from pydantic_core import CoreSchema

_WRAPPERS = {
    "definitions": "schema",
    "default": "schema",
    "function-before": "schema",
    "function-after": "schema",
    "function-wrap": "schema",
    "lax-or-strict": "strict_schema",
    "json-or-python": "python_schema",
}
"""Core schemas that add something to another one, and where that one stands."""


class Unreadable(Exception):
    """A type cannot be described, for the reason that pydantic gives."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def name_bare(generated: dict[str, Any], *, tool_name: str) -> dict[str, Any]:
    """Name an object that has no name of its own: `<tool>DictOutput`."""
    if generated.get("type") == "object":
        generated.setdefault("title", f"{tool_name}DictOutput")
    return generated


def wrap(bare: dict[str, Any]) -> dict[str, Any]:
    """Describe `{"result": value}` as pydantic does, for a value of one of JSON's own types."""
    inner = dict(sorted({**bare, "title": "Result"}.items()))
    return {"properties": {"result": inner}, "required": ["result"], "type": "object"}


def name_wrapped(generated: dict[str, Any], *, tool_name: str) -> dict[str, Any]:
    """Name `{"result": value}`: `<tool>Output`."""
    generated["title"] = f"{tool_name}Output"
    return generated


def is_object(bare: dict[str, Any], schema: CoreSchema) -> bool:
    """Say whether a type is a JSON object by itself: one with fields, or a dict whose keys are text."""
    return bare.get("type") == "object" and _has_text_keys(schema)


def _has_text_keys(schema: CoreSchema) -> bool:
    node: Any = _find_root(schema)
    if node["type"] != "dict":
        return True
    keys: Any = _find_root(node.get("keys_schema", {"type": "any"}))
    if keys["type"] == "literal":
        return all(isinstance(key, str) for key in keys["expected"])
    if keys["type"] == "enum":
        return all(isinstance(member.value, str) for member in keys["members"])
    return keys["type"] in ("str", "any")  # a bare `dict` says nothing of its keys; JSON makes text of them


def _find_root(schema: Any) -> Any:
    definitions: dict[str, Any] = {}
    while True:
        kind = schema["type"]
        definitions |= {item["ref"]: item for item in schema.get("definitions", ())}
        if kind == "definition-ref" and schema["schema_ref"] in definitions:
            schema = definitions[schema["schema_ref"]]
        elif kind == "model" and schema.get("root_model"):
            schema = schema["schema"]
        elif kind in _WRAPPERS:
            schema = schema[_WRAPPERS[kind]]
        else:
            return schema


def wrap_by_hand(schema: dict[str, Any], *, tool_name: str) -> dict[str, Any]:
    """Describe `{"result": value}` where the value's schema was written by hand.

    References from the document's root are led to where it now stands; the schema given is not changed.
    """
    inner = schema if "$id" in schema else _move_references(schema)
    dialect = {"$schema": inner["$schema"]} if "$schema" in inner else {}
    inner = inner if "$id" in schema else {key: value for key, value in inner.items() if key != "$schema"}
    return {
        **dialect,
        "properties": {"result": inner},
        "required": ["result"],
        "title": f"{tool_name}Output",
        "type": "object",
    }


_DATA = ("const", "default", "enum", "examples")
_BY_NAME = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def _move_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_move_references(item) for item in schema]
    if not isinstance(schema, dict) or "$id" in schema:  # with an identifier, references begin there
        return schema
    moved: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _DATA:
            moved[word] = value
        elif word in _BY_NAME and isinstance(value, dict):
            moved[word] = {name: _move_references(item) for name, item in value.items()}
        elif word in ("$ref", "$dynamicRef") and isinstance(value, str) and (value == "#" or value.startswith("#/")):
            moved[word] = f"#/properties/result{value[1:]}"
        else:
            moved[word] = _move_references(value)
    return moved
