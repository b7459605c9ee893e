"""What stands between a transport and a server: one message's way back, and what came with it."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from twofold.errors import ProtocolError


class Writer(Protocol):
    """Where messages go."""

    def write(self, message: bytes) -> None:
        """Send one message; called on the event loop."""
        ...

    async def drain(self) -> None:
        """Wait until there is room for more."""
        ...


class Answer(msgspec.Struct, frozen=True):
    """What a peer is answered. Seen by the garbage collector: an error's traceback leads back to it.

    Attributes:
        body: The message.
        error: What was wrong, where it is an error.
        is_unreadable: It answers bytes that are no message.
    """

    body: bytes
    error: ProtocolError | None = None
    is_unreadable: bool = False


class Exchange(Writer, Protocol):
    """One line's way back, and what came with it beside its bytes: `write` sends messages about the request."""

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """HTTP headers, by lower-case name, that must agree with the body; None where the transport has none."""
        ...

    @property
    def principal(self) -> object:
        """Who asks, as the server's `authorize` said; else None."""
        ...

    @property
    def is_taken_back(self) -> bool:
        """Whether nobody waits for the answer any more, so that a cancellation is meant."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether whoever serves is about to end, so that a cancellation comes from there."""
        ...

    def admit(self, name: str) -> None:
        """Let a call of this tool or prompt begin.

        Raises:
            ServerBusy: Others of the same name have taken all that one may have.
        """
        ...

    def finish(self, answer: Answer | None) -> None:
        """Send the answer; None if none is owed."""
        ...

    def cancel(self) -> None:
        """Send no answer: the request was taken back."""
        ...

    def close_stream(self) -> None:
        """Let go of the way back until the peer asks for it again, where that is possible."""
        ...


class LineExchange(msgspec.Struct, frozen=True):
    """The exchange of a transport that is one stream of lines: everything goes to its writer.

    Seen by the garbage collector: the writer of a session leads back to it.
    """

    writer: Writer
    headers: None = None
    principal: None = None

    def write(self, message: bytes) -> None:
        """Send one message."""
        self.writer.write(message)

    async def drain(self) -> None:
        """Wait until there is room for more."""
        await self.writer.drain()

    @property
    def is_taken_back(self) -> bool:
        """Whether nobody waits for the answer any more: the connection would be closed."""
        return False

    @property
    def is_ending(self) -> bool:
        """Whether whoever serves is about to end: the connection would be closed."""
        return False

    def admit(self, name: str) -> None:
        """Let it begin: whoever hands lines on has counted before."""

    def finish(self, answer: Answer | None) -> None:
        """Send the answer."""
        if answer is not None:
            self.writer.write(answer.body)

    def cancel(self) -> None:
        """Send nothing."""

    def close_stream(self) -> None:
        """The stream is the connection: it stays."""
