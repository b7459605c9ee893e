"""A server in this process: the same bytes as over a wire, and no wire."""

import asyncio
import contextvars
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from twofold.errors import NotSent
from twofold.protocol.jsonrpc import RequestId
from twofold.transports.exchange import Writer
from twofold.transports.link import Handler

logger = logging.getLogger("twofold")

GRACE_SECONDS = 2.0
"""After closing, so long may running calls go on: as long as over stdio."""
TEARDOWN_SECONDS = 5.0
"""So long the lifespan may take to close."""
END_SECONDS = 1.0
"""So long what heeds no cancellation is waited for."""
_CALLS_SECONDS = GRACE_SECONDS + 2.0
"""More than a connection takes to finish its calls, or to give them up."""


class Connection(Protocol):
    """The server's end."""

    def receive(self, line: bytes) -> None:
        """Take a message."""
        ...

    async def close(self, *, grace_seconds: float) -> None:
        """Let what runs finish for a while, then cancel it."""
        ...


class ServedInMemory(Protocol):
    """What is talked to: an `MCPServer`, as far as a link needs to know it."""

    @property
    def name(self) -> str:
        """What it calls itself."""
        ...

    def live(self) -> AbstractAsyncContextManager[Any]:
        """Hold its lifespan open; gives what connections are opened with."""
        ...

    def connect(self, writer: Writer, offer: Any) -> Connection:
        """Open a connection."""
        ...

    def disconnect(self, connection: Any) -> None:
        """Forget a connection."""
        ...


class MemoryLink:
    """One connection to a server in this process; its lifespan is open as long as the link.

    What the server sends arrives on a later turn of the event loop, as from a wire: no call re-enters another. Its
    tools see the context variables of its lifespan, not of whoever calls them.

    Args:
        server: An `MCPServer`.
    """

    def __init__(self, server: ServedInMemory) -> None:
        self._server = server
        self._serving: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._failure: BaseException | None = None
        self._closing = asyncio.Event()
        self._connection: Connection | None = None
        self._context = contextvars.copy_context()
        self._outlet: _Outlet | None = None

    @property
    def name(self) -> str:
        """Which server it is."""
        return f"server {self._server.name!r:.80} in this process"

    @property
    def has_lost_session(self) -> bool:
        """There are no sessions to lose."""
        return False

    @property
    def has_own_streams(self) -> bool:
        """Everything goes one way."""
        return False

    async def open(self, handler: Handler) -> None:
        """Open the server's lifespan and a connection.

        Raises:
            NotSent: Its lifespan failed, or the link was opened before.
        """
        if self._serving is not None:
            raise NotSent(f"{self.name}: the link was opened before; make a new one")
        self._outlet = _Outlet(handler)
        # A task of its own: a lifespan has to be closed where it was opened, whoever opens and closes the link.
        self._serving = asyncio.create_task(self._serve(self._outlet))
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            await self.close()
            raise
        if self._connection is None:
            failure = self._failure
            reason = "it was cancelled" if failure is None else f"{type(failure).__name__}: {failure!s:.200}"
            raise NotSent(f"{self.name} could not start: its lifespan failed ({reason}); mend it") from failure

    async def send(self, message: bytes, *, request_id: RequestId | None, headers: Mapping[str, str]) -> None:  # noqa: ARG002 - see `Link`
        """Hand a message over.

        Raises:
            NotSent: The link is not open.
        """
        if self._connection is None:
            raise NotSent(f"{self.name}: the link is not open; use the client inside its `async with`")
        self._context.run(self._connection.receive, message)

    def settle(self, revision: str) -> None:
        """Nothing here depends on it."""

    async def close(self) -> None:
        """Close the connection and the lifespan, in this order and each within a bound."""
        if self._outlet is not None:
            self._outlet.close()
        connection, self._connection = self._connection, None
        self._closing.set()
        serving = self._serving
        if serving is None:
            return
        try:
            if connection is not None:  # else it is still opening, or has failed
                await asyncio.wait({serving}, timeout=_CALLS_SECONDS + TEARDOWN_SECONDS)
        finally:
            serving.cancel()  # does nothing to one that has ended
        if not serving.done():
            await asyncio.wait({serving}, timeout=END_SECONDS)
        if not serving.done():
            logger.warning("%s: its lifespan would not close, and was left behind", self.name)

    async def _serve(self, outlet: "_Outlet") -> None:
        """Hold lifespan and connection open until the link is closed."""
        try:
            async with self._server.live() as offer:
                self._context = contextvars.copy_context()
                connection = self._connection = self._server.connect(outlet, offer)
                self._settled.set()
                try:
                    await self._closing.wait()
                    await connection.close(grace_seconds=GRACE_SECONDS)
                finally:
                    self._connection = None
                    self._server.disconnect(connection)
        except (Exception, SystemExit) as failure:  # the author's own code; SystemExit in a task would end the loop
            if self._settled.is_set():  # nobody is left to raise it to
                logger.exception("%s: its lifespan failed as it was closed", self.name)
            self._failure = failure
        finally:
            self._settled.set()


class _Outlet:
    """What the server writes to."""

    def __init__(self, handler: Handler) -> None:
        self._handler: Handler | None = handler
        self._loop = asyncio.get_running_loop()

    def write(self, message: bytes) -> None:
        """Hand a message on, on a later turn of the event loop."""
        self._loop.call_soon(self._hand_on, message)

    async def drain(self) -> None:
        """There is always room."""

    def close(self) -> None:
        """Hand nothing on any more."""
        self._handler = None

    def _hand_on(self, message: bytes) -> None:
        if self._handler is not None:
            self._handler.take(message)
