"""A bound on the time that a request's own task takes, which costs next to nothing where the task does not wait."""

import asyncio
from typing import Any


class Deadline:
    """Cancels the task that made it when its time is over.

    Most bodies are there when they are asked for. So the timer is set in the event loop's next turn, which comes
    before `stop` only if the task has waited for something: a callback costs a third of a timer.
    """

    __slots__ = ("_handle", "_is_over", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        self._handle: asyncio.Handle = loop.call_soon(self._start)

    def stop(self) -> None:
        """Stop it."""
        self._handle.cancel()

    def take_back(self) -> bool:
        """Tell whether it was this that cancelled the task, which then goes on."""
        return self._is_over and self._task is not None and self._task.uncancel() == 0

    def _start(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
