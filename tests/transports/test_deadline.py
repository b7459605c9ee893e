"""A bound on what a request's own task waits for: it ends that wait, and nothing else."""

import asyncio

import pytest

from twofold.transports.deadline import Deadline, notice_wait


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts the timers that are set on it."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = 0

    def call_later(self, *arguments, **options):
        self.timers += 1
        return super().call_later(*arguments, **options)


async def wait_within(deadline_seconds: float, waiting: asyncio.Event) -> str:
    """Wait as a request waits for its body; tells how that ended."""
    deadline = Deadline(deadline_seconds)
    try:
        await notice_wait(waiting.wait(), deadline.start)
        return "came"
    except asyncio.CancelledError:
        if not deadline.take_back():
            raise
        return "over"
    finally:
        deadline.stop()


async def test_a_wait_that_takes_too_long_is_ended_and_its_task_goes_on():
    """B3: a slow client costs nothing lasting; the task can still answer it, and wait for something else."""
    task = asyncio.current_task()
    assert task is not None
    async with asyncio.timeout(20):
        ended = await wait_within(0.001, asyncio.Event())
    await asyncio.sleep(0)
    assert (ended, task.cancelling()) == ("over", 0)


async def test_a_wait_that_ends_in_time_is_left_alone():
    """B3: nothing is cancelled later, however short the time was."""
    event = asyncio.Event()
    event.set()
    ended = [await wait_within(0, event) for _ in range(3)]
    for _ in range(100):
        await asyncio.sleep(0)
    assert ended == ["came"] * 3


async def test_a_stopped_deadline_cancels_nothing():
    """B3: also where its timer was running already."""
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_within(0.002, event))
    for _ in range(3):
        await asyncio.sleep(0)
    event.set()
    ended = await waiting
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0.003, passed.set)  # later than the deadline's would have been
    await passed.wait()
    assert (ended, waiting.cancelled()) == ("came", False)


async def test_a_cancellation_from_elsewhere_is_not_taken_back():
    """B3: the server's own end is passed on."""
    waiting = asyncio.create_task(wait_within(1000, asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=20)
    assert waiting.cancelled()


async def test_a_cancellation_that_comes_with_the_deadline_is_not_taken_back():
    """B3: whoever ends the task is heeded, though its time was over too."""
    waiting = asyncio.create_task(wait_within(0, asyncio.Event()))
    async with asyncio.timeout(20):
        while not waiting.cancelling():
            await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=20)
    assert waiting.cancelled()


@pytest.mark.parametrize(("is_there", "timers"), [(True, 0), (False, 1)])
def test_only_who_waits_has_a_timer(is_there, timers):
    """Decision 12: most bodies are there when they are asked for, and cost no timer."""

    async def request() -> int:
        event = asyncio.Event()
        if is_there:
            event.set()
        else:
            loop.call_soon(lambda: loop.call_soon(event.set))
        assert await wait_within(1000, event) == "came"
        await asyncio.sleep(0)
        return loop.timers

    loop = CountingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(request()) == timers


async def test_what_is_awaited_through_the_hook_is_awaited_as_it_is():
    """Values, failures, cancellations and clean-up pass; the hook is called once, and only where there is a wait."""
    waits: list[str] = []

    async def work(*steps: str) -> list[str]:
        seen = []
        for step in steps:
            try:
                if step == "sleep":
                    await asyncio.sleep(0)
                elif step == "cancel":
                    asyncio.current_task().cancel()
                    await asyncio.sleep(0)
                elif step == "fail":
                    raise LookupError(step)
                elif step == "timeout":
                    async with asyncio.timeout(0.001):
                        await asyncio.Event().wait()
            except (asyncio.CancelledError, TimeoutError) as error:
                seen.append(type(error).__name__)
                asyncio.current_task().uncancel()
            else:
                seen.append(step)
        return seen

    assert await notice_wait(work("now"), lambda: waits.append("now")) == ["now"]
    seen = await notice_wait(work("sleep", "cancel", "timeout", "sleep"), lambda: waits.append("later"))
    assert (seen, waits) == (["sleep", "CancelledError", "TimeoutError", "sleep"], ["later"])
    for steps in (("fail",), ("sleep", "fail")):
        with pytest.raises(LookupError, match="fail"):
            await notice_wait(work(*steps), lambda: None)


async def test_work_that_is_given_up_cleans_up():
    """A coroutine that is closed runs its `finally`."""
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(True)

    async def waiting() -> None:
        await notice_wait(work(), lambda: None)

    given_up = waiting()
    given_up.send(None)
    given_up.close()
    assert ended == [True]
