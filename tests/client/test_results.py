"""Results: read leniently, judged by the listing, rebuilt as the type asked for."""

import dataclasses
import datetime
import decimal
import enum
import json
import typing
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Base64Bytes, BaseModel, Field

from twofold.client.decoding import UnreadableAnswer
from twofold.client.listing import ListedTool, read_page
from twofold.client.results import (
    CheckedResult,
    RawResult,
    UnknownContent,
    check_result,
    raise_unless_kept,
    read_as,
    read_result,
)
from twofold.contract.verdict import Verdict, VerdictProblem
from twofold.errors import ContractError, ResultTypeMismatch
from twofold.protocol.content import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from twofold.protocol.messages import ABSENT
from twofold.protocol.structs import Json

TEXT = {"type": "text", "text": "hi"}
INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
WRAPPER = {"type": "object", "title": "qOutput", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
UNSAID = object()


def read(**fields: Any) -> RawResult:
    return read_result(json.dumps(fields).encode())


def listed(output: Json = None, **more: Any) -> ListedTool:
    tool = {"name": "q", "inputSchema": {}, "outputSchema": output, **more}
    return read_page(json.dumps({"tools": [tool]}).encode()).tools[0]


def check(structure: Any = UNSAID, output: Json = None, **fields: Any) -> CheckedResult:
    given_structure = {} if structure is UNSAID else {"structuredContent": structure}
    return check_result(
        read(content=[TEXT], **given_structure, **fields), listed(output), tool_name="q", clock=lambda: 0.0
    )


# --- reading -------------------------------------------------------------------------------------------


def test_a_result_is_read_whole():
    """Every block of the specification, structure, error mark and `_meta` arrive as they were sent."""
    blocks = [
        {**TEXT, "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": {"a": 1}},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3},
        {"type": "resource", "resource": {"uri": "test://r", "blob": "AA=="}},
    ]
    result = read(content=blocks, structuredContent={"n": 1}, isError=True, _meta={"m": 1}, resultType="complete", x=1)
    assert result == RawResult(
        [
            TextContent("hi", annotations=Annotations(audience=["user"], priority=0.5)),
            ImageContent(data="AA==", mime_type="image/png"),
            AudioContent(data="AA==", mime_type="audio/wav", meta={"a": 1}),
            ResourceLink(uri="file:///a", name="a", size=3),
            EmbeddedResource(resource=ResourceContents(uri="test://r", blob="AA==")),
        ],
        result.structure,
        is_error=True,
        meta={"m": 1},
    )
    assert json.loads(bytes(result.structure)) == {"n": 1}


def test_another_kind_of_result_is_told_apart():
    """A server that asks something back says so in `resultType` (2026-07-28); absent means complete."""
    assert read(content=[], resultType="input_required").result_type == "input_required"
    assert read(content=[]).result_type == "complete"


@pytest.mark.parametrize("fields", [{}, {"content": None}])
def test_a_result_without_content_is_read_with_a_note(fields):
    """The letter wants `content`; users want the data (field case C02)."""
    result = read(structuredContent={"n": 1}, **fields)
    assert result.content == []
    assert bytes(result.structure) == b'{"n": 1}'
    assert result.notes == ("the result has no content, which is read as an empty list",)


def test_null_is_not_absent():
    """A structure of JSON null is a value; no structure is none (C5)."""
    assert read(content=[]).structure is ABSENT
    assert bytes(read(content=[], structuredContent=None).structure) == b"null"
    assert bytes(read(structuredContent=None).structure) == b"null"


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ({"type": "widget", "spec": {"a": 1}}, UnknownContent("widget", {"type": "widget", "spec": {"a": 1}})),
        ({"text": "no type"}, UnknownContent("", {"text": "no type"})),
        ({"type": 3}, UnknownContent("", {"type": 3})),
        ({"type": "text"}, UnknownContent("text", {"type": "text"})),
        ({"type": "text", "text": 3}, UnknownContent("text", {"type": "text", "text": 3})),
        ({"type": "resource", "resource": {"uri": "u"}}, UnknownContent("resource", {"type": "resource", "resource": {"uri": "u"}})),
        ("bare text", UnknownContent("", "bare text")),
        (None, UnknownContent("", None)),
    ],
)  # fmt: skip
def test_an_unknown_or_malformed_block_is_kept_as_it_came(block, kept):
    """One block costs that block: nothing around it is lost, and the block itself neither."""
    result = read(content=[TEXT, block, TEXT], structuredContent=1)
    assert result.content == [TextContent("hi"), kept, TextContent("hi")]
    assert len(result.notes) == 1
    assert result.notes[0].startswith("a block is kept as it came: ")


def test_a_block_loses_only_what_it_can_do_without():
    """Malformed annotations cost the annotations, not the text."""
    result = read(content=[{**TEXT, "annotations": {"priority": 7}, "_meta": [], "stray": 1}])
    assert result.content == [TextContent("hi")]
    assert len(result.notes) == 1
    assert result.notes[0].startswith("what a block of type text can do without is left out of it: ")


def test_content_that_is_no_list_is_kept():
    """A lone block in the place of a list is a block; anything else is kept as an unknown one."""
    note = "content is a list of blocks; what came instead is kept as an unknown block"
    assert (read(content=TEXT).content, read(content=TEXT).notes) == ([TextContent("hi")], (note,))
    assert read(content="text").content == [UnknownContent("", "text")]


@pytest.mark.parametrize(
    ("said", "counts"), [("false", True), (1, True), (0, False), ("", False), ([], False), (None, False)]
)
def test_an_error_mark_that_is_no_boolean_counts_if_it_is_truthy(said, counts):
    """In doubt a result is an error, and a note says what came."""
    result = read(content=[], isError=said)
    assert result.is_error is counts
    assert len(result.notes) == 1
    assert result.notes[0].endswith(f"it counts as {str(counts).lower()}")


def test_other_fields_of_a_wrong_type_are_left_out():
    """`_meta` and `resultType` of a wrong type do no harm."""
    assert read(content=[], _meta=[1], resultType=3) == RawResult(
        [],
        notes=(
            "_meta is left out, as it cannot be an array of 1",
            "resultType counts as 'complete', as it cannot be an integer (3)",
        ),
    )


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        (b"[]", "the result is not what it has to be"),
        (b"null", "the result is not what it has to be"),
        (b'"x"', "the result is not what it has to be"),
        (b"", "the result is no JSON"),
        (b'{"content":[]', "the result is no JSON"),
        (b'{"structuredContent":NaN}', "the result is no JSON"),
        (b'{"content":' + b"[" * 5000 + b"]" * 5000 + b"}", "the result is nested too deeply"),
        (b'{"content":[{"type":"text","text":"\xff"}]}', "a content block is no JSON"),
        (b'{"_meta":{"x":1e400}}', "the result's _meta is not what it has to be"),
    ],
)
def test_what_is_no_result_is_one_clear_error(raw, clause):
    """NaN, depth, wrong UTF-8, no object: each is one error that says what it is."""
    with pytest.raises(UnreadableAnswer) as caught:
        read_result(raw)
    assert str(caught.value).startswith(clause)


@pytest.mark.parametrize(
    ("structure", "clause"),
    [
        (b"1e400", "is not what it has to be: Number out of range"),
        (b'{"a":[-1e999]}', "is not what it has to be: Number out of range"),
        (b'"\xff"', "is no JSON: Invalid UTF-8"),
        (b"1" * 5000, "is not what it has to be: Integer value out of range"),
    ],
)
def test_a_structure_that_no_value_can_hold_is_one_clear_error(structure, clause):
    """What Python's numbers and texts cannot hold is never rounded or replaced (C14); the rest of the result stays."""
    raw = b'{"content":[{"type":"text","text":"disk full"}],"isError":%b,"structuredContent":%b}'
    for is_error, status in ((b"false", "uncheckable"), (b"true", "unchecked")):
        result = check_result(read_result(raw % (is_error, structure)), None, tool_name="q")
        assert (result.verdict.status, result.has_structured_content) == (status, False)
        assert result.verdict.reason.startswith(f"tool 'q', structuredContent {clause}")
        assert result.content == [TextContent("disk full")]
        assert [clause in note for note in result.notes] == [True]


def test_numbers_are_exact_and_the_last_of_two_keys_counts():
    """Integers of any size stay what they are; doubled keys are read as everywhere in Python (field case C14)."""
    raw = b'{"content":[],"structuredContent":{"id":1915883588174806058,"huge":%d,"exact":0.1,"zero":-0.0,"a":1,"a":2}}'
    value = check_result(read_result(raw % 10**40), None, tool_name="q").structured_content
    assert value == {"id": 1915883588174806058, "huge": 10**40, "exact": 0.1, "zero": 0.0, "a": 2}
    assert (type(value["id"]), type(value["huge"]), str(value["zero"])) == (int, int, "-0.0")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "data", "uri", "n", "result"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "_meta", "resultType", "x"]),
        JSON | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "x"]), "text": JSON}), max_size=3),
    )
)  # fmt: skip
def test_whatever_object_is_sent_is_a_result(fields):
    """No object makes reading or judging raise, no block is lost, and the structure arrives as it was sent."""
    raw = read(**fields)
    content = fields.get("content")
    assert len(raw.content) == (len(content) if isinstance(content, list) else 0 if content is None else 1)
    result = check_result(raw, listed(INTEGER), tool_name="q")
    assert result.has_structured_content is ("structuredContent" in fields)
    assert result.structured_content == fields.get("structuredContent")


# --- judging -------------------------------------------------------------------------------------------


def test_a_result_that_keeps_its_schema_is_valid():
    """The value, its JSON and the verdict stand in one frozen record (C2)."""
    assert check({"n": 1}, INTEGER, _meta={"m": 1}) == CheckedResult(
        content=[TextContent("hi")],
        structured_content={"n": 1},
        has_structured_content=True,
        meta={"m": 1},
        verdict=Verdict("valid"),
        structured_json=b'{"n": 1}',
    )
    with pytest.raises(AttributeError):
        check({"n": 1}, INTEGER).value = 3  # type: ignore[misc]  # frozen: that is the point


def test_a_result_that_breaks_its_schema_is_invalid_and_keeps_its_data():
    """What is wrong is in the verdict, what came in the result (field case C03)."""
    result = check({"n": "one"}, INTEGER)
    message = "n: expected an integer, got a string ('one')"
    assert result.verdict == Verdict("invalid", (VerdictProblem("/n", "an integer", "a string ('one')", message),))
    assert (result.content, result.structured_content) == ([TextContent("hi")], {"n": "one"})


def test_a_promised_structure_that_is_missing_is_absent():
    """A schema promises a structure; null is one, and judged as such (C2, C5)."""
    reason = "the tool publishes an output schema, and the result has no structuredContent"
    assert check(output=INTEGER).verdict == Verdict("absent", reason=reason)
    assert check(None, INTEGER).verdict.status == "invalid"
    nothing = check(None, {"type": "null"})
    assert (nothing.verdict.status, nothing.has_structured_content, nothing.structured_content) == ("valid", True, None)


@pytest.mark.parametrize("structure", [UNSAID, {"any": 1}, [1], "text", 0, False, None])
def test_without_a_schema_nothing_is_judged(structure):
    """Text alone, structure alone, both: fine where no schema promises more (C2)."""
    assert check(structure).verdict == Verdict("unchecked", reason="the tool publishes no output schema")


@pytest.mark.parametrize("structure", [UNSAID, {"line": 121}, {"n": 1}])
def test_an_error_is_never_judged_and_keeps_its_data(structure):
    """`isError` results are answers, whatever stands in them (B7, C2)."""
    result = check(structure, INTEGER, isError=True)
    assert result.verdict == Verdict("unchecked", reason="an error is not judged")
    assert result.has_structured_content is (structure is not UNSAID)
    assert result.structured_content == (None if structure is UNSAID else structure)


def test_an_error_is_not_unwrapped():
    """What stands in an error was put there by its author."""
    assert check({"result": 3}, WRAPPER, isError=True).structured_content == {"result": 3}


def test_a_schema_that_cannot_be_used_is_uncheckable():
    """An unknown dialect is named, the result is there (field cases C08, C19)."""
    result = check({"s": 1}, {"$schema": "https://example.com/own-dialect"})
    assert result.verdict.status == "uncheckable"
    assert result.verdict.reason.startswith(
        "tool 'q', output schema: unknown dialect, $schema is 'https://example.com/own-dialect'"
    )
    assert result.structured_content == {"s": 1}


def test_judging_can_be_left_out():
    """Not asked for, not judged; a wrapper is taken off all the same."""
    raw = read(content=[], structuredContent={"result": "no integer"})
    result = check_result(raw, listed(WRAPPER), tool_name="q", is_judged=False)
    assert result.verdict == Verdict("unchecked", reason="not asked for")
    assert result.structured_content == "no integer"


def test_a_tool_that_is_not_listed_has_nothing_to_be_judged_by():
    """Calling an unlisted tool is allowed; the verdict says why nothing was judged."""
    result = check_result(read(content=[], structuredContent=1), None, tool_name="q")
    assert result.verdict == Verdict("unchecked", reason="the server lists no such tool")


def test_a_wrapper_is_judged_as_sent_and_then_taken_off():
    """The schema speaks of the wrapper; the program gets what is in it (A20)."""
    result = check({"result": 3}, WRAPPER)
    assert (result.structured_content, result.structured_json, result.verdict) == (3, b"3", Verdict("valid"))
    broken = check({"result": "x"}, WRAPPER)
    assert broken.structured_content == "x"
    assert [problem.pointer for problem in broken.verdict.problems] == ["/result"]
    nothing = check({"result": None}, {**WRAPPER, "properties": {"result": {}}})
    assert (nothing.structured_content, nothing.has_structured_content, nothing.structured_json) == (
        None,
        True,
        b"null",
    )


@pytest.mark.parametrize("structure", [{"result": 3, "carry": True}, {"carry": True}, {}, [1], 3])
def test_what_is_not_in_a_wrapper_stays_as_it_is(structure):
    """A genuine field named result has neighbours, which are never lost (field case C21)."""
    assert check(structure, WRAPPER).structured_content == structure


def test_a_genuine_result_field_is_no_wrapper():
    """Required or alone, a field named result stays a field unless all signs agree (field case C21)."""
    schema = {"type": "object", "properties": {"result": {"type": "integer"}, "carry": {}}, "required": ["result"]}
    assert check({"result": 3}, schema).structured_content == {"result": 3}


def test_notes_name_the_tool():
    """What was wrong and did no harm can be logged as it stands."""
    result = check_result(read(structuredContent=1), None, tool_name="q")
    assert result.notes == ("tool 'q': the result has no content, which is read as an empty list",)


# --- raising -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "output", "message"),
    [
        (
            {"n": "one"},
            INTEGER,
            "tool 'q': its result does not keep its output schema: n: expected an integer, got a string ('one')",
        ),
        (
            [1, 2],
            {"items": {"type": "null"}},
            (
                "tool 'q': its result does not keep its output schema:\n- [0]: expected null, got an integer (1)\n"
                "- [1]: expected null, got an integer (2)"
            ),
        ),
        (
            UNSAID,
            INTEGER,
            (
                "tool 'q': its result lacks what its output schema promises: the tool publishes an output schema, and "
                "the result has no structuredContent"
            ),
        ),
        (
            1,
            {"$ref": "#nowhere"},
            (
                "tool 'q': its result cannot be judged by its output schema: tool 'q', output schema, at #: the "
                "reference '#nowhere' leads nowhere: the schema has no such anchor"
            ),
        ),
    ],
)
def test_a_broken_promise_is_an_error_that_loses_nothing(structure, output, message):
    """The error names tool and reason and carries verdict and whole result; marked, nothing is raised (C2)."""
    result = check(structure, output)
    with pytest.raises(ContractError) as caught:
        raise_unless_kept(result, tool_name="q", check="raise")
    assert str(caught.value) == message
    assert (caught.value.tool, caught.value.verdict, caught.value.result) == ("q", result.verdict, result)
    assert raise_unless_kept(result, tool_name="q", check="mark") is result
    assert raise_unless_kept(result, tool_name="q", check="off") is result


@pytest.mark.parametrize("result", [check({"n": 1}, INTEGER), check({"n": 1}), check(UNSAID, INTEGER, isError=True)])
def test_a_kept_promise_raises_nothing(result):
    """Valid results, errors and those without a schema pass."""
    assert raise_unless_kept(result, tool_name="q", check="raise") is result


# --- types ---------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    raw: bytes = b""


class Row(typing.TypedDict):
    raw: bytes
    day: datetime.date


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


class Everything(BaseModel):
    ts: datetime.datetime
    day: datetime.date
    at: datetime.time
    dur: datetime.timedelta
    ident: uuid.UUID
    price: decimal.Decimal
    colour: Colour
    metadata: bytes  # a name that core schemas use themselves
    own: Base64Bytes
    point: Point
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    names: set[str]
    kids: "list[Everything]" = []


EVERYTHING = {
    "ts": "2024-01-01T12:00:00Z",
    "day": "2024-01-01",
    "at": "01:02:00",
    "dur": "P1D",
    "ident": "00000000-0000-0000-0000-000000000007",
    "price": "12.50",
    "colour": "red",
    "metadata": "+/8=",
    "own": "+/8=",
    "point": {"x": 1, "raw": "+/8="},
    "pet": {"kind": "cat", "lives": 9},
    "names": ["a"],
}


def read_value(structure: Any, as_type: Any) -> Any:
    return read_as(check(structure), as_type, tool_name="q").value


def test_every_kind_a_schema_names_is_rebuilt():
    """Dates, durations, UUIDs, numbers, enums, bytes, dataclasses, unions, at every depth (C7; field case C17)."""
    one = {
        "ts": datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC),
        "day": datetime.date(2024, 1, 1),
        "at": datetime.time(1, 2),
        "dur": datetime.timedelta(days=1),
        "ident": uuid.UUID(int=7),
        "price": decimal.Decimal("12.50"),
        "colour": Colour.RED,
        "metadata": b"\xfb\xff",
        "own": b"\xfb\xff",
        "point": Point(1, b"\xfb\xff"),
        "pet": Cat(kind="cat", lives=9),
        "names": {"a"},
    }
    value = read_value({**EVERYTHING, "kids": [EVERYTHING]}, Everything)
    assert type(value) is Everything
    assert value == Everything.model_construct(**one, kids=[Everything.model_construct(**one, kids=[])])


@pytest.mark.parametrize(
    ("structure", "as_type", "value"),
    [
        (3, int, 3),
        (None, type(None), None),
        (None, int | None, None),
        ("+/8=", bytes, b"\xfb\xff"),
        ("-_8=", bytes, b"\xfb\xff"),
        ([{"x": 1}], list[Point], [Point(1)]),
        ({"raw": "+/8=", "day": "2024-01-01"}, Row, {"raw": b"\xfb\xff", "day": datetime.date(2024, 1, 1)}),
        ({"3": "P1D"}, dict[int, datetime.timedelta], {3: datetime.timedelta(days=1)}),
        ("3", int | str, "3"),
        (3, Annotated[int, Field(json_schema_extra={"examples": [3]})], 3),
        ({"any": 1}, object, {"any": 1}),
    ],
)
def test_any_type_can_be_asked_for(structure, as_type, value):
    """Scalars, containers, typed dicts of the standard library, unions, bare annotations (C7)."""
    assert read_value(structure, as_type) == value
    assert read_value(structure, as_type) == value  # by the validator that was kept


def test_the_value_of_a_wrapper_is_what_is_in_it():
    """A tool that returns an int gives an int."""
    assert read_as(check({"result": 3}, WRAPPER), int, tool_name="q").value == 3


def test_an_authors_own_setting_for_bytes_stands():
    """A model that says how its bytes are written is read so."""

    class Hexed(BaseModel, val_json_bytes="hex"):
        raw: bytes

    assert read_value({"raw": "fbff"}, Hexed).raw == b"\xfb\xff"


def test_the_rest_of_the_result_stays_with_its_value():
    """Only `value` is added."""
    result = check({"n": 1}, INTEGER)
    typed = read_as(result, dict[str, int], tool_name="q")
    assert (typed.value, typed.structured_content, typed.verdict) == ({"n": 1}, {"n": 1}, Verdict("valid"))
    assert result.value is None


def test_a_result_of_another_type_is_a_typed_error():
    """The error names the tool and every place, carries the result, and shows no secret (C7)."""

    class Login(BaseModel):
        n: int
        token: int
        more: str

    result = check({"n": "one", "token": "sesame"})
    with pytest.raises(ResultTypeMismatch) as caught:
        read_as(result, Login, tool_name="q")
    assert str(caught.value) == (
        "tool 'q': its result is not a Login: n: input should be a valid integer, unable to parse string as an "
        "integer, got a string ('one'); token: input should be a valid integer, unable to parse string as an integer, "
        "got a string; more: field required"
    )
    assert (caught.value.tool, caught.value.verdict, caught.value.result) == ("q", result.verdict, result)


def test_no_more_than_twenty_misfits_are_named():
    """A message stays readable whatever came."""
    with pytest.raises(ResultTypeMismatch, match=r"\[19\]: .*; and 480 more$"):
        read_value(["x"] * 500, list[int])


def test_a_result_without_structure_is_of_no_type():
    """Text is for the model; a type is asked of the structure."""
    with pytest.raises(ResultTypeMismatch, match="its result has no structuredContent that could be read as int"):
        read_as(check(), int, tool_name="q")


def test_an_error_comes_back_as_it_is():
    """What a tool says when it fails is not of the type it returns."""
    error = check({"line": 121}, INTEGER, isError=True)
    assert read_as(error, Everything, tool_name="q") is error


@pytest.mark.parametrize("as_type", ["nowhere", 3, object()])
def test_what_is_no_type_is_the_callers_mistake(as_type):
    """A type pydantic does not know is a plain TypeError."""
    with pytest.raises(TypeError, match="as_type: no value can be made as "):
        read_value(1, as_type)
