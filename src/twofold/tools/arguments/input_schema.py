"""The JSON Schema of what a function takes, said as exactly as JSON Schema can.

pydantic's own generator leaves open what its validators then refuse: the keys of `dict[int, …]`, the text
of a `Decimal`, the tag of a union. What a caller must know stands in the schema here.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from twofold.contract.forms import INTEGER_TEXT, NUMBER_TEXT
from twofold.protocol.structs import Json
from twofold.tools.arguments.keys import find_written, write_key
from twofold.tools.introspection.generator import SchemaGenerator

_TEXT_OF_SCALARS: dict[str, dict[str, Any]] = {
    "any": {},
    "function-plain": {},
    "int": {"pattern": INTEGER_TEXT},
    "float": {"pattern": NUMBER_TEXT},
    "decimal": {"pattern": NUMBER_TEXT},
    "bool": {"enum": ["true", "false"]},
}
"""How scalars are written where JSON has only text: as an object's keys."""

_WRITTEN_AS_TEXT = frozenset(
    {"str", "bytes", "date", "time", "datetime", "timedelta", "uuid", "url", "multi-host-url"} | {"fraction", "complex"}
)


class GenerateInputSchema(SchemaGenerator):
    """pydantic's generator for `validation` mode, with nothing left open that is refused."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._core_definitions: dict[str, Any] = {}

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        """Keep the definitions at hand: what a key is may stand among them."""
        self._core_definitions = {one["ref"]: one for one in schema["definitions"] if "ref" in one}
        return super().definitions_schema(schema)

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """Say that bytes are base64 text, lengths counted in its characters (RFC 4648, padded)."""
        published: JsonSchemaValue = {"type": "string", "contentEncoding": "base64"}
        for name, length in (("minLength", schema.get("min_length")), ("maxLength", schema.get("max_length"))):
            if length is not None:
                published[name] = (length + 2) // 3 * 4
        return published

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Say how a decimal is written; what bounds its digits, or its value as text, is its format."""
        published = super().decimal_schema(schema)
        for form in published.get("anyOf", ()):
            if form.get("type") == "string":
                form.update(format="decimal", pattern=NUMBER_TEXT)
            elif schema.get("max_digits") is not None or schema.get("decimal_places") is not None:
                form["format"] = "decimal"
        return published

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        """Refuse classes, which JSON cannot hold; pydantic publishes them as anything."""
        raise PydanticInvalidForJsonSchema(f"a class such as {schema['cls'].__name__!r} is no JSON value")

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        """Name the format of complex numbers; it is Python's."""
        return super().complex_schema(schema) | {"format": "complex"}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Say that the tag must be there, even where a member has a default for it."""
        published = super().tagged_union_schema(schema)
        tag = published.get("discriminator", {}).get("propertyName")
        return published | {"required": [tag]} if tag else published

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        """Refuse a key of a TypedDict that a caller cannot name."""
        self._refuse_path(schema)
        return super().typed_dict_field_schema(schema)

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        """Refuse a field of a model that a caller cannot name."""
        self._refuse_path(schema)
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        """Refuse a field of a dataclass that a caller cannot name."""
        self._refuse_path(schema)
        return super().dataclass_field_schema(schema)

    def _refuse_path(self, field: Mapping[str, Any]) -> None:
        """Refuse `AliasPath("p", "q")`: pydantic publishes the field by its own name, which it then does not take."""
        alias = field.get("validation_alias")
        if not isinstance(alias, list) or self._config.validate_by_name or self._config.populate_by_name:
            return
        paths = alias if isinstance(alias[0], list) else [alias]
        if not any(len(path) == 1 and isinstance(path[0], str) for path in paths):
            path = ".".join(map(str, paths[0]))
            raise PydanticInvalidForJsonSchema(
                f"the alias {path!r} is a path and no name; give a name, or a model of that shape"
            )

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Say what the keys must be, for every type of key."""
        return self._object_schema(schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Say what the keys of an `OrderedDict` must be."""
        return self._object_schema(schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        """Say what the keys of a `Counter` must be."""
        return self._object_schema(schema)

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        """Say what the keys of a frozen dict must be."""
        return self._object_schema(schema)

    def _object_schema(self, schema: Mapping[str, Any]) -> JsonSchemaValue:
        values = self.generate_inner(schema["values_schema"]).copy() if "values_schema" in schema else {}
        values.pop("title", None)
        keys = self._key_schema(schema["keys_schema"]) if "keys_schema" in schema else {}
        published: JsonSchemaValue = {"type": "object", "additionalProperties": values or True}
        if keys:
            published["propertyNames"] = keys
        self.update_with_validations(published, schema, self.ValidationsMapping.object)
        return published

    def _key_schema(self, schema: Any) -> JsonSchemaValue:
        """Give the schema of an object's keys, which are always text."""
        inner = find_written(schema, self._core_definitions)
        kind = inner["type"]
        if kind in _TEXT_OF_SCALARS:
            return _TEXT_OF_SCALARS[kind]
        if kind in ("enum", "literal"):
            return {"enum": sorted(write_key(value) for value in inner.get("members", inner.get("expected")))}
        if kind == "union":
            choices = [self._key_schema(one[0] if isinstance(one, tuple) else one) for one in inner["choices"]]
            return {} if {} in choices else {"anyOf": choices}
        if kind not in _WRITTEN_AS_TEXT:
            raise PydanticInvalidForJsonSchema(f"keys of type {kind!r} cannot be the keys of a JSON object")
        published = self.generate_inner(schema)
        return {name: value for name, value in published.items() if name not in ("type", "title")}

    def encode_default(self, dft: Any) -> Json:
        """Write a default as JSON; one that JSON cannot hold is left out of the schema."""
        try:
            encoded = to_jsonable_python(dft, by_alias=self.by_alias, bytes_mode="base64")
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from None
        return encoded
