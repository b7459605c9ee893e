"""Types as pydantic describes them when they leave: its serialisation mode."""

import json
import warnings
from collections.abc import Callable
from typing import Any

import msgspec
from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
from pydantic.json_schema import JsonSchemaMode, PydanticJsonSchemaWarning
from pydantic_core import CoreSchema, PydanticSerializationError, SchemaError, core_schema

from twofold.tools.introspection.generator import SchemaGenerator
from twofold.tools.introspection.rebuild import rebuild
from twofold.tools.results.dump import Dumper, stand_in
from twofold.tools.results.output_schema import Unreadable, is_object
from twofold.tools.results.rewrite import Rewritten, rewrite

_UNREADABLE = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError)
_MODE: JsonSchemaMode = "serialization"


class Reading(msgspec.Struct, frozen=True):
    """What pydantic makes of a type; see `Description`."""

    validate: Callable[[Any], Any]
    rewritten: Rewritten
    dumper: Dumper
    bare: dict[str, Any]
    wrapped: dict[str, Any] | None


def read_by_pydantic(annotation: Any) -> Reading:
    """Have a type described.

    Raises:
        Unreadable: It has no schema.
        InvalidSignature: Two of its fields have one name, or a class names a type that is not defined.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(rebuild(annotation))
        adapter.rebuild()
        rewritten = rewrite(adapter.core_schema, stand=stand_in)
        bare = _generate_bare(rewritten.schema)
        wrapped = None if is_object(bare, rewritten.schema) else _generate_wrapped(rewritten.schema)
        return Reading(adapter.validator.validate_python, rewritten, Dumper.of(rewritten), bare, wrapped)
    except _UNREADABLE as error:
        raise Unreadable(error) from error


class _Generator(SchemaGenerator):
    """pydantic's generator, but for defaults: one that is no JSON value is left out without a word."""

    def encode_default(self, dft: Any) -> Any:
        """Write a field's default as JSON."""
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False).encode()
        except ValueError as error:  # NaN, or half a surrogate pair
            raise PydanticSerializationError(str(error)) from None
        return encoded


def _generate_bare(schema: CoreSchema) -> dict[str, Any]:
    """Describe a type as it is; the root is the type's own description, never a bare reference."""
    generated = _generate(schema)
    definitions = generated.get("$defs", {})
    name = generated.get("$ref", "").removeprefix("#/$defs/")
    if name in definitions:
        return {**definitions[name], **{key: value for key, value in generated.items() if key != "$ref"}}
    return generated


def _generate_wrapped(schema: CoreSchema) -> dict[str, Any]:
    """Describe `{"result": value}`."""
    field = core_schema.typed_dict_field(schema)
    return _generate(core_schema.typed_dict_schema({"result": field}))


def _generate(schema: CoreSchema) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        return _Generator().generate(schema, _MODE)
