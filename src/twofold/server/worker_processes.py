"""Several processes that serve one address: begun together, replaced one by one, ended together by their parent.

The parent binds the sockets and hands them on; it runs none of the author's code. Parent and worker hold the two ends
of a socket pair: the worker says there that it serves, the parent that it is to end, and each notices there that the
other has gone. No signals pass between them: whoever ends a service may signal all its processes, and a worker
would take a second signal for the demand to end at once. The worker's side is `server.worker`.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from twofold.errors import TransportError
from twofold.server.lifecycle import end_hard, run_to_end
from twofold.server.worker import END_SECONDS

logger = logging.getLogger("twofold")

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
        end_seconds: So long all workers together have for their end.
    """

    first_delay_seconds: float = 0.5
    max_delay_seconds: float = 10.0
    steady_seconds: float = 10.0
    max_failed_starts: int = 8
    end_seconds: float = END_SECONDS


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
            the command of a process that calls `worker.Parent` and `worker.serve_as_worker` with them.
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


class _Ending(NamedTuple):
    """How a worker ended; one that never served has no `seconds`, one that was never begun no `exit_code` either."""

    name: str
    how: str
    exit_code: int | None
    seconds: float | None


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
            ending = await self._run_one()
            failed_starts = failed_starts + 1 if ending.seconds is None else 0
            self._check(ending, failed_starts)
            is_steady = ending.seconds is not None and ending.seconds >= self._replacement.steady_seconds
            delay = 0.0 if is_steady else delay
            logger.warning(
                "%s %s; another takes its place%s", ending.name, ending.how, f" in {delay:g} s" if delay else ""
            )
            await asyncio.sleep(delay)
            if not is_steady:
                doubled = max(self._replacement.first_delay_seconds, 2 * delay)
                delay = min(doubled, self._replacement.max_delay_seconds)

    async def _run_one(self) -> "_Ending":
        """Run one worker to its end."""
        try:
            worker = await self._begin()
        except OSError as error:  # no more processes, no more memory
            return _Ending("a worker", f"could not be begun ({error.strerror or error})", None, None)
        loop = asyncio.get_running_loop()
        began = None
        if await worker.serves():
            began = loop.time()
            if not self._has_served.is_set():
                self._has_served.set()
                self._on_serving()
        status = await worker.ended()
        self._workers.discard(worker)
        seconds = None if began is None else loop.time() - began
        return _Ending(f"worker {worker.process.pid}", _say_how(status), status, seconds)

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

    def _check(self, ending: "_Ending", failed_starts: int) -> None:
        """Give up where going on makes no sense."""
        if failed_starts and not self._has_served.is_set():
            raise WorkerFailed(f"no worker serves: the first {ending.how}", exit_code=ending.exit_code)
        if failed_starts >= self._replacement.max_failed_starts:
            raise WorkerFailed(
                f"workers no longer start: the last of {failed_starts} {ending.how}; mend what they say, then serve "
                "again",
                exit_code=ending.exit_code,
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


def _say_how(status: int) -> str:
    """Say how a process ended, by its exit code or the negative number of the signal that ended it."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # one of those that have no name
        return f"was ended by signal {-status}"


def _close(listeners: Sequence[socket.socket]) -> None:
    for each in listeners:
        each.close()
