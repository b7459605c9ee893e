"""JSON's own types, described without pydantic as pydantic describes them."""

import json
from typing import Annotated, Any, Literal, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from twofold.tools.arguments.input_schema import GenerateInputSchema
from twofold.tools.introspection.json_types import copy_json, describe_json_type
from twofold.tools.results.by_pydantic import read_by_pydantic
from twofold.tools.results.description import describe_type

scalars = st.sampled_from([str, int, float, bool, type(None), Any, list, dict])
annotations = st.recursive(
    scalars,
    lambda inner: (
        inner.map(lambda one: list[one])
        | inner.map(lambda one: dict[str, one])
        | st.lists(inner, min_size=2, max_size=3).map(lambda several: Union[tuple(several)])  # noqa: UP007 - made here
    ),
    max_leaves=5,
)


@given(annotation=annotations)
@settings(max_examples=400, deadline=None)
def test_a_type_is_described_as_pydantic_describes_it(annotation):
    """The law: core schema, and both JSON Schemas with the order of their keys."""
    described = describe_json_type(annotation)
    adapter = TypeAdapter(annotation)
    if described is None:
        assert "union" in str(adapter.core_schema) or "nullable" in str(adapter.core_schema)
        return
    assert described.core == adapter.core_schema
    taken = adapter.json_schema(schema_generator=GenerateInputSchema)
    assert json.dumps(described.schema) == json.dumps(taken)
    ours, theirs = describe_type(annotation), read_by_pydantic(annotation)
    assert (ours.bare, ours.wrapped) == (theirs.bare, theirs.wrapped)
    assert ours.dumper.is_open == theirs.dumper.is_open
    assert ours.hides_input == theirs.rewritten.hides_input


@pytest.mark.parametrize(
    "annotation",
    [
        *(int, str | None, list[str | int], dict[str, Any], dict, float | None),
        *(None | dict[str, list[int]], list[int | None], dict[str, dict[str, bool | None]]),
    ],
)
def test_the_usual_ones_need_no_pydantic(annotation):
    """Else nothing would be saved."""
    assert describe_json_type(annotation) is not None


class Strange(type):
    """Its classes cannot be hashed."""

    __hash__ = None

    def __eq__(cls, other):
        return True


class Unhashable(metaclass=Strange):
    """A class that calls itself equal to anything."""


@pytest.mark.parametrize(
    "annotation",
    [
        *(bytes, tuple, set, tuple[int, ...], dict[int, str], Annotated[int, Field(ge=1)], Literal["a"], BaseModel),
        *(Union, list[bytes], dict[str, set[int]], int | bytes, "int", list["int"], Unhashable, list[Unhashable], 3),
    ],
)
def test_every_other_type_is_left_to_pydantic(annotation):
    assert describe_json_type(annotation) is None


def test_a_copy_shares_nothing_that_can_change():
    """What is published of one tool must not change with another's."""
    given = {"a": [{"b": 1}], "c": "d"}
    copy = copy_json(given)
    copy["a"][0]["b"] = 2
    assert given == {"a": [{"b": 1}], "c": "d"}
