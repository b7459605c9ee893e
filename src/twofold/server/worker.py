"""One of several processes that serve an address: its parent, its share of the connections, its end.

How they are kept is in `worker_processes`.
"""

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence

from twofold.server.lifecycle import end_hard
from twofold.server.serve_http import Connect, run_server, serve
from twofold.transports.http.app import StreamableHTTP

logger = logging.getLogger("twofold")

END_SECONDS = 20.0
"""So long a worker has for its end: the grace of running calls, the closing of the lifespan, and what follows."""
TURN_CONNECTIONS = 4
"""So many are accepted in one go."""
TURN_SECONDS = 0.001
"""So long the next are left to other workers; one alone still takes thousands of connections a second."""
REFUSED_SECONDS = 1.0
"""So long nothing is accepted after the system refused to hand over a connection."""
_SERVING = b"s"


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

    def __init__(self, control: socket.socket, *, end_seconds: float = END_SECONDS) -> None:
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
