"""The law for arguments, on generated types and values, against an independent validator.

What binds is valid under the published schema, at once or after reading JSON inside strings once; what is
valid binds, or fails in a named format or an author's own validator.
"""

import contextlib
import datetime
import decimal
import enum
import inspect
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import make_dataclass
from typing import Annotated, Any, Literal, NamedTuple

import typing_extensions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from twofold.errors import ArgumentsRefused, ProtocolError
from twofold.tools.arguments.parameters import Parameters, build_parameters

Json = Any


class Asked:
    """Stands for the context."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    WHOLE = 1
    TEXT = "1"
    TRUTH = False
    PART = 2.5


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    name: str = Field(alias="dogName", max_length=3)
    friend: "Dog | Cat | None" = None


class Tree(BaseModel):
    value: int
    children: "list[Tree]" = []


class Pair(NamedTuple):
    first: int
    second: str = "s"


class Widened(BaseModel):
    """An author's validator makes of text what the schema does not publish."""

    when: datetime.date = datetime.date(2026, 1, 1)
    parts: Annotated[list[int], BeforeValidator(lambda v: v.split(",") if isinstance(v, str) else v)] = []


SCALARS: list[Any] = [
    int,
    float,
    bool,
    str,
    None,
    Any,
    Annotated[int, Field(ge=2, lt=2**53 + 1)],
    Annotated[int, Field(multiple_of=3)],
    Annotated[float, Field(gt=-1.5, le=3)],
    Annotated[str, Field(min_length=1, max_length=3)],
    Annotated[str, Field(pattern="^[ab1]+")],
    Literal["a", "1"],
    Literal[1, 2],
    Literal[True],
    Literal["a", 1, False, None],
    Colour,
    Level,
    Mixed,
    Cat,
    Dog,
    Tree,
    Pair,
    Annotated[Cat | Dog, Field(discriminator="kind")],
]
FORMATTED: list[Any] = [
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    bytes,
    decimal.Decimal,
    Annotated[decimal.Decimal, Field(ge=0, max_digits=3)],
    Annotated[bytes, Field(min_length=2, max_length=4)],
    complex,
    Widened,
]
"""What is valid under their schemas may fail in a named format, or in the author's validator."""


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "schema", "type", "name"])
    hashable = st.sampled_from([int, str, bool, float, Colour, Level, int | str])
    keys = st.sampled_from([str, int, float, bool, Colour, Level, Annotated[str, Field(max_length=2)]])
    fields = st.dictionaries(names, st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda t: list[t]),
        inner.map(lambda t: Annotated[Sequence[t], Field(min_length=1)]),
        inner.map(lambda t: Iterable[t]),
        inner.map(lambda t: tuple[t, ...]),
        st.tuples(inner, inner).map(lambda t: tuple[t]),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1] if t[0] or t[1] else None),
        inner.map(lambda t: t | None if t is not None else None),
        hashable.map(lambda t: set[t]),
        hashable.map(lambda t: Annotated[frozenset[t], Field(max_length=2)]),
        st.tuples(keys, inner).map(lambda t: dict[t]),
        inner.map(lambda t: Mapping[str, t]),
        fields.map(make_typed_dict),
        fields.map(make_model),
        fields.map(make_data_class),
    )


def make_typed_dict(fields: dict[str, tuple[Any, bool]]) -> Any:
    return typing_extensions.TypedDict(
        "Made", {n: t if required else typing_extensions.NotRequired[t] for n, (t, required) in fields.items()}
    )


def make_model(fields: dict[str, tuple[Any, bool]]) -> Any:
    safe = {name + "_": (t, ... if required else None) for name, (t, required) in fields.items()}
    return create_model("MadeModel", **safe)


def make_data_class(fields: dict[str, tuple[Any, bool]]) -> Any:
    ordered = sorted(fields.items(), key=lambda item: not item[1][1])
    return make_dataclass("MadeClass", [(n, t) if required else (n, t, None) for n, (t, required) in ordered])


lawful_types = st.recursive(st.sampled_from(SCALARS), containers, max_leaves=4)
all_types = st.recursive(st.sampled_from(SCALARS + FORMATTED), containers, max_leaves=4)

ODD_TEXTS = ["", "a", "1", "-5", "1.0", "true", "yes", "null", '"a"', "[1, 2]", '{"value": 1}', "1e5", " 1 "]
ODD_TEXTS += ["2026-01-02", "10:00", "PT1H", "12345678-1234-5678-1234-567812345678", "YWJj", "YQ", "1_0", "red"]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, 3, -1, 9, 2**53, 2**53 + 1, 10**30, 1.0, 2.0, -0.0, 0.5, 2.5, 1e22]),
    st.integers(-5, 5),
    st.sampled_from(ODD_TEXTS),
    st.text(max_size=3),
)
KEYS = ["a", "b", "schema", "type", "name", "a_", "b_", "value", "children", "kind", "lives", "dogName", "friend"]
KEYS += ["1", "2", "1.5", " 1", "true", "yes", "red", "low", "first", "second", "when", "parts", "schema_"]
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def near_values(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Json:  # noqa: PLR0911, PLR0912
    """Draw a value that mostly fits a schema, so that both sides of the law are met often."""
    if "$ref" in schema:
        return draw(near_values(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth))
    if depth > 6 or draw(st.integers(0, 14)) == 0:
        return draw(values)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return draw(near_values(draw(st.sampled_from(schema[keyword])), root, depth))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    match schema.get("type"):
        case "integer":
            low = schema.get("minimum", -3)
            number = draw(st.integers(low, low + 9))
            return float(number) if draw(st.integers(0, 3)) == 0 else number
        case "number":
            return draw(st.sampled_from([0, 1, 3, 0.5, 2.5, 1.0, -1]))
        case "boolean":
            return draw(st.booleans())
        case "null":
            return None
        case "string":
            return draw(st.sampled_from([*ODD_TEXTS, "ab", "abc"]))
        case "array":
            prefix = [draw(near_values(one, root, depth + 1)) for one in schema.get("prefixItems", ())]
            items = schema.get("items")
            if not isinstance(items, dict):
                return prefix
            low = schema.get("minItems", 0)
            return prefix + draw(st.lists(near_values(items, root, depth + 1), min_size=low, max_size=low + 2))
        case "object":
            return draw(near_objects(schema, root, depth))
    return draw(values)


@st.composite
def near_objects(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Json:
    made = {}
    for name, part in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or draw(st.booleans()):
            made[name] = draw(near_values(part, root, depth + 1))
            if depth == 0 and draw(st.integers(0, 3)) == 0:
                made[name] = json.dumps(made[name])
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        keys = schema.get("propertyNames", {}).get("enum", KEYS)
        for key in draw(st.lists(st.sampled_from(keys), max_size=2)):
            made[key] = draw(near_values(rest, root, depth + 1))
    return made


def build(types: dict[str, Any], defaults: set[str]) -> Parameters:
    def take(**kwargs: Any) -> None: ...

    take.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=None if name in defaults else inspect.Parameter.empty,
            )
            for name, annotation in types.items()
        ]
    )
    return build_parameters(take, tool_name="take", context_type=Asked)


def binds(parameters: Parameters, arguments: Json) -> bool:
    try:
        parameters.bind(json.dumps(arguments).encode())
    except ArgumentsRefused:
        return False
    return True


def read_misfits(arguments: dict[str, Json], schema: dict[str, Any]) -> dict[str, Json]:
    """Read, once, the JSON in strings that do not fit as they are."""
    read = {}
    for name, value in arguments.items():
        part = {**schema, "properties": {name: schema["properties"].get(name, False)}, "required": []}
        read[name] = value
        if isinstance(value, str) and not Draft202012Validator(part).is_valid({name: value}):
            try:
                read[name] = json.loads(value)
            except ValueError:
                continue
    return read


def is_json_text(value: Json) -> bool:
    try:
        json.loads(value)
    except (TypeError, ValueError):
        return False
    return True


quickly = settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@given(data=st.data(), types=st.dictionaries(st.sampled_from("xyz"), all_types, min_size=1, max_size=2))
@quickly
def test_what_binds_is_valid_under_the_published_schema(data: st.DataObject, types: dict[str, Any]) -> None:
    """The first half of the law: contract row A21, STYLE "Tests"."""
    parameters = build(types, data.draw(st.sets(st.sampled_from(sorted(types)))))
    schema = parameters.schema
    oracle = Draft202012Validator(schema)
    for _ in range(4):
        arguments = data.draw(near_values(schema, schema))
        if isinstance(arguments, dict) and binds(parameters, arguments):
            assert oracle.is_valid(arguments) or oracle.is_valid(read_misfits(arguments, schema)), arguments


@given(data=st.data(), types=st.dictionaries(st.sampled_from("xyz"), lawful_types, min_size=1, max_size=2))
@quickly
def test_what_is_valid_under_the_published_schema_binds(data: st.DataObject, types: dict[str, Any]) -> None:
    """The second half of the law, for types without named formats and validators of the author's."""
    parameters = build(types, data.draw(st.sets(st.sampled_from(sorted(types)))))
    schema = parameters.schema
    Draft202012Validator.check_schema(schema)
    oracle = Draft202012Validator(schema)
    for _ in range(4):
        arguments = data.draw(near_values(schema, schema))
        if oracle.is_valid(arguments):
            parameters.bind(json.dumps(arguments).encode())


@given(data=st.data(), types=st.dictionaries(st.sampled_from("xyz"), all_types, min_size=1, max_size=2))
@quickly
def test_what_is_text_inside_text_is_read_once(data: st.DataObject, types: dict[str, Any]) -> None:
    """A value sent as JSON inside a string binds like the value itself, unless the string itself fits."""
    parameters = build(types, set())
    schema = parameters.schema
    for _ in range(4):
        arguments = data.draw(near_values(schema, schema))
        if isinstance(arguments, dict) and any(
            map(is_json_text, arguments.values())
        ):  # it may have been read already: "null" for `date | None`
            continue
        if Draft202012Validator(schema).is_valid(arguments) and binds(parameters, arguments):
            assert binds(parameters, {name: json.dumps(value) for name, value in arguments.items()})


@given(raw=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_bind_or_are_refused_in_words(raw: bytes) -> None:
    """Whatever the bytes, nothing but an error for the peer or the model comes out."""
    assert_only_known_errors(raw)


@given(value=values, cut=st.integers(0, 60), at=st.integers(0, 60), more=st.binary(max_size=3))
@settings(max_examples=300, deadline=None)
def test_damaged_json_binds_or_is_refused_in_words(value: Json, cut: int, at: int, more: bytes) -> None:
    """JSON cut short, or with bytes thrown in, is refused like any other."""
    raw = json.dumps({"x": value, "z": value}).encode()
    assert_only_known_errors(raw[: len(raw) - cut])
    assert_only_known_errors(raw[:at] + more + raw[at:])


def take_several(x: Any, y: list[int] | str = "", z: dict[str, Tree] | None = None) -> None: ...


SEVERAL = build_parameters(take_several, tool_name="take", context_type=Asked)


def assert_only_known_errors(raw: bytes) -> None:
    with contextlib.suppress(ArgumentsRefused, ProtocolError):
        positional, named = SEVERAL.bind(raw)
        assert positional == ()
        assert "x" in named
