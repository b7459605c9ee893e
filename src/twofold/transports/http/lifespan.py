"""A server's lifespan held open for an application, whether or not somebody sends it lifespan events."""

import asyncio
import contextlib
import contextvars
from typing import Any

from twofold.transports.http.peer import Server


class Lifespan:
    """Holds a server live in a task of its own, from the first request on if nobody said earlier.

    An application that is mounted in another gets no lifespan events; then the event loop's end closes it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        self._stop = asyncio.Event()

    async def open(self) -> Any:
        """Hold the server live, and give what connections are opened with.

        Raises:
            Exception: What its lifespan raised.
        """
        loop = asyncio.get_running_loop()
        if self._ready is None or self._task is None or not self._is_live_on(loop):
            self._loop = loop
            self._ready = loop.create_future()
            self._stop = asyncio.Event()
            # Not in the context of the request that happens to be the first.
            self._task = loop.create_task(self._hold(self._ready, self._stop), context=contextvars.Context())
        return await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Close the lifespan.

        Raises:
            Exception: What its lifespan raised.
        """
        if self._task is not None and self._loop is asyncio.get_running_loop():
            self._stop.set()
            await self._task

    def _is_live_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        is_over = self._task is None or self._task.done() or self._stop.is_set()
        return self._loop is loop and not is_over

    async def _hold(self, ready: asyncio.Future[Any], stop: asyncio.Event) -> None:
        try:
            async with self._server.live() as offer:
                ready.set_result(offer)
                with contextlib.suppress(asyncio.CancelledError):  # the event loop ends: close in order all the same
                    await stop.wait()
        except BaseException as failure:
            if ready.done():
                raise
            # Told to whoever waits for it, the next one tries again; what would end the event loop is told as an error.
            told = failure if isinstance(failure, Exception) else RuntimeError(f"it raised {type(failure).__name__}")
            ready.set_exception(told)
