"""The life of a process that serves, whatever the transport: its signals, its log, its end within a bound."""

import asyncio
import contextlib
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TEARDOWN_SECONDS = 5.0
"""So long the lifespan may take to close."""
END_SECONDS = 1.0
"""So long what is left at the end may take before the process ends without it."""
MAX_LOG_RECORDS = 1000
"""Records that wait for a slow reader of stderr; later ones are dropped, and counted."""
MAX_LOG_TRACES = 20
"""Of these, so many keep a trace, and with it every frame and local variable of a call that failed: one that recursed
to its limit has a thousand. Formatting them at once would hold up the event loop instead."""

_logger = logging.getLogger("twofold")
_LOGGERS = (_logger, logging.getLogger("asyncio"))  # which tells of tasks that tools left behind


def run_to_end(
    serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]],
    *,
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> bool:
    """Run what serves on an event loop of its own, then end everything it left behind, within a bound.

    Args:
        serve: Given an event that the first SIGINT or SIGTERM sets.
        make_loop: Makes the event loop.

    Returns:
        Whether something would not end: then the process should, with `end_hard`.

    Raises:
        RuntimeError: Called where an event loop is running.
    """
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("mcp.run() has an event loop of its own; call it outside async code")
    with _LogThread() as log:
        loop = make_loop()
        executor = ThreadPoolExecutor(thread_name_prefix="asyncio")  # what tools use with `asyncio.to_thread`
        loop.set_default_executor(executor)
        stop = asyncio.Event()
        try:
            asyncio.set_event_loop(loop)
            with _heed_signals(loop, stop):
                loop.run_until_complete(serve(stop))
        finally:
            is_stuck = _end_loop(loop)
            asyncio.set_event_loop(None)
            is_stuck |= not _end_threads(executor)
            is_stuck |= not log.finish()
    return is_stuck


def end_hard() -> None:
    """End the process although something in it would not: the interpreter would wait for it without bound."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    os._exit(0)


@contextlib.contextmanager
def _heed_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> Iterator[None]:
    """End in order at the first SIGINT or SIGTERM; the second has its usual effect, even if a tool blocks the loop."""
    before: dict[int, Any] = {}

    def end(_number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    with contextlib.suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel what is left and close the loop; tell whether something would not end."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=END_SECONDS))
    is_stuck = any(not task.done() for task in left)
    if is_stuck:
        return True  # closing the loop under a task that still runs would only add complaints
    generators = loop.create_task(loop.shutdown_asyncgens())
    loop.run_until_complete(asyncio.wait({generators}, timeout=END_SECONDS))
    if not generators.done():
        return True
    loop.close()
    return False


def _end_threads(executor: ThreadPoolExecutor) -> bool:
    """Tell whether what tools gave to the loop's threads has ended; the interpreter would wait for it without bound."""
    ending = threading.Thread(target=executor.shutdown, daemon=True)
    ending.start()
    ending.join(END_SECONDS)
    return not ending.is_alive()


class _LogThread:
    """Writes our log records in a thread of its own: a client may leave stderr unread, and tools must go on."""

    def __init__(self) -> None:
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(MAX_LOG_RECORDS)
        self._dropped = 0
        self._traces = 0
        self._thread = threading.Thread(target=self._write, name="twofold-log", daemon=True)

    def __enter__(self) -> "_LogThread":
        self._thread.start()
        for logger in _LOGGERS:
            logger.addFilter(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for logger in _LOGGERS:
            logger.removeFilter(self._take)

    def finish(self) -> bool:
        """Write what is left; tell whether that could be done in time."""
        self.__exit__()
        with contextlib.suppress(queue.Full):
            self._records.put(None, timeout=END_SECONDS)
        self._thread.join(END_SECONDS)
        return not self._thread.is_alive()

    def _take(self, record: logging.LogRecord) -> bool:
        if record.exc_info and self._traces >= MAX_LOG_TRACES:
            record.msg, record.args = f"{record.getMessage()} (its trace was left out: the log is behind)", None
            record.exc_info = None
        try:
            self._records.put_nowait(record)
            self._traces += bool(record.exc_info)
        except queue.Full:
            self._dropped += 1
        return False

    def _write(self) -> None:
        while (record := self._records.get()) is not None:
            logging.getLogger(record.name).callHandlers(record)
            self._traces -= bool(record.exc_info)  # two threads may miscount by a few, which is no matter
            del record  # while it waits for the next one, nothing of the last one is kept
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                text = f"{dropped} log records were dropped: stderr was not read"
                _logger.callHandlers(logging.LogRecord("twofold", logging.WARNING, __file__, 0, text, None, None))
