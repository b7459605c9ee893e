"""Answers over HTTP: which status, which headers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from twofold.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingRequiredClientCapability,
    ParseError,
    ProtocolError,
    ServerBusy,
    UnsupportedProtocolVersion,
)
from twofold.protocol.jsonrpc import encode_error

JSON_TYPE = b"application/json"
STREAM_TYPE = b"text/event-stream"
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Reply: TypeAlias = Callable[[int, Headers, bytes], Awaitable[None]]
"""Sends a whole answer: status, headers, body."""
STREAM_HEADERS: Headers = (
    (b"content-type", STREAM_TYPE),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # a proxy that gathers events before it passes them on defeats them
)
RETRY_AFTER: Headers = ((b"retry-after", b"1"),)
"""With 503: places are free again as soon as a call has ended."""

_STATUSES = {
    ParseError.fixed_code: 400,
    InvalidRequest.fixed_code: 400,
    InvalidParams.fixed_code: 400,
    HeaderMismatch.fixed_code: 400,
    MissingRequiredClientCapability.fixed_code: 400,
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
        self.headers = list(headers)
        self.closes = closes


def status_of(error: ProtocolError | None) -> int:
    """Tell the status of an answer of revision 2026-07-28: errors of the protocol have their own."""
    if error is None:
        return 200
    return 503 if isinstance(error, ServerBusy) else _STATUSES.get(error.code, 200)


async def send_json(reply: Reply, body: bytes, *, status: int = 200, headers: Headers = ()) -> None:
    """Answer with one JSON object; 503 says when to come again."""
    fields = [(b"content-type", JSON_TYPE), (b"content-length", b"%d" % len(body)), *headers]
    if status == 503 and not any(name == b"retry-after" for name, _ in headers):
        fields += RETRY_AFTER
    await reply(status, fields, body)


async def send_empty(reply: Reply, status: int, headers: Headers = ()) -> None:
    """Answer with a status alone."""
    length = () if status == 204 else ((b"content-length", b"0"),)  # RFC 9110, 8.6
    await reply(status, [*length, *headers], b"")


async def send_refusal(reply: Reply, refusal: Refusal, *, headers: Headers, http_version: str) -> None:
    """Answer with what is wrong, as a JSON-RPC error without an id.

    Args:
        reply: Sends an answer.
        refusal: What is wrong.
        headers: More headers.
        http_version: The request's; from 2 on nobody may speak of the connection in a header.
    """
    fields = [*refusal.headers, *headers]
    if refusal.closes and http_version.startswith("1"):
        fields.append((b"connection", b"close"))
    await send_json(reply, encode_error(None, refusal.error), status=refusal.status, headers=fields)
