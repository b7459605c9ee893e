"""Threads for sync tools and for long checks.

The standard pool joins its threads when the process ends, so one hanging tool would keep a server
alive after its client has gone. These are daemon threads, started when none is idle.
"""

import asyncio
import collections
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from twofold.errors import ToolError

MAX_THREADS = 512
"""A bound on blocked tools, not on speed: twice as many as calls run at once, so that only threads whose calls
were given up, and never ended, can use them up."""
SHARE = 3
"""A tool gets threads as long as it holds fewer than so many times what is free: one that hangs ends with three
quarters of them, the next with three quarters of what that left. Only a handful that hang take everything."""


class _Job(msgspec.Struct, frozen=True):
    """Something to run, and where its outcome goes."""

    run: Callable[[], Any]
    future: asyncio.Future[Any]
    on_end: Callable[[], None] | None
    loop: asyncio.AbstractEventLoop


class Workers:
    """A pool of daemon threads shared by one server."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._max_threads = max_threads
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._idle: collections.deque[None] = collections.deque()  # one entry a thread; both ends are atomic
        self._count = 0

    @property
    def thread_count(self) -> int:
        """How many threads have been started; none ends before the process."""
        return self._count

    def submit(
        self, run: Callable[[], Any], *, on_end: Callable[[], None] | None = None, held: int = 0
    ) -> asyncio.Future[Any]:
        """Run something in a thread, in a copy of the caller's context variables.

        Args:
            run: Called without arguments.
            on_end: Called on the event loop when `run` has really ended, even if nobody waits any more.
            held: How many threads whoever asks holds already; beyond its share it gets no more.

        Returns:
            A future of its outcome. Cancelling it drops the outcome; the thread goes on to its end.

        Raises:
            ToolError: Every thread, or the whole share, is taken by something that does not end.
        """
        free = self._max_threads - self._count + len(self._idle)
        if free and held >= SHARE * free:
            self._refuse(f"{held} of {self._max_threads} threads are taken by calls of this tool", on_end)
        try:
            self._idle.pop()
        except IndexError:
            self._start_thread(on_end)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        context = contextvars.copy_context()
        self._jobs.put(_Job(lambda: context.run(run), future, on_end, loop))
        return future

    def _start_thread(self, on_end: Callable[[], None] | None) -> None:
        can_start = self._count < self._max_threads
        if can_start:
            try:
                threading.Thread(target=self._work, name=f"twofold-{self._count}", daemon=True).start()
            except RuntimeError:  # the system has no more threads
                can_start = False
        if not can_start:
            self._refuse(f"all {self._count} threads are taken by calls", on_end)
        self._count += 1

    @staticmethod
    def _refuse(taken: str, on_end: Callable[[], None] | None) -> NoReturn:
        if on_end is not None:
            on_end()
        raise ToolError(f"the server is busy: {taken} that have not ended; try again later")

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            value: Any = None
            failure: BaseException | None = None
            try:
                if not job.future.cancelled():  # else nobody wants it any more
                    value = job.run()
            except BaseException as error:  # noqa: BLE001 - whatever it is, the waiting call must learn of it
                failure = error
            self._idle.append(None)  # before the outcome is known: whoever learns of it may submit at once
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                job.loop.call_soon_threadsafe(_settle, job, value, failure)
            del job, value, failure  # an idle thread keeps nothing of the last call alive


def _settle(job: _Job, value: Any, failure: BaseException | None) -> None:
    if job.on_end is not None:
        job.on_end()
    if job.future.cancelled():
        return
    if failure is None:
        job.future.set_result(value)
    elif isinstance(failure, StopIteration | GeneratorExit):  # a future cannot hand these on
        told = RuntimeError(f"the function raised {type(failure).__name__}")
        told.__cause__ = failure
        job.future.set_exception(told)
    else:
        job.future.set_exception(failure)
