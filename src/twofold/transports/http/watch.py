"""Doing a request's work in its own task, and only where that takes a while, watching whether the client stays."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Deadline:
    """Cancels the task that started it when its time is over; costs nothing where it is never started."""

    __slots__ = ("_is_over", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    def start(self) -> None:
        """Let the time run; a second start does not begin anew."""
        if self._timer is None:
            self._task = asyncio.current_task()
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def stop(self) -> None:
        """Stop it."""
        if self._timer is not None:
            self._timer.cancel()

    def take_back(self) -> bool:
        """Tell whether it was this that cancelled the task, which then goes on."""
        return self._is_over and self._task is not None and self._task.uncancel() == 0

    def _expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()


class OnSuspend(Generic[T]):
    """Awaits work; the first time the work has to wait for something, calls `on_suspend`.

    Most calls never wait: they need no watcher, no timer and no second task, which cost more than a small call.
    """

    __slots__ = ("_on_suspend", "_work")

    def __init__(self, work: Awaitable[T], on_suspend: Callable[[], None]) -> None:
        self._work = work
        self._on_suspend = on_suspend

    def __await__(self) -> Generator[Any, Any, T]:
        """Step the work, as `await` does."""
        steps = self._work.__await__()
        resume: Callable[[], Any] = partial(next, steps)
        is_suspended = False
        while True:
            try:
                waited_for = resume()
            except StopIteration as done:
                result: T = done.value
                return result
            if not is_suspended:
                is_suspended = True
                self._on_suspend()
            try:
                yield waited_for
            except BaseException as failure:  # noqa: BLE001 - handed on to the work, where it belongs
                resume = partial(steps.throw, failure)
            else:
                resume = partial(next, steps)
