"""Threads for sync tools and for long checks.

The standard pool joins its threads when the process ends, so one hanging tool would keep a server
alive after its client has gone. These are daemon threads, started when none is idle.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

import msgspec

MAX_THREADS = 256
"""A bound on blocked tools, not on speed: beyond it, sync calls wait for a thread."""


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
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, run: Callable[[], Any], *, on_end: Callable[[], None] | None = None) -> asyncio.Future[Any]:
        """Run something in a thread, in a copy of the caller's context variables.

        Args:
            run: Called without arguments.
            on_end: Called on the event loop when `run` has really ended, even if nobody waits any more.

        Returns:
            A future of its outcome. Cancelling it drops the outcome; the thread goes on to its end.
        """
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        context = contextvars.copy_context()
        self._jobs.put(_Job(lambda: context.run(run), future, on_end, loop))
        if not self._idle.acquire(blocking=False) and self._count < self._max_threads:
            self._count += 1
            threading.Thread(target=self._work, name=f"twofold-{self._count}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            value: Any = None
            failure: BaseException | None = None
            try:
                value = job.run()
            except BaseException as error:  # noqa: BLE001 - whatever it is, the waiting call must learn of it
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                job.loop.call_soon_threadsafe(_settle, job, value, failure)
            del job, value, failure  # an idle thread keeps nothing of the last call alive
            self._idle.release()


def _settle(job: _Job, value: Any, failure: BaseException | None) -> None:
    if job.on_end is not None:
        job.on_end()
    if job.future.cancelled():
        return
    if failure is None:
        job.future.set_result(value)
    elif isinstance(failure, StopIteration):  # a future cannot hold one
        job.future.set_exception(RuntimeError("the function raised StopIteration"))
    else:
        job.future.set_exception(failure)
