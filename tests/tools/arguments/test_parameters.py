"""Signatures become schemas; the bytes of a call become arguments, or every problem at once."""

import collections.abc
import datetime
import decimal
import enum
import functools
import ipaddress
import json
import sys
import uuid
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from pydantic import (
    AfterValidator,
    AliasPath,
    AnyUrl,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from twofold.errors import ArgumentsRefused, InvalidDefinition, InvalidParams, InvalidSignature, ParseError
from twofold.tools.arguments.parameters import Parameters, build_parameters
from twofold.tools.checks.complaints import DefinitionWarning

Json = Any


class Asked:
    """Stands for the context of a call."""


class AskedMore(Asked): ...


class User(BaseModel):
    name: str
    age: int


class Weather(TypedDict):
    temperature: float


@dataclass
class Reading:
    weather: Weather
    at: datetime.date


class Plain:
    x: int


def build(function: Any, **options: Any) -> Parameters:
    return build_parameters(function, tool_name="add", context_type=Asked, **options)


def bind(function: Any, arguments: Json, **options: Any) -> Any:
    positional, named = build(function, **options).bind(json.dumps(arguments).encode())
    return (positional, named) if positional else named


def refusal(function: Any, arguments: Json, **options: Any) -> str:
    with pytest.raises(ArgumentsRefused) as caught:
        bind(function, arguments, **options)
    return str(caught.value)


def of(annotation: Any, **default: Any) -> Any:
    """Make a function of one parameter `x`."""

    def take(x: Any) -> None: ...

    take.__annotations__["x"] = annotation
    if default:
        take.__defaults__ = (default["default"],)
    return take


def published(annotation: Any, **default: Any) -> Json:
    return build(of(annotation, **default)).schema["properties"]["x"]


def add(a: int, b: int) -> int:
    return a + b


def search(topic: str = "", limit: int = 5) -> None: ...


# The schema


def test_schema_of_a_function_is_exact() -> None:
    """Contract row A1: names, types, titles and what is required, from the signature alone."""
    assert build(add).schema == {
        "title": "addArguments",
        "type": "object",
        "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_schema_of_no_parameters_is_an_object() -> None:
    """Field case I11: a tool of no parameters still publishes an object."""
    empty = {"title": "addArguments", "type": "object", "properties": {}, "additionalProperties": False}
    assert build(lambda: None).schema == empty
    assert bind(lambda: None, {}) == {}


def test_everything_a_parameter_says_is_published() -> None:
    """Contract row A1: `Field`, `Annotated`, `Literal`, defaults, nested models, docstring descriptions."""

    def take(  # noqa: D417, PLR0917
        user: User,
        city: Annotated[str, Field(description="Where.", min_length=1)],
        kind: Literal["a", "b"] = "a",
        when: datetime.date = datetime.date(2026, 1, 2),
        count: int = Field(default=3, ge=1, description="How many."),
        anything=None,
        maybe: str = None,  # noqa: RUF013
        odd: object = object(),
    ) -> None:
        """Take.

        Args:
            user: Who.
            city: Not this.
            maybe: Perhaps.
        """

    assert build(take).schema == {
        "$defs": {
            "User": {
                "title": "User",
                "type": "object",
                "properties": {
                    "name": {"title": "Name", "type": "string"},
                    "age": {"title": "Age", "type": "integer"},
                },
                "required": ["name", "age"],
            }
        },
        "title": "addArguments",
        "type": "object",
        "properties": {
            "user": {"$ref": "#/$defs/User", "description": "Who."},
            "city": {"title": "City", "type": "string", "minLength": 1, "description": "Where."},
            "kind": {"title": "Kind", "type": "string", "enum": ["a", "b"], "default": "a"},
            "when": {"title": "When", "type": "string", "format": "date", "default": "2026-01-02"},
            "count": {
                "title": "Count",
                "type": "integer",
                "minimum": 1,
                "default": 3,
                "description": "How many.",
            },
            "anything": {"title": "Anything", "default": None},
            "maybe": {
                "title": "Maybe",
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "Perhaps.",
            },
            "odd": {"title": "Odd"},
        },
        "required": ["user", "city"],
        "additionalProperties": False,
    }


def test_none_default_makes_the_type_optional() -> None:
    """Contract row A21: `x: str = None` is `str | None`; what `Field` says stays with the whole."""
    annotation = Annotated[str, Field(description="d", alias="y"), AfterValidator(str.upper)]
    take = of(annotation, default=None)
    assert build(take).schema["properties"] == {
        "y": {
            "title": "Y",
            "description": "d",
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "default": None,
        }
    }
    assert bind(take, {"y": "a"}) == {"x": "A"}
    assert bind(take, {"y": None}) == {"x": None}
    assert bind(take, {}) == {}
    for annotation in (int | None, Any, Annotated[int | None, "note"], Literal["a", None]):
        assert "default" in published(annotation, default=None)


@pytest.mark.parametrize("default", [float("nan"), object(), {1, "a"}, [float("inf")]])
def test_default_that_json_cannot_hold_is_left_out(default: Any) -> None:
    """A default is published where JSON can say it, and works in any case."""
    schema = published(Any, default=default)
    assert "default" not in schema or default == {1, "a"}
    assert bind(of(Any, default=default), {}) == {}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (
            Annotated[bytes, Field(min_length=1, max_length=4)],
            {"type": "string", "contentEncoding": "base64", "minLength": 4, "maxLength": 8},
        ),
        (
            dict[int, bool],
            {
                "type": "object",
                "additionalProperties": {"type": "boolean"},
                "propertyNames": {"pattern": "^-?(0|[1-9][0-9]*)$"},
            },
        ),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (
            dict[Literal["b", "a"], int],
            {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"enum": ["a", "b"]}},
        ),
        (collections.abc.Iterable[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (complex, {"type": "string", "format": "complex"}),
    ],
)  # fmt: skip
def test_what_is_refused_is_published(annotation: Any, schema: Json) -> None:
    """The schema says what pydantic's own leaves open: keys, encodings, formats."""
    assert published(annotation) == {"title": "X", **schema}


def test_tag_of_a_union_is_required() -> None:
    """The validator wants the tag even where a member has a default for it; the schema says so."""

    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"

    class Dog(BaseModel):
        kind: Literal["dog"] = "dog"

    take = of(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert build(take).schema["properties"]["x"]["required"] == ["kind"]
    assert bind(take, {"x": {"kind": "dog"}}) == {"x": Dog()}
    assert refusal(take, {"x": {}}) == "tool 'add', argument 'x.kind': missing; expected one of 'cat', 'dog'"


def test_marker_with_a_schema_of_its_own_is_published() -> None:
    """`Annotated[str, Header("Region")]` adds to the schema through pydantic: contract row A18."""

    class Header:
        def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Json:
            return handler(schema) | {"x-mcp-header": "Region"}

    take = of(Annotated[str, Header()])
    assert build(take).schema["properties"]["x"] == {"title": "X", "type": "string", "x-mcp-header": "Region"}
    assert bind(take, {"x": "a"}) == {"x": "a"}


NAMES = ["schema", "copy", "json", "dict", "validate", "model_dump", "model_fields", "model_config", "fields"]
NAMES += ["construct", "name", "type", "arguments", "context", "args", "kwargs", "fn", "cls", "self_", "_x", "__y"]


@pytest.mark.parametrize("name", NAMES)
def test_any_parameter_name_can_be_used(name: str) -> None:
    """Field case I07: names that clash with the machinery elsewhere."""
    scope: dict[str, Any] = {}
    exec(f"def take({name}: str = 'd'): ...", scope)  # noqa: S102
    assert list(build(scope["take"]).schema["properties"]) == [name]
    assert bind(scope["take"], {name: "v"}) == {name: "v"}


# Context


@pytest.mark.parametrize(
    "annotation", [Asked, Asked | None, Annotated[Asked, "note"], AskedMore, "Asked", "Annotated[Asked | None, 1]"]
)
def test_context_is_asked_for_by_annotation(annotation: Any) -> None:
    """The parameter is named, and is not in the schema."""

    def take(a: int, ctx: Any = None) -> None: ...

    take.__annotations__["ctx"] = annotation
    parameters = build(take)
    assert parameters.context_name == "ctx"
    assert list(parameters.schema["properties"]) == ["a"]
    assert parameters.bind(b'{"a":1}') == ((), {"a": 1})
    with pytest.raises(ArgumentsRefused, match="argument 'ctx': unknown"):
        parameters.bind(b'{"a":1,"ctx":{}}')


def test_context_is_asked_for_at_most_once_and_by_name() -> None:
    """Anything else is an error at registration."""

    def twice(a: Asked, b: Asked | None) -> None: ...
    def by_position(a: Asked, /) -> None: ...

    with pytest.raises(InvalidSignature, match="function 'twice': 'a', 'b' all ask for the Asked"):
        build(twice)
    with pytest.raises(InvalidSignature, match=r"function 'by_position', parameter 'a': .* is given by name"):
        build(by_position)


# Signatures that cannot be tools


def test_variadic_parameters_are_refused() -> None:
    """Field case I06: `*args` and `**kwargs` say nothing of what the tool takes."""

    def positional(x: int, *more: int) -> None: ...
    def named(x: int, **more: int) -> None: ...

    for function, stars in ((positional, r"\*more"), (named, r"\*\*more")):
        with pytest.raises(
            InvalidSignature, match=f"{stars} does not say .*name the parameters.*functools.wraps.*input_schema="
        ):
            build(function)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Plain, "function 'take', parameter 'x': Plain cannot come from JSON .*; make it a dataclass or a pydantic model"),
        (collections.abc.Iterator[int], r"parameter 'x': collections.abc.Iterator\[int\] cannot come from JSON"),
        (collections.abc.Callable[[], int], "parameter 'x': .*Callable.* cannot come from JSON"),
        (type[int], "a class such as 'int' is no JSON value"),
        (dict[tuple[int, int], int], "keys of type 'tuple' cannot be the keys of a JSON object"),
        (Annotated[str, Field(pattern="(")], "parameter 'x': .*unclosed group"),
        (5, "parameter 'x': 5 cannot come from JSON"),
        ("Missing", "function 'take': an annotation names 'Missing'"),
    ],
)  # fmt: skip
def test_type_that_cannot_come_from_json_is_refused(annotation: Any, message: str) -> None:
    """An error at registration that names function, parameter, type and what to do."""

    def good(y: int, x: Any = None) -> None: ...

    for function in (of(annotation), of(annotation, default=None)):
        with pytest.raises(InvalidSignature, match=message) as caught:
            build(function)
        assert "http" not in str(caught.value)


def test_parameter_whose_alias_is_a_path_is_named_without_a_warning() -> None:
    """pydantic warns of aliases it does not use; the author gets one message, ours."""
    with pytest.raises(
        InvalidSignature, match=r"parameter 'x': .*\(the alias 'p\.q' is a path and no name; give a name"
    ):
        build(of(Annotated[int, Field(validation_alias=AliasPath("p", "q"))]))


def test_two_parameters_with_one_alias_are_refused() -> None:
    """Each argument has its own name."""

    def take(a: Annotated[int, Field(alias="b")], b: int) -> None: ...

    with pytest.raises(InvalidSignature, match="two parameters have the same alias"):
        build(take)


def test_schema_changed_by_hand_into_none_is_refused() -> None:
    """What an author adds to a schema is checked like one written by hand."""
    with pytest.raises(InvalidDefinition, match="tool 'add', input schema, at #/properties/x/type"):
        build(of(Annotated[str, Field(json_schema_extra={"type": "nonsense"})]))


# Binding


def test_arguments_arrive_as_python_values() -> None:
    """Models, dataclasses with any TypedDict, dates, enums and bytes are made; absent ones are left out."""

    class Level(enum.IntEnum):
        LOW = 1

    def take(user: User, reading: Reading, *, raw: bytes, level: Level, ident: uuid.UUID, limit: int = 3) -> None: ...

    arguments = {
        "user": {"name": "a", "age": 1, "more": 1},
        "reading": {"weather": {"temperature": 1}, "at": "2026-01-02"},
        "raw": "YQ==",
        "level": 1,
        "ident": "12345678-1234-5678-1234-567812345678",
    }
    assert bind(take, arguments) == {
        "user": User(name="a", age=1),
        "reading": Reading({"temperature": 1.0}, datetime.date(2026, 1, 2)),
        "raw": b"a",
        "level": Level.LOW,
        "ident": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    }


def test_arguments_are_fresh_for_each_call() -> None:
    """Nothing of one call reaches another."""
    parameters = build(of(list[int], default=[]))
    assert parameters.bind(b'{"x":[1]}')[1] is not parameters.bind(b'{"x":[1]}')[1]
    factory = build(of(list[int], default=Field(default_factory=list)))
    first, second = factory.bind(b"{}")[1], factory.bind(b"{}")[1]
    assert first == second == {"x": []}
    assert first["x"] is not second["x"]


def test_alias_is_the_name_on_the_wire() -> None:
    """Published and bound by alias, passed under the Python name."""

    def take(a: Annotated[int, Field(alias="the-a")] = 1, b: int = Field(default=2, alias="c")) -> None: ...

    assert list(build(take).schema["properties"]) == ["the-a", "c"]
    assert bind(take, {"the-a": 5}) == {"a": 5, "b": 2}
    assert "argument 'a': unknown" in refusal(take, {"a": 5})


def test_positional_only_parameters_go_by_position() -> None:
    """`def f(a, b=2, /, c=3)` is called as Python demands."""

    def take(a: int, b: int = 2, /, c: int = 3, *, d: int) -> None: ...

    assert bind(take, {"a": 1, "d": 4}) == ((1, 2), {"d": 4})
    assert bind(take, {"a": 1, "b": 5, "c": 6, "d": 4}) == ((1, 5), {"c": 6, "d": 4})


def test_partial_takes_what_is_left() -> None:
    """What a partial binds is neither published nor taken."""
    assert list(build(functools.partial(add, b=2)).schema["properties"]) == ["a"]
    assert bind(functools.partial(add, b=2), {"a": 1}) == {"a": 1}


def test_unknown_arguments_can_be_ignored() -> None:
    """`unknown_arguments="ignore"` opens the schema and drops what the function does not have."""
    assert "additionalProperties" not in build(search, unknown_arguments="ignore").schema
    assert bind(search, {"topik": "cats", "limit": 2}, unknown_arguments="ignore") == {"limit": 2}


NOT_AS_PUBLISHED: list[tuple[Any, Json]] = [
    (int, True),
    (int, 1.5),
    (int, "one"),
    (float, True),
    (bool, 1),
    (bool, "yes"),
    (str, 5),
    (str, True),
    (datetime.date, 5),
    (datetime.timedelta, 5),
    (uuid.UUID, 5),
    (bytes, "é"),
    (bytes, "YQ"),
    (bytes, "not base64!"),
    (Literal[1], True),
    (Literal[True], 1),
    (Literal["1"], 1),
    (list[int], {"0": 1}),
    (list[int], "1,2"),
    (set[int], [1, 1]),
    (frozenset[int], [1, 1.0]),
    (tuple[int, str], [1]),
    (dict[int, int], {" 1": 1}),
    (dict[int, int], {"1.0": 1}),
    (dict[bool, int], {"yes": 1}),
    (decimal.Decimal, "1_0"),
    (decimal.Decimal, "NaN"),
    (int | None, "none"),
    (Annotated[float, Field(multiple_of=0.5)], 0.5000000001),
    (Annotated[str, Field(max_length=1)], "ab"),
    (collections.abc.Iterable[int], [1, "x"]),
    (NamedTuple("Pair", [("a", int)]), {"a": 1}),
]


@pytest.mark.parametrize(("annotation", "value"), NOT_AS_PUBLISHED)
def test_what_the_schema_refuses_does_not_bind(annotation: Any, value: Json) -> None:
    """The law, case by case: no conversion beyond what JSON Schema says."""
    assert refusal(of(annotation), {"x": value}).startswith("tool 'add', argument 'x")


AS_PUBLISHED: list[tuple[Any, Json, Any]] = [
    (int, 1.0, 1),
    (int, 1e22, 10**22),
    (int, 2**70, 2**70),
    (Any, 2**70, 2**70),
    (StrictInt, 2.0, 2),
    (Annotated[int, Field(ge=1, multiple_of=3)], 3.0, 3),
    (float, 1, 1.0),
    (int | float, 1.0, 1.0),
    (int | Annotated[float, Field(gt=0)], -2.0, -2),
    (int | Annotated[float, Field(gt=0)], 2.0, 2.0),
    (list[int | str], [1, "1", 1.0], [1, "1", 1]),
    (Literal[1, "1", True], 1.0, 1),
    (Literal[1, "1", True], True, True),
    (tuple[int, ...], [1], (1,)),
    (set[Literal[1, True]], [1], {1}),
    (dict[int, int], {"-1": 1}, {-1: 1}),
    (dict[Literal[1, 2], int], {"2": 1}, {2: 1}),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
    (bytes, "_-8=", b"\xff\xef"),
    (Base64Bytes, "YWI=", b"ab"),
    (collections.abc.Iterable[int], [1, 2.0], [1, 2]),
    (None, None, None),
    (Any, {"a": [1.0, "NaN", "Infinity"]}, {"a": [1.0, "NaN", "Infinity"]}),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), AS_PUBLISHED)
def test_what_the_schema_takes_binds_exactly(annotation: Any, value: Json, expected: Any) -> None:
    """The law, the other way: 1.0 is an integer, big integers are exact, unions keep what came."""
    bound = bind(of(annotation), {"x": value})["x"]
    assert bound == expected
    assert type(bound) is type(expected)


# JSON inside strings


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "5", "true", "null", '"quoted"'])
def test_text_that_looks_like_json_stays_text(text: str) -> None:
    """Field case I01: what is valid as it came is passed as it came."""
    assert bind(of(str), {"x": text}) == {"x": text}
    assert bind(of(str | list[int]), {"x": text}) == {"x": text}


def test_json_in_strings_is_read_where_the_string_does_not_fit() -> None:
    """Field case I09: hosts send objects, lists and numbers as strings."""

    def take(user: User, tags: list[str], limit: int = 1, deep: bool = False, note: str = "") -> None: ...

    sent = {"user": '{"name": "a", "age": 1.0}', "tags": '["x"]', "limit": "2", "deep": "true", "note": "3"}
    assert bind(take, sent) == {
        "user": User(name="a", age=1),
        "tags": ["x"],
        "limit": 2,
        "deep": True,
        "note": "3",
    }


def test_quotes_around_a_string_form_are_taken_off() -> None:
    """Field case I03: a UUID sent with its JSON quotes."""
    ident = "12345678-1234-5678-1234-567812345678"
    assert bind(of(uuid.UUID), {"x": f'"{ident}"'}) == {"x": uuid.UUID(ident)}


@pytest.mark.parametrize(
    "value",
    [json.dumps(json.dumps("2")), ["1"], {"n": "1"}, '{"a": "1"}', "NaN", '"\\ud800"', "[" * 300, "9" * 5000],
)
def test_json_in_strings_is_read_once_and_at_the_top_only(value: Json) -> None:
    """A string in a string, or deeper inside, stays text; and what is no JSON there is none here."""
    assert refusal(of(list[int] | int | dict[str, int]), {"x": value}).startswith("tool 'add', argument 'x")


def test_problems_are_those_of_the_arguments_as_they_came() -> None:
    """Where reading does not help, the original is named; what it mends is not."""
    assert refusal(add, {"a": "1", "b": "two"}) == (
        "tool 'add', argument 'b': expected an integer, got a string ('two'); send a number"
    )
    assert refusal(of(list[int]), {"x": '["a"]'}) == (
        "tool 'add', argument 'x': expected an array, got a string ('[\"a\"]'); send a JSON array"
    )


# What the caller reads


def test_all_problems_stand_in_one_message() -> None:
    """Contract row A21: which argument, what was expected, what came, what to do; paths reach inside."""

    def take(count: int, user: User, rows: list[User], day: datetime.date, kind: Literal["a", "b"] = "a") -> None: ...

    arguments = {
        "user": {"name": 3},
        "rows": [{"name": "a", "age": 1}, {"name": "b", "age": "x"}],
        "day": "2026-13-01",
        "kind": "c",
        "cuont": 1,
    }
    with pytest.raises(ArgumentsRefused) as caught:
        bind(take, arguments)
    assert caught.value.problems == (
        "argument 'cuont': unknown; did you mean 'count'? allowed: count, user, rows, day, kind",
        "argument 'count': missing; expected an integer",
        "argument 'user.age': missing; expected an integer",
        "argument 'user.name': expected a string, got an integer (3); send text",
        "argument 'rows[1].age': expected an integer, got a string ('x'); send a number",
        ("argument 'day': expected a date as text (2026-01-31) with a month of 1 to 12, got a string ('2026-13-01')"),
        "argument 'kind': expected one of 'a', 'b', got a string ('c')",
    )
    head, *lines = str(caught.value).splitlines()
    assert head == "tool 'add': 7 problems with the arguments"
    assert lines == [f"- {problem}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, 1.5, "expected an integer, got a number (1.5); send a whole number"),
        (bool, "yes", "expected a boolean, got a string ('yes'); send true or false"),
        (User, 5, "expected an object, got an integer (5); send a JSON object"),
        (int | str, None, "expected an integer or a string, got null"),
        (Annotated[int, Field(ge=1)], 0, "expected at least 1, got an integer (0)"),
        (int, "x" * 500, f"expected an integer, got a string ('{'x' * 78}…); send a number"),
        (float, 10**400, "expected a number that fits in 64 bits of floating point, got an integer (about 2^1329)"),
        (decimal.Decimal, "abc", 'expected a number or a decimal number as text ("12.50"), got a string (\'abc\')'),
        (decimal.Decimal | None, "1,5", 'expected a number or a decimal number as text ("12.50") or null, got a string (\'1,5\')'),
        (Annotated[decimal.Decimal, Field(ge=3)], 1, "expected at least 3, got an integer (1)"),
        (Annotated[str, Field(pattern=r"^\d+\.$")], "x", r"expected text that matches '^\d+\.$', got a string ('x')"),
        (datetime.datetime | None, 1700000000, "expected a date and time as text (2026-01-31T12:00:00Z) or null, got an integer (1700000000)"),
        (datetime.datetime, "soon", "expected a date and time as text (2026-01-31T12:00:00Z), got a string ('soon')"),
        (datetime.datetime, "2026-01-31T25:00:00", "expected a date and time as text (2026-01-31T12:00:00Z) with an hour of 0 to 23, got a string ('2026-01-31T25:00:00')"),
        (datetime.date, "2026-02-30", "expected a date as text (2026-01-31) with a day that the month has, got a string ('2026-02-30')"),
        (datetime.date, 5, "expected a date as text (2026-01-31), got an integer (5)"),
        (datetime.time, "noon", "expected a time as text (12:30:00), got a string ('noon')"),
        (datetime.timedelta, "1 hour", "expected a duration as text (PT1H30M), got a string ('1 hour')"),
        (datetime.timedelta, 60, "expected a duration as text (PT1H30M), got an integer (60)"),
        (uuid.UUID, "z", "expected a UUID as text (123e4567-e89b-42d3-a456-426614174000), got a string ('z')"),
        (AnyUrl, "z", "expected a URL as text (https://example.com/path), got a string ('z')"),
        (AnyUrl, "", "expected a URL as text (https://example.com/path), got a string ('')"),
        (bytes, "no base64!", 'expected base64 text ("aGk="), got a string (\'no base64!\')'),
        (complex, "z", 'expected a complex number as text ("1+2j"), got a string (\'z\')'),
        (ipaddress.IPv4Address, 1, "expected an IPv4 address as text (192.0.2.1), got an integer (1)"),
        (ipaddress.IPv4Address, "z", "expected an IP address or network as text (192.0.2.1, 2001:db8::1, 192.0.2.0/24), got a string ('z')"),
        (zoneinfo.ZoneInfo, "Mars", "expected the name of a time zone (Europe/Oslo), got a string ('Mars')"),
    ],
)  # fmt: skip
def test_one_problem_says_what_was_expected_and_what_came(annotation: Any, value: Json, message: str) -> None:
    """STYLE, "Comments and errors": where, what was expected, what came, what to do; cut to 80 characters."""
    assert refusal(of(annotation), {"x": value}) == f"tool 'add', argument 'x': {message}"


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: float


class Person(BaseModel):
    name: str


class Pet(BaseModel):
    species: str


BOTH = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}


@pytest.mark.parametrize(
    "annotation",
    [Circle | Square, Annotated[Circle | Square, Field(discriminator="kind")], Circle | Square | None],
    ids=["plain", "discriminated", "optional"],
)
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"kind": "disc", "radius": 1}, "argument 'x.kind': expected one of 'circle', 'square', got a string ('disc')"),
        ({"radius": 1}, "argument 'x.kind': missing; expected one of 'circle', 'square'"),
        ({"kind": "circle"}, "argument 'x.radius': missing; expected a number"),
        ({"kind": "square", "side": "s"}, "argument 'x.side': expected a number, got a string ('s'); send a number"),
    ],
)
def test_tag_of_a_union_is_what_is_told(annotation: Any, value: Json, problem: str) -> None:
    """A wrong tag is named with what it may be, a right one leads into its alternative: contract row A21."""
    assert refusal(of(annotation), {"x": value}) == f"tool 'add', {problem}"


def test_union_without_a_tag_says_why_not_of_each() -> None:
    """What each alternative misses is told in few words: contract row A21."""
    assert refusal(of(Person | Pet), {"x": {"nmae": "a"}}) == (
        "tool 'add', argument 'x': expected an object (Person) or an object (Pet), got an object with 'nmae';"
        " Person: 'name' is missing; Pet: 'species' is missing"
    )


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (int | None, "; expected an integer or null"),
        (User, "; expected an object (User)"),
        (Circle | Square, "; expected an object (Circle) or an object (Square)"),
        (datetime.date | None, "; expected a date as text (2026-01-31) or null"),
        (dict[str, int] | None, "; expected an object or null"),
        (Literal["a", "b"] | int, "; expected one of 'a', 'b' or an integer"),
        (Any, ""),
    ],
)
def test_what_is_missing_is_described(annotation: Any, wanted: str) -> None:
    """A caller reads what to send, for every type that says anything: contract row A21."""
    assert refusal(of(annotation), {}) == f"tool 'add', argument 'x': missing{wanted}"


@pytest.mark.parametrize(
    "rule",
    [
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"dependentRequired": {"a": ["b"]}},
        {"allOf": [{"required": ["b"]}], "required": ["b"]},
    ],
    ids=lambda rule: next(iter(rule)),
)
def test_what_a_rule_by_hand_requires_is_described(rule: Json) -> None:
    """What is expected stands elsewhere in the schema than the rule, and is told once: rows A21, A26."""
    assert refusal(lambda arguments: None, {"a": 1}, input_schema=BOTH | rule) == (
        "tool 'add', argument 'b': missing; expected a string"
    )


def test_only_alternative_of_the_value_s_type_is_looked_into() -> None:
    """No message contradicts itself: contract rows A21, A26."""
    union = {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"z": {"const": 1}}}]}
    by_hand = {"type": "object", "properties": {"o": union}}
    assert refusal(lambda arguments: None, {"o": {"z": 2}}, input_schema=by_hand) == (
        "tool 'add', argument 'o.z': expected 1, got an integer (2)"
    )


def test_formats_are_told_in_the_schema_s_order() -> None:
    """What only a format refuses stands where its argument stands: contract row A21."""

    def take(first: int, day: datetime.date, last: int) -> None: ...

    assert refusal(take, {"last": "x", "day": "q", "first": "y"}).splitlines()[1:] == [
        "- argument 'first': expected an integer, got a string ('y'); send a number",
        "- argument 'day': expected a date as text (2026-01-31), got a string ('q')",
        "- argument 'last': expected an integer, got a string ('x'); send a number",
    ]


def test_unknown_keys_inside_a_model_are_as_the_model_says() -> None:
    """pydantic drops them by default and may refuse them; the published schema says the same: contract row A1."""

    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        n: int

    class Outer(BaseModel):
        user: User
        closed: Closed

    take = of(Outer)
    definitions = build(take).schema["$defs"]
    assert [definitions[name].get("additionalProperties") for name in ("Outer", "User", "Closed")] == [
        None,
        None,
        False,
    ]
    user, closed = {"name": "a", "age": 1}, {"n": 1}
    bound = bind(take, {"x": {"user": {**user, "more": 1}, "closed": closed, "most": 2}})
    assert bound == {"x": Outer(user=User(name="a", age=1), closed=Closed(n=1))}
    assert refusal(take, {"x": {"user": user, "closed": {**closed, "m": 1}}}) == (
        "tool 'add', argument 'x.closed.m': unknown; allowed: n"
    )


# Defaults


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (int, "a", "its default 'a' does not fit its own schema: expected an integer, got a string ('a')"),
        (int, True, "its default true does not fit its own schema: expected an integer, got a boolean (true)"),
        (list[int], ["a"], 'its default ["a"] does not fit its own schema, at x[0]: expected an integer, got a string (\'a\')'),
        (Literal["a", "b"], "c", "its default 'c' does not fit its own schema: expected one of 'a', 'b', got a string ('c')"),
        (Annotated[int, Field(ge=9)], 1, "its default 1 does not fit its own schema: expected at least 9, got an integer (1)"),
        (int, Field(default="a"), "its default 'a' does not fit its own schema: expected an integer, got a string ('a')"),
        (User, {"name": "a"}, 'its default {"name": "a"} does not fit its own schema, at x.age: missing; expected an integer'),
    ],
)  # fmt: skip
def test_default_that_does_not_fit_its_parameter_is_warned_of(annotation: Any, default: Any, message: str) -> None:
    """A host that fills in a published default would be refused: the author hears of it at registration."""
    with pytest.warns(DefinitionWarning) as caught:
        build(of(annotation, default=default))
    assert [str(one.message) for one in caught] == [
        f"function 'take', parameter 'x': {message}; change the default or the annotation"
    ]


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, None),
        (int, object()),
        (int, float("nan")),
        (float, 1),
        (User | None, User(name="a", age=1)),
        (Circle | Square, Circle(kind="circle", radius=1)),
        (datetime.timedelta, datetime.timedelta(1)),
        (decimal.Decimal, decimal.Decimal("1.5")),
        (bytes, b"x"),
        (set[int], {1}),
        (tuple[int, str], (1, "a")),
        (dict[int, int], {1: 2}),
    ],
)
def test_default_that_fits_or_is_no_json_is_not_warned_of(annotation: Any, default: Any) -> None:
    """`= None` means optional, and a marker that JSON cannot hold is published nowhere."""
    assert build(of(annotation, default=default))


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "ssn"])
def test_secret_is_never_shown(name: str) -> None:
    """A parameter whose name announces a secret does not repeat its value."""
    take = of(Annotated[int, Field(alias=name)])
    assert refusal(take, {name: "hunter2"}) == (
        f"tool 'add', argument '{name}': expected an integer, got a string; send a number"
    )


def test_author_s_validators_speak_for_themselves() -> None:
    """Their texts are passed on, without jargon and links."""

    class Range(BaseModel):
        low: int
        high: int = 9

        @field_validator("low")
        @classmethod
        def check_low(cls, low: int) -> int:
            if low < 0:
                raise PydanticCustomError("too_low", "low is below zero")
            return low

        @model_validator(mode="after")
        def check(self) -> "Range":
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    assert refusal(of(Range), {"x": {"low": 10}}) == (
        "tool 'add', argument 'x': low is above high, got an object with 'low'"
    )
    assert refusal(of(Range), {"x": {"low": -1}}) == (
        "tool 'add', argument 'x.low': low is below zero, got an integer (-1)"
    )


@pytest.mark.parametrize("error", [AssertionError(), ValueError(), ValueError(" "), PydanticCustomError("odd", "")])
def test_author_s_validator_without_a_word_is_spoken_for(error: Exception) -> None:
    """`assert value > 0` says nothing of its own; the message still says what came, and that it does not fit."""

    def check(_value: Any) -> None:
        raise error

    assert refusal(of(Annotated[dict[str, int], AfterValidator(check)]), {"x": {"a": 1}}) == (
        "tool 'add', argument 'x': does not fit a check of the tool's author, got an object with 'a'"
    )


def test_author_s_validator_cannot_open_what_is_published() -> None:
    """What binds is valid under the schema; to take more, the validator publishes more."""
    split = lambda value: value.split(",") if isinstance(value, str) else value  # noqa: E731
    closed = Annotated[list[str], BeforeValidator(split)]
    opened = Annotated[list[str], BeforeValidator(split, json_schema_input_type=list[str] | str)]
    assert refusal(of(closed), {"x": "a,b"}).startswith("tool 'add', argument 'x': expected an array, got a string")
    assert bind(of(closed), {"x": ["a"]}) == {"x": ["a"]}
    assert bind(of(opened), {"x": "a,b"}) == {"x": ["a", "b"]}


def test_model_behind_a_validator_still_reads_its_json() -> None:
    """A `mode="before"` validator hands on Python values; dates and nested models in them are still made."""

    class Inner(BaseModel):
        at: datetime.date
        count: int = 0

    class Outer(BaseModel):
        inner: Inner
        more: list[Inner] = []

        @model_validator(mode="before")
        @classmethod
        def rename(cls, value: Any) -> Any:
            return {**value, "inner": value["inner"]} if isinstance(value, dict) else value

    def take(outer: Outer, inner: Inner) -> None: ...

    inner = {"at": "2026-01-02", "count": 1.0}
    made = Inner(at=datetime.date(2026, 1, 2), count=1)
    assert bind(take, {"outer": {"inner": inner, "more": [inner]}, "inner": inner}) == {
        "outer": Outer(inner=made, more=[made]),
        "inner": made,
    }
    refused = refusal(take, {"outer": {"inner": {**inner, "count": "1"}}, "inner": inner})
    assert refused.startswith("tool 'add', argument 'outer.inner.count': expected an integer, got a string ('1')")


def test_author_may_ask_for_conversions() -> None:
    """`Field(strict=False)`, and a model's `strict=False`, are the author's own decision."""

    class Lenient(BaseModel):
        model_config = ConfigDict(strict=False)
        n: int

    assert bind(of(Annotated[bool, Field(strict=False)]), {"x": "yes"}) == {"x": True}
    assert bind(of(Lenient), {"x": {"n": "5"}}) == {"x": Lenient(n=5)}
    assert refusal(of(Annotated[bool, Field(strict=False)]), {"x": "maybe"}).startswith("tool 'add', argument 'x'")


# Bytes that are no arguments


@pytest.mark.parametrize(
    ("raw", "error", "message"),
    [
        (b"", ParseError, "tool 'add', arguments: not JSON (EOF while parsing a value at line 1 column 0)"),
        (b'{"x": 1', ParseError, "tool 'add', arguments: not JSON (EOF while parsing an object at line 1 column 7)"),
        (b'{"x": 1} 2', ParseError, "tool 'add', arguments: not JSON (trailing characters at line 1 column 10)"),
        (b'{"x": NaN}', ParseError, "tool 'add', arguments: not JSON (expected value at line 1 column 7)"),
        (b'{"x": -Infinity}', ParseError, "tool 'add', arguments: not JSON (invalid number at line 1 column 8)"),
        (b'{"x": "\xff"}', ParseError, "tool 'add', arguments: not UTF-8 (byte 7)"),
        (b"[1]", InvalidParams, "tool 'add', arguments: expected an object, got an array of 1"),
        (b"null", InvalidParams, "tool 'add', arguments: expected an object, got null"),
        (
            b'{"x": ["\\ud800"]}',
            ArgumentsRefused,
            "tool 'add', argument 'x[0]': text with half of a surrogate pair",
        ),
        (
            b'{"x": {"\\udfff": 1}}',
            ArgumentsRefused,
            "tool 'add', argument 'x': the key '\\udfff' holds half of a surrogate pair",
        ),
        (
            b'{"x": ' + b"[" * 1000 + b"]" * 1000 + b"}",
            ArgumentsRefused,
            "tool 'add', arguments: nested deeper than 200 levels; send fewer",
        ),
        (b'{"x": ' + b"[" * 100_000, ArgumentsRefused, "tool 'add', arguments: nested deeper than 200 levels; send fewer"),
        (b'{"x": [' + b"9" * 5000 + b"]}", ArgumentsRefused, "tool 'add', argument 'x[0]': an integer of more than 3,900 digits"),
        (b'{"x": {"a": 1e400}}', ArgumentsRefused, "tool 'add', argument 'x.a': expected a number up to 1.8e308, got a larger one"),
    ],
    ids=range(14),
)  # fmt: skip
@pytest.mark.parametrize("by_hand", [None, {"type": "object"}], ids=["signature", "by hand"])
def test_bytes_that_are_no_arguments_are_refused_precisely(
    raw: bytes, error: type[Exception], message: str, by_hand: Any
) -> None:
    """Malformed JSON, wrong UTF-8, halves of pairs, depth, size: each an error that names the place."""
    parameters = build(of(Any), input_schema=by_hand)
    with pytest.raises(error) as caught:
        parameters.bind(raw)
    assert str(caught.value) == message
    assert parameters.bind(b'{"x": 1}')


def test_deepest_value_binds() -> None:
    """The limit of depth is where it is said to be."""
    parameters = build(of(Any))
    assert parameters.bind(b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}")
    with pytest.raises(ArgumentsRefused, match="200 levels"):
        parameters.bind(b'{"x": ' + b"[" * 201 + b"]" * 201 + b"}")


def test_pair_of_surrogates_is_one_character() -> None:
    """Only halves are refused."""
    assert build(of(str)).bind(b'{"x": "\\ud83d\\ude00"}') == ((), {"x": "\N{GRINNING FACE}"})


# Schemas by hand

BY_HAND: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "x-order": 1,
    "properties": {"n": {"type": "integer", "minimum": 1}, "s": {"type": "string"}, "f": {"type": "array"}},
    "required": ["n"],
    "additionalProperties": False,
}


def test_schema_by_hand_is_published_to_the_letter() -> None:
    """Contract row A26; what the author later does to the dict changes nothing."""
    mine = json.loads(json.dumps(BY_HAND))
    parameters = build(lambda arguments: None, input_schema=mine)
    mine["properties"].clear()
    assert json.dumps(parameters.schema) == json.dumps(BY_HAND)


def test_schema_by_hand_is_enforced() -> None:
    """Contract row A26: on what arrives, in the same words, with JSON in strings read once."""
    take = lambda arguments: None  # noqa: E731
    assert bind(take, {"n": 2**70, "s": "5"}, input_schema=BY_HAND) == (({"n": 2**70, "s": "5"},), {})
    assert bind(take, {"n": "5", "f": "[1]"}, input_schema=BY_HAND) == (({"n": 5, "f": [1]},), {})
    assert set(refusal(take, {"n": 0, "N": 1, "s": 1}, input_schema=BY_HAND).splitlines()[1:]) == {
        "- argument 'n': expected at least 1, got an integer (0)",
        "- argument 'N': unknown; allowed: n, s, f",
        "- argument 's': expected a string, got an integer (1); send text",
    }


def test_handler_by_hand_takes_one_dict_or_keywords() -> None:
    """The arguments as they are, beside the context."""

    def one(arguments: dict[str, Any], ctx: Asked) -> None: ...
    def keyword(ctx: Asked, *, arguments: Any) -> None: ...
    def keywords(ctx: Asked, **arguments: Any) -> None: ...

    assert build(one, input_schema=BY_HAND).context_name == "ctx"
    assert bind(one, {"n": 1}, input_schema=BY_HAND) == (({"n": 1},), {})
    assert bind(keyword, {"n": 1}, input_schema=BY_HAND) == {"arguments": {"n": 1}}
    assert bind(keywords, {"n": 1}, input_schema=BY_HAND) == {"n": 1}


@pytest.mark.parametrize(
    "function", [lambda: None, lambda a, b: None, lambda *a: None, lambda a, **b: None, add], ids=range(5)
)
def test_handler_by_hand_with_other_parameters_is_refused(function: Any) -> None:
    """Anything else is an InvalidSignature that says what is wanted."""
    with pytest.raises(InvalidSignature, match=r"takes its arguments as one dict, or as \*\*kwargs alone"):
        build(function, input_schema=BY_HAND)


def test_context_by_hand_must_not_hide_an_argument() -> None:
    """With keywords, an argument named like the context's parameter could not arrive."""

    def take(n: Asked, **arguments: Any) -> None: ...

    with pytest.raises(InvalidSignature, match="'n' is both an argument and the parameter for the context"):
        build(take, input_schema=BY_HAND)


@pytest.mark.parametrize(
    ("schema", "shown"),
    [(True, "a bool (true)"), (False, "a bool (false)"), ("object", "a str ('object')"), ([1], "a list ([1])")],
    ids=range(4),
)
def test_schema_by_hand_that_is_no_dict_is_refused(schema: Any, shown: str) -> None:
    """A boolean is a JSON Schema, but none that MCP can publish (`type` must be "object")."""
    with pytest.raises(InvalidDefinition) as caught:
        build(lambda arguments: None, input_schema=schema)
    assert str(caught.value) == f"tool 'add', input schema: expected a JSON Schema as a dict, got {shown}"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array"}, "tool 'add', input schema: its root must be of type 'object', got 'array'"),
        ({}, "tool 'add', input schema: its root must be of type 'object', got None"),
        ({"type": "nonsense"}, "tool 'add', input schema"),
        ({"type": "object", "properties": {"a": {"$ref": "https://x.test/a"}}}, "tool 'add', input schema"),
    ],
)
def test_schema_by_hand_that_cannot_be_published_is_refused(schema: Json, message: str) -> None:
    """Contract row A26: at registration, with the place."""
    with pytest.raises(InvalidDefinition, match=message):
        build(lambda arguments: None, input_schema=schema)


# Large calls


def test_misfits_of_a_large_list_are_told_with_bounds() -> None:
    """A megabyte of misfits is answered in few words; of what only a format refuses, the first is named."""
    days = ["2026-13-01"] * 3
    assert len(refusal(of(list[datetime.date]), {"x": days}).splitlines()) == 4
    assert refusal(of(list[datetime.date]), {"x": days * 5000}).startswith(
        "tool 'add', argument 'x[0]': expected a date as text"
    )
    assert refusal(of(list[int]), {"x": ["a"] * 50_000}).splitlines()[0] == (
        "tool 'add': 200 or more problems with the arguments"
    )
    assert len(refusal(add, {f"k{n}": 1 for n in range(10_000)}).splitlines()) == 22
    assert bind(of(list[datetime.date]), {"x": ["2026-01-02"] * 10_000})["x"][9_999] == datetime.date(2026, 1, 2)


@pytest.mark.parametrize(
    ("annotation", "make"),
    [
        (list[int], lambda size: ["a"] * size),
        (list[int], lambda size: [1] * size + ["a"]),
        (list[Circle | Square], lambda size: [{"kind": "disc"}] * size),
        (list[Person | Pet], lambda size: [{}] * size),
        (list[User], lambda size: [{"name": "a", "age": 1}] * size + [{}]),
        (dict[int, int], lambda size: {f"k{n}": 1 for n in range(size)}),
        (dict[str, int], lambda size: dict.fromkeys(map(str, range(size)), 1) | {"k": "a"}),
    ],
    ids=range(7),
)
def test_steps_to_explain_a_large_misfit_hardly_grow_with_it(annotation: Any, make: Any) -> None:
    """Explaining is bounded: some steps a problem told, less than one for any ten values more (contract row C3)."""
    parameters = build(of(annotation))

    def count_calls(size: int) -> int:
        raw = json.dumps({"x": make(size)}).encode()
        calls = 0

        def count(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            with pytest.raises(ArgumentsRefused):
                parameters.bind(raw)
        finally:
            sys.setprofile(None)
        return calls

    count_calls(20_000)  # makes the validators of the parts
    assert count_calls(40_000) - count_calls(20_000) < 2_000
