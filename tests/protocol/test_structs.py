"""Both spellings of every field, checked when a value is made."""

import math

import msgspec
import pytest

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


@pytest.mark.parametrize("value", [{"a": object()}, "\ud800", {1j: 2}])
def test_a_value_json_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match=r"^meta cannot be written as JSON: "):
        encode_json(value, what="meta")


def test_genuine_nulls_are_written():
    assert encode_json({"a": None, "b": "null"}, what="meta") == b'{"a":null,"b":"null"}'
