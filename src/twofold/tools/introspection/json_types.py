"""The types of JSON itself, described without pydantic: str, int, float, bool, None, Any, and what holds these.

They are all that most tools take and many return, and loading pydantic takes half of a server's start. What is written
here is to the letter what pydantic makes of these types; every other type is pydantic's to describe.
"""

import types
from typing import Any, TypeAlias, Union, get_args, get_origin

import msgspec
from pydantic_core import core_schema

from twofold.protocol.structs import Json

CoreSchema: TypeAlias = Any


class JsonType(msgspec.Struct, frozen=True):
    """A type's descriptions.

    Attributes:
        core: pydantic's core schema.
        schema: The JSON Schema, of what is taken and of what is returned alike; nobody changes it.
    """

    core: CoreSchema
    schema: dict[str, Any]


_ANY = JsonType(core_schema.any_schema(), {})
_SCALARS: tuple[tuple[Any, JsonType], ...] = (
    (str, JsonType(core_schema.str_schema(), {"type": "string"})),
    (int, JsonType(core_schema.int_schema(), {"type": "integer"})),
    (float, JsonType(core_schema.float_schema(), {"type": "number"})),
    (bool, JsonType(core_schema.bool_schema(), {"type": "boolean"})),
    (type(None), JsonType(core_schema.none_schema(), {"type": "null"})),
    (Any, _ANY),
)


def describe_json_type(annotation: Any) -> JsonType | None:
    """Describe a type of JSON's own.

    Args:
        annotation: An evaluated annotation.

    Returns:
        None for every other type, and for some unions that pydantic simplifies.
    """
    for scalar, described in _SCALARS:
        if annotation is scalar:  # an annotation may be anything, even what cannot be hashed
            return described
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    is_union = origin is Union or origin is types.UnionType
    if not (origin is list or origin is dict or is_union):
        return None
    parts = [part for part in map(describe_json_type, arguments) if part is not None]
    if len(parts) < len(arguments):
        return None
    if is_union:
        return _describe_union(parts)
    return _describe_list(*parts) if origin is list else _describe_dict(*parts)


def _describe_list(items: JsonType = _ANY) -> JsonType:
    return JsonType(core_schema.list_schema(items.core), {"items": items.schema, "type": "array"})


def _describe_dict(keys: JsonType = _ANY, values: JsonType = _ANY) -> JsonType | None:
    if keys.core["type"] not in ("str", "any"):  # what JSON makes of other keys is a matter of its own
        return None
    schema = {"additionalProperties": values.schema or True, "type": "object"}
    return JsonType(core_schema.dict_schema(keys.core, values.core), schema)


def _describe_union(members: list[JsonType]) -> JsonType | None:
    others = [member for member in members if member.core["type"] != "none"]
    is_optional = len(others) < len(members)
    schemas = [*(member.schema for member in others), *([{"type": "null"}] if is_optional else [])]
    if len(schemas) < 2 or any(schema in schemas[:index] for index, schema in enumerate(schemas)):
        return None
    core: Any = others[0].core if len(others) == 1 else core_schema.union_schema([member.core for member in others])
    return JsonType(core_schema.nullable_schema(core) if is_optional else core, {"anyOf": schemas})


def copy_json(value: Json) -> Json:
    """Copy a JSON value, all objects and arrays in it included (two to three times as fast as `copy.deepcopy`)."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if isinstance(value, list) else value
