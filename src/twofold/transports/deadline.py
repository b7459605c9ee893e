"""Bounds on the time that a request's own task takes, which cost next to nothing where the task does not wait."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def notice_wait(work: Coroutine[Any, Any, T], on_wait: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await work, and call something once when it waits for the first time.

    Most bodies are there when they are asked for, and most calls never wait: a timer for each would cost as much as a
    small call does.

    Args:
        work: What is awaited.
        on_wait: Called before the task is suspended.
    """
    try:
        waited_for = work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # it is what the work returns
    on_wait()
    while True:
        try:
            sent = yield waited_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as failure:  # noqa: BLE001 - handed on to whoever waits inside
            step: tuple[Callable[[Any], Any], Any] = (work.throw, failure)
        else:
            step = (work.send, sent)
        try:
            waited_for = step[0](step[1])
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # as above


class Deadline:
    """Cancels the task that made it when its time is over.

    Its time begins with `start`, which is for `notice_wait` to call.
    """

    __slots__ = ("_handle", "_is_over", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._task: asyncio.Task[Any] | None = None
        self._handle: asyncio.Handle | None = None

    def start(self) -> None:
        """Let the time begin, in the task that is bounded."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._handle = loop.call_later(self._seconds, self._expire)

    def stop(self) -> None:
        """Stop it."""
        if self._handle is not None:
            self._handle.cancel()

    def take_back(self) -> bool:
        """Tell whether it was this that cancelled the task, which then goes on."""
        return self._is_over and self._task is not None and self._task.uncancel() == 0

    def _expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
