"""Which types are told to be described alike, and which are not."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, WithJsonSchema

from twofold.tools.introspection.identity import Identified, identify


class Leaf(BaseModel):
    name: str


class Tree(BaseModel):
    """Fields named as keys of a core schema are."""

    default: Leaf
    metadata: dict[str, int] = {}


def test_the_same_type_is_identified_once():
    assert identify(list[Leaf | None]) == identify(list[Leaf | None])
    assert hash(identify(dict[str, Tree])) == hash(identify(dict[str, Tree]))
    assert identify(Tree).thing is Tree


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int | str, str | int),
        (list, list[Any]),
        (list[int], list[bool]),
        (dict[str, int], dict[int, str]),
        (Leaf, Tree),
    ],
)
def test_types_that_are_described_differently_are_told_apart(one, other):
    """The order of a union counts, which Python leaves out: its schema has that order."""
    assert identify(one) != identify(other)


def test_a_model_that_was_built_anew_is_another_one():
    """Its schema may have changed, so what was remembered of it no longer holds."""

    class Grown(BaseModel):
        a: int

    before = identify(Grown)
    Grown.model_fields["a"].description = "now described"
    Grown.model_rebuild(force=True)
    assert identify(Grown) != before
    assert before != "a type"


def change(schema: dict[str, Any]) -> None:
    schema["x-count"] = 1


class Extended(BaseModel):
    model_config = ConfigDict(json_schema_extra=change)


class Hooked(BaseModel):
    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema, handler):
        return handler(core_schema)


class Titled(BaseModel):
    model_config = ConfigDict(model_title_generator=lambda cls: "T")


class Annotates(BaseModel):
    a: Annotated[int, WithJsonSchema({"type": "integer"})]


class Extra(BaseModel):
    a: int = Field(json_schema_extra=change)


class Listed(RootModel[list[int]]):
    """A root model takes what its root's `Field` says."""


class Unfinished(BaseModel):
    a: "Later"  # noqa: F821 - defined nowhere, on purpose


class Holder(BaseModel):
    """The author's code stands under a name that is also a key of core schemas."""

    default: Hooked


@pytest.mark.parametrize(
    "annotation",
    [
        *(Extended, Hooked, Titled, Annotates, Extra, Listed, Unfinished, Holder, list[Hooked], Leaf | Extra),
        *(BaseModel, bytes, Literal["a"], Annotated[int, 1], tuple[int], "Leaf", 3),
    ],
)
def test_what_an_author_may_describe_anew_is_not_identified(annotation):
    """Code of the author's may write another schema the next time, so it is asked each time."""
    assert identify(annotation) is None


def test_things_are_equal_by_their_keys():
    assert Identified("x", 1) == Identified("y", 1)
    assert Identified("x", 1) != Identified("x", 2)
