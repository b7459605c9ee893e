"""A server over this process's standard streams: starting, serving one client, ending."""

import asyncio
import select
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

from twofold.server.connection import Connection, Offer
from twofold.server.intake import Intake
from twofold.server.lifecycle import END_SECONDS, TEARDOWN_SECONDS, end_hard, run_to_end
from twofold.tools.run import wait_for_left
from twofold.transports.exchange import Writer
from twofold.transports.stdio import LineWriter, Streams, claim_streams, serve_lines

LOOK_SECONDS = 0.25
"""So often it is looked whether the client has gone while the server is still starting."""


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
    with claim_streams() as streams:
        is_stuck = run_to_end(partial(_serve, server, streams))
    if is_stuck:
        end_hard()


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
                opened[-1].before_slow = writer.send_gathered
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


def _has_gone(fd: int) -> bool:
    """Tell whether the client has closed its end and left nothing to read; asked while nobody reads yet."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & select.POLLHUP and not event & select.POLLIN for _, event in poll.poll(0))
