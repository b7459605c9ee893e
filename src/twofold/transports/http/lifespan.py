"""A server's lifespan held open for an application, whether or not somebody sends it lifespan events."""

import asyncio
import contextlib
from typing import Any

from twofold.transports.http.peer import Server


class Host:
    """Holds a server live in a task of its own, from the first request on if nobody said earlier.

    An application that is mounted in another gets no lifespan events; then the event loop's end closes it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        self._stop: asyncio.Event | None = None

    def is_live_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Tell whether the server is live on this event loop."""
        return self._loop is loop and self._task is not None and not self._task.done()

    async def open(self) -> Any:
        """Hold the server live, and give what connections are opened with.

        Raises:
            BaseException: What its lifespan raised.
        """
        loop = asyncio.get_running_loop()
        if not self.is_live_on(loop):
            self._loop = loop
            self._ready = loop.create_future()
            self._stop = asyncio.Event()
            self._task = loop.create_task(self._hold(self._ready, self._stop))
        ready = self._ready
        if ready is None:
            raise RuntimeError("the server is being closed")
        return await asyncio.shield(ready)

    async def close(self) -> None:
        """Close the lifespan.

        Raises:
            BaseException: What its lifespan raised.
        """
        if self._task is None or self._stop is None or not self.is_live_on(asyncio.get_running_loop()):
            return
        self._stop.set()
        await self._task

    async def _hold(self, ready: asyncio.Future[Any], stop: asyncio.Event) -> None:
        try:
            async with self._server.live() as offer:
                ready.set_result(offer)
                with contextlib.suppress(asyncio.CancelledError):  # the event loop ends: close in order all the same
                    await stop.wait()
        except BaseException as failure:
            if ready.done() or isinstance(failure, asyncio.CancelledError):
                ready.cancel()
                raise
            ready.set_exception(failure)  # told to whoever waits for it; the next one tries again
