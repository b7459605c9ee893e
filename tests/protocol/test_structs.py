"""Both spellings of every field, checked when a value is made."""

import dataclasses
import datetime
import math
import re

import msgspec
import pytest
from pydantic import BaseModel, Field

from twofold.protocol.content import (
    Annotations,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    TextContent,
)
from twofold.protocol.messages import CallToolResult
from twofold.protocol.structs import encode_json
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition


def test_either_spelling_makes_the_same_value():
    """Thousands of servers write the wire's spelling; ours is snake_case."""
    assert ToolAnnotations(readOnlyHint=True) == ToolAnnotations(read_only_hint=True)
    assert TextContent(type="text", text="x", _meta={"a": 1}) == TextContent("x", meta={"a": 1})


def test_either_spelling_can_be_read():
    definition = ToolDefinition(name="t", input_schema={"type": "object"})
    assert (definition.inputSchema, definition.input_schema) == ({"type": "object"}, {"type": "object"})
    assert TextContent("x").type == "text"
    assert not hasattr(definition, "nothing")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ToolAnnotations(readOnlyHnt=True),
            "ToolAnnotations has no field 'readOnlyHnt'; did you mean 'readOnlyHint'?",
        ),
        (
            lambda: ToolAnnotations(read_only_hint="yes"),
            "ToolAnnotations: Expected `bool | null`, got `str` - at `$.readOnlyHint`",
        ),
        (TextContent, "TextContent: Object missing required field `text`"),
        (lambda: TextContent(type="image", text="x"), "TextContent: type is 'text', got 'image'"),
        (lambda: TextContent("a", text="b"), "TextContent: 'text' is given twice"),
        (
            lambda: ToolAnnotations(title="a", readOnlyHint=True, read_only_hint=True),
            "ToolAnnotations: 'read_only_hint' is given twice",
        ),
        (lambda: Icon("a", "b", ["1x1"], "dark", "more"), "Icon takes 4 values, got 5"),
        (lambda: Icon("a", theme="grey"), "Icon: Invalid enum value 'grey' - at `$.theme`"),
        (lambda: Annotations(priority=2), "Annotations: Expected `float` <= 1.0 - at `$.priority`"),
        (
            lambda: EmbeddedResource(resource={"uri": "a:b"}),
            "EmbeddedResource: resource contents have either text or blob - at `$.resource`",
        ),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    """A misspelt or wrongly typed hint is an error, at once."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message


def test_only_what_is_set_is_sent():
    """A15: what is not set is not sent."""
    assert msgspec.json.encode(ToolAnnotations(destructive_hint=False)) == b'{"destructiveHint":false}'
    assert msgspec.json.encode(ImageContent(data="aGk=", mime_type="image/png")) == (
        b'{"type":"image","data":"aGk=","mimeType":"image/png"}'
    )


def test_null_structure_is_not_absent_structure():
    """C5: null is not "absent"."""
    assert [
        CallToolResult(structured_content=None).has_structured_content,
        CallToolResult().has_structured_content,
    ] == [True, False]
    assert [
        CallToolResult(structuredContent=None).structured_content,
        CallToolResult().structured_content,
    ] == [None, None]
    assert CallToolResult(structured_content={"a": 1}).structuredContent == {"a": 1}


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        TextContent("x").text = "y"


def test_resource_contents_decode_to_the_same_value_as_they_are_made():
    made = EmbeddedResource(resource=ResourceContents(uri="a:b", blob="aGk=", mime_type="image/png"))
    assert msgspec.json.decode(msgspec.json.encode(made), type=EmbeddedResource) == made


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_where_it_stands(number):
    """No null for a number that was not one."""
    with pytest.raises(ValueError, match=r"meta\['a'\]\[1\]: NaN and infinities are no JSON numbers"):
        encode_json({"a": [None, number]}, what="meta")


class Station:
    pass


@dataclasses.dataclass
class Trip:
    stops: list


class Claiming:
    def __getattr__(self, name):
        if name == "model_dump":
            raise AttributeError(name)
        return lambda: None


class Broken:
    def model_dump(self, **_options):
        raise ValueError("LEAK")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            {"a": [1, Trip(stops=[Station()])]},
            (
                "meta['a'][1]['stops'][0] cannot be written as JSON: objects of type Station have no form in it; "
                "give JSON values, a dataclass or a pydantic model"
            ),
        ),
        (
            {"a": Claiming()},
            (
                "meta['a'] cannot be written as JSON: objects of type Claiming have no form in it; "
                "give JSON values, a dataclass or a pydantic model"
            ),
        ),
        (
            {"a": Broken()},
            "meta['a'] cannot be written as JSON: Broken.model_dump failed with a ValueError",
        ),
        (
            "LEAK\ud800",
            "meta cannot be written as JSON: '\\ud800' holds half of a surrogate pair, at character 5 of a text",
        ),
        ({"a": {1j: 2}}, "meta['a'] cannot be written as JSON: "),
    ],
)
def test_a_value_json_cannot_hold_is_refused_where_it_stands(value, told):
    """Place, kind and what to do; nothing of the value itself."""
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        encode_json(value, what="meta")


class Item(BaseModel):
    name: str = Field(alias="itemName")
    price: float = 1.5
    made: datetime.date = datetime.date(2026, 1, 31)


def test_a_model_is_written_by_its_aliases():
    """It dumps itself, wherever it stands."""
    encoded = encode_json({"items": [Item(itemName="mug")], "trip": Trip([Item(itemName="pot")])}, what="arguments")
    assert msgspec.json.decode(encoded) == {
        "items": [{"itemName": "mug", "price": 1.5, "made": "2026-01-31"}],
        "trip": {"stops": [{"itemName": "pot", "price": 1.5, "made": "2026-01-31"}]},
    }


def test_a_number_that_is_none_is_found_inside_a_model():
    with pytest.raises(ValueError, match=r"^arguments\['items'\]\[0\]\['price'\]: NaN and infinities"):
        encode_json({"items": [Item(itemName="mug", price=math.nan)]}, what="arguments")


def test_json_that_was_written_before_is_written_as_it_is():
    assert encode_json({"a": msgspec.Raw(b'{"x":null}')}, what="params") == b'{"a":{"x":null}}'


def test_genuine_nulls_are_written():
    assert encode_json({"a": None, "b": "null"}, what="meta") == b'{"a":null,"b":"null"}'


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (CallToolResult(content=[]), "CallToolResult(content=[], is_error=False, meta=None)"),
        (
            CallToolResult(content=[], structured_content=None, meta={"a": 1}),
            "CallToolResult(content=[], structured_content=None, is_error=False, meta={'a': 1})",
        ),
    ],
)
def test_a_result_shows_itself_by_the_names_it_is_read_by(made, shown):
    """What is shown can be read and given so; null is something, and nothing is nothing."""
    assert repr(made) == shown
    assert eval(shown) == made  # noqa: S307 - our own text
