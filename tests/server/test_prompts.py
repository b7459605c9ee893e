"""Prompts: offered, listed, filled in, announced, in every revision; every answer is judged by the official types.

Source: MCP 2026-07-28, Prompts.
"""

import asyncio
import functools
import json
import logging
import re
import threading
from collections.abc import Mapping
from typing import Annotated

import pytest
from pydantic import Field

from tests.peer import HANDSHAKE, PER_REQUEST, REVISIONS, Peer, Refused
from twofold import (
    AudioContent,
    Context,
    DefinitionWarning,
    Icon,
    Image,
    InvalidDefinition,
    InvalidSignature,
    MCPServer,
    MissingRequiredClientCapability,
    PromptMessage,
    ProtocolError,
    ResourceLink,
    TextContent,
    ToolError,
)
from twofold.transports.exchange import LineExchange

ICON = Icon("https://example.com/i.png", mime_type="image/png")
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def make_server(**options) -> MCPServer:
    mcp = MCPServer("s", **options)

    @mcp.prompt(title="Review", icons=[ICON], meta={"a": 1})
    def review(
        code: Annotated[str, Field(title="Code", description="What to review.")],
        style: str | None,
        tone: str = "dry",
    ) -> str:
        """Ask for a review.

        :param style: Whose style.
        """
        return f"{code}|{style}|{tone}"

    @mcp.prompt
    async def greet():
        return [PromptMessage(role="assistant", content=TextContent("Hello")), "Hi"]

    return mcp


def said(text: str, role: str = "user") -> dict:
    return {"role": role, "content": {"type": "text", "text": text}}


def methods_of(peer: Peer) -> list[str]:
    return [message["method"] for message in peer.notifications]


async def refusal_of(answer) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        await answer
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_prompt_is_listed_with_what_the_revision_can_carry(revision):
    """`Prompt`: title from 2025-06-18 on, icons from 2025-11-25 on; a text that may be None is not required."""
    async with Peer(make_server(), revision) as peer:
        page = await peer.request("prompts/list", peer.params())
    title = {"title": "Review", "_meta": {"a": 1}} if revision >= "2025-06-18" else {}
    icons = {"icons": [{"src": "https://example.com/i.png", "mimeType": "image/png"}]}
    code_title = {"title": "Code"} if revision >= "2025-06-18" else {}
    assert page["prompts"] == [
        {
            "name": "review",
            "description": "Ask for a review.",
            "arguments": [
                {"name": "code", "description": "What to review.", **code_title, "required": True},
                {"name": "style", "description": "Whose style."},
                {"name": "tone"},
            ],
            **title,
            **(icons if revision >= "2025-11-25" else {}),
        },
        {"name": "greet"},
    ]
    assert ("ttlMs" in page, "cacheScope" in page) == (revision == PER_REQUEST,) * 2


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"code": "x", "style": "mine", "tone": "warm"}, "x|mine|warm"),
        ({"code": "5", "style": "null"}, "5|null|dry"),
        ({"code": ""}, "|None|dry"),
    ],
)
async def test_texts_arrive_as_they_were_sent(revision, arguments, text):
    """`GetPromptRequest`: arguments are texts; what is left out is the function's default, or None."""
    async with Peer(make_server(), revision) as peer:
        result = await peer.get_prompt("review", arguments)
    assert (result["description"], result["messages"]) == ("Ask for a review.", [said(text)])
    assert ("resultType" in result) is (revision == PER_REQUEST)


@pytest.mark.parametrize("arguments", [None, {}])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_prompt_without_arguments_needs_none(revision, arguments):
    """`GetPromptRequest`: arguments are optional; a `PromptMessage` says who speaks, else it is the user."""
    async with Peer(make_server(), revision) as peer:
        result = await peer.get_prompt("greet", arguments)
        assert result["messages"] == [said("Hello", "assistant"), said("Hi")]
        params = peer.params({"name": "greet", "arguments": None})
        assert (await peer.request("prompts/get", params))["messages"] == result["messages"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "prompts/get: params.name is missing; it names the prompt"),
        ({"name": "reveiw"}, "Unknown prompt: 'reveiw'; did you mean 'review'?"),
        ({"name": 5}, "prompts/get: the params do not fit: Expected `str`, got `int` - at `$.name`"),
        (
            {"name": "review", "arguments": [1]},
            "prompt 'review': the arguments are no object of texts: Expected `object`, got `array`",
        ),
        (
            {"name": "review", "arguments": {"style": 5, "codes": "x", "tone": None}},
            (
                "prompt 'review': 4 problems with the arguments\n"
                "- argument 'codes': unknown; did you mean 'code'? allowed: code, style, tone\n"
                "- argument 'code': missing; expected a string\n"
                "- argument 'style': expected a string, got a number; send text, or leave it out\n"
                "- argument 'tone': expected a string, got null; send text, or leave it out"
            ),
        ),
        (
            {"name": "review", "arguments": {"code": {"a": 1}, "style": None}},
            (
                "prompt 'review': 2 problems with the arguments\n"
                "- argument 'code': expected a string, got an object; send text\n"
                "- argument 'style': expected a string, got null; send text, or leave it out"
            ),
        ),
        (
            {"name": "greet", "arguments": {"x": True}},
            "prompt 'greet', argument 'x': unknown; none is allowed here",
        ),
    ],
)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_does_not_fit_is_refused_with_all_that_is_wrong(revision, params, message):
    """Prompts, "Error Handling": an invalid name or missing arguments are -32602."""
    async with Peer(make_server(), revision) as peer:
        assert await refusal_of(peer.request("prompts/get", peer.params(params))) == (-32602, message)


async def test_large_and_numerous_wrong_arguments_are_refused_in_bounds():
    """Messages are bounded, whatever is sent."""
    async with Peer(make_server()) as peer:
        code, message = await refusal_of(peer.get_prompt("review", {f"a{n}" * 9: "x" for n in range(5000)}))
        assert (code, message.endswith("\n- and more"), len(message) < 5000) == (-32602, True, True)
        large = await peer.get_prompt("review", {"code": "x" * 200_000})
        assert large["messages"] == [said("x" * 200_000 + "|None|dry")]


async def test_a_constraint_of_a_field_is_enforced():
    """What an author says of a parameter holds."""
    mcp = MCPServer("s")

    @mcp.prompt()
    def short(word: Annotated[str, Field(max_length=3, alias="text")]) -> str:
        return word

    async with Peer(mcp) as peer:
        assert (await peer.get_prompt("short", {"text": "abc"}))["messages"] == [said("abc")]
        assert await refusal_of(peer.get_prompt("short", {"text": "abcd"})) == (
            -32602,
            "prompt 'short', argument 'text': expected at most 3 characters, got a string ('abcd')",
        )


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        ([], []),
        ("", [said("")]),
        (("a", "b"), [said("a"), said("b")]),
        (TextContent("t"), [said("t")]),
        (
            Image(b"x", format="png"),
            [{"role": "user", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}}],
        ),
        (
            [PromptMessage(role="assistant", content=AudioContent(data="eA==", mimeType="audio/wav"))],
            [{"role": "assistant", "content": {"type": "audio", "data": "eA==", "mimeType": "audio/wav"}}],
        ),
    ],
)
async def test_what_a_prompt_returns_becomes_messages(returned, messages):
    """`PromptMessage`: a role and one content block."""
    mcp = MCPServer("s")
    mcp.add_prompt(lambda: returned, name="p")
    async with Peer(mcp) as peer:
        assert (await peer.get_prompt("p"))["messages"] == messages


@pytest.mark.parametrize("revision", REVISIONS)
async def test_blocks_a_revision_lacks_are_restated(revision):
    """`PromptMessage` of each revision: nothing of a message is lost."""
    mcp = MCPServer("s")
    mcp.add_prompt(
        lambda: [ResourceLink(uri="file:///a", name="a"), AudioContent(data="eA==", mime_type="audio/wav")], name="p"
    )
    async with Peer(mcp, revision) as peer:
        result = await peer.get_prompt("p")
    kinds = [message["content"]["type"] for message in result["messages"]]
    assert kinds == [
        "resource_link" if revision >= "2025-06-18" else "text",
        "audio" if revision > "2024-11-05" else "resource",
    ]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (5, "messages[0]: expected text, a content block or a PromptMessage, got an int"),
        (None, "messages[0]: expected text, a content block or a PromptMessage, got a NoneType"),
        (["a", ["b"]], "messages[1]: expected text, a content block or a PromptMessage, got a list"),
        ({"role": "user"}, "messages[0]: expected text, a content block or a PromptMessage, got a dict"),
        (
            TextContent("a", meta={"n": float("nan")}),
            "messages[0]['content']['_meta']['n']: NaN and infinities are no JSON numbers",
        ),
        ("\ud800", "messages[0] cannot be written as JSON: '\\ud800' holds half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_what_is_no_message_never_leaves(returned, told, is_async, caplog):
    """Prompts, "Security": outputs are validated; the author finds the place in the log."""
    mcp = MCPServer("s")

    async def give():
        return returned

    mcp.add_prompt(give if is_async else lambda: returned, name="p")
    async with Peer(mcp) as peer:
        code, message = await refusal_of(peer.get_prompt("p"))
    assert (code, message.startswith(f"Error getting prompt 'p': {told}")) == (-32603, True), message
    assert_reference_is_logged(message, caplog)


def assert_reference_is_logged(message: str, caplog) -> None:
    reference = re.search(r"\(reference ([0-9a-f]{8})\)\Z", message)
    assert reference is not None, message
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.getMessage() == f"prompt 'p' crashed, reference {reference[1]}"
    assert record.exc_info is not None


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("expose_errors", [True, False])
@pytest.mark.parametrize(
    "failure", [RuntimeError("secret"), SystemExit("secret"), ExceptionGroup("secret", [KeyError("k")])]
)
async def test_a_crash_is_a_reference_and_its_text_stays_here(failure, expose_errors, is_async, caplog):
    """Prompts, "Error Handling": internal errors are -32603; a crash's text goes out only where the server says so."""
    mcp = MCPServer("s", expose_errors=expose_errors)

    async def crash():
        raise failure

    def crash_in_thread():
        raise failure

    mcp.add_prompt(crash if is_async else crash_in_thread, name="p")
    async with Peer(mcp) as peer:
        code, message = await refusal_of(peer.get_prompt("p"))
        assert (code, "secret" in message) == (-32603, expose_errors)
        assert message.startswith(
            f"Error getting prompt 'p'{f': {type(failure).__name__}: secret' if expose_errors else ' (reference '}"
        )
        assert_reference_is_logged(message, caplog)
        assert (await peer.request("prompts/list", peer.params()))["prompts"] == [{"name": "p"}]


@pytest.mark.parametrize(
    ("failure", "refusal"),
    [
        (ProtocolError(7, "as asked"), (7, "as asked")),
        (
            MissingRequiredClientCapability({"sampling": {}}),
            (-32021, "the client does not declare what this needs: 'sampling'"),
        ),
        (ToolError("the archive is closed"), (-32603, "the archive is closed")),
        (ExceptionGroup("g", [ToolError("no"), ExceptionGroup("h", [ProtocolError(7, "inner")])]), (7, "inner")),
        (ExceptionGroup("g", [ValueError("x"), ToolError("no")]), (-32603, "no")),
    ],
)
async def test_an_error_meant_for_the_client_is_told(failure, refusal, caplog):
    """A `ProtocolError` passes as it is; a `ToolError` is meant to be read."""
    mcp = MCPServer("s")

    @mcp.prompt
    async def p():
        raise failure

    async with Peer(mcp) as peer:
        assert await refusal_of(peer.get_prompt("p")) == refusal
    assert caplog.records == []


async def test_a_plain_function_runs_in_a_thread_and_holds_up_nothing():
    """T05, for prompts."""
    mcp = make_server()
    release = threading.Event()

    @mcp.prompt()
    def slow() -> str:
        release.wait(20)
        return threading.current_thread().name

    async with Peer(mcp) as peer:
        waiting = peer.send("prompts/get", peer.params({"name": "slow"}))
        assert (await peer.get_prompt("greet"))["messages"] == [said("Hello", "assistant"), said("Hi")]
        assert not waiting.done()
        release.set()
        assert (await waiting)["result"]["messages"] == [said("twofold-0")]


async def test_a_cancelled_request_stops_the_function_and_is_not_answered():
    """Cancellation: free the resources, send no response."""
    mcp = MCPServer("s")
    started, stopped = asyncio.Event(), asyncio.Event()

    @mcp.prompt()
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with Peer(mcp) as peer:
        waiting = peer.send("prompts/get", peer.params({"name": "wait"}), id="w")
        await started.wait()
        peer.notify("notifications/cancelled", {"requestId": "w"})
        await stopped.wait()
        await peer.request("prompts/list", peer.params())
        assert not waiting.done()


async def test_a_prompt_may_ask_for_its_context():
    """Progress and log messages go to the request's own client, and nothing follows the answer."""
    mcp = MCPServer("s")
    kept = []

    @mcp.prompt()
    async def told(ctx: Context, name: str) -> str:
        kept.append(ctx)
        await ctx.report_progress(1, 2)
        await ctx.warning("looked")
        return f"{name} {ctx.tool_name} {ctx.protocol_version}"

    async with Peer(mcp) as peer:
        assert (await peer.request("prompts/list", peer.params()))["prompts"] == [
            {"name": "told", "arguments": [{"name": "name", "required": True}]}
        ]
        result = await peer.get_prompt("told", {"name": "Ada"}, progressToken=1, logLevel="info")
        assert result["messages"] == [said(f"Ada told {PER_REQUEST}")]
        await kept[0].warning("late")
        assert [message["params"] for message in peer.notifications] == [
            {"progressToken": 1, "progress": 1, "total": 2},
            {"level": "warning", "data": "looked", "logger": "told"},
        ]


class Greeter:
    def method(self, name: str) -> str:
        return f"method {name}"

    def __call__(self, name: str) -> str:
        return f"object {name}"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (Greeter().method, "method Ada"),
        (Greeter(), "object Ada"),
        (functools.partial(lambda greeting, name, /: f"{greeting} {name}", "Hello"), None),
        (functools.partial(lambda greeting, name: "", "Hello"), None),
    ],
)
async def test_any_callable_of_texts_can_be_a_prompt(function, text):
    """As for tools; a lambda cannot say that it takes texts."""
    mcp = MCPServer("s")
    if text is None:
        with pytest.raises(InvalidSignature, match="parameter 'name': .* got no annotation"):
            mcp.add_prompt(function, name="p")
        return
    mcp.add_prompt(function, name="p")
    async with Peer(mcp) as peer:
        assert (await peer.get_prompt("p", {"name": "Ada"}))["messages"] == [said(text)]


async def test_a_parameter_by_position_only_is_filled():
    mcp = MCPServer("s")

    @mcp.prompt()
    def pair(first: str, second: str | None, /, third: str = "c") -> str:
        return f"{first}{second}{third}"

    async with Peer(mcp) as peer:
        assert (await peer.get_prompt("pair", {"first": "a"}))["messages"] == [said("aNonec")]


def with_number(n: int) -> str: ...
def with_optional_number(n: int | None = None) -> str: ...
def with_union(n: str | int) -> str: ...
def with_list(n: list[str]) -> str: ...
def with_bytes(n: Annotated[bytes, Field(description="d")]) -> str: ...
def with_nothing(n) -> str: ...
def with_none(n: None) -> str: ...
def with_any_positions(*n: str) -> str: ...
def with_any_names(**n: str) -> str: ...


@pytest.mark.parametrize(
    ("function", "parameter", "got"),
    [
        (with_number, "n", "int"),
        (with_optional_number, "n", "int | None"),
        (with_union, "n", "str | int"),
        (with_list, "n", "list[str]"),
        (with_bytes, "n", "Annotated[bytes, "),
        (with_nothing, "n", "no annotation"),
        (with_none, "n", "None"),
        (with_any_positions, "*n", "str"),
        (with_any_names, "**n", "str"),
    ],
)
def test_a_parameter_that_is_no_text_is_refused_at_registration(function, parameter, got):
    """`GetPromptRequest`: arguments are texts, so that a function of anything else could never be called."""
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("s").add_prompt(function)
    opening = (
        f"function {function.__name__!r}, parameter '{parameter}': the arguments of a prompt are texts; "
        f"expected str or str | None, got "
    )
    assert str(caught.value).startswith(opening)
    assert got in str(caught.value).removeprefix(opening)


def p() -> str:
    return "p"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": ""}, InvalidDefinition, "a prompt's name is empty"),
        ({"name": 5}, InvalidDefinition, "a prompt's name is text, got"),
        ({"name": "a\nb"}, InvalidDefinition, "prompt 'a\\nb': its name has a control character"),
        (
            {"title": 5},
            InvalidDefinition,
            "prompt 'p' cannot be published: PromptDefinition: Expected `str | null`, got `int`",
        ),
        ({"description": "\ud800"}, InvalidDefinition, "prompt 'p' cannot be published: "),
        (
            {"icons": [Icon("http://x")]},
            InvalidDefinition,
            "prompt 'p', icon 1: only https: and data: sources are allowed",
        ),
        (
            {"meta": {"a": float("nan")}},
            InvalidDefinition,
            "prompt 'p' cannot be published: its definition['_meta']['a']: NaN",
        ),
        ({"meta": [("a", 1)]}, InvalidDefinition, "prompt 'p', meta: expected a mapping, got list"),
        ({"titel": "P"}, TypeError, "a prompt has no option 'titel'; did you mean 'title'?"),
    ],
)
def test_an_option_that_cannot_be_published_is_refused(options, error, message):
    """A16, A17: the same checks as for tools."""
    with pytest.raises(error) as caught:
        MCPServer("s").add_prompt(p, **options)
    assert str(caught.value).startswith(message)


def test_what_is_no_function_is_refused():
    mcp = MCPServer("s")
    with pytest.raises(TypeError, match="a prompt is made of a function, got a value of type int"):
        mcp.add_prompt(5)
    with pytest.raises(InvalidSignature, match="is a class"):
        mcp.add_prompt(Greeter)
    with pytest.raises(InvalidDefinition, match="a lambda has no name of its own; give the prompt one with name="):
        mcp.add_prompt(lambda: "x")
    with pytest.raises(TypeError, match="give the name as name='x'"):
        mcp.prompt("x")
    with pytest.warns(DefinitionWarning, match="prompt 'my prompt': its name is outside the recommended"):
        mcp.add_prompt(p, name="my prompt")


def test_a_name_that_is_taken_is_refused_and_a_missing_one_cannot_go():
    """A16; prompts and tools have names of their own."""
    mcp = MCPServer("s")
    mcp.add_tool(p)
    mcp.add_prompt(p)
    with pytest.raises(
        InvalidDefinition,
        match=re.escape("prompt 'p' is there already; give this one another name=, or remove_prompt('p') first"),
    ):
        mcp.add_prompt(p)
    with pytest.raises(KeyError, match="no prompt 'review'"):
        mcp.remove_prompt("review")
    mcp.remove_prompt("p")
    mcp.add_prompt(p)


def test_a_decorated_function_stays_as_it_is():
    mcp = MCPServer("s")
    assert mcp.prompt()(p) is p
    assert mcp.prompt(name="q")(p) is p


def test_a_message_takes_both_spellings_and_refuses_others():
    """`PromptMessage` is a value of the wire: checked when it is made."""
    content = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    assert PromptMessage(role="user", content=content).content.mime_type == "image/png"
    for wrong in ({"role": "system", "content": TextContent("x")}, {"role": "user", "content": "x"}, {"role": "user"}):
        with pytest.raises(TypeError, match="PromptMessage: "):
            PromptMessage(**wrong)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_pages_hold_every_prompt_once_in_the_order_they_were_added(revision):
    """Pagination, for prompts; cursors are stable while prompts come and go."""
    mcp = MCPServer("s", page_size=2)
    for number in range(5):
        mcp.add_prompt(p, name=f"p{number}")
    async with Peer(mcp, revision) as peer:
        first = await peer.request("prompts/list", peer.params())
        mcp.remove_prompt("p1")
        second = await peer.request("prompts/list", peer.params({"cursor": first["nextCursor"]}))
        third = await peer.request("prompts/list", peer.params({"cursor": second["nextCursor"]}))
        assert [[each["name"] for each in page["prompts"]] for page in (first, second, third)] == [
            ["p0", "p1"],
            ["p2", "p3"],
            ["p4"],
        ]
        assert "nextCursor" not in third
        assert (await refusal_of(peer.request("prompts/list", peer.params({"cursor": "nonsense"}))))[0] == -32602


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["prompts/list", "prompts/get"])
async def test_a_server_that_never_had_a_prompt_has_no_methods_for_them(revision, method):
    """Capabilities: what is not declared does not exist, -32601."""
    async with Peer(MCPServer("s"), revision) as peer:
        params = peer.params({"name": "p"} if method == "prompts/get" else {})
        assert await refusal_of(peer.request(method, params)) == (
            -32601,
            f"method {method!r} is not served in revision {revision}",
        )
        if revision == PER_REQUEST:
            assert await refusal_of(peer.request(method, {})) == (
                -32601,
                f"method {method!r} is not served in any revision",
            )
            assert "prompts" not in (await peer.request("server/discover"))["capabilities"]
        else:
            assert "prompts" not in peer.opening["capabilities"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_that_once_had_a_prompt_declares_and_lists_none(revision):
    """Capabilities: a set of prompts may be empty; a client is told when there is one again."""
    mcp = MCPServer("s")
    mcp.add_prompt(p)
    mcp.remove_prompt("p")
    async with Peer(mcp, revision) as peer:
        opening = await peer.request("server/discover") if revision == PER_REQUEST else peer.opening
        assert opening["capabilities"] == {
            "tools": {"listChanged": True},
            "logging": {},
            "prompts": {"listChanged": True},
        }
        assert (await peer.request("prompts/list", peer.params()))["prompts"] == []
        assert await refusal_of(peer.get_prompt("p")) == (-32602, "Unknown prompt: 'p'")


async def test_a_subscription_is_told_of_the_lists_it_asked_for_each_once():
    """2026-07-28, subscriptions: only what was agreed to; many changes at once are told once."""
    mcp = make_server()
    async with Peer(mcp) as peer:
        for wanted in (["prompts"], ["tools"], ["tools", "prompts"]):
            asked = {f"{each}ListChanged": True for each in wanted}
            peer.send("subscriptions/listen", peer.params({"notifications": asked}), id="+".join(wanted))
        await asyncio.sleep(0)
        assert [message["params"]["notifications"] for message in peer.notifications] == [
            {"promptsListChanged": True},
            {"toolsListChanged": True},
            {"toolsListChanged": True, "promptsListChanged": True},
        ]
        peer.notifications.clear()
        mcp.add_prompt(p)
        mcp.remove_prompt("p")
        await asyncio.to_thread(mcp.add_tool, p)
        await peer.request("prompts/list", peer.params())
        assert [(message["method"], message["params"]["_meta"][SUBSCRIPTION]) for message in peer.notifications] == [
            ("notifications/prompts/list_changed", "prompts"),
            ("notifications/prompts/list_changed", "tools+prompts"),
            ("notifications/tools/list_changed", "tools"),
            ("notifications/tools/list_changed", "tools+prompts"),
        ]


@pytest.mark.parametrize("wanted", [{"promptsListChanged": True}, {"promptsListChanged": False}, {}])
async def test_what_is_not_offered_is_not_agreed_to_and_still_acknowledged(wanted):
    """2026-07-28, subscriptions: the acknowledgement says what was agreed to."""
    mcp = MCPServer("s")
    async with Peer(mcp) as peer:
        peer.send("subscriptions/listen", peer.params({"notifications": wanted}), id="sub")
        mcp.add_prompt(p)
        await peer.request("prompts/list", peer.params())
        assert [message["params"] for message in peer.notifications] == [
            {"_meta": {SUBSCRIPTION: "sub"}, "notifications": {}}
        ]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_is_told_of_prompts_if_it_was_told_that_there_are_some(revision):
    """List changed notification: from servers that declared it, and from no other."""
    later, sooner = MCPServer("s"), make_server()
    for mcp, told in [(later, []), (sooner, ["notifications/prompts/list_changed"])]:
        async with Peer(mcp, revision) as peer:
            mcp.add_prompt(p)
            await asyncio.sleep(0)
            assert methods_of(peer) == told
            names = [each["name"] for each in (await peer.request("prompts/list", peer.params()))["prompts"]]
            assert names[-1] == "p"


class MirroringExchange(LineExchange, frozen=True):
    """A way back whose request came with headers."""

    headers: Mapping[bytes, bytes] | None = None


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({b"mcp-name": b"greet"}, None),
        ({b"mcp-name": b"=?base64?Z3JlZXQ=?="}, None),
        ({b"mcp-name": b"review"}, -32020),
        ({}, -32020),
    ],
)
async def test_the_name_over_http_agrees_with_the_body(headers, code):
    """2026-07-28, Streamable HTTP: `Mcp-Name` of `prompts/get` is `params.name`."""
    async with Peer(make_server()) as peer:
        message = {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": peer.params({"name": "greet"})}
        mirrored = {b"mcp-protocol-version": PER_REQUEST.encode(), b"mcp-method": b"prompts/get", **headers}
        answer = await peer.connection.answer(json.dumps(message).encode(), MirroringExchange(peer, headers=mirrored))
        assert json.loads(answer.body).get("error", {"code": None})["code"] == code
