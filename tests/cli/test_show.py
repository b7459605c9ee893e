"""What a person sees: tables, both faces, and nothing a terminal would obey."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from twofold import (
    CallToolResult,
    Icon,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolAnnotations,
    ToolDefinition,
)
from twofold.cli.show import block_text, describe_hints, describe_schema, neutralise, show_faces, show_tools
from twofold.protocol.content import AudioContent, EmbeddedResource, ResourceContents


def drawn(show, *args, **options) -> str:
    file = io.StringIO()
    show(*args, **options, console=Console(file=file, force_terminal=True, width=100, no_color=True, color_system=None))
    return file.getvalue()


TOOL = ToolDefinition(
    name="search",
    title="Search [red]now\x1b[2J",
    description="Find [/] things.",
    annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False),
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
        "required": ["query"],
    },
    output_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    icons=[Icon("https://example.com/i")],
)


def test_tools_are_a_table():
    """Name, title, hints, parameters and result of each tool, markup and control characters inert."""
    text = drawn(show_tools, [TOOL], name="shop", title="The [b]shop")
    assert text.splitlines() == [
        "                                   The [b]shop                                   ",
        "┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┓",
        "┃ tool                ┃ hints           ┃ parameters           ┃ result         ┃",
        "┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━┩",
        "│ search              │ read-only       │ query: string        │ {name: string} │",
        "│ Search [red]now�[2J │ not destructive │ limit?: integer = 10 │                │",
        "│ Find [/] things.    │                 │                      │                │",
        "└─────────────────────┴─────────────────┴──────────────────────┴────────────────┘",
    ]


def test_a_server_without_tools_says_so():
    """An empty table would look like a fault."""
    assert drawn(show_tools, [], name="shop[b]", title="shop[b]") == "shop[b] offers no tools\n"


def test_both_faces_stand_side_by_side():
    """What the model reads on the left, what programs get on the right."""
    result = CallToolResult(content=[TextContent("one [b]mug")], structured_content={"mugs": 1})
    text = drawn(show_faces, result)
    assert "for the model" in text
    assert "│ one [b]mug " in text
    assert '│   "mugs": 1 ' in text


def test_an_error_has_no_face_for_programs():
    """An error's text is marked, and the missing structure is said."""
    text = drawn(show_faces, CallToolResult(content=[TextContent("no mug")], is_error=True))
    assert "for the model (error)" in text
    assert "│ nothing " in text


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (TextContent("a"), "a"),
        (ImageContent(data="AAAA", mime_type="image/png"), "[image image/png, 3 bytes]"),
        (AudioContent(data="AAAAAAAA", mime_type="audio/wav"), "[audio audio/wav, 6 bytes]"),
        (ResourceLink(uri="file:///a", name="a"), "[resource a: file:///a]"),
        (EmbeddedResource(resource=ResourceContents(uri="u:a", text="hello")), "hello"),
        (EmbeddedResource(resource=ResourceContents(uri="u:a", blob="AAAA")), "[resource u:a]"),
    ],
)
def test_every_block_has_a_line(block, text):
    """What is no text is named with its type, never dumped."""
    assert block_text(block) == text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (True, "any"),
        (False, "nothing"),
        ({}, "any"),
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"const": None}, "null"),
        ({"type": "array", "items": {"type": "number"}}, "[number]"),
        ({"type": "array"}, "[any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{…: integer}"),
        ({"type": "object"}, "{}"),
        ({"$ref": "#/$defs/P", "$defs": {"P": {"type": "object", "properties": {"a": True}}}}, "{a?: any}"),
        ({"$ref": "#/$defs/Lost"}, "Lost"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "A"),
        (
            {
                "type": "object",
                "title": "Node",
                "properties": {"next": {"$ref": "#/$defs/N"}},
                "$defs": {"N": {"type": "object", "title": "N", "properties": {"next": {"$ref": "#/$defs/N"}}}},
            },
            "{next?: {next?: {next?: N}}}",
        ),
    ],
)
def test_a_schema_is_one_line(schema, text):
    """Types are named as a programmer would write them; what goes on for ever is cut."""
    assert describe_schema(schema, schema) == text


def test_only_hints_that_are_set_are_said():
    """A hint nobody set is not invented."""
    assert describe_hints(None) == []
    hints = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)
    assert describe_hints(hints) == ["changes things", "destructive", "idempotent", "open world"]


@given(st.text() | st.sampled_from(["\x1b[2J", "\x9b31m", "a\u202eb", "\ud800", "\u2028", "\r", "ok\n\tok"]))
def test_nothing_a_terminal_would_obey_is_left(text):
    """Control and direction characters and halves of surrogates are replaced, one for one; the rest stays."""
    shown = neutralise(text)
    assert len(shown) == len(text)
    shown.encode()
    assert all(char in "\n\t" or (ord(char) >= 32 and not 0x7F <= ord(char) <= 0x9F) for char in shown)
    assert all(new in {old, "\ufffd"} for old, new in zip(text, shown, strict=True))
