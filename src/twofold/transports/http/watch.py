"""Doing a request's work in its own task, and only where that takes a while, watching whether the client stays."""

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


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
