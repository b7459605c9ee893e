"""A task that takes its first step at once is a task like any other."""

import asyncio
import contextvars
import gc

import pytest

from twofold.transports.eager import _start_by_hand, start_task

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
STARTS = [start_task, _start_by_hand]
"""The second is what Python 3.11 gets; it has to be right on any."""


async def in_callback(function, *args):
    """Call a function as the event loop does: outside every task."""
    loop = asyncio.get_running_loop()
    result = loop.create_future()

    def call() -> None:
        try:
            result.set_result(function(*args))
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            result.set_exception(error)

    loop.call_soon(call)
    return await result


def begin(start, work):
    task = start(work, asyncio.get_running_loop())
    return task, task.done()


@pytest.mark.parametrize("start", STARTS)
async def test_work_that_never_waits_is_done_at_once(start):
    """No turn of the loop in between; it ran in the very task that is given back."""

    async def work() -> object:
        return asyncio.current_task()

    task, was_done = await in_callback(begin, start, work())
    assert (was_done, task.result()) == (True, task)


@pytest.mark.parametrize("start", STARTS)
async def test_work_that_waits_goes_on_as_a_task(start):
    """Deadlines, cancellation and sleeping work from the first step on."""
    seen = []

    async def work() -> str:
        seen.append("begun")
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timeout")
        async with asyncio.TaskGroup() as group:
            inner = group.create_task(asyncio.sleep(0, "inner"))
        return inner.result()

    task, was_done = await in_callback(begin, start, work())
    assert (was_done, seen) == (False, ["begun"])
    assert (await task, seen) == ("inner", ["begun", "timeout"])


@pytest.mark.parametrize("start", STARTS)
async def test_it_can_be_cancelled_while_it_waits(start):
    """As any task."""
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task, _ = await in_callback(begin, start, work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


@pytest.mark.parametrize("start", STARTS)
async def test_context_variables_set_inside_stay_inside(start):
    """Each task has a copy of its own, or one call would see what another has set."""
    WHO.set("caller")

    async def work(name: str) -> str:
        before = WHO.get()
        WHO.set(name)
        return before

    for name in ("ada", "bob"):
        task, _ = await in_callback(begin, start, work(name))
        assert task.result() == "caller"
    assert WHO.get() == "caller"


@pytest.mark.parametrize("start", STARTS)
async def test_what_is_raised_is_kept_in_the_task(start):
    """Also in the first step."""

    async def work() -> None:
        raise LookupError("lost")

    task, was_done = await in_callback(begin, start, work())
    assert was_done
    with pytest.raises(LookupError, match="lost"):
        task.result()


@pytest.mark.parametrize("start", STARTS)
async def test_the_loop_is_as_before_and_nothing_that_others_asked_is_lost(start):
    """Finalizers may ask the loop for something at any moment, also while a task is made."""
    loop = asyncio.get_running_loop()
    called = asyncio.Event()

    class Dying:
        def __del__(self) -> None:
            loop.call_soon(called.set)

    class Coroutine:
        """Leaves garbage that is collected while the task is made."""

        def __await__(self):
            return iter(())

    async def work() -> str:
        await Coroutine()
        return "done"

    cycle = Dying()
    cycle.itself = cycle  # type: ignore[attr-defined]  # only the collector frees it
    del cycle
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        task, _ = await in_callback(begin, start, work())
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    async with asyncio.timeout(1):
        await called.wait()
    assert task.result() == "done"
    assert "call_soon" not in vars(loop)


class AskingLoop(asyncio.SelectorEventLoop):
    """Asks itself for something while a task is made, as finalizers may: the making looks whether the loop debugs."""

    def __init__(self) -> None:
        self.to_ask: list[tuple[object, ...]] = []
        self.context: contextvars.Context | None = None
        super().__init__()

    def get_debug(self) -> bool:
        asked, self.to_ask = self.to_ask, []
        for args in asked:
            self.call_soon(*args, context=self.context)
        return super().get_debug()


@pytest.mark.parametrize("start", STARTS)
def test_what_is_asked_while_the_task_is_made_is_called_later(start):
    """With its arguments, in its context, in its order, and not before the work has begun."""
    calls = []

    async def work() -> str:
        calls.append("begun")
        return "done"

    async def main() -> tuple[str, bool]:
        loop = asyncio.get_running_loop()
        loop.context = contextvars.copy_context()
        loop.context.run(WHO.set, "finalizer")

        def begin_asked():
            loop.to_ask = [(call, "first", 1), (call, "second", 2)]
            result = begin(start, work())
            calls.append(len(loop.to_ask))
            return result

        task, was_done = await in_callback(begin_asked)
        for _ in range(3):
            await asyncio.sleep(0)
        return task.result(), was_done

    def call(*args: object) -> None:
        calls.append((*args, WHO.get()))

    with asyncio.Runner(loop_factory=AskingLoop) as runner:
        assert runner.run(main()) == ("done", True)
    assert calls == ["begun", 0, ("first", 1, "finalizer"), ("second", 2, "finalizer")]


async def test_it_refuses_to_run_inside_another_task():
    """Two tasks cannot run at once; whoever is in one has `create_task`."""

    async def work() -> None: ...

    with pytest.raises(RuntimeError, match=r"use loop\.create_task"):
        start_task(work(), asyncio.get_running_loop())
