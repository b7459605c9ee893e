"""The Asynchronous Server Gateway Interface, version 3, as far as it is used here."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import MethodType
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST = "twofold.request"
"""An extension of our own server: shortcuts that cost less than events. Others have none."""
_NO_EXTENSIONS: dict[str, Any] = {}


class Request(Protocol):
    """What our server offers with a request; each part for an application that has it as the server gave it.

    Attributes:
        fields: What `headers` of the scope held when it was made.
        notes: What the application made of this very head before; lives as long as the connection.
    """

    fields: tuple[tuple[bytes, bytes], ...]
    notes: dict[object, Any]

    async def receive(self) -> Event:
        """Give the next event, as ASGI has it."""
        ...

    async def send(self, event: Event) -> None:
        """Take an event, as ASGI has it."""
        ...

    def take_body(self) -> bytes | None:
        """Take the whole body, which `receive` then does not give; None where it has not come yet."""
        ...

    def answer(self, status: int, fields: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a whole answer; False where the peer does not keep up, and `send` has to wait for it."""
        ...


def known_head(scope: Scope) -> Request | None:
    """Give our server's request, unless somebody has changed its headers on their way."""
    request: Request | None = scope.get("extensions", _NO_EXTENSIONS).get(REQUEST)
    if request is None:
        return None
    headers = scope["headers"]
    return request if type(headers) is list and tuple(headers) == request.fields else None


def is_own(channel: Receive | Send, own: Receive | Send) -> bool:
    """Tell whether `receive` or `send` is our server's, and nobody's who listens in between."""
    return type(channel) is MethodType and channel == own  # what passes attributes on, or compares as another, is not
