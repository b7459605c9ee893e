"""Limits, threads and what calls asynchronously."""

import asyncio
import functools
import threading

import pytest

from twofold.errors import InvalidDefinition, ToolError
from twofold.tools.run import Gate, RateLimit, Runner, calls_asynchronously
from twofold.tools.workers import Workers


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("5/s", RateLimit(5, 1)),
        ("100 / min", RateLimit(100, 60)),
        ("1000/hour", RateLimit(1000, 3600)),
        (RateLimit(1, 2), RateLimit(1, 2)),
    ],
)
def test_rates_are_read(given, limit):
    assert RateLimit.parse(given) == limit


@pytest.mark.parametrize("given", ["5", "5/day", "-1/s", "x/s", 5, None, ""])
def test_what_is_no_rate_is_refused(given):
    with pytest.raises(InvalidDefinition, match=r"^rate_limit: expected '5/s'"):
        RateLimit.parse(given)


@pytest.mark.parametrize(("calls", "per_seconds"), [(0, 1), (1, 0), (1, -1)])
def test_a_rate_that_allows_nothing_is_refused(calls, per_seconds):
    with pytest.raises(InvalidDefinition):
        RateLimit(calls, per_seconds)


def test_a_spent_rate_comes_back_with_time():
    now = [0.0]
    gate = Gate("t", max_concurrency=None, rate_limit=RateLimit(2, 10), clock=lambda: now[0])
    gate.enter()
    gate.enter()
    with pytest.raises(ToolError, match="try again in 5 seconds"):
        gate.enter()
    now[0] = 5.0
    gate.enter()
    with pytest.raises(ToolError, match="try again in 5 seconds"):
        gate.enter()


def test_a_busy_gate_spends_no_rate():
    gate = Gate("t", max_concurrency=1, rate_limit=RateLimit(2, 10), clock=lambda: 0.0)
    gate.enter()
    with pytest.raises(ToolError, match="is busy"):
        gate.enter()
    gate.leave()
    gate.enter()


class Callable:
    async def __call__(self) -> None: ...

    async def method(self) -> None: ...

    def sync(self) -> None: ...


async def generator():
    yield 1


def test_async_callables_of_every_kind_are_known():
    assert [
        calls_asynchronously(each)
        for each in (Callable(), Callable().method, functools.partial(Callable().method), generator)
    ] == [True] * 4
    assert [
        calls_asynchronously(each) for each in (Callable().sync, functools.partial(Callable().sync), print, lambda: 1)
    ] == [False] * 4


async def test_a_worker_runs_in_the_callers_context():
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert await Workers().submit(variable.get) == "set"


async def test_a_dropped_outcome_still_ends():
    ended = asyncio.Event()
    future = Workers().submit(lambda: 1, on_end=ended.set)
    future.cancel()
    await ended.wait()


async def test_a_failure_reaches_who_waits():
    workers = Workers(max_threads=1)
    with pytest.raises(ZeroDivisionError):
        await workers.submit(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await workers.submit(lambda: next(iter(())))
    assert await workers.submit(lambda: 2) == 2


async def test_jobs_beyond_the_threads_are_refused_and_the_slot_given_back():
    release, given_back = threading.Event(), []
    workers = Workers(max_threads=2)
    blocked = [workers.submit(lambda: release.wait(20)) for _ in range(2)]
    with pytest.raises(ToolError, match="all 2 threads are taken by calls that have not ended"):
        workers.submit(lambda: 1, on_end=lambda: given_back.append(True))
    assert given_back == [True]
    release.set()
    assert await asyncio.gather(*blocked) == [True, True]


@pytest.mark.parametrize(("max_threads", "shares"), [(16, [12, 3]), (512, [384, 96, 24, 6])])
async def test_whoever_holds_three_times_what_is_free_gets_no_more_and_the_next_one_does(max_threads, shares):
    """One slow tool never starves another, nor do a few of them (issue 5)."""
    release, given_back = threading.Event(), []
    workers = Workers(max_threads)
    blocked = []
    for share in shares:
        blocked += [workers.submit(lambda: release.wait(20), held=held) for held in range(share)]
        with pytest.raises(ToolError, match=f"busy: {share} of {max_threads} threads are taken by calls of this tool"):
            workers.submit(lambda: 1, on_end=lambda: given_back.append(True), held=share)
    assert given_back == [True] * len(shares)
    assert await workers.submit(lambda: "now") == "now"
    release.set()
    assert await asyncio.gather(*blocked) == [True] * sum(shares)


async def test_a_tool_whose_threads_all_hang_leaves_room_for_another():
    """The share is counted by the threads that have not ended, be their calls long given up."""
    release = threading.Event()
    workers = Workers(max_threads=4)

    def make(function, name):
        gate = Gate(name, max_concurrency=None, rate_limit=None)
        return Runner(function, name, False, None, lambda value: value, gate, workers)

    begun: list[bool] = []
    slow, quick = make(lambda: begun.append(True) or release.wait(20), "slow"), make(lambda: "now", "quick")
    calls = [asyncio.create_task(slow.run((), {})) for _ in range(20)]
    while len(begun) < 3:  # one that is given up before its thread takes it hangs nowhere
        await asyncio.sleep(0.001)
    for call in calls:
        call.cancel()  # the 17 that were refused have ended
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in outcomes] == [asyncio.CancelledError] * 3 + [ToolError] * 17
    with pytest.raises(ToolError, match="3 of 4 threads are taken by calls of this tool"):
        await slow.run((), {})
    assert await quick.run((), {}) == ("now", True)
    release.set()


async def test_many_jobs_one_after_the_other_need_few_threads():
    workers = Workers()
    for number in range(50):
        assert await workers.submit(lambda number=number: number) == number
    assert workers.thread_count <= 3
