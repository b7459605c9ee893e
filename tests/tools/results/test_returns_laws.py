"""Laws of results: what leaves is valid under what is published, whatever became of the value before."""

import copy
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Union

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, computed_field, create_model, field_serializer
from typing_extensions import TypedDict

from twofold.errors import ResultRefused
from twofold.protocol.messages import CallToolResult, Faces, Wrapping
from twofold.tools.results.proof import compile_decoder
from twofold.tools.results.returns import Returns, build_returns

LAW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    left: int
    right: str | None = None


class Leaf(BaseModel):
    size: int = 0
    weight: float | None = None
    tags: list[str] = []


class Branch(BaseModel):
    label: str
    twigs: list["Branch"] = []


class Awkward(BaseModel):
    """Everything that makes what is written differ from what is declared."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    ident: str = Field("a", alias="_id")
    count: int = Field(0, ge=0, le=9)
    code: str = Field("ab", pattern="^[a-z]+$")
    inside: Any = None
    loose: SerializeAsAny[Leaf] = Leaf()
    odd: int = 1

    @computed_field
    @property
    def half(self) -> float | None:
        count = vars(self).get("count")
        return count / 2 if isinstance(count, int) else math.nan

    @field_serializer("odd")
    def _write_odd(self, value: Any) -> Any:
        return value


class Narrow(Leaf):
    extra: int = 5
    weight: str = "heavy"


ATOMS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (float, st.floats()),
    (str, st.text(max_size=5)),
    (bool, st.booleans()),
    (None, st.none()),
    (bytes, st.binary(max_size=4)),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2)),
    (datetime.datetime, st.datetimes()),
    (Colour, st.sampled_from(Colour)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (Annotated[int, Field(ge=3, lt=10)], st.integers(3, 9)),
    (Annotated[str, Field(min_length=1, max_length=3)], st.text(min_size=1, max_size=3)),
    (Any, st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3)),
    (Pair, st.builds(Pair, st.integers(), st.none() | st.text(max_size=2))),
    (Leaf, st.builds(Leaf, size=st.integers(), weight=st.none() | st.floats(), tags=st.lists(st.text(max_size=2)))),
    (Awkward, st.builds(Awkward, count=st.integers(0, 9), inside=st.none() | st.builds(Leaf, weight=st.floats()))),
    (Branch, st.builds(Branch, label=st.text(max_size=2), twigs=st.builds(list))),
    (set[int], st.sets(st.integers(), max_size=3)),
]

JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2.5,
        10**30,
        math.nan,
        math.inf,
        "",
        "text",
        "\ud800",
        b"\xff",
        1j,
        [],
        [None],
        {},
        {"a": math.nan},
        {1: 2},
        {1, 2},
        object(),
        Leaf(weight=math.nan),
        Narrow(),
        Leaf.model_construct(),
        Awkward.model_construct(count="x"),
        Colour.RED,
        decimal.Decimal("NaN"),
    ]
).map(copy.deepcopy)

KINDS = ("list", "dict", "int dict", "tuple", "optional", "union", "model", "class", "typed")
SIZES = (len(ATOMS), len(KINDS) * len(ATOMS), 2 * len(KINDS) * len(ATOMS))


@functools.cache
def typed_value(depth: int, index: int) -> tuple[Any, st.SearchStrategy[Any]]:
    """Give a return annotation and a strategy for its values: each kind over each simpler one, made once."""
    if depth == 0:
        return ATOMS[index % len(ATOMS)]
    kind = KINDS[index % len(KINDS)]
    inner, values = typed_value(depth - 1, index // len(KINDS) + index)
    other, others = typed_value(depth - 1, 7 * index + 3)
    if kind in ("model", "class", "typed"):
        return _make_record(kind, inner, other, values=values, others=others)
    made: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
        "list": (list[inner], st.lists(values, max_size=3)),
        "dict": (dict[str, inner], st.dictionaries(st.text(max_size=3), values, max_size=3)),
        "int dict": (dict[int, inner], st.dictionaries(st.integers(), values, max_size=3)),
        "tuple": (tuple[inner, int], st.tuples(values, st.integers())),
        "optional": (inner | None if inner is not None else None, st.none() | values),
        "union": (Union[inner, other], values | others),  # noqa: UP007 - of types made at run time
    }
    return made[kind]


def typed_values() -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    """Draw a return annotation and a strategy for values of it."""
    places = [(depth, index) for depth, size in enumerate(SIZES) for index in range(size)]
    return st.sampled_from(places).map(lambda place: typed_value(*place))


def _make_record(kind: str, inner: Any, other: Any, *, values: Any, others: Any) -> tuple[Any, st.SearchStrategy[Any]]:
    pairs = st.tuples(values, others)
    if kind == "model":
        model: Any = create_model("Made", first=(inner, Field(alias="firstOne")), second=(other, ...))
        return model, pairs.map(lambda pair: {"firstOne": pair[0], "second": pair[1]}).map(_try(model.model_validate))
    if kind == "class":
        made: Any = dataclasses.make_dataclass("Made", [("first", inner), ("second", other)])
        return made, pairs.map(lambda pair: made(*pair))
    typed: Any = TypedDict("Made", {"first": inner, "second": NotRequired[other]})
    return typed, pairs.map(lambda pair: {"first": pair[0], "second": pair[1]}) | values.map(lambda v: {"first": v})


def _try(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A value strategy may hold what its own type refuses (a union's other member, coerced); then it stays raw."""

    def attempt(value: Any) -> Any:
        try:
            return make(value)
        except ValueError:
            return value

    return attempt


def _places(value: Any, depth: int = 4) -> list[Any]:
    """List everything inside a value that can be changed."""
    if depth == 0:
        return []
    if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        children = list(vars(value).values())
    elif isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, list | tuple | set):
        children = list(value)
    else:
        return []
    own = [] if isinstance(value, tuple) else [value]
    return own + [place for child in children for place in _places(child, depth - 1)]


def _mutate(draw: Any, value: Any) -> None:
    places = _places(value)
    assume(places)
    place, junk = draw(st.sampled_from(places)), draw(JUNK)
    if isinstance(place, list):
        place.append(junk)
    elif isinstance(place, set):
        place.add(draw(st.sampled_from([None, 1.5, "x", (1,)])))
    else:
        names = place if isinstance(place, dict) else vars(place)
        key = draw(st.sampled_from([*names, "novel"]))
        if draw(st.booleans()):
            names[key] = junk
        else:
            names.pop(key, None)


@functools.cache
def _build(annotation: Any, **options: Any) -> Returns:
    return build_returns(annotation, tool_name="made", function_name="made", **options)


def _assert_conforms(returns: Returns, faces: Faces) -> None:
    """Judge by a validator of another make, at the strictness of a foreign client."""
    assert faces.structured is not None
    value = json.loads(faces.structured, parse_constant=_refuse_constant)
    wrapped = {"result": value}
    assert returns.output_schema is not None
    assert returns.object_schema is not None
    any_root = wrapped if faces.wrapping is Wrapping.ALWAYS else value
    earlier = value if faces.wrapping is Wrapping.NEVER else wrapped
    jsonschema.Draft202012Validator(returns.output_schema).validate(any_root)
    jsonschema.Draft202012Validator(returns.object_schema).validate(earlier)
    assert returns.object_schema["type"] == "object"
    assert isinstance(earlier, dict)


def _refuse_constant(token: str) -> Any:
    raise AssertionError(f"{token} left the server")


def _render(returns: Returns, value: Any) -> Faces | None:
    """Render as a call does: the separate check only where the type needs it."""
    try:
        faces = returns.render(value)
        if not returns.is_proven:
            returns.check(faces)
    except ResultRefused as error:
        refusal = str(error)
    else:
        return faces
    assert " at 0x" not in refusal
    return None


@LAW
@given(st.data())
def test_every_result_that_leaves_conforms(data: st.DataObject) -> None:
    """What leaves is valid under the published schema, for any type and value (contract A9)."""
    annotation, values = data.draw(typed_values())
    returns = _build(annotation, wrap=data.draw(st.booleans()))
    faces = _render(returns, data.draw(values))
    if faces is not None:
        _assert_conforms(returns, faces)


@LAW
@given(st.data())
def test_every_mutated_result_that_leaves_conforms(data: st.DataObject) -> None:
    """Changing, deleting or adding anything inside a value gives a refusal or a conforming result (contract A9)."""
    annotation, values = data.draw(typed_values())
    returns = _build(annotation)
    value = data.draw(values)
    for _ in range(data.draw(st.integers(1, 3))):
        _mutate(data.draw, value)
    faces = _render(returns, value)
    if faces is not None:
        _assert_conforms(returns, faces)


@LAW
@given(st.data(), JUNK)
def test_anything_returned_is_refused_or_conforms(data: st.DataObject, value: Any) -> None:
    """A value of any other type gives a refusal or a conforming result, never another exception (contract A8)."""
    annotation, _values = data.draw(typed_values())
    returns = _build(annotation)
    for returned in (value, [value], {"first": value}):
        faces = _render(returns, returned)
        if faces is not None:
            _assert_conforms(returns, faces)


@LAW
@given(st.data(), JUNK)
def test_structure_of_an_own_result_is_refused_or_conforms(data: st.DataObject, value: Any) -> None:
    """`CallToolResult` under a published schema never leaves with a structure the schema forbids (contract A13, A25)."""
    annotation, values = data.draw(typed_values())
    returns = _build(Annotated[CallToolResult, annotation])
    if returns.output_schema is None:
        return
    faces = _render(returns, CallToolResult(structured_content=data.draw(values | st.just(value))))
    if faces is not None:
        _assert_conforms(returns, faces)


@LAW
@given(st.data())
def test_a_number_that_is_none_is_never_written_as_null(data: st.DataObject) -> None:
    """NaN and infinities are refused wherever they stand, also where null would be allowed (contract A9)."""
    number = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    leaf = Leaf.model_construct(size=1, weight=number, tags=[])
    nested: Any = data.draw(
        st.sampled_from(
            [
                (Leaf, leaf),
                (list[Leaf], [leaf]),
                (dict[str, Leaf | None], {"a": leaf}),
                (Any, {"a": [leaf]}),
                (Awkward, Awkward(inside=[leaf])),
                (Awkward, Awkward(loose=leaf)),
                (Awkward, Awkward(novel=leaf)),
                (float | None, number),
                (dict[str, Any], {"a": number}),
                (tuple[float | None, int], (number, 1)),
            ]
        )
    )
    annotation, value = nested
    for options in ({}, {"structured_output": False}):
        with pytest.raises(ResultRefused, match="is not a JSON number"):
            _build(annotation, **options).render(value)


@LAW
@given(st.data())
def test_the_two_faces_say_the_same(data: st.DataObject) -> None:
    """The text is the structure's own JSON: the same value, indented; one block an element (contract A7)."""
    annotation, values = data.draw(typed_values())
    faces = _render(_build(annotation), data.draw(values))
    if faces is None:
        return
    assert isinstance(faces.content, bytes)
    assert faces.structured is not None
    value = json.loads(faces.structured)
    elements = value if isinstance(value, list) and value else [value]
    expected = [item if isinstance(item, str) else _indent(item) for item in elements]
    texts = [block["text"] for block in json.loads(faces.content)]
    assert [_same_numbers(text) for text in texts] == [_same_numbers(text) for text in expected]


def _indent(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _same_numbers(text: str) -> Any:
    """Writers differ in how they write a float (`1e16`, `1e+16`): compare those as values."""
    try:
        return json.loads(text), text.count("\n")
    except ValueError:
        return text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["first", "firstOne", "second", "size", "weight", "tags", "label"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(LAW, max_examples=500)
@given(st.data())
def test_what_the_decoder_accepts_is_valid_under_the_schema(data: st.DataObject) -> None:
    """The cheap proof is sound: no bytes pass it that the published schema forbids (contract A9)."""
    annotation, _values = data.draw(typed_values())
    schema = _build(annotation).object_schema
    assert schema is not None
    decode = compile_decoder(schema)
    assume(decode is not None)
    assert decode is not None
    value = data.draw(JSON | st.fixed_dictionaries({"result": JSON}))
    raw = json.dumps(value).encode()
    try:
        decode(raw)
    except (msgspec.MsgspecError, UnicodeError):
        return
    jsonschema.Draft202012Validator(schema).validate(value)


SCALARS = st.sampled_from(
    [
        {"type": "integer", "minimum": 2},
        {"type": "integer", "exclusiveMaximum": 7},
        {"type": "number", "minimum": 0.5, "maximum": 3},
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"type": "string", "pattern": "^a"},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", 1]},
        {"const": None},
        {"type": "integer", "const": 1},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "number", "multipleOf": 2},
        {"type": ["string", "null"]},
        {"not": {}},
        {"type": "string", "minimum": 3},
        {"title": "anything"},
        True,
        False,
    ]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": inner,
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(0, 3),
                "uniqueItems": st.booleans(),
                "prefixItems": st.lists(inner, max_size=2),
            },
        )
        | st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner),
                "required": st.lists(st.sampled_from(["a", "b"])),
                "additionalProperties": inner,
                "minProperties": st.integers(0, 2),
            },
        )
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)})
    ),
    max_leaves=5,
)
SMALL_JSON = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, 1.0, 2.5, 8, "", "a", "b", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=5,
)


@settings(LAW, max_examples=500)
@given(SCHEMAS, SMALL_JSON)
def test_no_schema_by_hand_is_read_too_loosely(schema: Any, value: Any) -> None:
    """The cheap proof is sound for schemas that no Python type would give (contract A26)."""
    if not isinstance(schema, dict):
        return
    decode = compile_decoder(schema)
    if decode is None:
        return
    try:
        decode(json.dumps(value).encode())
    except msgspec.MsgspecError:
        return
    jsonschema.Draft202012Validator(schema).validate(value)


KEYS = st.one_of(
    st.text(st.sampled_from(["1", "a", ",", "\udfff", "\ufffd", '"', "\\"]), max_size=2),
    st.sampled_from([1, 1.0, 1.5, True, None, b"1", b"\xff", "True", "true", "None", "1.5", Colour.RED, "red"]),
    st.tuples(st.sampled_from(["a", "a,a", "1"]), st.sampled_from(["a", 1])),
)
TREES = st.recursive(
    st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def _read_strictly(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a name stands twice"
    return dict(pairs)


@given(st.sampled_from([Any, dict, dict[str, Any], dict[Any, Any], list[dict[int | str, Any]], Awkward]), TREES)
@LAW
def test_what_leaves_is_read_alike_by_every_reader(annotation: Any, value: Any) -> None:
    """No name twice, and no character put in the place of another (contract A9)."""
    value = Awkward(inside=value) if annotation is Awkward else value
    faces = _render(_build(annotation), value)
    if faces is None:
        return
    assert faces.structured is not None
    json.loads(faces.structured, object_pairs_hook=_read_strictly)
    msgspec.json.decode(faces.structured)
    assert "\ufffd" in repr(value) or "\ufffd".encode() not in faces.structured
