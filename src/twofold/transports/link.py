"""What stands between a client and its transport: messages out, messages in, what became of each."""

from collections.abc import Mapping
from typing import Protocol

from twofold.errors import TransportError
from twofold.protocol.jsonrpc import RequestId


class Handler(Protocol):
    """Takes what comes from a server; every method is called on the event loop."""

    def take(self, message: bytes, *, about: RequestId | None = None) -> None:
        """Take one message: JSON text of an object, or of a batch.

        Args:
            message: The bytes.
            about: The request whose own stream it came on (HTTP); None where everything goes one way.
        """
        ...

    def take_broken(self, head: bytes, error: TransportError) -> None:
        """Take the start of something that is too large, or broken, to be a message."""
        ...

    def lost(self, error: TransportError) -> None:
        """Take the end: nothing more will come."""
        ...


class Link(Protocol):
    """One connection to one server."""

    @property
    def name(self) -> str:
        """What it leads to, for messages; without credentials."""
        ...

    @property
    def has_own_streams(self) -> bool:
        """Whether each request has a stream of its own (HTTP): closing it cancels a request of 2026-07-28."""
        ...

    @property
    def has_lost_session(self) -> bool:
        """Whether the server has ended the session (HTTP), and none was begun since."""
        ...

    async def open(self, handler: Handler) -> None:
        """Open the connection.

        Raises:
            NotSent: It cannot be opened.
        """
        ...

    async def send(self, message: bytes, *, request_id: RequestId | None, headers: Mapping[str, str]) -> None:
        """Send a request or a notification.

        Over HTTP it lasts until the server has said everything about it, and cancelling it closes the stream;
        else it lasts until the message is written.

        Args:
            message: JSON text.
            request_id: The request's id; None for a notification.
            headers: What HTTP mirrors of it.

        Raises:
            NotSent: Nothing of it has arrived.
            HttpStatusError: The server refused it by a status.
            ProtocolError: The server refused it with an error that has no id.
            TransportError: It may have arrived, and nothing more will come of it.
        """
        ...

    def settle(self, revision: str) -> None:
        """Learn which revision was agreed on."""
        ...

    async def close(self) -> None:
        """Close, within a bound, leaving no process, task or socket behind. Never raises."""
        ...
