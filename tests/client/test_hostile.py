"""Whatever a server does, a client fails the one call with the right error, in bounded time and memory, and goes on."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from twofold import Client, ContractError, HttpStatusError, OutcomeUnknown, ProtocolError, StdioServer, TransportError
from twofold.errors import NotSent, TwofoldError
from twofold.testing.hostile import MISBEHAVIOURS, HostileServer, hostile_command

NEWEST, EARLIER = "2026-07-28", "2025-11-25"
ROUTES = [("stdio", NEWEST), ("stdio", EARLIER), ("http", NEWEST), ("http", EARLIER)]
MAX_GROWTH_BYTES = 200_000_000
PATIENCE_SECONDS = 10.0
"""For what fails at once: were it not so, its outcome would be another one."""

ANSWER = {"value": "x"}
LOST = "outcome unknown"
LATE = "outcome unknown, as the time was over"


def children() -> set[str]:
    """Processes that this one has started and not buried."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile has none
            found.update((task / "children").read_text().split())
    return found


def memory(kind: str) -> int:
    """`VmRSS`, or `VmHWM`, its peak since `begin_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind + ":"))


def begin_peak() -> int:
    """Forget the peak so far; give what is in use now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


@contextlib.asynccontextmanager
async def hostile(route: str, *script: str) -> AsyncIterator[Any]:
    """Give what a `Client` is made of, and see that nothing is left once it was closed."""
    tasks, processes = asyncio.all_tasks(), children()
    if route == "stdio":
        command, *args = hostile_command(*script)
        yield StdioServer(command, args)
        assert children() == processes
    else:
        async with HostileServer(*script) as server:
            yield server.url
            async with asyncio.timeout(20):
                while server.open_connections:
                    await asyncio.sleep(0.01)
            assert {request.path for request in server.requests} <= {"/mcp"}
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks
    gc.collect()


async def outcome(call: Awaitable[Any]) -> Any:
    """Say in a word or two what became of a call."""
    try:
        result = await call
    except OutcomeUnknown as error:
        return LATE if "did not answer" in error.reason else LOST
    except ContractError as error:
        return error.verdict.status
    except ProtocolError as error:
        return ("refused", error.code)
    except HttpStatusError as error:
        return ("status", error.status)
    except TransportError as error:
        return type(error)
    return result.structured_content


# What each misbehaviour comes to, where that is not the same everywhere: over stdio, over HTTP.

SAME = {
    "nan": LOST,
    "bom": LOST,
    "utf16": LOST,
    "no_id": LOST,
    "text_id": LOST,
    "infinity": LOST,
    "huge_exponent": "uncheckable",
    "huge_integer": "uncheckable",
    "deep_arrays": LOST,
    "deep_objects": LOST,
    "broken_json": LOST,
    "invalid_utf8": "uncheckable",
    "lone_surrogate": LOST,
    "unclosed_arrays": LOST,
    "nested_batch": LOST,
    "fractional_id": LOST,
    "two_ids": ANSWER,
    "two_answers": ANSWER,
    "early_answers": ANSWER,
    "batch": ANSWER,
    "wrong_version": LOST,
    "no_version": LOST,
    "result_and_error": ("refused", -32603),
    "no_result": LOST,
    "list_result": LOST,
    "null_result": LOST,
    "text_error": LOST,
    "huge_error": ("refused", -32603),
    "own_id_reused": ANSWER,
    "flood_of_notifications": ANSWER,
    "flood_of_requests": ANSWER,
    "huge_progress": ANSWER,
}
SILENT = ("empty_batch", "wrong_id", "old_id")
"""Nothing that came says that it answers this: over stdio that leaves the time; over HTTP the stream tells."""
NEVER = ("silence", "endless_notifications", "endless_progress", "endless_rubbish")
ONLY_STDIO = {"rubbish_on_stdout": ANSWER, "flood_on_stderr": ANSWER}
LOST_BY_STREAM = (
    "endless_line",
    "endless_blanks",
    "endless_lines",
    "closed",
    "truncated",
    "half_closed",
    "half_closed_midway",
    "gzip_bomb",
    "gzip_event_bomb",
    "endless_head",
    "endless_field",
    "short_body",
    "html_page",
    "no_http",
    "open_stream_late_id",
    "open_stream_empty_batch",
    "accepted_only",
    "server_error",
)
ONLY_HTTP = {
    **dict.fromkeys(LOST_BY_STREAM, LOST),
    "endless_after_answer": ANSWER,
    "open_stream_bad_progress": ANSWER,
    "not_found": ("status", 404),
    "redirected": ("status", 307),
    "redirected_away": ("status", 307),
    "long_body": ANSWER,
    "closed_after": ANSWER,
}
NEVER_OVER_HTTP = (
    "slow_drip",
    "endless_comments",
    "endless_event",
    "endless_events",
    "endless_interim",
    "silent_stream",
    "open_stream_other_id",
)
DEADLY = ("closed", "truncated", "half_closed", "half_closed_midway", "closed_after")
"""They take the connection with them over stdio."""
STUFFING = ("endless_line", "endless_blanks", "endless_lines", "slow_drip")
"""Over stdio nothing else has a place on the stream beside them."""
ELSEWHERE = ("endless_resumption", "outlives")


def expected_over(route: str) -> dict[str, Any]:
    if route == "stdio":
        return SAME | ONLY_STDIO | dict.fromkeys((*SILENT, *NEVER), LATE)
    return SAME | ONLY_HTTP | dict.fromkeys(SILENT, LOST) | dict.fromkeys((*NEVER, *NEVER_OVER_HTTP), LATE)


@pytest.mark.parametrize(("route", "revision"), ROUTES)
async def test_every_bad_answer_fails_its_own_call_and_no_other(route, revision):
    """Hostile answers fail the call at once with a clear error, and the connection can be used: issue 4."""
    expected = expected_over(route)
    got, after = {}, {}
    async with asyncio.timeout(55), hostile(route, *expected) as target:
        async with Client(target, revision=revision) as client:
            for name, result in expected.items():
                seconds = 0.3 if result == LATE else PATIENCE_SECONDS
                got[name] = await outcome(client.call_tool(name, timeout_seconds=seconds))
                after[name] = await outcome(client.call_tool("echo", {"for": name}, timeout_seconds=PATIENCE_SECONDS))
    assert got == expected
    after.pop("long_body", None)  # the same server has answered twice: which of the two counts is its own affair
    assert after == {name: {"for": name} for name in after}


def test_every_misbehaviour_has_a_test():
    """None is left out by mistake."""
    calls = {name for name, each in MISBEHAVIOURS.items() if each.method == "tools/call" and each.tool is None}
    assert {*expected_over("stdio"), *expected_over("http"), *DEADLY, *STUFFING} | {"endless_resumption"} == calls
    assert {name for name, each in MISBEHAVIOURS.items() if each.tool is not None} == {*SCHEMAS, "bottomless_schema"}
    others = {*MISBEHAVIOURS} - calls - {*SCHEMAS, "bottomless_schema"} - {"outlives"}
    assert others == {*LISTINGS, "endless_cursor", "million_tools", "slow_pages", *OPENINGS}


@pytest.mark.parametrize("name", [name for name in DEADLY if name != "closed_after"])
async def test_a_server_that_goes_leaves_one_call_in_doubt_and_the_next_unsent(name):
    """`OutcomeUnknown` when the call may have been carried out, `TransportError` when it certainly was not."""
    async with asyncio.timeout(50), hostile("stdio", name) as target:
        async with Client(target) as client:
            with pytest.raises(OutcomeUnknown) as caught:
                await client.call_tool(name, timeout_seconds=PATIENCE_SECONDS)
            with pytest.raises(NotSent):
                await client.call_tool("echo")
        told = "closed its stdout" if name.startswith("half") else "ended with exit code 3"
        assert (caught.value.tool, told in caught.value.reason) == (name, True)
        async with client:  # a new process
            assert await outcome(client.call_tool("echo", {"a": 1})) == {"a": 1}


async def test_an_answer_before_the_end_counts():
    async with asyncio.timeout(50), hostile("stdio", "closed_after") as target:
        async with Client(target) as client:
            assert await outcome(client.call_tool("closed_after")) == ANSWER


@pytest.mark.parametrize("name", ["endless_line", "endless_blanks"])
async def test_a_line_without_an_end_fails_the_call_at_once(name):
    """More than the limit is not read, and that is told when it is known: issue 4, bounded time and memory."""
    async with asyncio.timeout(50), hostile("stdio", name) as target:
        async with Client(target) as client:
            await client.list_tools()
            before = begin_peak()
            assert await outcome(client.call_tool(name, timeout_seconds=PATIENCE_SECONDS)) == LOST
            assert memory("VmHWM") - before < MAX_GROWTH_BYTES


@pytest.mark.parametrize(
    ("route", "name"),
    [
        ("stdio", "endless_lines"),
        ("stdio", "slow_drip"),
        ("stdio", "endless_notifications"),
        ("stdio", "endless_rubbish"),
        *(("http", name) for name in ("endless_line", "gzip_bomb", "gzip_event_bomb", "endless_head", "endless_field")),
        *(("http", name) for name in ("endless_event", "endless_comments", "endless_interim", "endless_notifications")),
    ],
)
async def test_what_has_no_end_takes_bounded_memory(route, name):
    async with asyncio.timeout(50), hostile(route, name) as target:
        async with Client(target) as client:
            await client.list_tools()
            before = begin_peak()
            assert await outcome(client.call_tool(name, timeout_seconds=1)) in (LOST, LATE)
            assert memory("VmHWM") - before < MAX_GROWTH_BYTES


async def test_a_stream_that_is_taken_up_again_for_ever_ends_with_the_call():
    """Resuming is bounded by the call's own time."""
    script = ("endless_resumption", "endless_resumption@GET")
    async with asyncio.timeout(50), HostileServer(*script) as server:
        async with Client(server.url, revision=EARLIER) as client:
            assert await outcome(client.call_tool("endless_resumption", timeout_seconds=1)) == LATE
            assert await outcome(client.call_tool("echo", {"a": 1})) == {"a": 1}
    assert len([request for request in server.requests if "last-event-id" in request.headers]) > 1


# Notifications and requests of the server's own.


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_odd_progress_is_passed_over_and_the_rest_is_in_order(route):
    """Malformed progress costs itself alone."""
    heard = []
    async with asyncio.timeout(50), hostile(route, "huge_progress") as target:
        async with Client(target) as client:
            result = await client.call_tool("huge_progress", on_progress=lambda *each: heard.append(each))
    assert result.structured_content == ANSWER
    text = "x" * 1_000_000
    assert heard == [(1e308, None, None), (-1, None, None), (1, None, text), *((n, None, None) for n in range(5_000))]


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("name", ["flood_of_notifications", "flood_of_requests", "endless_rubbish"])
async def test_a_flood_does_not_flood_the_log(route, name, caplog):
    """What a server repeats is not logged each time: a disk is bounded too."""
    caplog.set_level(logging.INFO, logger="twofold")
    async with asyncio.timeout(50), hostile(route, name) as target:
        async with Client(target) as client:
            await outcome(client.call_tool(name, timeout_seconds=1 if name.startswith("endless") else PATIENCE_SECONDS))
    assert len(caplog.records) < 100


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_progress_that_nobody_keeps_up_with_takes_bounded_memory(route):
    """A callback that hangs does not let a server fill the memory, and the connection can be used."""
    async with asyncio.timeout(50), hostile(route, "endless_progress") as target:
        async with Client(target) as client:
            await client.list_tools()
            before = begin_peak()
            call = client.call_tool("endless_progress", timeout_seconds=3, on_progress=lambda *_: asyncio.sleep(600))
            assert await outcome(call) == LATE
            assert memory("VmHWM") - before < 50_000_000
            assert await outcome(client.call_tool("echo", {"a": 1})) == {"a": 1}


async def test_a_callback_that_fails_each_time_does_not_flood_the_log(caplog):
    """The fault is the program's, how often it comes the server's doing."""

    def fail(*_: object) -> None:
        raise RuntimeError("the program's own fault")

    async with asyncio.timeout(50), hostile("stdio", "huge_progress") as target:
        async with Client(target) as client:
            assert await outcome(client.call_tool("huge_progress", on_progress=fail)) == ANSWER
    assert 1 <= sum("a callback of the client failed" in record.getMessage() for record in caplog.records) < 100


async def test_a_flood_of_changes_costs_one_listing():
    """`list_changed` drops the listing; it is read again when it is needed, once."""
    async with asyncio.timeout(50), hostile("stdio", "flood_of_notifications") as target:
        async with Client(target) as client:
            await client.call_tool("flood_of_notifications")
            await client.call_tool("echo")
            result = await client.call_tool("heard")
    assert result.structured_content["methods"].count("tools/list") == 2


@pytest.mark.parametrize(("route", "revision"), ROUTES)
async def test_pings_are_answered_and_other_requests_refused(route, revision):
    """A server's request is answered, and nothing is done for it."""
    async with asyncio.timeout(50), hostile(route, "own_id_reused") as target:
        async with Client(target, revision=revision) as client:
            assert await outcome(client.call_tool("own_id_reused")) == ANSWER
            heard: list[str] = []
            while "answer" not in heard:
                heard = (await client.call_tool("heard")).structured_content["methods"]


async def test_a_forged_answer_is_never_taken_for_a_later_one():
    """An answer to what was not asked is dropped."""
    async with asyncio.timeout(50), hostile("stdio", "early_answers") as target:
        async with Client(target) as client:
            await client.call_tool("early_answers")
            calls = [client.call_tool("echo", {"number": number}) for number in range(10)]
            assert [await outcome(call) for call in calls] == [{"number": number} for number in range(10)]


# Schemas.

SCHEMAS = {
    "deep_schema": "uncheckable",
    "wide_schema": "uncheckable",
    "huge_schema": "uncheckable",
    "self_referring_schema": "valid",
    "circular_references": "valid",
    "exponential_schema": "uncheckable",
    "unevaluated_schema": "uncheckable",
    "outside_reference": "uncheckable",
    "outside_file": "uncheckable",
    "outside_dialect": "uncheckable",
    "outside_base": "uncheckable",
    "dangling_reference": "uncheckable",
    "unknown_dialect": "uncheckable",
    "broken_schema": "uncheckable",
    "backtracking_pattern": "uncheckable",
    "huge_pattern": "uncheckable",
    "linear_pattern": "invalid",
    "unique_items": "valid",
}


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_every_schema_is_judged_by_or_refused_and_nothing_is_fetched(route):
    """`uncheckable`: unknown dialect, dangling or outside reference, bounds spent; the result is not lost."""
    async with asyncio.timeout(50), hostile(route, *SCHEMAS) as target:
        async with Client(target, check="mark") as client:
            before = begin_peak()
            results = {name: await client.call_tool(name) for name in SCHEMAS}
            assert memory("VmHWM") - before < MAX_GROWTH_BYTES
            listed = await client.list_tools()
    assert {name: result.verdict.status for name, result in results.items()} == SCHEMAS
    assert all(result.has_structured_content for result in results.values())
    assert all(result.verdict.reason for result in results.values() if result.verdict.status == "uncheckable")
    assert [tool.name for tool in listed] == ["echo", "heard", *SCHEMAS]


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_a_schema_that_no_parser_takes_costs_its_own_tool(route):
    """One malformed tool definition costs that one: issue 4."""
    async with asyncio.timeout(50), hostile(route, "bottomless_schema") as target:
        async with Client(target) as client:
            assert [tool.name for tool in await client.list_tools()] == ["echo", "heard"]
            assert client.rejected_tools == {
                "bottomless_schema": "tool 'bottomless_schema': its definition is nested too deeply to be read"
            }
            result = await client.call_tool("echo", {"still": "there"})
    assert result.structured_content == {"still": "there"}


# Listings.

LISTINGS = {
    "cursor_loop": "a cursor came twice",
    "endless_cursors": "more than 1000 pages",
    "broken_tools": ["echo", "heard", "odd_hints"],
    "no_tools": "cannot be read",
    "changed_always": ["echo", "heard"],
    "odd_freshness": ["echo", "heard"],
}


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("name", LISTINGS)
async def test_every_bad_listing_is_refused_or_read_as_far_as_it_can_be(route, name):
    """One malformed tool definition costs that one; a listing without an end is refused."""
    async with asyncio.timeout(50), hostile(route, name) as target:
        async with Client(target) as client:
            if isinstance(LISTINGS[name], str):
                with pytest.raises(TransportError, match=LISTINGS[name]):
                    await client.list_tools()
            else:
                assert [tool.name for tool in await client.list_tools()] == LISTINGS[name]
                assert await outcome(client.call_tool("echo", {"a": 1})) == {"a": 1}
                assert all(len(each) < 300 for each in client.rejected_tools.values())


async def test_what_is_malformed_in_a_listing_is_named_with_the_reason():
    async with asyncio.timeout(50), hostile("stdio", "broken_tools") as target:
        async with Client(target) as client:
            listed = await client.list_tools()
    named = {name for name in client.rejected_tools if name.isidentifier() and len(name) < 80}
    assert named == {"no_schema", "text_schema", "list_schema", "list_output"}
    assert len(client.rejected_tools) == 10
    assert (listed["odd_hints"].annotations.read_only_hint, len(listed)) == (None, 3)


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("name", ["endless_cursor", "million_tools"])
async def test_a_listing_of_any_size_takes_bounded_time_and_memory(route, name):
    """A listing is bounded as a whole, not each page alone: issue 4."""
    async with asyncio.timeout(50), hostile(route, name) as target:
        async with Client(target) as client:
            before = begin_peak()
            with pytest.raises(TransportError):
                await client.list_tools()
            assert memory("VmHWM") - before < MAX_GROWTH_BYTES


@pytest.mark.parametrize("script", ["slow_pages", "silence@tools/list"])
async def test_the_time_of_a_call_covers_the_listing_it_needs(script):
    """A timeout ends the wait, whatever it is that takes so long; the call was certainly not carried out."""
    async with hostile("stdio", script) as target:
        async with Client(target) as client:
            async with asyncio.timeout(10):
                with pytest.raises(TransportError, match="did not answer|time"):
                    await client.call_tool("echo", timeout_seconds=0.5)


async def test_the_time_of_a_call_covers_waiting_for_somebody_elses_listing():
    async with hostile("stdio", "silence@tools/list") as target:
        async with Client(target) as client:
            listing = asyncio.create_task(client.list_tools(timeout_seconds=30))
            await asyncio.sleep(0)
            try:
                async with asyncio.timeout(10):
                    with pytest.raises(TransportError):
                        await client.call_tool("echo", timeout_seconds=0.5)
            finally:
                listing.cancel()
                await asyncio.wait({listing})


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_a_listing_that_fails_is_tried_again_when_it_is_needed(route):
    async with asyncio.timeout(50), hostile(route, "broken_json@tools/list:once") as target:
        async with Client(target) as client:
            with pytest.raises(TransportError):
                await client.list_tools()
            assert [tool.name for tool in await client.list_tools()] == ["echo", "heard"]


# Openings.

OPENINGS = ("unknown_revision", "odd_description", "odd_name")


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("method", ["server/discover", "initialize"])
async def test_a_revision_that_is_not_spoken_is_refused_with_its_name(route, method):
    revision = NEWEST if method == "server/discover" else EARLIER
    async with asyncio.timeout(50), hostile(route, f"unknown_revision@{method}") as target:
        with pytest.raises(ProtocolError, match="2126-07-28"):
            await Client(target, revision=revision).__aenter__()


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("method", ["server/discover", "initialize"])
@pytest.mark.parametrize(
    "name", ["odd_description", "list_result", "null_result", "nan", "deep_arrays", "broken_json", "endless_line"]
)
async def test_a_server_that_cannot_introduce_itself_is_an_error_at_once(route, method, name):
    revision = NEWEST if method == "server/discover" else EARLIER
    async with asyncio.timeout(50), hostile(route, f"{name}@{method}") as target:
        with pytest.raises(TwofoldError) as caught:
            await Client(target, revision=revision, timeout_seconds=PATIENCE_SECONDS).__aenter__()
        assert isinstance(caught.value, TransportError | ProtocolError)
        assert "did not answer" not in str(caught.value)


@pytest.mark.parametrize("route", ["stdio", "http"])
async def test_an_odd_name_is_no_name(route):
    async with asyncio.timeout(50), hostile(route, "odd_name") as target:
        async with Client(target) as client:
            assert (client.server.name, await outcome(client.call_tool("echo", {"a": 1}))) == ("", {"a": 1})


@pytest.mark.parametrize("route", ["stdio", "http"])
@pytest.mark.parametrize("name", ["silence", "closed", "nan", "no_id", "endless_notifications"])
async def test_a_server_that_the_probe_is_too_much_for_is_spoken_to_in_the_earlier_revision(route, name):
    """The era is found by itself: probe and fall back, be it over a new connection."""
    async with asyncio.timeout(50), hostile(route, f"{name}@server/discover:once") as target:
        async with Client(target) as client:
            assert (client.revision, await outcome(client.call_tool("echo", {"a": 1}))) == (EARLIER, {"a": 1})


# Ends.

STAGES = ("start", "server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "end")


@pytest.mark.parametrize("how", ["closed", "truncated", "half_closed"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("route", "revision"), ROUTES)
async def test_an_end_at_any_stage_is_a_typed_error_and_leaves_nothing(route, revision, stage, how):
    """Whatever stage a server goes at, who waits is told, and no task, socket or process is left."""
    async with asyncio.timeout(50), hostile(route, f"{how}@{stage}") as target:
        with contextlib.suppress(TransportError, ProtocolError, OutcomeUnknown):
            async with Client(target, revision=revision, timeout_seconds=PATIENCE_SECONDS) as client:
                await client.call_tool(how if stage == "tools/call" else "echo")


async def test_a_server_that_will_not_end_is_killed():
    """A process that heeds neither the end of its stdin nor SIGTERM; `hostile` looks for what is left."""
    async with asyncio.timeout(50), hostile("stdio", "outlives") as target:
        async with Client(target) as client:
            assert await outcome(client.call_tool("echo", {"a": 1})) == {"a": 1}


@pytest.mark.parametrize(("route", "revision"), ROUTES)
@pytest.mark.parametrize("name", ["silence", "endless_notifications", "endless_line"])
async def test_closing_while_a_server_misbehaves_ends_at_once_and_leaves_nothing(route, revision, name):
    async with asyncio.timeout(50), hostile(route, name) as target:
        async with Client(target, revision=revision) as client:
            await client.list_tools()
            call = asyncio.create_task(client.call_tool(name))
            await asyncio.sleep(0.05)
        with pytest.raises(OutcomeUnknown):
            await call


@pytest.mark.parametrize(
    ("name", "said"), [("wrong_id", "an answer to nothing that was asked: id 987654321"), ("empty_batch", "a batch")]
)
async def test_whoever_waits_in_vain_learns_what_came_meanwhile(name, said):
    """Each failure says what was expected and what came: over stdio such a line may be a log, so it fails nothing."""
    async with asyncio.timeout(20), hostile("stdio", name) as target:
        async with Client(target) as client:
            with pytest.raises(OutcomeUnknown) as failure:
                await client.call_tool(name, timeout_seconds=0.5)
    assert "did not answer tools/call within 0." in failure.value.reason
    assert failure.value.reason.partition("; meanwhile ")[2].partition(" sent ")[2].startswith(said)
