"""Laws of the schema floor, for schemas and values of every shape."""

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.contract.schema import CompiledSchema
from twofold.errors import InvalidDefinition

KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", 1.5, 2.0])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LEAVES = st.one_of(
    st.builds(lambda kind: {"type": kind}, TYPES),
    st.builds(lambda kinds: {"type": kinds}, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    st.builds(lambda value: {"const": value}, SCALARS),
    st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=3)),
    st.builds(lambda low, high: {"minimum": low, "maximum": high}, st.integers(-3, 3), st.integers(-3, 3)),
    st.builds(lambda low, high: {"minLength": low, "maxLength": high}, st.integers(0, 2), st.integers(0, 2)),
    st.builds(lambda low: {"minItems": low, "uniqueItems": True}, st.integers(0, 2)),
    st.builds(lambda names: {"required": names}, st.lists(KEYS, max_size=2, unique=True)),
    st.sampled_from([True, False, {"pattern": "^a"}, {"maxProperties": 1}]),
)


# Only what stands deeper in the value refers back: the oracle follows an endless loop in one place for ever.
BACK = st.sampled_from([{"$ref": "#"}, {"$ref": "#/$defs/s"}])


def _combine(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    some = st.dictionaries(KEYS, inner | BACK, max_size=2)
    parts = {
        "properties": some,
        "additionalProperties": inner,
        "patternProperties": st.builds(lambda schema: {"^[ab]": schema}, inner),
        "propertyNames": inner,
        "items": inner | BACK,
        "prefixItems": several,
        "contains": inner,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "dependentSchemas": st.dictionaries(KEYS, inner, max_size=2),
        "unevaluatedProperties": st.booleans(),
        "unevaluatedItems": st.booleans(),
    }
    return st.lists(st.sampled_from(list(parts)), min_size=1, max_size=3, unique=True).flatmap(
        lambda keywords: st.fixed_dictionaries({keyword: parts[keyword] for keyword in keywords})
    )


SCHEMAS = st.recursive(LEAVES, _combine, max_leaves=6)


@settings(max_examples=400, deadline=None)
@given(SCHEMAS, SCHEMAS, VALUES)
def test_a_value_has_problems_exactly_when_it_is_not_valid(schema, shared, value):
    """The verdict is that of an independent validator, and every misfit is explained at a place that exists."""
    root = {"$defs": {"s": shared}, "allOf": [schema]}
    compiled = CompiledSchema.compile(root, what="law")
    expected = jsonschema.Draft202012Validator(root).is_valid(value)
    assert compiled.is_valid(value) is expected
    found = compiled.problems(value)
    assert bool(found) is not expected
    assert all(problem.message for problem in found)


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "$ref", "$id", "anyOf", "$defs", "pattern", "$schema", "a"]
            ),
            inner
            | st.lists(inner, max_size=2)
            | st.sampled_from(["#", "#/a", "#a", "http://[", "%", "x#/y", "object"]),
            max_size=4,
        ),
        max_leaves=8,
    )
)
def test_whatever_is_given_as_a_schema_is_compiled_or_refused(schema):
    """Nothing but `InvalidDefinition` ever comes out of compiling, and what compiles can judge (A26)."""
    try:
        compiled = CompiledSchema.compile(schema, what="tool 'x', output schema")
    except InvalidDefinition:
        return
    assert bool(compiled.problems({"a": [1]})) is not compiled.is_valid({"a": [1]})
