"""Parameters described without pydantic, and with it."""

import inspect
import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from twofold.tools.arguments.by_pydantic import describe_by_pydantic
from twofold.tools.arguments.description import describe_parameters


class User(BaseModel):
    name: str


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


annotations = st.sampled_from(
    [
        *(str, int, float, bool, Any, None, list, inspect.Parameter.empty, type(None)),
        *(str | None, int | str, list[int], dict[str, Any], list[str] | None),
    ]
)
defaults = st.sampled_from([inspect.Parameter.empty, None, 1, True, 1.0, -0.0, 0, "", "é", "1", 2**80, float("nan")])
names = st.sampled_from(["a", "limit", "page_size", "_under_", "aB", "a1b", "title", "ä", "type"])
signatures = st.lists(st.tuples(names, annotations, defaults), max_size=4, unique_by=lambda one: one[0]).map(
    lambda several: [parameter(*one) for one in several]
)


@given(parameters=signatures)
@settings(max_examples=400, deadline=None)
def test_parameters_are_described_as_pydantic_describes_them(parameters):
    """The law: the same fields for the validator, the same JSON Schema to the letter."""
    described = describe_parameters(parameters, title="addArguments", label="f")
    core, schema, _ = describe_by_pydantic(parameters, title="addArguments", label="f")
    assert json.dumps(described.schema) == json.dumps(schema)
    ours = {name: (field["required"], field["schema"]) for name, field in described.core["fields"].items()}
    theirs = {name: (field["required"], field["schema"]) for name, field in core["fields"].items()}
    assert repr(ours) == repr(theirs)


def test_defaults_that_python_calls_equal_are_told_apart():
    """1, True and 1.0 are three defaults; one that was remembered must not stand for another."""
    published = [
        describe_parameters([parameter("x", int | bool | float, default)], title="t", label="f").schema
        for default in (1, True, 1.0, -1.0, -0.0)
    ]
    assert [repr(schema["properties"]["x"]["default"]) for schema in published] == ["1", "True", "1.0", "-1.0", "-0.0"]


def test_what_one_asker_changes_another_does_not_see():
    """Descriptions from a docstring go into the schema of one tool alone."""
    first = describe_parameters([parameter("x", int | None, None)], title="t", label="f").schema
    first["properties"]["x"]["description"] = "mine"
    first["properties"]["x"]["anyOf"].clear()
    second = describe_parameters([parameter("x", int | None, None)], title="t", label="f").schema
    assert second["properties"]["x"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
        "title": "X",
    }


@pytest.mark.parametrize(
    ("annotation", "is_plain"),
    [
        *((User, True), (list[User], True), (Literal["a", "b"], True), (dict[str, list[User | None]], True)),
        *((Literal[1], False), (bytes, False), (set[int], False), (dict[str, User] | list[User], False)),
    ],
)
def test_only_what_surely_can_be_restricted_is_plain(annotation, is_plain):
    """What may fail has to fail at registration; a type that two parts refer to stands among definitions."""
    assert describe_parameters([parameter("x", annotation)], title="t", label="f").is_plain is is_plain


def test_field_and_its_like_are_for_pydantic():
    described = describe_parameters([parameter("x", int, Field(3, ge=1))], title="t", label="f")
    assert described.schema["properties"]["x"] == {"default": 3, "minimum": 1, "title": "X", "type": "integer"}
