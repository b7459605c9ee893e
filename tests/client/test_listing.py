"""Listings: read leniently, each malformed definition by itself."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.peer import Peer
from twofold.client.decoding import UnreadableAnswer
from twofold.client.listing import ListedTool, Listing, Page, ToolListing, read_page
from twofold.contract.verdict import OutputSchema
from twofold.protocol.headers import HeaderParameter
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition
from twofold.server.mcpserver import MCPServer
from twofold.tools.describe import WRAPPED_MARK

OBJECT = {"type": "object"}


def page_of(*tools: Any, **more: Any) -> Page:
    return read_page(json.dumps({"tools": tools, **more}).encode())


def only(**fields: Any) -> ListedTool:
    """The one tool of a page, made of these fields."""
    (tool,) = page_of({"name": "q", "inputSchema": OBJECT, **fields}).tools
    return tool


# --- pages ---------------------------------------------------------------------------------------------


def test_a_page_is_read_whole():
    """Definitions, cursor and caching of a listing arrive under Python's names (2026-07-28, `ListToolsResult`)."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 1915883588174806058}}}
    page = page_of(
        {
            "name": "q",
            "title": "Q",
            "description": "Does q.",
            "inputSchema": schema,
            "outputSchema": OBJECT,
            "annotations": {"readOnlyHint": True},
            "icons": [{"src": "https://example.com/i.png", "sizes": ["48x48"]}],
            "_meta": {"a": 1},
        },
        nextCursor="2",
        ttlMs=5000,
        cacheScope="public",
        resultType="complete",
        stray=[1],
    )
    (tool,) = page.tools
    assert tool.definition == ToolDefinition(
        name="q",
        title="Q",
        description="Does q.",
        input_schema=schema,
        output_schema=OBJECT,
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon("https://example.com/i.png", sizes=["48x48"])],
        meta={"a": 1},
    )
    assert isinstance(tool.output, OutputSchema)
    assert (tool.name, tool.parameters, tool.header_fault, tool.is_wrapped, tool.notes) == ("q", (), None, False, ())
    assert (page.rejected, page.next_cursor, page.ttl_milliseconds, page.cache_scope) == ({}, "2", 5000, "public")


def test_an_earlier_revision_says_nothing_of_caching():
    """A listing of 2025-06-18 has neither lifetime nor scope."""
    assert page_of() == Page([], {})


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        (b"[]", "is not what it has to be"),
        (b"null", "is not what it has to be"),
        (b"{}", "is not what it has to be"),
        (b'{"tools": {}}', "is not what it has to be"),
        (b'{"tools": [NaN]}', "is no JSON"),
        (b'{"tools": [', "is no JSON"),
        (b'{"tools":[]}\xff', "is no JSON"),
        (b'{"tools":[],"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "is nested too deeply"),
        (b'{"tools":[],"nextCursor":"\xff"}', "the list's cursor is no JSON"),
    ],
)
def test_what_is_no_listing_is_one_clear_error(raw, clause):
    """Only what has no list of tools at all fails the listing."""
    with pytest.raises(UnreadableAnswer) as caught:
        read_page(raw)
    assert clause in str(caught.value)


@pytest.mark.parametrize(
    ("said", "lifetime"), [(0, 0), (1.5, 1), (-5, 0), ("5", None), (True, None), (None, None), ([], None)]
)
def test_a_lifetime_that_is_no_number_counts_as_unsaid(said, lifetime):
    """`ttlMs` is a whole number from zero on; anything else costs the hint, not the listing."""
    assert page_of(ttlMs=said, cacheScope=said).ttl_milliseconds == lifetime
    assert page_of(ttlMs=said, cacheScope=said).cache_scope is None


def test_a_cursor_that_is_no_text_ends_the_listing_with_a_word():
    """What cannot be read on is told, not passed over."""
    page = page_of(nextCursor=2)
    reason = "the cursor of a next page is text, got an integer (2); what follows is not read"
    assert (page.next_cursor, page.rejected) == (None, {"(next page)": reason})


# --- one malformed definition --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "key", "reason"),
    [
        ([], "(entry 2)", "a tool's definition is an object, got an array of 0"),
        (None, "(entry 2)", "a tool's definition is an object, got null"),
        ({}, "(entry 2)", "a tool's name is text that is not empty, got null"),
        ({"name": 3}, "(entry 2)", "a tool's name is text that is not empty, got an integer (3)"),
        ({"name": "", "inputSchema": {}}, "(entry 2)", "a tool's name is text that is not empty, got an empty one"),
        ({"name": "", "inputSchema": 1}, "(entry 2)", "a tool's name is text that is not empty, got a string ('')"),
        ({"name": "b"}, "b", "tool 'b': its input schema has to be an object, got nothing"),
        ({"name": "b", "inputSchema": None}, "b", "tool 'b': its input schema has to be an object, got null"),
        ({"name": "b", "inputSchema": True}, "b", "tool 'b': its input schema has to be an object, got a boolean (true)"),
        (
            {"name": "b", "inputSchema": {"type": "string"}},
            "b",
            "tool 'b': its input schema has to be of type 'object', got a string ('string')",
        ),
        (
            {"name": "b", "inputSchema": {}, "outputSchema": "object"},
            "b",
            "tool 'b': its output schema has to be an object or a boolean, got a string ('object')",
        ),
    ],
)  # fmt: skip
def test_a_malformed_definition_costs_that_tool_alone(tool, key, reason):
    """The tool is named with the reason, and the ones around it are there (issue: one malformed definition)."""
    page = page_of({"name": "good", "inputSchema": OBJECT}, tool, {"name": "other", "inputSchema": OBJECT})
    assert [each.name for each in page.tools] == ["good", "other"]
    assert page.rejected == {key: reason}


@pytest.mark.parametrize(
    "text", [b'"\xff"', b"1e400", b"[" * 900 + b"]" * 900], ids=["not UTF-8", "too large a number", "deep"]
)
def test_a_definition_that_is_no_text_costs_that_tool_alone(text):
    """Wrong UTF-8, numbers beyond Python's and deep nesting inside one definition leave the others alone."""
    good = b'{"name":"good","inputSchema":{}}'
    page = read_page(b'{"tools":[%b,{"name":"b","inputSchema":{"default":%b}}]}' % (good, text))
    rejected = {} if text.startswith(b"[") else {"(entry 2)"}
    assert set(page.rejected) == set(rejected)
    assert page.tools[0].name == "good"


def test_a_name_listed_twice_is_taken_once():
    """The first stays; the second is rejected under a name that is not the first one's."""
    page = page_of(
        {"name": "q", "title": "first", "inputSchema": OBJECT},
        {"name": "q", "title": "second", "inputSchema": OBJECT},
        {"name": "q", "inputSchema": OBJECT},
    )
    reason = "tool 'q' is listed twice; the first is taken"
    assert [tool.definition.title for tool in page.tools] == ["first"]
    assert page.rejected == {"q (2)": reason, "q (3)": reason}


@pytest.mark.parametrize("name", ["a b", "../x", "выборка", "x" * 500, "a\nb", "\u202e"])
def test_a_name_of_any_text_is_a_name(name):
    """The recommended alphabet is for servers; a client takes what there is."""
    assert [tool.name for tool in page_of({"name": name, "inputSchema": OBJECT}).tools] == [name]


@pytest.mark.parametrize(
    "schema", [{}, {"type": ["object", "null"]}, {"properties": {"x": True}}, {"$ref": "#/$defs/a", "$defs": {"a": {}}}]
)
def test_an_input_schema_need_not_say_that_it_is_an_object(schema):
    """Of what servers publish, only what certainly takes no object is refused (field case C06)."""
    assert only(inputSchema=schema).definition.input_schema == schema


@pytest.mark.parametrize(
    ("published", "kept"),
    [(True, {}), (False, {"not": {}}), ({"type": "array"}, {"type": "array"}), (None, None)],
)
def test_an_output_schema_may_have_any_root(published, kept):
    """Any JSON Schema is one (2026-07-28); the boolean ones are said as objects, null is none."""
    tool = only(outputSchema=published)
    assert tool.definition.output_schema == kept
    assert (tool.output is None) is (kept is None)


def test_a_broken_output_schema_leaves_the_tool_listed():
    """A dangling reference is found when something is to be judged by it (field case C08)."""
    output = only(outputSchema={"$ref": "#/$defs/Missing"}).output
    assert output is not None
    assert output.fault.startswith("tool 'q', output schema, at #: the reference '#/$defs/Missing' leads nowhere")


# --- what does no harm ---------------------------------------------------------------------------------


def test_a_hint_that_is_wrongly_typed_or_unknown_counts_as_unset():
    """`"readOnlyHint": "yes"` allows nothing, and the others stay (D1: wrongly typed hints count as unset)."""
    tool = only(annotations={"readOnlyHint": "yes", "destructiveHint": False, "openWorldHint": None, "madeUp": 1})
    assert tool.definition.annotations == ToolAnnotations(destructive_hint=False)
    assert tool.notes == (
        "tool 'q': the hint readOnlyHint counts as unset, as it cannot be a string ('yes')",
        "tool 'q': the hint 'madeUp' is unknown and left out",
    )


def test_a_bad_icon_costs_the_icon():
    """An icon without a source or with a stray type is left out, a stray field in a good one passed over."""
    icons = [
        {"mimeType": "image/png"},
        "x",
        {"src": "https://example.com/i", "madeUp": 1},
        {"src": "s", "theme": "red"},
    ]
    tool = only(icons=icons)
    assert tool.definition.icons == [Icon("https://example.com/i")]
    assert len(tool.notes) == 3
    assert tool.notes[0].startswith("tool 'q': an icon is left out: ")


def test_fields_of_a_wrong_type_are_left_out_one_by_one():
    """Title, description, hints, icons and `_meta` are each left out with a note, and nothing else is."""
    tool = only(title=3, description=["x"], annotations=[], icons={}, _meta="m", execution={"taskSupport": "optional"})
    assert tool.definition == ToolDefinition(name="q", input_schema=OBJECT)
    assert tool.notes == (
        "tool 'q': title is left out, as it cannot be an integer (3)",
        "tool 'q': description is left out, as it cannot be an array of 1",
        "tool 'q': annotations is left out, as it cannot be an array of 0",
        "tool 'q': icons is left out, as it cannot be an empty object",
        "tool 'q': _meta is left out, as it cannot be a string ('m')",
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "inputSchema", "outputSchema", "annotations", "icons", "_meta", "title", "src"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON | st.fixed_dictionaries({"name": st.sampled_from("abc"), "inputSchema": JSON}), max_size=4), JSON)
def test_whatever_is_listed_is_taken_or_named(tools, more):
    """Each entry of a listing is a tool or a rejection, whatever it is, and none is lost without a word."""
    page = page_of(*tools, ttlMs=more, cacheScope=more)
    assert len(page.tools) + len(page.rejected) == len(tools)


# --- headers -------------------------------------------------------------------------------------------


def marked(header: Any, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header}


def test_mirrored_parameters_are_found():
    """What a client over HTTP has to mirror stands with the tool, secrets by the server's own choice (C4)."""
    schema = {
        "type": "object",
        "properties": {
            "region": marked("Region"),
            "api_key": {**marked("Key"), "x-twofold-secret-allowed": True},
            "deep": {"type": "object", "properties": {"dry": marked("Dry", "boolean")}},
        },
    }
    tool = only(inputSchema=schema)
    assert tool.parameters == (
        HeaderParameter(("region",), "Region", "string"),
        HeaderParameter(("api_key",), "Key", "string", is_secret=True),
        HeaderParameter(("deep", "dry"), "Dry", "boolean"),
    )
    assert tool.header_fault is None
    assert tool.definition.input_schema == schema


def test_an_annotation_written_with_escapes_is_found():
    """JSON has several ways to write a key."""
    raw = rb'{"tools":[{"name":"q","inputSchema":{"properties":{"a":{"type":"string","\u0078-mcp-header":"A"}}}}]}'
    assert read_page(raw).tools[0].parameters == (HeaderParameter(("a",), "A", "string"),)


@pytest.mark.parametrize(
    ("properties", "clause"),
    [
        ({"a": marked("")}, "a header's name is text that is not empty"),
        ({"a": marked({"x": 1})}, "a header's name is text that is not empty"),
        ({"a": marked("X\r\nY: 1")}, "is no header name"),
        ({"a": marked("A", "number")}, "only a string, integer or boolean parameter can be mirrored"),
        ({"a": marked("X"), "b": marked("x")}, "is taken by 'a'"),
        ({"a": {"type": "array", "items": marked("X")}}, "it stands under 'items'"),
    ],
)
def test_a_bad_annotation_is_the_tools_fault_over_http_alone(properties, clause):
    """A client over HTTP MUST leave such a tool out and says why; any other may keep it (field case X05)."""
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": properties}}
    page = page_of(bad, {"name": "q", "inputSchema": OBJECT})
    fault = page.tools[0].header_fault
    assert fault is not None
    assert clause in fault
    assert page.tools[0].parameters == ()
    over_http = Listing.of([page], drops_bad_headers=True)
    assert ([tool.name for tool in over_http.tools], over_http.rejected) == (["q"], {"bad": fault})
    assert over_http.find("bad") is None
    assert [tool.name for tool in Listing.of([page]).tools] == ["bad", "q"]


# --- wrappers ------------------------------------------------------------------------------------------

WRAPPER = {
    "type": "object",
    "title": "qOutput",
    "properties": {"result": {"type": "integer"}},
    "required": ["result"],
}


@pytest.mark.parametrize(
    ("schema", "meta", "is_wrapped"),
    [
        (WRAPPER, None, True),
        ({**WRAPPER, "title": "anything"}, {WRAPPED_MARK: True}, True),
        ({**WRAPPER, "title": "anything"}, None, False),
        ({**WRAPPER, "title": "QOutput"}, None, False),
        ({**WRAPPER, "title": "anything"}, {WRAPPED_MARK: "yes"}, False),
        ({**WRAPPER, "required": []}, None, False),
        ({**WRAPPER, "properties": {"result": {}, "carry": {}}}, None, False),
        ({**WRAPPER, "properties": {"result": {}, "carry": {}}}, {WRAPPED_MARK: True}, False),
        ({"type": "array"}, {WRAPPED_MARK: True}, False),
        (None, {WRAPPED_MARK: True}, False),
    ],
)
def test_only_what_is_known_to_be_a_wrapper_is_one(schema, meta, is_wrapped):
    """Our mark, or title, sole property and required together; in doubt `result` is a genuine field (case C21)."""
    fields = {"outputSchema": schema} | ({} if meta is None else {"_meta": meta})
    assert only(**fields).is_wrapped is is_wrapped


@pytest.mark.parametrize(("revision", "wraps_rows"), [("2026-07-28", False), ("2025-11-25", True)])
async def test_the_wrappers_of_our_own_server_are_known(revision, wraps_rows):
    """What this package publishes is read back: wrapped where it wrapped, in either era (A20)."""
    mcp = MCPServer("shop")

    @mcp.tool(name="renamed")
    def count() -> int:
        return 1

    @mcp.tool(wrap=False)
    def rows() -> list[int]:
        return [1]

    @mcp.tool()
    def total() -> dict[str, int]:
        return {}

    async with Peer(mcp, revision) as peer:
        page = page_of(*(await peer.request("tools/list", peer.params()))["tools"])
    assert {tool.name: tool.is_wrapped for tool in page.tools} == {"renamed": True, "rows": wraps_rows, "total": False}
    assert [tool.output.fault for tool in page.tools if tool.output] == ["", "", ""]


# --- the whole listing ---------------------------------------------------------------------------------


def test_pages_are_put_together():
    """All pages are one listing: in order, each name once, as long fresh and as private as the strictest page."""
    listing = Listing.of(
        [
            page_of({"name": "a", "inputSchema": OBJECT}, {"name": "x"}, ttlMs=500, cacheScope="public"),
            page_of({"name": "b", "inputSchema": OBJECT}, {"name": "a", "inputSchema": OBJECT}, ttlMs=200),
            page_of({"name": "c", "inputSchema": OBJECT}, cacheScope="private"),
        ]
    )
    assert [tool.name for tool in listing.tools] == ["a", "b", "c"]
    assert listing.rejected == {
        "x": "tool 'x': its input schema has to be an object, got nothing",
        "a (2)": "tool 'a' is listed twice; the first is taken",
    }
    assert (listing.ttl_milliseconds, listing.cache_scope) == (200, "private")
    found = listing.find("b")
    assert found is not None
    assert found.definition is listing.tools["b"]
    assert listing.find("x") is None


def test_rejections_of_several_pages_are_all_kept():
    """Two pages may each have a nameless entry at the same place."""
    listing = Listing.of([page_of(None), page_of(3)])
    assert listing.rejected == {
        "(entry 1)": "a tool's definition is an object, got null",
        "(entry 1) (2)": "a tool's definition is an object, got an integer (3)",
    }


def test_a_listing_of_no_page_is_empty():
    """A server without tools has a listing all the same."""
    listing = Listing.of([])
    assert (list(listing.tools), listing.rejected, listing.ttl_milliseconds, listing.cache_scope) == (
        [],
        {},
        None,
        None,
    )


def test_a_tool_listing_is_gone_through_counted_and_asked_by_name():
    """`client.list_tools()` gives an object with `.tools` that is a sequence, too."""
    a, b = (ToolDefinition(name=name, input_schema={}) for name in "ab")
    listing = ToolListing([a, b])
    assert listing.tools == list(listing) == [a, b]
    assert (len(listing), listing["b"], listing[0], listing[-1], listing[:1]) == (2, b, a, b, [a])
    assert ("a" in listing, "c" in listing, a in listing) == (True, False, True)
    assert repr(listing) == "ToolListing(['a', 'b'])"
    with pytest.raises(KeyError, match="the server lists no tool 'c'; it lists a, b"):
        listing["c"]
