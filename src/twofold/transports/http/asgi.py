"""The Asynchronous Server Gateway Interface, version 3, as far as it is used here."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST = "twofold.request"
"""An extension of our own server: what an application need not ask for again. Others have none."""


class Request(msgspec.Struct, frozen=True):
    """What our server knows of a request.

    Attributes:
        notes: What the application made of this very head before; lives as long as the connection.
        take_body: Takes the whole body, which `receive` then does not give; None where it has not come yet.
    """

    notes: dict[object, Any]
    take_body: Callable[[], bytes | None]
