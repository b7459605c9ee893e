"""The Asynchronous Server Gateway Interface, version 3, as far as it is used here."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST = "twofold.request"
"""An extension of our own server: shortcuts that cost less than events. Others have none."""


class Request(Protocol):
    """What our server offers with a request, to an application that nothing stands before.

    Attributes:
        fields: The very object that is `headers` of the scope.
        notes: What the application made of this very head before; lives as long as the connection.
    """

    fields: list[tuple[bytes, bytes]]
    notes: dict[object, Any]

    def take_body(self) -> bytes | None:
        """Take the whole body, which `receive` then does not give; None where it has not come yet."""
        ...

    def answer(self, status: int, fields: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a whole answer; False where the peer does not keep up, and `send` has to wait for it."""
        ...


def known_head(scope: Scope) -> Request | None:
    """Give our server's request where the scope still has its head, which others may have changed on its way."""
    request: Request | None = scope.get("extensions", _NOTHING).get(REQUEST)
    return request if request is not None and scope["headers"] is request.fields else None


def direct(request: Request | None, channel: Receive | Send) -> Request | None:
    """Give our server's request where its own `receive` or `send` came here, and nobody's who listens in between."""
    return request if request is not None and getattr(channel, "__self__", None) is request else None


_NOTHING: dict[str, Any] = {}
