"""A small message never takes more than a moment, whatever alternatives its types try at every level."""

import json
from typing import Annotated, Any, Literal

import pytest
import typing_extensions
from pydantic import AliasChoices, BaseModel, Field
from pydantic import Json as JsonText

from twofold.errors import ArgumentsRefused
from twofold.tools.arguments.growth import measure_growth
from twofold.tools.arguments.parameters import build_parameters
from twofold.tools.arguments.strictness import read_definitions

Json = Any


class Asked:
    """Stands for the context of a call."""


class Left(BaseModel):
    a: "Left | Right | None" = None
    x: int


class Right(BaseModel):
    a: "Left | Right | None" = None
    y: int


class Add(BaseModel):
    kind: Literal["add"]
    terms: "list[Term]"


class Negate(BaseModel):
    kind: Literal["negate"]
    term: "Term"


class Tree(BaseModel):
    label: str = ""
    children: "list[Tree] | dict[str, Tree] | None" = None


class Climb(BaseModel):
    """Leads to another that leads only to itself: the work grows with the depth, but does not double."""

    a: "Climb | Rest | None" = None


class Rest(BaseModel):
    a: "Rest | None" = None


Term = typing_extensions.TypeAliasType("Term", "Annotated[Add | Negate, Field(discriminator='kind')]")
Untagged = typing_extensions.TypeAliasType("Untagged", "list[Untagged] | tuple[Untagged, ...] | int")
Js = typing_extensions.TypeAliasType("Js", "dict[str, Js] | list[Js] | str | int | None")


def take(annotation: Any) -> Any:
    """Make the binding of a function of one parameter `n`."""

    def function(n: Any) -> None: ...

    function.__annotations__["n"] = annotation
    bind = build_parameters(function, tool_name="f", context_type=Asked).bind
    return lambda value, name="n": bind(json.dumps({name: value}).encode())[1]["n"]


def nest(depth: int, *, leaf: Json, **rest: Json) -> Json:
    """Put a value inside `depth` objects under `a`."""
    for _ in range(depth):
        leaf = {"a": leaf, **rest}
    return leaf


def refusal(bind: Any, value: Json, name: str = "n") -> str:
    with pytest.raises(ArgumentsRefused) as caught:
        bind(value, name)
    return str(caught.value)


def measure(annotation: Any) -> Any:
    class Holder(BaseModel):
        n: annotation

    core: Any = Holder.__pydantic_core_schema__
    return measure_growth(core, read_definitions(core))


def too_deep(limit: int, got: int, name: str = "n") -> str:
    return (
        f"tool 'f', argument '{name}': expected at most {limit} levels inside one another in a value of this size,"
        f" got {got}; send fewer levels"
    )


def test_values_of_some_levels_bind() -> None:
    """Alternatives that hold one another are an ordinary type."""
    value = take(Left | Right)(nest(5, leaf={"y": 2}, x=1))
    assert value.model_dump(exclude_none=True) == nest(5, leaf={"y": 2}, x=1)


@pytest.mark.parametrize("leaf", [{"x": 1}, {"z": 1}, 1], ids=range(3))
def test_hostile_depth_is_refused_before_it_is_tried(leaf: Json) -> None:
    """Some hundred bytes would take all time and memory: 2^100 tries. Valid or not makes no difference."""
    bind = take(Left | Right)
    depth = 100 + isinstance(leaf, dict)
    assert refusal(bind, nest(100, leaf=leaf, x=1)) == too_deep(15, depth)
    assert refusal(take(list[Left | Right]), [nest(100, leaf=leaf, x=1)]) == too_deep(16, depth + 1)


def test_deepest_value_that_may_be_tried_binds() -> None:
    """The limit told is the limit held."""
    bind = take(Left | Right)
    assert bind(nest(14, leaf={"x": 1}, x=1)).x == 1
    assert refusal(bind, nest(15, leaf={"x": 1}, x=1)) == too_deep(15, 16)


def test_misfit_of_many_levels_is_told_by_the_schema() -> None:
    """Where the validator would collect an error for every path through the alternatives, it is not asked."""
    message = refusal(take(Left | Right), nest(14, leaf={"z": 1}, x=1))
    assert message.startswith("tool 'f', argument 'n': expected an object (Left) or an object (Right), got an object")
    assert message.endswith("; Right: 'y' is missing")


def test_value_inside_text_is_measured_too() -> None:
    """Levels come as well in `pydantic.Json`, and in a string read for the argument."""
    bind = take(Annotated[Left | Right, JsonText])
    assert bind(json.dumps(nest(5, leaf={"x": 2}, x=1))).x == 1
    assert refusal(bind, json.dumps(nest(100, leaf={"x": 2}, x=1))) == too_deep(15, 101)
    read = take(Left | Right)
    assert read(json.dumps(nest(5, leaf={"x": 2}, x=1))).x == 1
    assert refusal(read, json.dumps(nest(100, leaf={"x": 2}, x=1))).startswith(
        "tool 'f', argument 'n': expected an object (Left) or an object (Right), got a string"
    )


def test_other_names_of_an_argument_are_measured_too() -> None:
    """A second alias is no way around."""
    bind = take(Annotated[Left | Right, Field(validation_alias=AliasChoices("n", "m"))])
    assert refusal(bind, nest(100, leaf={"x": 1}, x=1), "m") == too_deep(15, 101, "m")


def test_width_counts_where_it_is_tried_over_and_over() -> None:
    """A long list costs its length, at the bottom of many levels its length for every path to it."""
    bind = take(Left | Right)
    wide = {"x": 1, "more": list(range(50_000))}
    assert bind(nest(1, leaf=wide, x=1)).x == 1
    assert refusal(bind, nest(12, leaf=wide, x=1)) == too_deep(13, 14)
    long = {"x": 1, "more": "é" * 500_000}
    assert bind(nest(1, leaf=long, x=1)).x == 1
    assert refusal(bind, nest(12, leaf=long, x=1)) == too_deep(12, 13)
    assert len(take(list[Left | Right])([nest(2, leaf={"x": 1}, x=1)] * 10_000)) == 10_000


def test_other_arguments_are_not_measured() -> None:
    """What holds for one parameter does not bound its neighbour."""

    def function(n: Left | Right, js: Js) -> None: ...

    deep = nest(100, leaf=1)
    bind = build_parameters(function, tool_name="f", context_type=Asked).bind
    assert bind(json.dumps({"n": {"x": 1}, "js": deep}).encode()) == ((), {"n": Left(x=1), "js": deep})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Js, nest(50, leaf=[[1], None])),
        (Tree, {"children": [{"children": {"a": {"label": "b"}}}]}),
        (Term, {"kind": "negate", "term": {"kind": "add", "terms": []}}),
        (list[Left], [{"x": 1}]),
    ],
    ids=range(4),
)
def test_alternatives_that_are_told_apart_have_no_limit(annotation: Any, value: Json) -> None:
    """By their kind, or by a discriminator: a value is tried against one of them only."""
    assert (
        json.loads(json.dumps(take(annotation)(value), default=lambda one: one.model_dump(exclude_unset=True))) == value
    )


@pytest.mark.parametrize("annotation", [Js, Tree, Term, int, list[Tree | Js]], ids=range(5))
def test_types_in_proportion_have_no_growth(annotation: Any) -> None:
    """Nothing is done on their calls."""
    assert measure(annotation) is None


def test_growth_is_that_of_the_alternatives() -> None:
    """Each of a kind counts; what is of another kind, or cannot hold the others, does not multiply."""
    assert measure(Left | Right).tries[:5] == (1, 2, 4, 8, 16)
    assert measure(dict[str, Left | Right | int | str]).tries[:5] == (1, 1, 2, 4, 8)
    assert measure(Untagged).tries[:5] == (1, 2, 4, 8, 16)
    assert measure(Climb).tries == (1, *range(1, 200))


@pytest.mark.parametrize("depth", [5, 150])
def test_work_that_only_adds_up_is_allowed(depth: int) -> None:
    """As many tries as there are levels are few, whatever the depth."""
    assert take(Climb)(nest(depth, leaf={})) is not None
