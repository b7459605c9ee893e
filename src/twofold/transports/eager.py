"""Tasks that take their first step at once: most calls never wait, and then need no turn of the event loop."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def start_task(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
    """Begin work in a task of its own, in a copy of the context variables, now and not on the loop's next turn.

    Args:
        work: What is done.
        loop: The running event loop. No task may be running on it: this is for what the loop calls.

    Returns:
        The task; done already where the work never had to wait.

    Raises:
        RuntimeError: A task is running.
    """
    if asyncio.current_task(loop) is not None:
        work.close()
        raise RuntimeError("start_task is for callbacks of the event loop; in a task, use loop.create_task")
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return _start_by_hand(work, loop)


def _start_by_hand(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
    """Do what later Pythons do: a task asks its loop to call its first step soon; here it is called instead."""
    taking = _Taking()
    loop.call_soon = taking  # type: ignore[method-assign,assignment]  # nobody else runs until it is put back
    try:
        task = asyncio.Task(work, loop=loop)
    finally:
        del loop.call_soon
    for callback, args, context in taking.asked:
        if getattr(callback, "__self__", None) is task:
            context.run(callback)
        else:  # what a finalizer asked for, which may run at any time
            loop.call_soon(callback, *args, context=context)
    return task


class _Taking:
    """Stands for a loop's `call_soon`: keeps what it is asked."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked: list[tuple[Callable[..., object], tuple[object, ...], Any]] = []

    def __call__(self, callback: Callable[..., object], *args: object, context: Any = None) -> None:
        self.asked.append((callback, args, context))
