"""Return annotations → published schemas; values → the two faces, or a refusal that names the place."""

import collections
import dataclasses
import datetime
import enum
import inspect
import json
import math
import re
import sys
import typing
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema
import pytest
import typing_extensions
from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    ImportString,
    RootModel,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
)

from twofold.errors import InvalidDefinition, InvalidSignature, ResultRefused
from twofold.protocol.content import ImageContent, TextContent
from twofold.protocol.messages import CallToolResult, Faces, Wrapping
from twofold.tools.checks.complaints import DefinitionWarning
from twofold.tools.results.media import Image
from twofold.tools.results.returns import Returns, build_returns

NOTHING = inspect.Signature.empty
NAN = float("nan")


class Weather(BaseModel):
    temperature: float
    humidity: float
    conditions: str


class WeatherDict(typing.TypedDict):
    temperature: float
    humidity: float
    conditions: str


@dataclasses.dataclass(slots=True)
class WeatherRecord:
    temperature: float
    humidity: float
    conditions: str


class WeatherPlain:
    temperature: float
    humidity: float
    conditions: str

    def __init__(self, temperature: float, humidity: float, conditions: str) -> None:
        self.temperature, self.humidity, self.conditions = temperature, humidity, conditions


class Branch(BaseModel):
    label: str
    twigs: list["Branch"] = []


class Cat(BaseModel):
    meow: int


class Dog(BaseModel):
    bark: int


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Station:
    def __init__(self) -> None:
        self.name = "London"


class Sign(Station):
    def __str__(self) -> str:
        return "a sign"


class Leaking:
    def __str__(self) -> str:
        return object.__repr__(self)


WEATHER = {"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast"}
WEATHER_SCHEMA = {
    "properties": {
        "temperature": {"title": "Temperature", "type": "number"},
        "humidity": {"title": "Humidity", "type": "number"},
        "conditions": {"title": "Conditions", "type": "string"},
    },
    "required": ["temperature", "humidity", "conditions"],
    "type": "object",
}


def build(annotation: Any, **options: Any) -> Returns:
    return build_returns(annotation, tool_name="made", function_name="make", **options)


def render(annotation: Any, value: Any, **options: Any) -> Faces:
    returns = build(annotation, **options)
    faces = returns.render(value)
    returns.check(faces)
    return faces


def refusal(annotation: Any, value: Any, **options: Any) -> str:
    with pytest.raises(ResultRefused) as caught:
        render(annotation, value, **options)
    return str(caught.value)


def details(annotation: Any, value: Any, **options: Any) -> str:
    with pytest.raises(ResultRefused) as caught:
        render(annotation, value, **options)
    return caught.value.details


def texts(faces: Faces) -> list[str]:
    assert isinstance(faces.content, bytes)
    blocks = json.loads(faces.content)
    assert [set(block) for block in blocks] == [{"type", "text"}] * len(blocks)
    return [block["text"] for block in blocks]


def structure(faces: Faces) -> Any:
    return None if faces.structured is None else json.loads(faces.structured)


def wrapped(schema: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"properties": {"result": schema}, "required": ["result"], "title": "madeOutput", "type": "object", **others}


# --- schemas ---


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"title": "Result", "type": "integer"}),
        (str, {"title": "Result", "type": "string"}),
        (float, {"title": "Result", "type": "number"}),
        (bool, {"title": "Result", "type": "boolean"}),
        (None, {"title": "Result", "type": "null"}),
        (bytes, {"title": "Result", "type": "string", "contentEncoding": "base64"}),
        (Any, {"title": "Result"}),
        (object, {"title": "Result"}),
        (list[int], {"title": "Result", "type": "array", "items": {"type": "integer"}}),
        (Iterator[int], {"title": "Result", "type": "array", "items": {"type": "integer"}}),
        (AsyncIterator[int], {"title": "Result", "type": "array", "items": {"type": "integer"}}),
        (int | None, {"title": "Result", "anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"title": "Result", "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", "b"], {"title": "Result", "type": "string", "enum": ["a", "b"]}),
        (dict[int, float], {"title": "Result", "type": "object", "additionalProperties": {"type": "number"}}),
        (
            Annotated[int, Field(description="How many.")],
            {"title": "Result", "type": "integer", "description": "How many."},
        ),
        (
            tuple[int, str],
            {
                "title": "Result",
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
    ],
)
def test_what_is_no_object_is_wrapped(annotation: Any, schema: dict[str, Any]) -> None:
    """Scalars, lists, tuples and unions stand under `result` (contract A3, A5, A6)."""
    returns = build(annotation)
    assert (returns.output_schema, returns.object_schema) == (wrapped(schema), wrapped(schema))
    assert returns.wrapping is Wrapping.ALWAYS


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (Weather, "Weather"),
        (WeatherDict, "WeatherDict"),
        (WeatherRecord, "WeatherRecord"),
        (WeatherPlain, "WeatherPlain"),
    ],
)
def test_objects_are_published_as_they_are(annotation: Any, name: str) -> None:
    """A model, a TypedDict, a dataclass and a class with annotated attributes have one schema (contract A4)."""
    returns = build(annotation)
    assert returns.output_schema == {**WEATHER_SCHEMA, "title": name}
    assert returns.object_schema == returns.output_schema
    assert returns.wrapping is Wrapping.NEVER


@pytest.mark.parametrize("annotation", [list[Weather], tuple[Weather, ...], Iterator[Weather]])
def test_element_types_stand_in_defs(annotation: Any) -> None:
    """A list's elements are referred to by `$defs` (contract A5)."""
    assert build(annotation).output_schema == wrapped(
        {"items": {"$ref": "#/$defs/Weather"}, "title": "Result", "type": "array"},
        **{"$defs": {"Weather": {**WEATHER_SCHEMA, "title": "Weather"}}},
    )


@pytest.mark.parametrize(
    "annotation",
    [
        dict[str, float],
        Mapping[str, float],
        collections.OrderedDict[str, float],
        Annotated[dict[str, float], Field()],
    ],
)
def test_a_dict_with_text_keys_is_an_object(annotation: Any) -> None:
    """`dict[str, T]` is not wrapped and has a title of the tool's (contract A6)."""
    assert build(annotation).output_schema == {
        "additionalProperties": {"type": "number"},
        "title": "madeDictOutput",
        "type": "object",
    }


@pytest.mark.parametrize(
    ("annotation", "wrapping"),
    [
        (dict, Wrapping.NEVER),
        (dict[Literal["a"], int], Wrapping.NEVER),
        (dict[Colour, int], Wrapping.NEVER),
        (RootModel[dict[str, int]], Wrapping.NEVER),
        (dict[float, int], Wrapping.ALWAYS),
        (dict[Literal["a", 1], int], Wrapping.ALWAYS),
        (RootModel[dict[int, int]], Wrapping.ALWAYS),
        (RootModel[list[int]], Wrapping.ALWAYS),
        (Point, Wrapping.ALWAYS),
        (Colour, Wrapping.ALWAYS),
        (Cat | Dog, Wrapping.ALWAYS),
    ],
)
def test_only_objects_with_text_keys_are_bare(annotation: Any, wrapping: Wrapping) -> None:
    """What decides about the wrapper is whether the value is a JSON object whose keys are text (contract A6)."""
    returns = build(annotation)
    assert returns.wrapping is wrapping
    assert returns.output_schema is not None
    assert returns.output_schema["type"] == "object"


def test_a_type_that_holds_itself_has_its_own_properties_at_the_root() -> None:
    """The root is never a bare reference, which strict hosts drop (field case S01)."""
    own = {
        "properties": {
            "label": {"title": "Label", "type": "string"},
            "twigs": {"default": [], "items": {"$ref": "#/$defs/Branch"}, "title": "Twigs", "type": "array"},
        },
        "required": ["label"],
        "title": "Branch",
        "type": "object",
    }
    assert build(Branch).output_schema == {**own, "$defs": {"Branch": own}}
    faces = render(Branch, Branch(label="a", twigs=[Branch(label="b")]))
    assert structure(faces) == {"label": "a", "twigs": [{"label": "b", "twigs": []}]}


def test_wrap_false_publishes_a_bare_root_and_wraps_for_earlier_revisions() -> None:
    """2026-07-28 takes any root, earlier revisions an object only (contract A20)."""
    returns = build(list[int], wrap=False)
    assert returns.output_schema == {"items": {"type": "integer"}, "type": "array"}
    assert returns.object_schema == build(list[int]).object_schema
    assert returns.wrapping is Wrapping.EARLIER
    assert returns.render([1]) == Faces(b'[{"type":"text","text":"1"}]', b"[1]", Wrapping.EARLIER)
    assert build(Weather, wrap=False).wrapping is Wrapping.NEVER


def test_no_annotation_means_text_only() -> None:
    """Without a return annotation there is no schema and no structure (contract A2)."""
    returns = build(NOTHING)
    assert (returns.output_schema, returns.object_schema) == (None, None)
    faces = returns.render({"a": 1})
    assert (texts(faces), faces.structured) == (['{\n  "a": 1\n}'], None)


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        (NOTHING, "<none>"),
        (Station, f"<class '{__name__}.Station'>"),
        (list[Station], f"list[{__name__}.Station]"),
        (typing.Callable[[], int], "typing.Callable[[], int]"),
    ],
)
def test_insisting_on_a_schema_that_cannot_be_is_refused(annotation: Any, shown: str) -> None:
    """`structured_output=True` with nothing to make a schema of fails at registration (contract A11)."""
    with pytest.raises(InvalidSignature) as caught:
        build(annotation, structured_output=True)
    assert str(caught.value) == f"Function make: return type {shown} is not serializable for structured output"


@pytest.mark.parametrize("annotation", [Station, list[Station], Sign, dict[str, Station]])
def test_a_type_without_a_schema_opts_out_with_a_warning(annotation: Any) -> None:
    """The warning names the class and the two mends (contract A12)."""
    with pytest.warns(DefinitionWarning, match=r"make.*Station|Sign.*class body.*__str__.*structured_output=False"):
        returns = build(annotation)
    assert returns.output_schema is None


def test_a_type_whose_text_is_made_by_the_author_opts_out_in_silence() -> None:
    """With a function for text there is nothing to warn of (contract A12, A19)."""
    faces = render(Station, Station(), text=lambda station: f"at {station.name}")
    assert texts(faces) == ["at London"]


def test_a_mistake_in_a_class_is_not_taken_for_opting_out() -> None:
    """A type that pydantic cannot read for another reason is an error that says why."""

    class Unfinished(BaseModel):
        next: "Missing"  # noqa: F821

    with pytest.raises(InvalidSignature, match=r"make.*Unfinished.*cannot be read: name 'Missing' is not defined"):
        build(Unfinished)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structured_output": "yes"}, "tool 'made', structured_output: expected True or False or None, got 'yes'"),
        ({"structured_output": 1}, "tool 'made', structured_output: expected True or False or None, got 1"),
        ({"wrap": None}, "tool 'made', wrap: expected True or False, got None"),
        ({"output_schema": True}, "tool 'made', output schema: expected an object, got True"),
        ({"output_schema": []}, "tool 'made', output schema: expected an object, got []"),
    ],
)
def test_an_option_of_another_type_is_refused(options: dict[str, Any], message: str) -> None:
    """What an option cannot mean is an error at registration, not a guess."""
    with pytest.raises(InvalidDefinition) as caught:
        build(int, **options)
    assert str(caught.value) == message


ALIAS = "type Js = {0}" if sys.version_info >= (3, 12) else "Js = TypeAliasType('Js', '{0}')"


def test_an_alias_that_names_itself_is_published() -> None:
    """A recursive type alias is data like any other, Python 3.12's statement too (contract A4)."""
    names: dict[str, Any] = {"TypeAliasType": typing_extensions.TypeAliasType}
    exec(ALIAS.format("dict[str, Js] | list[Js] | str | int | None"), names)  # noqa: S102 - no syntax of 3.11
    with pytest.MonkeyPatch.context() as patch:  # where 3.11 looks for what the text names
        patch.setitem(globals(), "Js", names["Js"])
        assert structure(render(names["Js"], {"a": [1, None]})) == {"a": [1, None]}


def test_two_fields_with_one_name_on_the_wire_are_refused() -> None:
    """JSON with a key twice means what its reader makes of it; the types that would write it are refused."""

    class Twice(BaseModel):
        first: int = Field(alias="same")
        second: int = Field(alias="same")

    with pytest.raises(InvalidSignature, match="Twice: fields 'first' and 'second' are both written as 'same'"):
        build(list[Twice])


def test_a_default_that_is_no_json_is_left_out_of_the_schema() -> None:
    """A published schema is JSON, whatever the defaults are."""

    class Odd(BaseModel):
        ratio: float = NAN
        thumb: bytes = b"\xff"
        made: object = dataclasses.field(default_factory=object)

    schema = build(Odd).output_schema
    assert schema is not None
    assert schema["properties"]["ratio"] == {"title": "Ratio", "type": "number"}
    assert schema["properties"]["thumb"]["default"] == "/w=="
    json.dumps(schema, allow_nan=False)


# --- the two faces ---


@pytest.mark.parametrize(
    ("annotation", "value", "raw", "blocks"),
    [
        (int, 17, b"17", ["17"]),
        (int, 1915883588174806058, b"1915883588174806058", ["1915883588174806058"]),
        (int, 10**40, str(10**40).encode(), [str(10**40)]),
        (str, 'say "hé"\n', '"say \\"hé\\"\\n"'.encode(), ['say "hé"\n']),
        (str, "NaN Infinity", b'"NaN Infinity"', ["NaN Infinity"]),
        (float, 1.0, b"1.0", ["1.0"]),
        (bool, True, b"true", ["true"]),
        (None, None, b"null", ["null"]),
        (bytes, b"\xff\xfe>?", b'"//4+Pw=="', ["//4+Pw=="]),
        (Colour, Colour.RED, b'"red"', ["red"]),
        (Point, Point(1, 2), b"[1,2]", ["1", "2"]),
        (list[str], [], b"[]", ["[]"]),
        (list[str], ["a", ""], b'["a",""]', ["a", ""]),
        (list[Any], [1, None, [2], {"a": 3}], b'[1,null,[2],{"a":3}]', ["1", "null", "[\n  2\n]", '{\n  "a": 3\n}']),
        (Weather | None, None, b"null", ["null"]),
        (dict[str, int], {}, b"{}", ["{}"]),
        (dict[int, int], {1: 2}, b'{"1":2}', ['{\n  "1": 2\n}']),
        (Base64Bytes, b"/w==", b'"/w=="', ["/w=="]),
    ],
)
def test_a_value_becomes_structure_and_text(annotation: Any, value: Any, raw: bytes, blocks: list[str]) -> None:
    """Both faces come from one value (contract A7)."""
    faces = render(annotation, value)
    assert (faces.structured, texts(faces), faces.is_error, faces.meta) == (raw, blocks, False, None)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Weather, Weather(**WEATHER)),
        (Weather, WEATHER),
        (WeatherDict, WEATHER),
        (WeatherRecord, WeatherRecord(**WEATHER)),
        (WeatherRecord, WEATHER),
        (WeatherPlain, WeatherPlain(**WEATHER)),
        (WeatherPlain, WEATHER),
    ],
)
def test_an_object_and_a_dict_that_fits_give_the_same(annotation: Any, value: Any) -> None:
    """Validation looks at the value, not at its Python type (contract A8)."""
    faces = render(annotation, value)
    assert structure(faces) == WEATHER
    assert texts(faces) == ['{\n  "temperature": 16.2,\n  "humidity": 0.83,\n  "conditions": "Overcast"\n}']


def test_compact_text_is_the_structure_itself() -> None:
    """`text="compact"` spares the model the white space (contract A19)."""
    faces = render(Weather, WEATHER, text="compact")
    assert texts(faces) == [faces.structured.decode()] if faces.structured else False


@pytest.mark.parametrize("make", [iter, lambda items: (item for item in items), lambda items: map(int, items)])
@pytest.mark.parametrize("annotation", [list[int], Iterator[int], Any, NOTHING])
def test_a_generator_is_read_once_for_both_faces(annotation: Any, make: Any) -> None:
    """Items cannot be on one channel only (field case S14)."""
    faces = render(annotation, make([1, 2]))
    assert texts(faces) == ["1", "2"]
    assert structure(faces) == (None if annotation is NOTHING else [1, 2])


def test_absent_keys_stay_absent() -> None:
    """A key that a TypedDict marks as optional and the tool left out is not sent as null (field case S02)."""

    class Card(typing_extensions.TypedDict):
        title: str
        note: typing_extensions.NotRequired[str]

    assert render(Card, {"title": "x"}).structured == b'{"title":"x"}'


def test_schema_and_value_agree_on_aliases() -> None:
    """Aliases go out, unless the model says otherwise; then in schema and value alike (field cases S04, S06)."""

    class Aliased(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        row_id: str = Field(alias="_id")

    class Named(Aliased):
        model_config = ConfigDict(serialize_by_alias=False)

    for annotation, key in ((Aliased, "_id"), (Named, "row_id")):
        schema = build(annotation).output_schema
        assert schema is not None
        assert list(schema["properties"]) == schema["required"] == [key]
        assert structure(render(annotation, annotation(row_id="7"))) == {key: "7"}


def test_bytes_are_base64_in_every_depth() -> None:
    """Bytes inside models, unions and lists are base64, in the standard alphabet, as the schema says (contract A3)."""

    class Thumb(BaseModel):
        data: bytes
        more: list[bytes | int] = [b"\xff", 1]

    schema = build(Thumb).output_schema
    assert schema is not None
    assert schema["properties"]["data"] == {"title": "Data", "type": "string", "contentEncoding": "base64"}
    assert structure(render(Thumb, Thumb(data=b"\xfb\xff"))) == {"data": "+/8=", "more": ["/w==", 1]}


class Photo(BaseModel):
    data: bytes = b"\xfb\xff"
    about: Any = None


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Any, b"\xfb\xff", "+/8="),
        (dict, {"a": [b"\xfb\xff", {b"\xfb\xff": 1}]}, {"a": ["+/8=", {"+/8=": 1}]}),
        (dict[str, Any], {"a": {b"\xfb\xff"}}, {"a": ["+/8="]}),
        (tuple[Any, int], ([bytearray(b"\xfb\xff")], 1), [["+/8="], 1]),
        (dict[str, bytes | Any], {"a": b"\xfb\xff", "b": (b"\xfb\xff",)}, {"a": "+/8=", "b": ["+/8="]}),
        (Photo, Photo(about={"raw": b"\xfb\xff"}), {"data": "+/8=", "about": {"raw": "+/8="}}),
        (Any, [Photo(about=[Photo()])], [{"data": "+/8=", "about": [{"data": "+/8=", "about": None}]}]),
        (Any, Photo(about=b"\xfb\xff"), {"data": "+/8=", "about": "+/8="}),
        (CallToolResult, CallToolResult(structured_content={"a": b"\xfb\xff"}), {"a": "+/8="}),
    ],
)
def test_bytes_under_any_are_in_the_same_alphabet(annotation: Any, value: Any, expected: Any) -> None:
    """Bytes are base64 in the standard alphabet where no schema says so too (contract A3)."""
    assert structure(render(annotation, value)) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "é\u2028\x7f", {}]},
        {"big": 10**400, "small": -1.5e-300, "large": 7.786735384731355e116},
        [],
        "text",
        {"when": datetime.date(2026, 1, 2), "who": ("a", Colour.RED)},
    ],
)
def test_what_is_json_already_is_written_as_it_is(value: Any) -> None:
    """Values of JSON's own types, and those pydantic knows, come back from the wire equal (contract A7)."""
    expected = json.loads(json.dumps(value, default=lambda item: getattr(item, "value", str(item))))
    assert structure(render(Any, value)) == expected


def test_an_author_may_choose_another_form_for_bytes() -> None:
    """What a model's own configuration says stands."""

    class Hexed(BaseModel):
        model_config = ConfigDict(ser_json_bytes="hex")
        data: bytes

    assert structure(render(Hexed, Hexed(data=b"\xff"))) == {"data": "ff"}


# --- refusals ---


def test_a_missing_field_is_told_as_the_founding_page_prints_it() -> None:
    """Head, field, sentence; no web link (contract A8)."""
    assert refusal(Weather, {"temperature": 16.2, "conditions": "Overcast"}) == (
        "1 validation error for Weather\n"
        "humidity\n"
        "  Field required [type=missing, input_value={'temperature': 16.2, 'conditions': 'Overcast'}, input_type=dict]"
    )


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, "many", "1 validation error for the result\nresult\n  expected an integer, got a string"),
        (
            list[Weather],
            [WEATHER, {"temperature": 1, "humidity": 2}],
            (
                "1 validation error for the result\nresult[1].conditions\n  Field required "
                "[type=missing, input_value={...}, input_type=dict]"
            ),
        ),
        (
            dict[str, float],
            {"London": None},
            "1 validation error for the result\nLondon\n  expected a number, got null",
        ),
        (
            Weather,
            Station(),
            "1 validation error for Weather\n  expected an object (Weather), got a Station",
        ),
        (
            list[int | float],
            [{}, 1, "x"],
            (
                "2 validation errors for the result\n"
                "result[0]\n  expected an integer or a number, got an object\n"
                "result[2]\n  expected an integer or a number, got a string"
            ),
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_place(annotation: Any, value: Any, expected: str) -> None:
    """Place, what was expected and the kind of what came, as of arguments; no value, no address (contract A8, A12)."""
    assert refusal(annotation, value) == expected


def test_long_refusals_are_cut() -> None:
    """Twenty problems of a thousand are shown, and in the log eighty characters of a value."""
    for text in (refusal(list[int], ["x" * 500] * 1000), details(list[int], ["x" * 500] * 1000)):
        lines = text.split("\n")
        assert lines[0] == "1000 validation errors for the result"
        assert (len(lines), lines[-1]) == (42, "and 980 more")
    shown = lines[2].partition("input_value=")[2].partition(", input_type")[0]
    assert len(shown) == 80


def test_values_stay_hidden_where_an_author_asks_for_it() -> None:
    """`hide_input_in_errors` holds for results too."""

    class Private(BaseModel):
        model_config = ConfigDict(hide_input_in_errors=True)
        pin: int

        name: str

    assert details(Private, {"pin": "s3cret", "name": "Ada"}) == (
        "1 validation error for Private\npin\n"
        "  Input should be a valid integer, unable to parse string as an integer [type=int_parsing]"
    )
    assert refusal(Private, {"name": "Ada"}) == (
        "1 validation error for Private\npin\n  Field required [type=missing, input_value={...}, input_type=dict]"
    )


class Account(BaseModel):
    holder: str
    number: str
    balance: int
    limit: int = 0
    internal_note: str = Field("", exclude=True)

    @field_serializer("number")
    def _mask(self, number: str) -> str:
        return "…" + number[-2:]


def test_of_a_record_with_a_missing_field_only_what_would_have_been_sent_is_shown() -> None:
    """Values that no schema publishes, that do not fit, or that a serialiser of the author's hides, stay here."""
    value = {"holder": "Ada", "number": "LEAK", "internal_note": "LEAK", "limit": "LEAK", "host": "LEAK"}
    assert refusal(Account, value) == (
        "2 validation errors for Account\nbalance\n"
        "  Field required [type=missing, input_value={'holder': 'Ada', ...}, input_type=dict]\n"
        "limit\n  expected an integer, got a string"
    )


class Square(BaseModel):
    kind: Literal["square"]
    side: int


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: int


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Annotated[str, Field(pattern="^a$")], "LEAK", "result\n  expected text that matches '^a$', got a string"),
        (datetime.date, "LEAK", "result\n  expected a date as text (2026-01-31), got a string"),
        (dict[int, int], {"LEAK": 1}, "result.LEAK\n  expected an integer, got a string"),
        (
            Annotated[Square | Circle, Field(discriminator="kind")],
            {"kind": "LEAK", "radius": 1},
            "result\n  expected one of 'square', 'circle' as 'kind', got an object",
        ),
    ],
)
def test_what_pydantic_refuses_goes_to_the_client_without_its_value(annotation: Any, value: Any, told: str) -> None:
    """The author did not mean to send it: place, expectation and kind go out, the value stands in the log."""
    assert refusal(annotation, value) == f"1 validation error for the result\n{told}"
    assert "LEAK" in details(annotation, value)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "integer"}, "expected an integer, got a string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "expected an integer or null, got a string"),
        ({"enum": ["a", "b"]}, "expected one of 'a', 'b', got a string"),
        ({"oneOf": [{"type": "string"}, {}]}, "fits 2 alternatives where one is allowed, got a string"),
        (False, "nothing is allowed here, got a string"),
    ],
)
def test_what_a_schema_by_hand_refuses_goes_to_the_client_without_its_value(schema: Any, told: str) -> None:
    """As what pydantic refuses: the full text is for the log."""
    whole = {"type": "object", "properties": {"a": schema}}
    head = "the value does not conform to the tool's output schema: a: "
    assert refusal(NOTHING, {"a": "LEAK"}, output_schema=whole) == head + told
    assert details(NOTHING, {"a": "LEAK"}, output_schema=whole) == f"{head}{told} ('LEAK')"


def test_text_beside_half_of_a_surrogate_pair_is_not_shown() -> None:
    """Of a text that cannot be written, the client reads where it breaks."""
    assert refusal(list[TextContent], [TextContent("LEAK\ud800")]) == (
        "content[0] cannot be written as JSON: '\\ud800' holds half of a surrogate pair, at character 5 of a text"
    )


class Even(BaseModel):
    number: int
    password: str = ""

    @field_validator("number", "password")
    @classmethod
    def _check(cls, value: Any) -> Any:
        if value not in (2, ""):
            raise ValueError(f"{value} is odd")
        return value


def test_an_author_s_own_validator_speaks_to_the_log() -> None:
    """A ValueError in a validator is a refusal; its text, which may hold the value, is the author's to read."""
    assert refusal(Even, {"number": 1, "password": "LEAK"}) == (
        "2 validation errors for Even\n"
        "number\n  does not fit a check of the tool's author, got an integer\n"
        "password\n  does not fit a check of the tool's author, got a string"
    )
    assert "1 is odd" in details(Even, {"number": 1})


def test_what_a_library_says_of_a_value_stays_in_the_log() -> None:
    """Words of pydantic's that may hold the value are no expectation."""
    assert refusal(ImportString, "leak_module") == (
        "1 validation error for the result\nresult\n  does not fit a check of the tool's author, got a string"
    )
    assert "leak_module" in details(ImportString, "leak_module")


class HiddenAtTimes(BaseModel):
    needed: int
    note: str = Field("", exclude_if=lambda value: True)


class ReadByAlias(BaseModel):
    needed: int
    name: str = Field("", validation_alias="displayName")


@dataclasses.dataclass
class Opened:
    needed: int
    raw: dataclasses.InitVar[str] = ""


class Inner(BaseModel):
    needed: int
    name: str = Field("", exclude=True)


class Outer(BaseModel):
    model_config = ConfigDict(loc_by_alias=False)
    name: str
    inner: Inner = Field(alias="in")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (HiddenAtTimes, {"note": "LEAK"}),
        (ReadByAlias, {"displayName": "x", "name": "LEAK"}),
        (Opened, {"raw": "LEAK"}),
        (Outer, {"name": "o", "in": {"name": "LEAK"}}),
    ],
)
def test_beside_a_missing_field_nothing_is_shown_that_is_not_sent(annotation: Any, value: Any) -> None:
    """What is left out at times, read by another name, handed to the class alone, or of a record inside."""
    told = refusal(annotation, value)
    assert "Field required [type=missing, input_value={...}, input_type=dict]" in told
    assert "LEAK" not in told


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"properties": {"b": {"const": "1"}}}, {"properties": {"b": {"const": "2"}}}]},
        {"oneOf": [{"properties": {"b": {"type": "integer"}}}, {"properties": {"b": {"type": "null"}}}]},
    ],
)
def test_of_alternatives_the_values_stay_here_too(schema: Any) -> None:
    """What was found in each alternative tells of values inside."""
    whole = {"type": "object", "properties": {"a": schema}}
    assert "LEAK" not in refusal(NOTHING, {"a": {"b": "LEAK"}}, output_schema=whole)
    assert "LEAK" in details(NOTHING, {"a": {"b": "LEAK"}}, output_schema=whole)


class BadlyShown:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Leaving:
    def __repr__(self) -> str:
        raise SystemExit(3)


def _itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["inside"] = value
    return value


def _deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(3000):
        value = {"inside": value}
    return value


class Numbered(BaseModel):
    number: int
    other: int


@pytest.mark.parametrize(
    "value",
    [{"number": 10**5000}, _itself(), _deep(), {"number": BadlyShown()}, {"x": Leaving()}, {"number": [0] * 10**6}],
)
def test_a_value_that_cannot_be_shown_is_refused_with_its_place(value: Any) -> None:
    """However large, deep or ill-behaved it is, whoever asked reads which field is missing."""
    assert "other\n  Field required [type=missing, input_value={" in refusal(Numbered, value)
    assert len(details(Numbered, value)) < 1000


def test_the_log_has_each_problem_on_lines_of_its_own_within_bounds() -> None:
    """Keys and texts are data: they neither forge a line nor fill the disk."""
    written = details(dict[str, int], {"a\x1b]0;b\nFAKE": "x", "k" * 1_000_000: "y"})
    assert "\x1b" not in written
    assert len(written.split("\n")) == 5
    assert len(written) < 2000


@dataclasses.dataclass
class User:
    name: str
    password: str


def test_secrets_stay_out_of_the_log_wherever_they_stand() -> None:
    """A list of records, or a record of the author's: what a name announces as secret is not written."""
    value = {"items": [{"password": "LEAK"}], "user": User("Ada", "LEAK")}
    written = details(Numbered, value)
    assert "LEAK" not in written
    assert "Ellipsis" in written


class Optional_(BaseModel):
    ratio: float | None = None
    inside: Any = None


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (float, NAN, "result"),
        (float | None, math.inf, "result"),
        (list[float], [1.0, -math.inf], "result[1]"),
        (dict[str, float], {"a b": NAN}, '["a b"]'),
        (Optional_, Optional_(ratio=NAN), "ratio"),
        (list[Optional_], [Optional_(), Optional_(ratio=NAN)], "result[1].ratio"),
        (Any, {"a": [Optional_(ratio=NAN)]}, "result.a[0].ratio"),
        (Any, Optional_(inside=Optional_(inside=[Optional_(ratio=NAN)])), "result.inside.inside[0].ratio"),
        (NOTHING, [{"a": NAN}], "[0].a"),
        (NOTHING, (Optional_(ratio=NAN),), "[0].ratio"),
    ],
)
def test_numbers_that_are_none_are_refused_by_place(annotation: Any, value: Any, place: str) -> None:
    """NaN and infinities are never written as null, not even where null is allowed (contract A9)."""
    assert refusal(annotation, value).startswith(f"{place}: ")
    assert "is not a JSON number; send null or text instead" in refusal(annotation, value)


def test_an_author_may_choose_null_for_nan() -> None:
    """`ser_json_inf_nan="null"` in a model's own configuration is a decision, not silence."""

    class Chosen(BaseModel):
        model_config = ConfigDict(ser_json_inf_nan="null")
        ratio: float | None

    assert structure(render(Chosen, Chosen(ratio=NAN))) == {"ratio": None}
    assert structure(render(Any, [Chosen(ratio=NAN)])) == [{"ratio": None}]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    b: int = Field(1, serialization_alias="z")


def _cycle() -> list[Any]:
    items: list[Any] = [1]
    items.append({"again": items})
    return items


def _deep() -> list[Any]:
    items: list[Any] = []
    for _ in range(50_000):
        items = [items]
    return items


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "\ud800", "result: text with half of a surrogate pair"),
        (Any, {"a": ["\ud800"]}, "result.a[0]: text with half of a surrogate pair"),
        (Any, {"a": object()}, "result.a: an object of type object has no JSON form"),
        (dict[str, Any], {"a": [print]}, "a[0]: an object of type builtin_function_or_method has no JSON form"),
        (Any, Station(), "result: an object of type Station has no JSON form"),
        (Any, _cycle(), "result[1].again: it holds itself, so it has no end"),
        (NOTHING, _cycle(), "[1].again: it holds itself, so it has no end"),
        (Any, _deep(), "result: nested deeper than JSON can be written"),
        pytest.param(int, 10**5000, "result: an integer of more digits than a reader takes", id="huge"),
        (Any, {"a": TextContent("x")}, "result.a: TextContent is content, not data"),
        (NOTHING, {"a": Image(b"GIF89a")}, "a: Image is content, not data"),
        (Any, "\ud800", "result: text with half of a surrogate pair"),
        (dict[str, int], {"\udfff": 1}, r"the result: the key '\udfff' holds half of a surrogate pair"),
        (dict[str, dict[str, int]], {"a": {"b\udfff": 1}}, r"a: the key 'b\udfff' holds half of a surrogate pair"),
        (dict, {"a": [{"\udfff": 1}]}, r"a[0]: the key '\udfff' holds half of a surrogate pair"),
        (dict[str, Any], {"\udfff": Optional_()}, r"the result: the key '\udfff' holds half of a surrogate pair"),
        (NOTHING, {"\udfff": 1}, r"the result: the key '\udfff' holds half of a surrogate pair"),
        (dict, {1: "a", "1": "b"}, "the result: two of its keys are both written as '1'"),
        (dict[Any, Any], {"x": [{True: 1, "true": 2}]}, "x[0]: two of its keys are both written as 'true'"),
        (dict[str | int, int], {1: 1, "1": 2}, "result: two of its keys are both written as '1'"),
        (dict[tuple[str, str], int], {("a,b", "c"): 1, ("a", "b,c"): 2}, "result: two of its keys are both written"),
        (dict[str, Any], {"a": {None: 1e120, "None": 2}}, "a: two of its keys are both written as 'None'"),
        (dict, {b"\xff": 1, "/w==": 2}, "the result: two of its keys are both written as '/w=='"),
        (Open, Open(b=1, z='say "3":'), "the result: two of its keys are both written as 'z'"),
        (NOTHING, {1: "a", "1": "b"}, "the result: two of its keys are both written as '1'"),
        pytest.param(Any, 10**5000, "result: an integer of more digits than a reader takes", id="huge any"),
        pytest.param(dict, {"a": [-(10**4300)]}, "a[0]: an integer of more digits than a reader", id="huge inside"),
        pytest.param(NOTHING, {"a": 10**4300}, "a: an integer of more digits than a reader takes", id="huge text"),
        (Weather, TextContent("x"), "the tool promises Weather and returned TextContent, which is content"),
        (Any, Image(b"GIF89a"), "the tool promises madeOutput and returned Image, which is content"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_place(annotation: Any, value: Any, expected: str) -> None:
    """Each is an error that names the place; none ends the server (issue 2, part 2)."""
    assert refusal(annotation, value).startswith(expected)


@pytest.mark.parametrize(
    ("mend", "expected"),
    [
        ({"temperature": None}, "temperature: expected a number, got null"),
        ({"conditions": 7}, "conditions: expected a string, got an integer"),
        ({"temperature": ...}, "temperature: missing; expected a number"),
    ],
)
def test_a_changed_instance_is_judged_as_it_is(mend: dict[str, Any], expected: str) -> None:
    """Pydantic does not look at instances again; what they hold now is what is judged (contract A9)."""
    instance = Weather(**WEATHER)
    for name, value in mend.items():
        vars(instance)[name] = value
        if value is ...:
            del vars(instance)[name]
    assert refusal(Weather, instance) == f"the value does not conform to the tool's output schema: {expected}"


def test_all_problems_of_a_changed_instance_are_told() -> None:
    """All problems of one value come in one message (STYLE, errors)."""
    message = refusal(list[Weather], [Weather.model_construct(temperature="x")])
    assert message.startswith("the value does not conform to the tool's output schema:\n- ")
    assert {line.split(":")[0] for line in message.split("\n- ")[1:]} == {
        "result[0].temperature",
        "result[0].humidity",
        "result[0].conditions",
    }


def test_what_conforms_by_another_way_goes_out() -> None:
    """Computed fields, custom serialisers and subclasses are judged by what they write (contract A9)."""

    class Price(BaseModel):
        cents: int

        @computed_field
        @property
        def euros(self) -> float:
            return self.cents / 100

        @field_serializer("cents")
        def _write(self, value: int) -> str:
            return f"{value}c"

    class Sale(Price):
        off: int = 5

    schema = build(Price).output_schema
    assert schema is not None
    assert schema["properties"]["cents"] == {"title": "Cents", "type": "string"}
    for value in (Price(cents=250), Sale(cents=250)):
        assert structure(render(Price, value)) == {"cents": "250c", "euros": 2.5}


def test_a_serialiser_that_breaks_its_own_promise_is_refused() -> None:
    """A return annotation on a serialiser is published, so it is enforced (contract A9)."""

    class Lying(BaseModel):
        number: int

        @field_serializer("number")
        def _write(self, value: int) -> int:
            return "none"

    assert refusal(Lying, Lying(number=1)).endswith("number: expected an integer, got a string")


class Crashing(BaseModel):
    number: int = 1

    @field_serializer("number")
    def _write(self, value: int) -> int:
        raise KeyError("own fault")


class CrashingProperty(BaseModel):
    @computed_field
    @property
    def ratio(self) -> float:
        return 1 / 0


class CrashingModel(BaseModel):
    @model_serializer
    def _write(self) -> dict[str, int]:
        raise ValueError("own value")


class CrashingText:
    def __str__(self) -> str:
        raise ArithmeticError("own text")


def _failing() -> Iterator[int]:
    yield 1
    raise LookupError("own generator")


@pytest.mark.parametrize(
    ("annotation", "value", "crash"),
    [
        (Crashing, Crashing(), KeyError),
        (Any, [Crashing()], KeyError),
        (NOTHING, {"a": Crashing()}, KeyError),
        (CrashingProperty, CrashingProperty(), ZeroDivisionError),
        (CrashingModel, CrashingModel(), ValueError),
        (NOTHING, CrashingText(), ArithmeticError),
        (list[int], _failing(), LookupError),
    ],
)
def test_a_crash_of_the_author_s_own_code_stays_a_crash(annotation: Any, value: Any, crash: type) -> None:
    """Exceptions of serialisers, properties and generators are the tool's, told in the log, not to the model."""
    with pytest.raises(crash) as caught:
        render(annotation, value)
    assert not isinstance(caught.value, ResultRefused)
    assert "own" in str(caught.value) or crash is ZeroDivisionError


# --- text only ---


@pytest.mark.parametrize(
    ("annotation", "value", "blocks"),
    [
        (dict, "# Report\nall good", ["# Report\nall good"]),
        (Weather, WEATHER, ['{\n  "temperature": 16.2,\n  "humidity": 0.83,\n  "conditions": "Overcast"\n}']),
        (Weather, {"other": 1}, ['{\n  "other": 1\n}']),
        (list[int], (1, "two", None), ["1", "two", "null"]),
        (bytes, b"\xff\xfe>?", ["//4+Pw=="]),
        (Station, Sign(), ["a sign"]),
        (list[Station], [Sign(), Sign()], ["a sign", "a sign"]),
        (NOTHING, {"by": Sign()}, ['{\n  "by": "a sign"\n}']),
    ],
)
def test_opting_out_leaves_text_only(annotation: Any, value: Any, blocks: list[str]) -> None:
    """`structured_output=False`: no schema, no validation, no structure (contract A10); own text of objects (A12)."""
    returns = build(annotation, structured_output=False)
    faces = returns.render(value)
    assert (returns.output_schema, faces.structured, texts(faces)) == (None, None, blocks)


class LeakingInside:
    def __str__(self) -> str:
        return f"Inner({object()})"


@pytest.mark.parametrize("value", [LeakingInside(), [LeakingInside()], {"a": LeakingInside()}, ValueError(object())])
@pytest.mark.parametrize("annotation", [NOTHING, int])
def test_an_address_inside_an_own_text_is_never_sent(annotation: Any, value: Any) -> None:
    """The class whose text it is in is named, and the mend (contract A12)."""
    message = refusal(annotation, value, structured_output=None if annotation is NOTHING else False)
    assert re.fullmatch(
        "the text of an object of type (LeakingInside|ValueError) holds a memory address, which is never sent; let "
        r"\1.__str__ write attributes, or give what it writes a __repr__ of its own",
        message,
    )


def test_a_hexadecimal_number_in_an_own_text_is_no_address() -> None:
    """Only what Python writes for an object without a text is taken for an address."""

    class Wallet:
        def __str__(self) -> str:
            return "wallet 0xdeadbeefcafe"

    assert texts(render(NOTHING, Wallet())) == ["wallet 0xdeadbeefcafe"]


@pytest.mark.parametrize("value", [Station(), [Station()], {"a": Station()}, Leaking(), object(), print, lambda: 1])
def test_a_memory_address_is_never_sent(value: Any) -> None:
    """An object without text of its own is an error that names the mends (contract A12)."""
    message = refusal(NOTHING, value)
    assert "has no JSON form" in message
    assert "0x" not in message


# --- content ---


@pytest.mark.parametrize(
    "annotation",
    [
        Image,
        ImageContent,
        str | Image,
        Image | None,
        list[str | Image],
        list[TextContent],
        Iterator[Image],
        Annotated[Image, "x"],
    ],
)
def test_content_has_no_schema(annotation: Any) -> None:
    """Content blocks are content, not data (contract A14)."""
    assert build(annotation).output_schema is None
    with pytest.raises(InvalidSignature, match="is content, not data"):
        build(annotation, structured_output=True)
    with pytest.raises(InvalidSignature, match="text= has no use"):
        build(annotation, text="{result}")


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    picture: Image


@pytest.mark.parametrize("annotation", [dict[str, Image], Holder, list[Holder], tuple[int, dict[str, TextContent]]])
def test_content_inside_data_is_refused_at_registration(annotation: Any) -> None:
    """A picture in a field would have to be data; the error says what to do (contract A14)."""
    with pytest.raises(InvalidSignature, match=r"make.*inside data; content stands by itself.*CallToolResult"):
        build(annotation)


# --- results of the author's own ---


class Row(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="forbid")
    row_id: str = Field(alias="rowId")


def test_an_own_result_passes_as_it_is() -> None:
    """Blocks, structure, `_meta` and the error flag of a `CallToolResult` are the author's (contract A13)."""
    block = TextContent("row 7", meta={"k": 1})
    result = CallToolResult(content=[block], structured_content={"a": 1}, meta={"m": 2})
    for annotation in (CallToolResult, NOTHING):
        assert build(annotation).output_schema is None
        assert render(annotation, result) == Faces((block,), b'{"a":1}', Wrapping.NEVER, meta={"m": 2})


@pytest.mark.parametrize(
    "value", [Row(row_id="7"), {"rowId": "7"}, {"row_id": "7"}, CallToolResult(structured_content=Row(row_id="7"))]
)
def test_an_annotated_result_goes_out_by_the_wire_s_names(value: Any) -> None:
    """`Annotated[CallToolResult, Model]` maps Python's names or sends the wire's verbatim (field case S05)."""
    annotation = Annotated[CallToolResult, Row]
    assert build(annotation).output_schema == build(Row).output_schema
    result = value if isinstance(value, CallToolResult) else CallToolResult(structured_content=value)
    faces = render(annotation, result)
    assert (faces.structured, texts(faces)) == (b'{"rowId":"7"}', ['{\n  "rowId": "7"\n}'])


@pytest.mark.parametrize(
    "annotation", [Annotated[CallToolResult, Row], Row, Row | CallToolResult, CallToolResult | Row]
)
def test_a_structure_that_does_not_fit_never_leaves(annotation: Any) -> None:
    """A result that is no error is judged under every annotation that publishes a schema (contract A25)."""
    message = refusal(annotation, CallToolResult(structured_content={"rowId": 7, "more": 1}))
    assert message.startswith("2 validation errors for Row\nrowId\n")
    assert refusal(annotation, CallToolResult(content=[TextContent("x")])).startswith(
        "the result has no structured_content, which the tool's output schema promises"
    )


@pytest.mark.parametrize("annotation", [Annotated[CallToolResult, Row], Row, CallToolResult, NOTHING, list[int]])
def test_an_error_is_never_judged(annotation: Any) -> None:
    """An error may leave without structure, with any, and never without a text (contract A13, A25)."""
    faces = render(annotation, CallToolResult(is_error=True))
    assert (texts(faces), faces.structured, faces.is_error) == (
        ["the tool reported an error without saying more"],
        None,
        True,
    )
    faces = render(annotation, CallToolResult(is_error=True, structured_content=[1]))
    assert (texts(faces), faces.structured, faces.wrapping) == (["1"], b"[1]", Wrapping.EARLIER)


@pytest.mark.parametrize("given", [[1, 2], {"result": [1, 2]}, (1, 2), ["1", 2]])
def test_a_wrapped_type_takes_the_bare_value_or_the_wrapped(given: Any) -> None:
    """Authors give the value, or what the published schema shows; both go out the same (contract A13)."""
    faces = render(Annotated[CallToolResult, list[int]], CallToolResult(structured_content=given))
    assert (faces.structured, faces.wrapping, texts(faces)) == (b"[1,2]", Wrapping.ALWAYS, ["1", "2"])


def test_null_is_not_absent_in_an_own_result() -> None:
    """`structured_content=None` is JSON null (spec, `structuredContent`)."""
    faces = render(Annotated[CallToolResult, Row | None], CallToolResult(structured_content=None))
    assert (faces.structured, texts(faces)) == (b"null", ["null"])


@pytest.mark.parametrize(
    ("result", "place"),
    [
        (CallToolResult(structured_content=[NAN]), "structured_content[0]: nan is not a JSON number"),
        (CallToolResult(structured_content={"a": Optional_(ratio=NAN)}), "structured_content.a.ratio: nan"),
        (CallToolResult(structured_content=1, is_error=True, meta={"a": NAN}), "_meta['a']: NaN"),
        (CallToolResult(content=[TextContent("\ud800")]), "content"),
    ],
)
def test_an_own_result_that_json_cannot_hold_is_refused(result: CallToolResult, place: str) -> None:
    """The rules for numbers and text hold in results of the author's own making (contract A9)."""
    assert refusal(CallToolResult, result).startswith(place)


def test_opting_out_drops_the_structure_of_an_own_result_but_not_its_text() -> None:
    """`structured_output=False` sends no structure at all (contract A10)."""
    faces = render(Weather, CallToolResult(structured_content=[1]), structured_output=False)
    assert (texts(faces), faces.structured, faces.wrapping) == (["1"], None, Wrapping.NEVER)


def test_text_beside_an_own_result_is_refused() -> None:
    """A `CallToolResult` carries its own content (contract A19)."""
    for annotation in (CallToolResult, Annotated[CallToolResult, Row]):
        with pytest.raises(InvalidSignature, match="text= has no use beside CallToolResult"):
            build(annotation, text="{rowId}")


# --- schemas by hand ---

HAND = {
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/n"}},
    "required": ["n"],
    "x-own": [1],
    "$defs": {"n": {"type": "integer", "multipleOf": 2}},
}


def test_a_schema_by_hand_is_published_to_the_letter_and_enforced() -> None:
    """Hand-written output schemas are neither changed nor trusted (contract A26)."""
    returns = build(NOTHING, output_schema=HAND)
    assert returns.output_schema == HAND
    assert returns.object_schema == HAND
    faces = render(NOTHING, {"n": 2, "more": None}, output_schema=HAND)
    assert (faces.structured, faces.wrapping) == (b'{"n":2,"more":null}', Wrapping.NEVER)
    for value in ({"n": 3}, {"n": "2"}, {}, [], None, CallToolResult(structured_content={"n": 3})):
        assert "does not conform to the tool's output schema" in refusal(NOTHING, value, output_schema=HAND)
    assert "no structured_content" in refusal(NOTHING, CallToolResult(), output_schema=HAND)
    assert render(NOTHING, CallToolResult(structured_content={"n": 4}), output_schema=HAND).structured == b'{"n":4}'


def test_a_root_by_hand_that_is_no_object_is_wrapped_for_earlier_revisions() -> None:
    """Its references still lead to the same places (contract A20, A26)."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "leaf": {"enum": [{"$ref": "#/data"}, 1]},
            "tree": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#"}]},
        },
        "type": "array",
        "items": {"$ref": "#/$defs/tree"},
    }
    returns = build(NOTHING, output_schema=schema)
    assert returns.output_schema == schema
    assert returns.wrapping is Wrapping.EARLIER
    assert returns.object_schema == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "result": {
                "$defs": {
                    "leaf": {"enum": [{"$ref": "#/data"}, 1]},
                    "tree": {"anyOf": [{"$ref": "#/properties/result/$defs/leaf"}, {"$ref": "#/properties/result"}]},
                },
                "type": "array",
                "items": {"$ref": "#/properties/result/$defs/tree"},
            }
        },
        "required": ["result"],
        "title": "madeOutput",
        "type": "object",
    }
    judge = jsonschema.Draft202012Validator(returns.object_schema)
    for value in ([], [1, [1]], [[2]], 1):
        is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert judge.is_valid({"result": value}) is is_valid
        if is_valid:
            assert structure(render(NOTHING, value, output_schema=schema)) == value
        else:
            assert refusal(NOTHING, value, output_schema=schema)


def test_a_schema_by_hand_that_is_none_is_refused() -> None:
    """A faulty schema is found at registration, and opting out beside one makes no sense (contract A26)."""
    with pytest.raises(InvalidDefinition, match="tool 'made', output schema"):
        build(NOTHING, output_schema={"type": "object", "properties": {"a": {"type": "no such type"}}})
    with pytest.raises(InvalidSignature, match="structured_output=False contradicts output_schema="):
        build(NOTHING, output_schema=HAND, structured_output=False)


def test_content_that_was_changed_after_it_was_checked_is_refused() -> None:
    """A list of blocks can be appended to; what is no block does not leave (contract B5)."""
    result = CallToolResult(content=[TextContent("x")])
    result.content.append(5)
    assert refusal(CallToolResult, result) == "content[1]: expected a content block, got an int"
    result.content[1] = {"type": "text", "text": "x"}
    assert refusal(CallToolResult, result) == "content[1]: expected a content block, got a dict"


class Login(BaseModel):
    user: str
    password: int
    session: dict[str, int] = {}


@pytest.mark.parametrize(
    "value",
    [
        {"user": "a", "password": "hunter2"},
        {"password": "hunter2"},
        {"user": 1, "password": 2, "session": {"token": "hunter2"}},
    ],
)
def test_a_secret_is_not_shown_in_a_refusal(value: Any) -> None:
    """No secret in a message: values under names that announce one are left out, as in arguments."""
    for text in (refusal(Login, value), details(Login, value)):
        assert "validation error" in text
        assert "hunter2" not in text


def test_tools_that_return_one_type_share_no_schema_and_each_is_named() -> None:
    """What a type becomes is remembered; what is published of one tool is that tool's alone."""
    first = build_returns(list[Weather], tool_name="first", function_name="first")
    second = build_returns(list[Weather], tool_name="second", function_name="second")
    assert first.output_schema is not None and second.output_schema is not None
    assert (first.output_schema["title"], second.output_schema["title"]) == ("firstOutput", "secondOutput")
    first.output_schema["properties"]["result"].clear()
    assert second.output_schema["properties"]["result"]["items"] == {"$ref": "#/$defs/Weather"}
    bare = [build_returns(dict[str, int], tool_name=name, function_name=name).output_schema for name in ("a", "b")]
    assert [schema and schema["title"] for schema in bare] == ["aDictOutput", "bDictOutput"]


def test_a_model_that_was_built_anew_is_published_anew() -> None:
    """A type is remembered as long as pydantic's own description of it stands."""

    class Grown(BaseModel):
        a: int

    before = build_returns(Grown, tool_name="x", function_name="x")
    Grown.model_fields["a"].description = "now described"
    Grown.model_rebuild(force=True)
    after = build_returns(Grown, tool_name="x", function_name="x")
    plain = {"title": "A", "type": "integer"}
    assert before.output_schema is not None and before.output_schema["properties"] == {"a": plain}
    assert after.output_schema is not None
    assert after.output_schema["properties"] == {"a": plain | {"description": "now described"}}


def test_what_no_decoder_can_prove_is_judged_by_a_schema_that_is_compiled_then() -> None:
    """Two objects in a union are beyond msgspec's types; what does not conform is refused all the same."""
    returns = build_returns(Weather | WeatherRecord | list[int], tool_name="made", function_name="made")
    assert not returns.is_proven
    value = Weather(temperature=1.0, humidity=2.0, conditions="dry")
    assert returns.finish(value).structured == b'{"temperature":1.0,"humidity":2.0,"conditions":"dry"}'
    value.__dict__["temperature"] = "hot"
    with pytest.raises(ResultRefused, match="the value does not conform to the tool's output schema"):
        returns.finish(value)
