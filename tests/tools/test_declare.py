"""Options of a tool, each checked when it is declared, each on the wire."""

import inspect
import warnings

import pytest

from twofold import (
    Context,
    DefinitionWarning,
    Icon,
    InvalidDefinition,
    InvalidSignature,
    MCPServer,
    ToolAnnotations,
    ToolDefinition,
)
from twofold.tools.declare import Tool, ToolOptions


def t(x: int) -> str:
    """Do it.

    Args:
        x: How often.
    """
    return str(x)


async def list_one(**options) -> ToolDefinition:
    mcp = MCPServer("s")
    mcp.add_tool(t, **options)
    (definition,) = await mcp.list_tools()
    return definition


async def test_a_function_is_all_it_takes():
    """A1: name from the function, description from the docstring, schema from the hints."""
    definition = await list_one()
    assert (definition.name, definition.description) == ("t", "Do it.")
    assert definition.input_schema["properties"] == {
        "x": {"title": "X", "type": "integer", "description": "How often."}
    }
    assert (definition.title, definition.annotations, definition.icons) == (None, None, None)


@pytest.mark.parametrize("bare", [True, False])
def test_the_decorator_works_with_and_without_brackets_and_leaves_the_function(bare):
    mcp = MCPServer("s")
    assert (mcp.tool(t) if bare else mcp.tool()(t)) is t


async def test_every_option_reaches_the_definition():
    """A15."""
    icon = Icon("https://example.com/i.png")
    definition = await list_one(
        name="n",
        title="T",
        description="D",
        icons=[icon],
        meta={"a": 1},
        annotations=ToolAnnotations(read_only_hint=True),
    )
    assert (definition.name, definition.title, definition.description) == ("n", "T", "D")
    assert (definition.icons, definition.annotations) == ([icon], ToolAnnotations(read_only_hint=True))
    assert definition.meta == {"a": 1, "twofold/wrapped": True}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"titel": "x"}, TypeError, "a tool has no option 'titel'; did you mean 'title'?"),
        ({"name": ""}, InvalidDefinition, None),
        ({"name": "a\nb"}, InvalidDefinition, None),
        ({"timeout_seconds": 0}, InvalidDefinition, "tool 't', timeout_seconds: expected a positive number, got 0"),
        (
            {"timeout_seconds": float("nan")},
            InvalidDefinition,
            "tool 't', timeout_seconds: expected a positive number, got nan",
        ),
        ({"timeout_seconds": "5"}, InvalidDefinition, "tool 't', timeout_seconds: expected a positive number, got '5'"),
        (
            {"max_concurrency": 0},
            InvalidDefinition,
            "tool 't', max_concurrency: expected a positive whole number, got 0",
        ),
        (
            {"max_concurrency": True},
            InvalidDefinition,
            "tool 't', max_concurrency: expected a positive whole number, got True",
        ),
        (
            {"rate_limit": "often"},
            InvalidDefinition,
            "rate_limit: expected '5/s', '100/min', '1000/hour' or RateLimit(…), got 'often'",
        ),
        (
            {"unknown_arguments": "drop"},
            InvalidDefinition,
            "unknown_arguments: expected 'refuse' or 'ignore', got 'drop'",
        ),
        (
            {"meta": {"a": float("nan")}},
            InvalidDefinition,
            "tool 't', meta['a']: NaN and infinities are no JSON numbers; send null or text on purpose",
        ),
        ({"icons": [Icon("file:///x.png")]}, InvalidDefinition, None),
        ({"annotations": {"readOnlyHnt": True}}, Exception, None),
    ],
)
def test_an_option_that_cannot_be_published_is_refused_at_once(options, error, message):
    with pytest.raises(error) as caught:
        MCPServer("s").add_tool(t, **options)
    if message is not None:
        assert str(caught.value) == message


@pytest.mark.parametrize("function", [5, "t", None])
def test_what_is_no_function_is_refused(function):
    with pytest.raises(TypeError):
        MCPServer("s").add_tool(function)


def test_a_name_given_in_the_place_of_the_function_is_explained():
    with pytest.raises(TypeError, match="give the name as name='search'"):
        MCPServer("s").tool("search")


def test_a_class_is_no_tool():
    with pytest.raises(InvalidSignature):
        MCPServer("s").add_tool(Tool)


def test_a_lambda_needs_a_name():
    with pytest.raises(InvalidDefinition, match="name="):
        MCPServer("s").add_tool(lambda: "x")


def test_an_unusual_name_is_served_with_one_warning_that_names_it():
    """A16, N01."""
    mcp = MCPServer("s")
    with pytest.warns(DefinitionWarning, match="my tool") as caught:
        mcp.add_tool(t, name="my tool")
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_good_name_is_not_complained_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCPServer("s").add_tool(t, name="A-good.name_1")


def test_hints_that_contradict_each_other_are_a_warning_and_an_error_under_strict():
    """A15."""
    hints = ToolAnnotations(read_only_hint=True, destructive_hint=True)
    with pytest.warns(DefinitionWarning, match="destructive"):
        MCPServer("s").add_tool(t, annotations=hints)
    with pytest.raises(InvalidDefinition, match="destructive"):
        MCPServer("s", strict=True).add_tool(t, annotations=hints)


async def test_the_context_parameter_is_no_part_of_the_schema():
    def with_context(x: int, anything: Context) -> str:
        return ""

    mcp = MCPServer("s")
    mcp.add_tool(with_context)
    (definition,) = await mcp.list_tools()
    assert list(definition.input_schema["properties"]) == ["x"]


def test_each_option_is_listed_once():
    """`ToolOptions` is the one list: no signature repeats it."""
    for method in (MCPServer.tool, MCPServer.add_tool):
        names = set(inspect.signature(method).parameters)
        assert not names & set(ToolOptions.__annotations__)


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"page_size": 0},
        {"list_ttl_seconds": -1},
        {"list_scope": "all"},
        {"unknown_arguments": "drop"},
        {"text": "compct"},
        {"text": "{name}"},
        {"title": 5},
        {"title": "\ud800"},
        {"instructions": 5},
        {"instructions": "\ud800"},
        {"version": 1},
        {"page_size": "5"},
        {"page_size": 1.5},
        {"list_ttl_seconds": float("inf")},
        {"name": "x\ud800"},
        {"icons": [Icon("http://a/b.png")]},
    ],
)
def test_a_server_that_cannot_be_published_is_refused(options):
    with pytest.raises(InvalidDefinition):
        MCPServer(**{"name": "s", **options})


def test_an_unknown_transport_is_refused():
    with pytest.raises(ValueError, match="there are 'stdio' and 'streamable-http'"):
        MCPServer("s").run("carrier pigeon")


async def test_a_schema_by_hand_stays_as_it_was_declared():
    """A26: published to the letter, enforced; what the author or a caller does with the dicts later changes nothing."""
    output_schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    input_schema = {"type": "object", "properties": {}}
    mcp = MCPServer("s")
    mcp.add_tool(lambda arguments: {"n": 1}, name="t", input_schema=input_schema, output_schema=output_schema)
    output_schema["required"].append("m")
    input_schema["required"] = ["x"]
    (listed,) = await mcp.list_tools()
    listed.output_schema["required"].append("o")
    (again,) = await mcp.list_tools()
    assert (again.input_schema, again.output_schema["required"]) == ({"type": "object", "properties": {}}, ["n"])
    assert (await mcp.call_tool("t")).structured_content == {"n": 1}
