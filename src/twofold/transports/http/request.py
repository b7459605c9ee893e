"""What a client asks: the head checked for what no client sends, the body read within bounds."""

import asyncio

import msgspec

from twofold.errors import InvalidRequest
from twofold.protocol.headers import PROTOCOL_VERSION
from twofold.protocol.wire import PER_REQUEST_REVISIONS
from twofold.transports.deadline import Deadline, notice_wait
from twofold.transports.http.asgi import Receive, Scope
from twofold.transports.http.reply import Refusal

MAX_BODY_BYTES = 4 * 1024 * 1024
"""What a body may have if the server does not say otherwise."""
_PER_REQUEST = frozenset(revision.encode() for revision in PER_REQUEST_REVISIONS)
_MAY_REPEAT = frozenset(
    {b"accept", b"accept-encoding", b"accept-language", b"cache-control", b"cookie", b"forwarded", b"via"}
    | {b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"baggage", b"tracestate"}
)
"""Lists, or fields that we do not read. Any other that stands twice would let two readers see two things."""

_USUAL = frozenset({b"application/json, text/event-stream", b"*/*"})
"""What clients accept that accept everything we answer with."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """A request's head.

    Attributes:
        method: The HTTP method.
        path: Below where the server is mounted.
        whole_path: As the client asked for it.
        headers: By lower-case name.
        is_per_request: Its era, told by the header that a request of the newest revision must have.
        client: Its address, if known.
    """

    method: str
    path: str
    whole_path: str
    headers: dict[bytes, bytes]
    is_per_request: bool
    client: str | None


def read_head(scope: Scope) -> Head:
    """Read the head of a request.

    Raises:
        Refusal: A header stands twice that may stand once.
    """
    fields = scope["headers"]
    if not isinstance(fields, list):
        fields = list(fields)  # ASGI promises no more than an iterable
    headers = dict(fields)
    if len(headers) != len(fields):
        headers = _join_repeated(fields)
    whole_path: str = scope["path"]
    root: str = scope.get("root_path", "")
    is_below = root and whole_path.startswith(root) and whole_path[len(root) : len(root) + 1] in ("", "/")
    path = whole_path[len(root) :] if is_below else whole_path
    is_per_request = headers.get(PROTOCOL_VERSION, b"").strip() in _PER_REQUEST
    client = scope.get("client")
    return Head(scope["method"], path, whole_path, headers, is_per_request, client[0] if client else None)


def _join_repeated(fields: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    joined: dict[bytes, bytes] = {}
    for name, value in fields:
        if name not in joined:
            joined[name] = value
        elif name in _MAY_REPEAT:
            joined[name] += b", " + value
        else:
            shown = name.decode("latin-1")
            raise Refusal(400, InvalidRequest(f"the header {shown!r:.80} stands more than once; send it once"))
    return joined


async def read_body(head: Head, receive: Receive, *, max_bytes: int, seconds: float) -> bytes | None:
    """Read a body.

    Args:
        head: The request's head.
        receive: Gives its parts.
        max_bytes: More is refused, as soon as it is known.
        seconds: So long it may take to come.

    Returns:
        The bytes; None if the client has gone meanwhile.

    Raises:
        Refusal: It is too large, or too slow in coming.
    """
    announced = head.headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced[:20]) > max_bytes:
        raise too_large(f"{int(announced[:20])} bytes are announced", max_bytes)
    deadline = Deadline(seconds)
    try:
        return await notice_wait(_read_parts(receive, max_bytes), deadline.start)
    except asyncio.CancelledError:
        if not deadline.take_back():
            raise
        error = InvalidRequest(f"the body did not arrive within {seconds:g} seconds; send it again")
        raise Refusal(408, error, closes=True) from None
    finally:
        deadline.stop()


async def _read_parts(receive: Receive, max_bytes: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while (event := await receive())["type"] == "http.request":
        part: bytes = event.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise too_large(f"{size} bytes came", max_bytes)
        if not event.get("more_body"):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)
    return None


def too_large(what: str, max_bytes: int) -> Refusal:
    """Make the refusal of a body."""
    error = InvalidRequest(f"the body is too large: {what}, {max_bytes} are allowed (the server's max_body_bytes)")
    return Refusal(413, error, closes=True)


def check_posted_type(headers: dict[bytes, bytes]) -> None:
    """Refuse a body that is not said to be JSON: a web page can send other types without being asked first.

    Raises:
        Refusal: Status 415.
    """
    said = headers.get(b"content-type", b"")
    if said != b"application/json" and said.partition(b";")[0].strip().lower() != b"application/json":
        shown = said.decode("latin-1")
        raise Refusal(415, InvalidRequest(f"Content-Type: expected application/json, got {shown!r:.80}"))


def check_accepted(headers: dict[bytes, bytes], *wanted: bytes) -> None:
    """Refuse a client that does not take what it may be answered.

    Args:
        headers: The request's.
        wanted: The media types an answer may have.

    Raises:
        Refusal: Status 406.
    """
    said = headers.get(b"accept", b"*/*")
    if said in _USUAL:
        return
    accepted = {each.partition(b";")[0].strip().lower() for each in said.split(b",")}
    for kind in wanted:
        if kind not in accepted and not accepted & {b"*/*", kind.partition(b"/")[0] + b"/*"}:
            names = " and ".join(each.decode() for each in wanted)
            shown = said.decode("latin-1")
            raise Refusal(406, InvalidRequest(f"Accept: expected {names}, got {shown!r:.80}"))
