"""What is told of a schema without compiling it holds once it is compiled."""

import math
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from twofold.contract.compiling import compile_schema, is_simple
from twofold.contract.schema import CompiledSchema
from twofold.errors import InvalidDefinition

WHAT = "tool 'x', input schema"


class Leaf(BaseModel):
    """A leaf."""

    name: str = "leaf"
    weight: Annotated[float, Field(ge=0, le=10)] = 1.5


class Branch(BaseModel):
    left: Leaf
    right: Leaf | None = None
    kind: Literal["big", "small"] = "big"
    pair: tuple[int, str]


class Ring(BaseModel):
    next: "Ring | None" = None


@pytest.mark.parametrize(
    "annotation", [int, str | None, list[dict[str, float]], Leaf, Branch, list[Branch], dict[str, Branch | Leaf], Any]
)
def test_what_usual_types_become_is_simple(annotation):
    """Such schemas are most of all, and the reason to ask."""
    assert is_simple(TypeAdapter(annotation).json_schema())


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        True,
        TypeAdapter(Ring).json_schema(),
        {"pattern": "(a+)+$"},
        {"$ref": "#/$defs/gone"},
        {"$ref": "https://example.org/x"},
        {"$ref": 3},
        {"$defs": {"a/b": {}}},
        {"$defs": []},
        {"$id": "x", "type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"properties": {"$ref": {"type": "integer"}}},
        {"properties": {"a": {"$defs": {}}}},
        {"properties": {"a": 1}},
        {"type": "text"},
        {"type": ["string", "null"]},
        {"required": ["a", "a"]},
        {"anyOf": []},
        {"minLength": -1},
        {"minLength": True},
        {"minimum": math.nan},
        {"default": {"a": math.inf}},
        {"enum": [10**30]},
        {"description": "half of a pair: \ud800"},
        {"description": "x" * 30_000},
        {"anyOf": [{"type": "integer"}] * 400},
        {"x-unknown": {}},
    ],
)
def test_what_may_be_refused_is_not_simple(schema):
    """In doubt a schema is compiled at once, so that what is wrong with it is told at registration."""
    assert not is_simple(schema)


def test_a_chain_of_definitions_that_doubles_is_not_simple():
    """References count as often as they are followed: 2^n tries are too many (`CompiledSchema.compile`)."""
    definitions = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(12)} | {"a12": {}}
    assert not is_simple({"$defs": definitions, "$ref": "#/$defs/a0"})


words = st.sampled_from(["a", "b", "$ref", "é", "\ud800", ""])
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | words
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2))
references = st.sampled_from(["#/$defs/a", "#/$defs/b", "#/$defs/c", "#", "#/properties/a", "x"])


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of the words that are simple, mostly with values that may stand there."""
    lists, maps = st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)
    usual = {
        "type": st.sampled_from(["string", "integer", "object", "array", "text"]),
        "title": words,
        "default": values,
        "enum": st.lists(scalars, max_size=3),
        "minimum": st.integers() | st.floats(),
        "maxLength": st.integers(-1, 9),
        "required": st.lists(words, max_size=3),
        "format": words,
        "properties": maps,
        "items": inner,
        "additionalProperties": inner,
        "anyOf": lists,
        "prefixItems": lists,
        "$ref": references,
        "pattern": st.sampled_from(["a", "("]),
    }
    return st.fixed_dictionaries({}, optional=usual)


schemas = st.recursive(st.booleans() | schemas_of(st.booleans()), schemas_of, max_leaves=6)


@given(schema=schemas, definitions=st.dictionaries(st.sampled_from("abc"), schemas, max_size=3), value=values)
@settings(max_examples=600, deadline=None)
def test_every_simple_schema_compiles(schema, definitions, value):
    """The law: what is put off cannot fail, and then judges any value without an error."""
    whole = {**schema, "$defs": definitions} if isinstance(schema, dict) and definitions else schema
    if is_simple(whole):
        compiled = compile_schema(whole, what=WHAT)
        assert isinstance(compiled, CompiledSchema)
        assert isinstance(compiled.is_valid(value), bool)


def test_compiling_says_what_is_wrong():
    with pytest.raises(InvalidDefinition, match="tool 'x', input schema"):
        compile_schema({"type": "text"}, what=WHAT)
