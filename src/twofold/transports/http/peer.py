"""What the HTTP transport needs to know of a server: where it hands messages in, what it gets back."""

from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from twofold.transports.exchange import Answer, Exchange, Writer


class Connection(Protocol):
    """The server's end of one session, or of one request that needs none."""

    @property
    def session(self) -> Any:
        """What a handshake agreed on; its `revision` names it. None without one."""
        ...

    @property
    def running(self) -> int:
        """How many requests are being worked on."""
        ...

    def receive(self, line: bytes, exchange: Exchange) -> None:
        """Take a message; its exchange is finished when the answer is ready."""
        ...

    def answer(self, line: bytes, exchange: Exchange) -> Coroutine[Any, Any, Answer | None]:
        """Take a message and give back its answer, None if none is owed; the work is done in this task."""
        ...

    def end_subscriptions(self) -> None:
        """Answer what only waits for changes."""
        ...

    async def close(self, *, grace_seconds: float) -> None:
        """Let what runs finish for a while, then cancel it."""
        ...


class Server(Protocol):
    """What is served."""

    @property
    def name(self) -> str:
        """What it calls itself."""
        ...

    def live(self) -> AbstractAsyncContextManager[Any]:
        """Hold its lifespan open; gives what connections are opened with."""
        ...

    def connect(self, writer: Writer, offer: Any, *, assumed_revision: str | None = None) -> Connection:
        """Open a connection."""
        ...

    def disconnect(self, connection: Any) -> None:
        """Forget a connection."""
        ...
