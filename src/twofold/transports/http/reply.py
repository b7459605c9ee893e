"""Answers over HTTP: which status, which headers."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from twofold.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    UnsupportedProtocolVersion,
)
from twofold.protocol.jsonrpc import encode_error

JSON_TYPE = b"application/json"
STREAM_TYPE = b"text/event-stream"
Headers = Sequence[tuple[bytes, bytes]]
STREAM_HEADERS: Headers = (
    (b"content-type", STREAM_TYPE),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # a proxy that gathers events before it passes them on defeats them
)

_STATUSES = {
    ParseError.fixed_code: 400,
    InvalidRequest.fixed_code: 400,
    InvalidParams.fixed_code: 400,
    HeaderMismatch.fixed_code: 400,
    -32021: 400,  # MissingRequiredClientCapability
    UnsupportedProtocolVersion.fixed_code: 400,
    MethodNotFound.fixed_code: 404,
}


class Refusal(Exception):
    """A request that is answered without a look at its message.

    Args:
        status: The HTTP status.
        error: What is wrong, sent without an id.
        headers: More headers.
        closes: The connection is closed after it, since what follows on it cannot be told.
    """

    def __init__(self, status: int, error: ProtocolError, *, headers: Headers = (), closes: bool = False) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [*headers, (b"connection", b"close")] if closes else list(headers)


def status_of(error: ProtocolError | None) -> int:
    """Tell the status of an answer of revision 2026-07-28: errors of the protocol have their own."""
    return 200 if error is None else _STATUSES.get(error.code, 200)


async def send_json(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    body: bytes,
    *,
    status: int = 200,
    headers: Headers = (),
) -> None:
    """Answer with one JSON object."""
    fields = [(b"content-type", JSON_TYPE), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def send_empty(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]], status: int, headers: Headers = ()
) -> None:
    """Answer with a status alone."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]], refusal: Refusal, headers: Headers = ()
) -> None:
    """Answer with what is wrong, as a JSON-RPC error without an id."""
    body = encode_error(None, refusal.error)
    await send_json(send, body, status=refusal.status, headers=[*refusal.headers, *headers])
