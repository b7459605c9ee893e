"""What happens while a call runs: progress, log messages, cancellation, subscriptions, limits."""

import asyncio
import json
import threading
from decimal import Decimal

import pytest

from tests.peer import HANDSHAKE, PER_REQUEST, REVISIONS, Peer, Refused, text_of
from twofold import Context, MCPServer, RateLimit


def messages_of(peer: Peer, method: str) -> list:
    return [message["params"] for message in peer.notifications if message["method"] == method]


def make_steps() -> MCPServer:
    mcp = MCPServer("s")

    @mcp.tool()
    async def steps(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.report_progress(2, 2)
        await ctx.debug("d")
        await ctx.warning({"a": 1}, logger="mine")
        return "done"

    @mcp.tool()
    def steps_in_thread(ctx: Context) -> str:
        ctx.report_progress(0.5)
        ctx.error("e")
        return "done"

    return mcp


@pytest.mark.parametrize("revision", REVISIONS)
async def test_progress_is_sent_where_a_token_was_given(revision):
    """B4: progress on the call's own stream, for the token of the request."""
    async with Peer(make_steps(), revision) as peer:
        await peer.call("steps", progressToken="t")
        message = {} if revision == "2024-11-05" else {"message": "half"}
        assert messages_of(peer, "notifications/progress") == [
            {"progressToken": "t", "progress": 1, "total": 2, **message},
            {"progressToken": "t", "progress": 2, "total": 2},
        ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nothing_is_sent_that_was_not_asked_for(revision):
    """2026-07-28, logging: no message for a request that did not ask; progress needs a token."""
    async with Peer(make_steps(), revision) as peer:
        assert text_of(await peer.call("steps")) == "done"
        assert peer.notifications == []


async def test_log_messages_are_sent_at_the_level_asked_for_or_above():
    async with Peer(make_steps()) as peer:
        await peer.call("steps", logLevel="info")
        assert messages_of(peer, "notifications/message") == [{"level": "warning", "data": {"a": 1}, "logger": "mine"}]
        peer.notifications.clear()
        await peer.call("steps", logLevel="debug")
        assert [each["level"] for each in messages_of(peer, "notifications/message")] == ["debug", "warning"]


async def test_an_unknown_log_level_is_refused():
    async with Peer(make_steps()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.call("steps", logLevel="loud")
        assert caught.value.code == -32602


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_handshake_client_sets_its_level_once(revision):
    async with Peer(make_steps(), revision) as peer:
        assert await peer.request("logging/setLevel", {"level": "warning"}) == {}
        await peer.call("steps")
        assert messages_of(peer, "notifications/message") == [{"level": "warning", "data": {"a": 1}, "logger": "mine"}]
        with pytest.raises(Refused) as caught:
            await peer.request("logging/setLevel", {"level": "loud"})
        assert caught.value.code == -32602


async def test_a_sync_tool_reports_without_await_and_before_its_answer():
    async with Peer(make_steps()) as peer:
        await peer.call("steps_in_thread", progressToken=7, logLevel="debug")
        order = [json.loads(message).get("method", "answer") for message in peer.sent]
        assert order == ["notifications/progress", "notifications/message", "answer"]


async def test_nothing_is_sent_after_the_answer():
    """Progress notifications must stop after completion."""
    mcp = MCPServer("s")
    kept = []

    @mcp.tool()
    async def keep(ctx: Context) -> str:
        kept.append(ctx)
        return "done"

    async with Peer(mcp) as peer:
        await peer.call("keep", progressToken=1, logLevel="debug")
        await kept[0].report_progress(1)
        await kept[0].info("late")
        assert peer.notifications == []


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            lambda ctx: (ctx.report_progress(2), ctx.report_progress(2)),
            "progress grows with each report: 2 came after 2",
        ),
        (lambda ctx: ctx.report_progress(True), "progress and total are finite numbers, got True of None"),
        (
            lambda ctx: ctx.report_progress(Decimal(1)),
            "progress and total are finite numbers, got Decimal('1') of None",
        ),
        (lambda ctx: ctx.report_progress(1, 2, 5), "a progress message is text, got int"),
        (lambda ctx: ctx.info("x", logger=5), "a logger's name is text, got int"),
        (lambda ctx: ctx.report_progress(float("nan")), "progress and total are finite numbers, got nan of None"),
        (lambda ctx: ctx.report_progress(1, float("inf")), "progress and total are finite numbers, got 1 of inf"),
        (
            lambda ctx: ctx.log("loud", "x"),
            "unknown log level 'loud'; the levels are debug, info, notice, warning, error, critical, alert, emergency",
        ),
        (
            lambda ctx: ctx.info(float("nan")),
            "log message['data']: NaN and infinities are no JSON numbers; send null or text on purpose",
        ),
    ],
)
async def test_a_wrong_report_is_the_authors_mistake(report, message):
    mcp = MCPServer("s", expose_errors=True)

    @mcp.tool()
    async def wrong(ctx: Context) -> str:
        report(ctx)
        return ""

    async with Peer(mcp) as peer:
        result = await peer.call("wrong")
        assert result["isError"] is True
        assert message in text_of(result)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_cancellation_stops_async_work_and_is_not_answered(revision):
    """A24; cancellation: free the resources, send no response."""
    mcp = MCPServer("s")
    started, stopped = asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with Peer(mcp, revision) as peer:
        waiting = peer.send("tools/call", peer.params({"name": "wait"}), id="w")
        await started.wait()
        peer.notify("notifications/cancelled", {"requestId": "w", "reason": "enough"})
        await stopped.wait()
        await peer.list()
        assert not waiting.done()


async def test_a_call_cancelled_before_it_starts_is_not_answered():
    async with Peer(make_steps()) as peer:
        waiting = peer.send("tools/call", peer.params({"name": "steps"}), id="w")
        peer.notify("notifications/cancelled", {"requestId": "w"})
        await peer.list()
        assert not waiting.done()


async def test_a_tool_that_swallows_its_cancellation_is_not_answered_either():
    mcp = MCPServer("s")
    started = asyncio.Event()

    @mcp.tool()
    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return "still here"

    async with Peer(mcp) as peer:
        waiting = peer.send("tools/call", peer.params({"name": "stubborn"}), id="w")
        await started.wait()
        peer.notify("notifications/cancelled", {"requestId": "w"})
        await peer.connection.close(grace_seconds=5)
        assert not waiting.done()


async def test_a_cancelled_sync_call_keeps_its_slot_until_it_ends():
    """A24: a sync function's answer is dropped, its slot stays taken until it ends."""
    mcp = MCPServer("s")
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    @mcp.tool(max_concurrency=1)
    def slow() -> str:
        started.set()
        release.wait(20)
        ended.set()
        return "late"

    async with Peer(mcp) as peer:
        waiting = peer.send("tools/call", peer.params({"name": "slow"}), id="w")
        await asyncio.to_thread(started.wait, 20)
        peer.notify("notifications/cancelled", {"requestId": "w"})
        busy = await peer.call("slow")
        assert (busy["isError"], text_of(busy)) == (
            True,
            "tool 'slow' is busy: 1 of 1 calls allowed at once are running; try again when one has ended",
        )
        release.set()
        await asyncio.to_thread(ended.wait, 20)
        while (answer := await peer.call("slow"))["isError"]:
            await asyncio.sleep(0)
        assert (text_of(answer), waiting.done()) == ("late", False)


async def test_a_deadline_is_an_error_the_model_can_act_on():
    mcp = MCPServer("s")
    release = threading.Event()

    @mcp.tool(timeout_seconds=0.01)
    async def endless() -> str:
        await asyncio.Event().wait()
        return ""

    @mcp.tool(timeout_seconds=0.01)
    def blocked() -> str:
        release.wait(20)
        return ""

    async with Peer(mcp) as peer:
        assert text_of(await peer.call("endless")) == (
            "tool 'endless' did not finish within 0.01 seconds and was stopped; ask for less, or try again later"
        )
        assert text_of(await peer.call("blocked")) == (
            "tool 'blocked' did not finish within 0.01 seconds and may still be running; its answer is dropped; "
            "ask for less, or try again later"
        )
        release.set()


async def test_a_timeout_of_the_tools_own_is_a_crash_of_the_tool_alone():
    """A timeout inside a tool must never cancel the reader."""
    mcp = MCPServer("s")

    @mcp.tool(timeout_seconds=20)
    async def impatient() -> str:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
        return ""

    async with Peer(mcp) as peer:
        result = await peer.call("impatient")
        assert text_of(result).startswith("Error executing tool impatient (reference ")
        assert list(await peer.list()) == ["impatient"]


async def test_a_deadline_is_kept_though_the_tool_does_not_heed_its_cancellation():
    mcp = MCPServer("s")
    release, ended = asyncio.Event(), asyncio.Event()

    @mcp.tool(timeout_seconds=0.01, max_concurrency=1)
    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass
        ended.set()
        return "late"

    async with Peer(mcp) as peer:
        assert "did not finish within 0.01 seconds" in text_of(await peer.call("stubborn"))
        assert "is busy" in text_of(await peer.call("stubborn"))
        release.set()
        await ended.wait()


@pytest.mark.parametrize("rate_limit", ["2/hour", RateLimit(2, 3600)])
async def test_a_rate_limit_says_when_to_try_again(rate_limit):
    mcp = MCPServer("s")

    @mcp.tool(rate_limit=rate_limit)
    async def rare() -> str:
        return "ok"

    async with Peer(mcp) as peer:
        results = [await peer.call("rare") for _ in range(3)]
        assert [result["isError"] for result in results] == [False, False, True]
        assert text_of(results[2]).startswith(
            "tool 'rare' was called too often: 2 calls in 3600 seconds are allowed; try again in "
        )


async def test_a_subscription_is_acknowledged_then_told_of_changes():
    """2026-07-28, subscriptions: acknowledged first, every notification tagged with its id."""
    mcp = make_steps()
    tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}}
    async with Peer(mcp) as peer:
        wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
        ended = peer.send("subscriptions/listen", peer.params(wanted), id="sub")
        await asyncio.sleep(0)
        mcp.add_tool(lambda: "x", name="late")
        mcp.remove_tool("late")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert peer.notifications == [
            {
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {**tag, "notifications": {"toolsListChanged": True}},
            },
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": tag},
        ]
        await peer.connection.close(grace_seconds=5)
        result = (await ended)["result"]
        assert (result["resultType"], result["_meta"]["io.modelcontextprotocol/subscriptionId"]) == ("complete", "sub")


async def test_a_subscription_gets_nothing_it_did_not_ask_for_and_ends_when_cancelled():
    mcp = make_steps()
    async with Peer(mcp) as peer:
        peer.send("subscriptions/listen", peer.params({"notifications": {}}), id="none")
        ended = peer.send(
            "subscriptions/listen", peer.params({"notifications": {"toolsListChanged": True}}), id="tools"
        )
        await asyncio.sleep(0)
        peer.notify("notifications/cancelled", {"requestId": "tools"})
        await asyncio.sleep(0)
        mcp.add_tool(lambda: "x", name="late")
        await peer.list()
        assert [message["method"] for message in peer.notifications] == ["notifications/subscriptions/acknowledged"] * 2
        assert not ended.done()


@pytest.mark.parametrize("params", [{}, {"notifications": 5}, {"notifications": {"toolsListChanged": "yes"}}])
async def test_a_malformed_subscription_is_refused(params):
    async with Peer(make_steps()) as peer:
        with pytest.raises(Refused) as caught:
            await peer.request("subscriptions/listen", peer.params(params))
        assert caught.value.code == -32602


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_handshake_client_is_told_of_changes(revision):
    mcp = make_steps()
    async with Peer(mcp, revision) as peer:
        mcp.add_tool(lambda: "x", name="late")
        await asyncio.sleep(0)
        assert messages_of(peer, "notifications/tools/list_changed") == [{}]
        assert list(await peer.list()) == ["steps", "steps_in_thread", "late"]


async def test_a_change_from_another_thread_reaches_the_client():
    mcp = make_steps()
    async with Peer(mcp, "2025-11-25") as peer:
        await asyncio.to_thread(mcp.add_tool, lambda: "x", name="late")
        await asyncio.sleep(0)
        assert messages_of(peer, "notifications/tools/list_changed") == [{}]


async def test_calls_run_side_by_side_and_a_blocking_one_holds_up_none():
    """T05: a blocking tool must not stop the others."""
    mcp = MCPServer("s")
    release = threading.Event()

    @mcp.tool()
    def slow() -> str:
        release.wait(20)
        return "late"

    @mcp.tool()
    async def quick() -> str:
        return "now"

    async with Peer(mcp) as peer:
        slow_answers = [peer.send("tools/call", peer.params({"name": "slow"})) for _ in range(20)]
        assert text_of(await peer.call("quick")) == "now"
        release.set()
        assert [text_of((await answer)["result"]) for answer in slow_answers] == ["late"] * 20


async def test_the_lifespan_reaches_the_tools():
    import contextlib

    @contextlib.asynccontextmanager
    async def lifespan(server):
        yield {"server": server.name}

    mcp = MCPServer("s", lifespan=lifespan)

    @mcp.tool()
    async def look(ctx: Context) -> str:
        return ctx.lifespan["server"]

    async with Peer(mcp, PER_REQUEST) as peer:
        assert text_of(await peer.call("look")) == "s"
    assert (await mcp.call_tool("look")).structured_content == {"result": "s"}
