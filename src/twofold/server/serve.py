"""From a server to a process that serves: the event loop, the streams, the signals."""

import asyncio
import contextlib
import signal
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from twofold.server.connection import Connection, Writer
from twofold.transports.stdio import LineWriter, Streams, claim_streams, serve_lines


class Servable(Protocol):
    """What is served: a server, as far as serving needs to know it."""

    def live(self) -> AbstractAsyncContextManager[None]:
        """Hold its lifespan open."""
        ...

    def connect(self, writer: Writer) -> Connection:
        """Open a connection."""
        ...

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection."""
        ...


def serve_stdio(server: Servable) -> None:
    """Serve one client over this process's standard streams, until it has gone or a signal ends it."""
    with claim_streams() as streams:
        asyncio.run(_serve(server, streams))


async def _serve(server: Servable, streams: Streams) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
            loop.add_signal_handler(number, stop.set)

    async with server.live():
        opened: list[Connection] = []

        def connect(writer: LineWriter) -> Connection:
            connection = server.connect(writer)
            opened.append(connection)
            return connection

        try:
            await serve_lines(streams, connect, stop=stop)
        finally:
            for connection in opened:
                server.disconnect(connection)
