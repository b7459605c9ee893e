"""From a server to a process that serves: the event loop, the streams, the signals, the end."""

import asyncio
import contextlib
import logging
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from twofold.server.connection import Connection, Offer
from twofold.server.intake import Intake
from twofold.tools.run import wait_for_left
from twofold.transports.exchange import Writer
from twofold.transports.stdio import LineWriter, Streams, claim_streams, serve_lines

LOOK_SECONDS = 0.25
"""So often it is looked whether the client has gone while the server is still starting."""
TEARDOWN_SECONDS = 5.0
"""So long the lifespan may take to close."""
END_SECONDS = 1.0
"""So long what is left at the end may take before the process ends without it."""
MAX_LOG_RECORDS = 1000
"""Records that wait for a slow reader of stderr; later ones are dropped, and counted."""

_logger = logging.getLogger("twofold")
_LOGGERS = (_logger, logging.getLogger("asyncio"))  # the latter tells of tasks that tools left behind


class Servable(Protocol):
    """What is served: a server, as far as serving needs to know it."""

    def live(self) -> AbstractAsyncContextManager[Offer]:
        """Hold its lifespan open."""
        ...

    def connect(self, writer: Writer, offer: Offer) -> Connection:
        """Open a connection."""
        ...

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection."""
        ...


def serve_stdio(server: Servable) -> None:
    """Serve one client over this process's standard streams, until it has gone or a signal ends it.

    A tool that heeds no cancellation, or a stderr nobody reads, does not keep the process: then it ends hard.

    Raises:
        TransportError: A standard stream is closed.
        RuntimeError: Called where an event loop is running.
    """
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("mcp.run() has an event loop of its own; call it outside async code")
    with claim_streams() as streams, _LogThread() as log:
        loop = asyncio.new_event_loop()
        executor = ThreadPoolExecutor(thread_name_prefix="asyncio")  # what tools use with `asyncio.to_thread`
        loop.set_default_executor(executor)
        stop = asyncio.Event()
        try:
            asyncio.set_event_loop(loop)
            with _heed_signals(loop, stop):
                loop.run_until_complete(_serve(server, streams, stop))
        finally:
            is_stuck = _end_loop(loop)
            asyncio.set_event_loop(None)
            is_stuck |= not _end_threads(executor)
            is_stuck |= not log.finish()
    if is_stuck:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        os._exit(0)


async def _serve(server: Servable, streams: Streams, stop: asyncio.Event) -> None:
    """Start, serve, end; a signal or a client that has gone ends it at whatever stage."""
    started, ended = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(_serve_live(server, streams, stop=stop, started=started, ended=ended))
    starting, ending = asyncio.create_task(started.wait()), asyncio.create_task(ended.wait())
    while not (started.is_set() or serving.done() or stop.is_set() or _has_gone(streams.input_fd)):
        await asyncio.wait({serving, starting}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    starting.cancel()
    if started.is_set():
        await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({serving}, timeout=TEARDOWN_SECONDS)
    ending.cancel()
    if not serving.done():
        serving.cancel()
        await asyncio.wait({serving}, timeout=END_SECONDS)
    failure = serving.result() if serving.done() and not serving.cancelled() else None
    if failure is not None:
        raise failure


async def _serve_live(
    server: Servable, streams: Streams, *, stop: asyncio.Event, started: asyncio.Event, ended: asyncio.Event
) -> BaseException | None:
    """Serve with the lifespan open; give back what it raised, since a task that raises SystemExit ends the loop."""
    opened: list[Connection] = []
    try:
        async with server.live() as offer:

            def connect(writer: LineWriter) -> Intake:
                opened.append(server.connect(writer, offer))
                return Intake(opened[-1], writer)

            started.set()
            try:
                await serve_lines(streams, connect, stop=stop)
                await wait_for_left(END_SECONDS)
            finally:
                ended.set()
                for connection in opened:
                    server.disconnect(connection)
    except asyncio.CancelledError:
        raise
    except BaseException as failure:  # noqa: BLE001 - raised again by who started this task
        return failure
    return None


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


def _has_gone(fd: int) -> bool:
    """Tell whether the client has closed its end and left nothing to read; asked while nobody reads yet."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & select.POLLHUP and not event & select.POLLIN for _, event in poll.poll(0))


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
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._dropped += 1
        return False

    def _write(self) -> None:
        while (record := self._records.get()) is not None:
            logging.getLogger(record.name).callHandlers(record)
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                text = f"{dropped} log records were dropped: stderr was not read"
                _logger.callHandlers(logging.LogRecord("twofold", logging.WARNING, __file__, 0, text, None, None))
