"""One place decides what becomes which error; in process the same as over the wire."""

import asyncio
import functools
import logging
import traceback

import pytest
from pydantic import BaseModel

from twofold import CallToolResult, Context, InvalidParams, MCPServer, ProtocolError, TextContent, ToolError


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    return block.text


async def call(function, arguments=None, **options) -> CallToolResult:
    mcp = MCPServer("s")
    mcp.add_tool(function, name="t", **options)
    return await mcp.call_tool("t", arguments)


async def test_a_result_in_process_has_both_faces():
    def t(x: int) -> int:
        return x + 1

    assert await call(t, {"x": 1}) == CallToolResult(content=[TextContent("2")], structured_content={"result": 2})


async def test_arguments_are_checked_in_process_as_over_the_wire():
    """S18: the in-process door validates like the wire."""

    def t(x: int) -> int:
        raise AssertionError("never called")

    result = await call(t, {"x": "one"})
    assert (result.is_error, result.has_structured_content) == (True, False)
    assert "'x'" in text_of(result)


async def test_an_unknown_tool_is_raised_in_process():
    mcp = MCPServer("s")
    mcp.add_tool(lambda: "x", name="search")
    with pytest.raises(InvalidParams, match="Unknown tool: 'serch'; did you mean 'search'?"):
        await mcp.call_tool("serch")


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800"])
async def test_arguments_that_are_no_json_are_a_mistake_of_the_caller(value):
    with pytest.raises(TypeError, match="tool 't', arguments"):
        await call(lambda x: "y", {"x": value})


@pytest.mark.parametrize(
    "crash",
    [
        KeyError("secret/inside"),
        SystemExit("secret/inside"),
        asyncio.CancelledError("secret/inside"),
        RecursionError("secret/inside"),
        ExceptionGroup("secret/inside", [ValueError("secret/inside")]),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_crash_gives_a_reference_that_stands_in_the_log(crash, is_async, caplog):
    """A22: its own text is not sent; the reference stands in the log beside the traceback."""

    def sync() -> str:
        raise crash

    async def asynchronous() -> str:
        raise crash

    with caplog.at_level(logging.ERROR, logger="twofold"):
        result = await call(asynchronous if is_async else sync)
    assert result.is_error
    text = text_of(result)
    assert text.startswith("Error executing tool t (reference ")
    assert "secret" not in text
    (record,) = caplog.records
    reference = text.removeprefix("Error executing tool t (reference ").removesuffix(")")
    assert reference in record.getMessage()
    assert record.exc_info[1] is crash
    steps = traceback.extract_tb(record.exc_info[2])
    assert [step.filename for step in steps[:1]] == [__file__]  # our own steps up to the author's code are left out


async def test_a_crash_shows_its_text_only_where_that_was_asked_for():
    def t() -> str:
        raise KeyError("inside")

    assert "KeyError: 'inside'" in text_of(await call(t, expose_errors=True))
    mcp = MCPServer("s", expose_errors=True)
    mcp.add_tool(t)
    mcp.add_tool(t, name="hidden", expose_errors=False)
    assert "inside" in text_of(await mcp.call_tool("t"))
    assert "inside" not in text_of(await mcp.call_tool("hidden"))


class Quote(BaseModel):
    price: int


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [(Quote, {"price": "LEAK"}, "price"), (float, float("nan"), "result"), (str, "LEAK\ud800", "result")],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_refused_result_stands_in_the_log(annotation, value, place, is_async, caplog):
    """It is a mistake of the tool's author, as a crash is: tool, place and reason are logged, once."""

    def sync():
        return value

    async def asynchronous():
        return value

    function = asynchronous if is_async else sync
    function.__annotations__["return"] = annotation
    with caplog.at_level(logging.ERROR, logger="twofold"):
        result = await call(function)
    assert result.is_error
    assert "LEAK" not in text_of(result)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("tool 't': its result was refused: ")
    assert place in record.getMessage()


async def test_the_log_has_of_a_refused_result_what_the_client_does_not_get(caplog):
    def t() -> Quote:
        return {"price": "many"}

    text = text_of(await call(t))
    assert text == "Error executing tool t: 1 validation error for Quote\nprice\n  expected an integer, got a string"
    (record,) = caplog.records
    assert record.getMessage() == (
        "tool 't': its result was refused: 1 validation error for Quote\nprice\n"
        "  Input should be a valid integer, unable to parse string as an integer "
        "[type=int_parsing, input_value='many', input_type=str]"
    )


async def test_a_tool_error_passes_its_message():
    def t() -> str:
        raise ToolError("no seat left; try tomorrow")

    assert text_of(await call(t)) == "no seat left; try tomorrow"


async def test_tool_errors_of_a_task_group_pass_their_messages():
    async def fail(message: str) -> None:
        raise ToolError(message)

    async def t() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail("one"))
            group.create_task(fail("two"))
        return ""

    assert text_of(await call(t)) == "one\ntwo"


async def test_a_protocol_error_is_raised_in_process():
    def t() -> str:
        raise ProtocolError(-5, "no")

    with pytest.raises(ProtocolError, match="no"):
        await call(t)


class Greeter:
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def greet(self, name: str) -> str:
        """Greet by method."""
        return f"{self.greeting}, {name}"

    def __call__(self, name: str) -> str:
        """Greet by call."""
        return f"{self.greeting}! {name}"


class AsyncGreeter:
    async def __call__(self, name: str) -> str:
        return f"async {name}"


def loud(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs).upper()

    return wrapper


def passing(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@loud
def hello(name: str) -> str:
    """Say hello."""
    return f"hello {name}"


@passing
async def hello_later(name: str) -> str:
    return f"later {name}"


def pair(greeting: str, name: str) -> str:
    """Greet by pair."""
    return f"{greeting} {name}"


@pytest.mark.parametrize(
    ("function", "text", "description"),
    [
        (Greeter("Hi").greet, "Hi, Ada", "Greet by method."),
        (Greeter("Hi"), "Hi! Ada", "Greet by call."),
        (AsyncGreeter(), "async Ada", None),
        (hello, "HELLO ADA", "Say hello."),
        (hello_later, "later Ada", None),
        (functools.partial(pair, "Hey"), "Hey Ada", "Greet by pair."),
        (functools.partial(pair, greeting="Hey"), "Hey Ada", "Greet by pair."),
    ],
)
async def test_any_callable_can_be_a_tool(function, text, description):
    mcp = MCPServer("s")
    mcp.add_tool(function, name="t")
    (tool,) = await mcp.list_tools()
    assert tool.description == description
    assert tool.input_schema["required"] == ["name"]
    assert text_of(await mcp.call_tool("t", {"name": "Ada"})) == text


async def test_a_sync_wrapper_round_an_async_function_keeps_its_slot_and_its_deadline():
    started, release = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        await release.wait()
        return "done"

    mcp = MCPServer("s")
    mcp.add_tool(passing(wait), name="t", max_concurrency=1)
    mcp.add_tool(passing(wait), name="short", timeout_seconds=0.01)
    first = asyncio.ensure_future(mcp.call_tool("t"))
    await started.wait()
    assert "is busy" in text_of(await mcp.call_tool("t"))
    assert "did not finish within 0.01 seconds" in text_of(await mcp.call_tool("short"))
    release.set()
    assert text_of(await first) == "done"
    assert text_of(await mcp.call_tool("t")) == "done"


async def test_a_stream_is_collected():
    async def asynchronous(count: int):
        for number in range(count):
            yield number

    def sync(count: int):
        yield from range(count)

    for function in (asynchronous, sync):
        assert [block.text for block in (await call(function, {"count": 2})).content] == ["0", "1"]


async def test_a_large_result_of_an_unproven_type_is_checked_off_the_loop():
    """The full check runs off the loop when the result is large, and still refuses."""
    from typing import Any

    class Row(BaseModel):
        value: Any
        note: str | None = None

    async def t(bad: bool) -> list[Row]:
        rows = [Row(value="x" * 100) for _ in range(2000)]
        if bad:
            rows[1234].__dict__["note"] = object()
        return rows

    good, refused = await call(t, {"bad": False}), await call(t, {"bad": True})
    assert (good.is_error, len(good.structured_content["result"])) == (False, 2000)
    assert refused.is_error
    assert refused.content[0].text.startswith("Error executing tool t: ")


async def test_progress_and_log_reach_callbacks_in_process():
    heard = []

    async def t(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info({"a": 1})
        return ""

    mcp = MCPServer("s")
    mcp.add_tool(t)
    await mcp.call_tool(
        "t", on_progress=lambda *progress: heard.append(progress), on_log=lambda *log: heard.append(log)
    )
    assert heard == [(1, 2, "half"), ("info", {"a": 1})]


async def test_meta_that_json_cannot_hold_makes_the_result_an_error():
    def t() -> CallToolResult:
        return CallToolResult(content=[TextContent("x")], meta={"a": float("nan")})

    result = await call(t)
    assert result.is_error
    assert "meta['a']" in text_of(result)


async def test_anyio_works_inside_a_tool():
    """asyncio only, through anyio where an author likes: task groups, timeouts and threads."""
    import anyio

    async def t(x: int) -> list[int]:
        squares = []

        async def square(number: int) -> None:
            squares.append(await anyio.to_thread.run_sync(lambda: number * number))

        with anyio.move_on_after(0.001):
            await anyio.sleep_forever()
        async with anyio.create_task_group() as group:
            for number in range(x):
                group.start_soon(square, number)
        return sorted(squares)

    assert (await call(t, {"x": 3})).structured_content == {"result": [0, 1, 4]}
