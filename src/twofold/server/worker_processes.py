"""Several processes that serve one address: begun together, replaced one by one, ended together.

The parent binds the sockets and hands them on; it runs none of the author's code. Parent and worker hold the two ends
of a socket pair: the worker says there that it serves, the parent that it is to end, and each notices there that the
other has gone. No signals pass between them: whoever ends a service may signal all its processes, and a worker
would take a second signal for the demand to end at once.

Importing this module imports uvicorn, as `serve_http` does.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from twofold.errors import TransportError
from twofold.server.lifecycle import end_hard, run_to_end
from twofold.server.serve_http import Connect, run_server, serve
from twofold.transports.http.app import StreamableHTTP

logger = logging.getLogger("twofold")

TURN_CONNECTIONS = 4
"""So many are accepted in one go."""
TURN_SECONDS = 0.001
"""So long the next are left to other workers; one alone still takes 4,000 connections a second."""
REFUSED_SECONDS = 1.0
"""So long nothing is accepted after the system refused to hand over a connection."""
_SERVING = b"s"
_END = b"e"


class WorkerFailed(TransportError):
    """A worker that does not get as far as serving.

    Attributes:
        exit_code: What it ended with; the negative number of the signal that ended it; None if it was never begun.
    """

    def __init__(self, message: str, *, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """When a worker that has ended is replaced.

    Attributes:
        first_delay_seconds: How long the second worker waits that takes the place of one that did not last; each
            further one waits twice as long. The first takes it at once.
        max_delay_seconds: None waits longer.
        steady_seconds: What has served so long has lasted.
        max_failed_starts: So many in a row that never served in one place end everything.
        end_seconds: So long all workers together have for their end; longer than the grace of their running calls,
            the closing of the lifespan, and what follows.
    """

    first_delay_seconds: float = 0.5
    max_delay_seconds: float = 10.0
    steady_seconds: float = 10.0
    max_failed_starts: int = 8
    end_seconds: float = 20.0


def run_workers(
    make_command: Callable[[Sequence[int], int], Sequence[str]],
    listeners: Sequence[socket.socket],
    *,
    count: int,
    on_serving: Callable[[], None],
    replacement: Replacement | None = None,
) -> None:
    """Keep worker processes serving until SIGINT or SIGTERM, and leave none behind.

    At the first signal, workers finish what runs; at the second, this process and they end at once. Where this process
    is killed, they end by themselves.

    Args:
        make_command: Given the file descriptors of the listeners and of the worker's end of the socket pair, gives
            the command of a process that calls `Parent` and `serve_as_worker` with them.
        listeners: From `bind`; closed at the end.
        count: How many workers.
        on_serving: Called once, when the first serves.
        replacement: When a worker that has ended is replaced.

    Raises:
        WorkerFailed: The first worker never served, or later ones did not again and again.
        RuntimeError: Called where an event loop is running.
    """
    crew = _Crew(make_command, listeners, on_serving=on_serving, replacement=replacement or Replacement())
    try:
        is_stuck = run_to_end(lambda stop: crew.keep(count, stop))
    finally:
        _close(listeners)
    if is_stuck:
        end_hard()


def serve_as_worker(app: StreamableHTTP, listeners: Sequence[socket.socket], parent: "Parent") -> None:
    """Serve an app until the parent says so or has gone, or a signal comes; bounds are those of `serve_http`.

    Args:
        app: What is served.
        listeners: Inherited from the parent; closed at the end.
        parent: Told when this worker serves.

    Raises:
        TransportError: The app would not start.
        BaseException: What its lifespan raised.
    """

    async def serve_until(stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def end() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the end is under way
                loop.call_soon_threadsafe(stop.set)

        parent.call_at_end(end)
        await serve(
            app, listeners, stop=stop, on_serving=parent.tell_serving, on_stopping=app.stop, listen=listen_by_turns
        )

    run_server(serve_until)


async def listen_by_turns(connect: Connect, listener: socket.socket) -> "TurnTaking":
    """Begin to accept connections from a socket that other processes accept from too.

    Args:
        connect: Makes the protocol of a connection.
        listener: Closed by the `close` of what is returned.
    """
    listener.setblocking(False)
    return TurnTaking(connect, listener)


class TurnTaking:
    """Accepts a few connections, then leaves the next to others for a moment.

    The event loops' own servers take all that wait: of connections that come together, the process that wakes up first
    would get nearly all, and keep them as long as their clients do.
    """

    def __init__(self, connect: Connect, listener: socket.socket) -> None:
        self._connect = connect
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._left = TURN_CONNECTIONS
        self._resume()

    def close(self) -> None:
        """Accept no more, and close the socket."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()
        self._listener.close()

    def _resume(self) -> None:
        self._left = TURN_CONNECTIONS
        self._loop.add_reader(self._listener, self._accept)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was faster, or the client has gone
        except OSError as error:  # no descriptors, no memory: it stays readable, and would take all the time
            logger.warning("no connection can be accepted for %g seconds: %s", REFUSED_SECONDS, error)
            self._rest(REFUSED_SECONDS)
            return
        accepted.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._connect, accepted))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        self._left -= 1
        if not self._left:
            self._rest(TURN_SECONDS)


class Parent:
    """The process that began this worker. To be made before the author's code runs, which may take its time.

    Until `call_at_end` is called there is nothing to be finished: then the parent's word ends this process at once.

    Args:
        control: The worker's end of the socket pair.
        end_seconds: So long this process has for its end if the parent has gone; else the parent sees to that.
    """

    def __init__(self, control: socket.socket, *, end_seconds: float = Replacement().end_seconds) -> None:
        self._control = control
        self._end_seconds = end_seconds
        self._lock = threading.Lock()
        self._is_at_end = False
        self._end: Callable[[], None] = end_hard
        # A thread, since the event loop may be blocked by a tool, and does not run yet.
        threading.Thread(target=self._watch, name="twofold-parent", daemon=True).start()

    def call_at_end(self, end: Callable[[], None]) -> None:
        """Say what begins the end of this process; it is called in a thread."""
        with self._lock:
            self._end = end
            if self._is_at_end:
                end()

    def tell_serving(self) -> None:
        """Tell the parent that connections are accepted."""
        with contextlib.suppress(OSError):  # it has gone, which is noticed elsewhere
            self._control.send(_SERVING)

    def _watch(self) -> None:
        is_told = bool(self._hear())
        with self._lock:
            self._is_at_end = True
            self._end()
        if is_told:
            self._hear()  # nothing more is said: the parent, which waits for this end, was itself ended at once
        else:
            time.sleep(self._end_seconds)
        os._exit(1)

    def _hear(self) -> bytes:
        """Wait for the parent's word; nothing if it has gone."""
        try:
            return self._control.recv(1)
        except OSError:
            return b""


class _Worker:
    """One worker process, as the parent sees it."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self.process = process
        self._control = control

    async def serves(self) -> bool:
        """Wait until it serves; False if it ends before."""
        try:
            return bool(await asyncio.get_running_loop().sock_recv(self._control, 1))
        except OSError:
            return False

    def tell_end(self) -> None:
        """Tell it to finish what runs, and to end."""
        with contextlib.suppress(OSError):  # it has ended
            self._control.send(_END)

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def ended(self) -> int:
        """Wait for its end; gives its exit code, or the negative number of the signal that ended it."""
        status = await self.process.wait()
        self._control.close()
        return status


class _Crew:
    """The workers, and who takes the place of one that ends."""

    def __init__(
        self,
        make_command: Callable[[Sequence[int], int], Sequence[str]],
        listeners: Sequence[socket.socket],
        *,
        on_serving: Callable[[], None],
        replacement: Replacement,
    ) -> None:
        self._make_command = make_command
        self._listeners = listeners
        self._on_serving = on_serving
        self._replacement = replacement
        self._workers: set[_Worker] = set()
        self._has_served = asyncio.Event()

    async def keep(self, count: int, stop: asyncio.Event) -> None:
        """Keep so many workers until `stop` is set or it makes no sense any more; then end them."""
        places = [asyncio.create_task(self._keep_place(is_first=number == 0)) for number in range(count)]
        stopping = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait((stopping, *places), return_when=asyncio.FIRST_COMPLETED)
            for each in done - {stopping}:
                each.result()  # a place is kept for ever, but for a fault
        finally:
            for each in (stopping, *places):
                each.cancel()
            await asyncio.gather(stopping, *places, return_exceptions=True)
            await self._end()

    async def _keep_place(self, *, is_first: bool) -> None:
        """Keep one place filled. The first goes ahead: what lets no worker start is told once."""
        if not is_first:
            await self._has_served.wait()
        delay, failed_starts = 0.0, 0
        while True:
            seconds, status, name = await self._run_one()
            failed_starts = 0 if seconds is not None else failed_starts + 1
            self._check(status, failed_starts)
            is_steady = seconds is not None and seconds >= self._replacement.steady_seconds
            delay = 0.0 if is_steady else delay
            logger.warning("%s; another takes its place%s", _say_end(name, status), f" in {delay:g} s" if delay else "")
            await asyncio.sleep(delay)
            if not is_steady:
                doubled = max(self._replacement.first_delay_seconds, 2 * delay)
                delay = min(doubled, self._replacement.max_delay_seconds)

    async def _run_one(self) -> tuple[float | None, int | None, str]:
        """Run one worker to its end.

        Returns:
            How long it served, or None; how it ended, or None where it was not even begun; its name.
        """
        try:
            worker = await self._begin()
        except OSError as error:  # no more processes, no more memory
            return None, None, f"a worker could not be begun ({error.strerror or error})"
        loop = asyncio.get_running_loop()
        began = None
        if await worker.serves():
            began = loop.time()
            if not self._has_served.is_set():
                self._has_served.set()
                self._on_serving()
        status = await worker.ended()
        self._workers.discard(worker)
        return None if began is None else loop.time() - began, status, f"worker {worker.process.pid}"

    async def _begin(self) -> _Worker:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            listeners = [each.fileno() for each in self._listeners]
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._make_command(listeners, theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    pass_fds=(*listeners, theirs.fileno()),
                    start_new_session=True,  # a terminal's Ctrl-C is for the parent, which tells the workers
                )
            except BaseException:
                ours.close()
                raise
        worker = _Worker(process, ours)
        self._workers.add(worker)
        return worker

    def _check(self, status: int | None, failed_starts: int) -> None:
        """Give up where going on makes no sense."""
        if failed_starts and not self._has_served.is_set():
            raise WorkerFailed(f"no worker serves: {_say_end('the first', status)}", exit_code=status)
        if failed_starts >= self._replacement.max_failed_starts:
            raise WorkerFailed(
                f"workers no longer start: {_say_end('the last of ' + str(failed_starts), status)}; mend what they "
                "say, then serve again",
                exit_code=status,
            )

    async def _end(self) -> None:
        """Let workers finish, within a bound; none is left."""
        _close(self._listeners)  # who comes now is refused, once each worker has closed its own
        for worker in self._workers:
            worker.tell_end()
        endings = [asyncio.create_task(worker.ended()) for worker in self._workers]
        if endings:
            _, late = await asyncio.wait(endings, timeout=self._replacement.end_seconds)
            if late:
                logger.warning(
                    "%d workers did not end within %g seconds: killed", len(late), self._replacement.end_seconds
                )
            for worker in self._workers:
                worker.kill()
            await asyncio.wait(endings)


def _say_end(name: str, status: int | None) -> str:
    if status is None:
        return name
    if status >= 0:
        return f"{name} ended with exit code {status}"
    try:
        return f"{name} was ended by {signal.Signals(-status).name}"
    except ValueError:  # one of those that have no name
        return f"{name} was ended by signal {-status}"


def _close(listeners: Sequence[socket.socket]) -> None:
    for each in listeners:
        each.close()
