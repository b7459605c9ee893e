"""Core schemas held to JSON Schema: what is special about definitions."""

from typing import Any, Literal

import pytest
from pydantic import TypeAdapter
from pydantic_core import SchemaValidator
from typing_extensions import TypeAliasType

from twofold.tools.arguments.strictness import restrict

INTEGER = TypeAliasType("INTEGER", int)
BYTES = TypeAliasType("BYTES", bytes)
CHOICE = TypeAliasType("CHOICE", Literal[1, 2])
EITHER = TypeAliasType("EITHER", int | float)


@pytest.mark.parametrize(
    ("alias", "text", "value"),
    [(INTEGER, "1.0", 1), (BYTES, '"aa=="', b"i"), (CHOICE, "2", 2), (EITHER, "1.5", 1.5), (EITHER, "1", 1)],
)
def test_a_type_alias_used_twice_keeps_its_name(alias: Any, text: str, value: Any) -> None:
    """What is made of a definition answers to the references that lead to it."""
    restricted = restrict(TypeAdapter(tuple[alias, list[alias]]).core_schema)
    validator = SchemaValidator(restricted, _use_prebuilt=False)
    assert validator.validate_json(f"[{text}, [{text}]]") == (value, [value])
