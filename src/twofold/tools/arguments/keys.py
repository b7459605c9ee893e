"""How values are written where JSON has only text: as the keys of an object."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python


def find_written(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Follow a core schema to the node that says how the value is written in JSON.

    Args:
        schema: A node of pydantic's core schema.
        definitions: Where its references lead.
    """
    while True:
        match schema["type"]:
            case "definition-ref" if schema["schema_ref"] in definitions:
                schema = definitions[schema["schema_ref"]]
            case "function-after" | "function-before" | "function-wrap" | "default" | "custom-error" | "nullable":
                schema = schema["schema"]
            case "json-or-python":
                schema = schema["json_schema"]
            case "lax-or-strict":
                schema = schema["strict_schema"]
            case "chain":
                schema = schema["steps"][0]
            case _:
                return schema


def write_key(value: Any) -> str:
    """Write a value, such as an enum's member, as a key of a JSON object."""
    written = to_jsonable_python(value)
    return written if isinstance(written, str) else json.dumps(written)
