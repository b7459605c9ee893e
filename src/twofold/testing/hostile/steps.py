"""What a misbehaviour is made of: what was asked, and the steps that answer it, whatever they travel over."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from twofold.protocol.structs import Json

Transport: TypeAlias = Literal["stdio", "http"]


class Say(msgspec.Struct, frozen=True):
    """A message, framed as the transport frames one: a line, a JSON body, an event."""

    message: bytes


class Pour(msgspec.Struct, frozen=True):
    """Bytes as they are; over HTTP they belong to the body, and begin one of JSON."""

    data: bytes


class Complain(msgspec.Struct, frozen=True):
    """Bytes for stderr; over HTTP there is none."""

    data: bytes


class Wait(msgspec.Struct, frozen=True):
    """Nothing, for a while."""

    seconds: float


class HalfClose(msgspec.Struct, frozen=True):
    """The end of what the server says; it goes on listening."""


class Close(msgspec.Struct, frozen=True):
    """The end of the connection; over stdio that of the process."""


Step: TypeAlias = Say | Pour | Complain | Wait | HalfClose | Close

EVER = Wait(3600.0)
"""Longer than any client waits."""


class Asked(msgspec.Struct, frozen=True):
    """A message of the client's, and what an honest server would answer.

    Attributes:
        id: The request's; None for a notification, and for what is no message.
        method: Its method; over HTTP also `GET`, over stdio `start` and `end`.
        result: What an honest server answers.
        progress_token: Under which the client wants to hear of progress.
        origin: Where the server can be asked for other documents.
        last_id: The id of the request before this one.
        cursor: Which page of a list is asked for.
    """

    id: int | str | None
    method: str
    result: Mapping[str, Json]
    progress_token: Json = None
    origin: str = "http://127.0.0.1:9"
    last_id: int | str | None = None
    cursor: str | None = None

    def answer(self, **changed: Json) -> bytes:
        """Write the honest answer, with some members of the message set to something else, or left out if UNSET."""
        members: dict[str, Any] = {"jsonrpc": "2.0", "id": self.id, "result": self.result, **changed}
        return msgspec.json.encode({name: value for name, value in members.items() if value is not msgspec.UNSET})

    def answer_with(self, value: bytes) -> bytes:
        """Write the honest answer with JSON text, or what pretends to be some, as `structuredContent`."""
        others = {name: each for name, each in self.result.items() if name != "structuredContent"}
        result = msgspec.json.encode(others)
        comma = b"," if others else b""
        whole = b'{"structuredContent":%b%b%b' % (value, comma, result[1:])
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (msgspec.json.encode(self.id), whole)


Play: TypeAlias = Callable[[Asked], Iterator[Step]]


class Misbehaviour(msgspec.Struct, frozen=True):
    """Something that a server should not do.

    Attributes:
        name: Its name.
        what: What it is, in one sentence.
        method: What it answers, unless a script says otherwise.
        play: Gives the steps.
        transport: The only one it is for; None for any. One for HTTP alone pours whole responses, heads included.
        tool: Makes the definition of the tool that is called, as JSON; None for one without an output schema.
    """

    name: str
    what: str
    method: str
    play: Play
    transport: Transport | None = None
    tool: Callable[[Asked], Json] | None = None


def notification(method: str, params: Json) -> bytes:
    """Write a notification."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def request(method: str, request_id: Json) -> bytes:
    """Write a request of the server's own."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {}})
