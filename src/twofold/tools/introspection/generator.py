"""What both generators of JSON Schemas share: no warnings for what is left out on purpose, and less work each time."""

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

_functions: dict[type, dict[Any, FunctionType]] = {}
"""By generator: what writes each kind of core schema."""


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's generator; a default that is no JSON value is left out of the schema without a word."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - declared so by pydantic

    def build_schema_type_to_method(self) -> dict[Any, Callable[[Any], Any]]:
        """Map kinds of core schemas to methods, which are the same for each generator of a class.

        pydantic looks all of them up by name for every schema it generates: a quarter of what a small one takes.
        """
        functions = _functions.get(type(self))
        if functions is None:
            methods: dict[Any, Any] = super().build_schema_type_to_method()
            _functions[type(self)] = {kind: method.__func__ for kind, method in methods.items()}
            return methods
        return {kind: MethodType(function, self) for kind, function in functions.items()}
