"""Server-sent events: written for a stream, read from one in whatever pieces it arrives.

Source: WHATWG HTML, "Server-sent events" (9.2.5 and 9.2.6); MCP 2025-11-25, Streamable HTTP, for the event
with an id and no data that primes a client to resume.
"""

import re

import msgspec

from twofold.errors import TransportError

KEEP_ALIVE = b":\r\n\r\n"
"""A comment: it carries nothing, and shows that the stream is alive."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNSAFE_IN_ID = re.compile(r"[\r\n\x00]")
_MAX_RETRY_DIGITS = 15
"""Some 30,000 years; more digits are no wait but an attack on whoever reads them."""
_LINE_END = b"\r\n"


def encode_event(data: bytes, *, event_id: str | None = None, retry_milliseconds: int | None = None) -> bytes:
    """Write one event.

    Args:
        data: What it carries, UTF-8. Its line breaks (CR, LF or CRLF) all arrive as LF, which JSON does not mind.
        event_id: Where a client resumes after this event; None to give none.
        retry_milliseconds: How long a client waits before it reconnects; None to leave that as it was.

    Returns:
        The event with the empty line that ends it.

    Raises:
        ValueError: An id with CR, LF or NUL, which would end it or have it ignored, or a negative wait.
    """
    if b"\n" in data or b"\r" in data:
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        data = b"\ndata: ".join(lines)
    head = b""
    if event_id is not None:
        if _UNSAFE_IN_ID.search(event_id):
            raise ValueError(f"an event id has no CR, LF or NUL, got {event_id!r:.80}; leave them out")
        head = b"id: %b\n" % event_id.encode()
    if retry_milliseconds is not None:
        if retry_milliseconds < 0:
            raise ValueError(f"retry_milliseconds: expected 0 or more, got {retry_milliseconds}")
        head += b"retry: %d\n" % retry_milliseconds
    return b"%bdata: %b\n\n" % (head, data)


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event as it came.

    Attributes:
        data: Its data lines, joined by LF.
        id: The last event id of the stream at this event; None if there is none or it was taken back.
        event: Its type; `message` if it names none.
        retry_milliseconds: How long to wait before a reconnection, if this event says so.
    """

    data: bytes
    id: str | None = None
    event: str = "message"
    retry_milliseconds: int | None = None


class EventStreamDecoder:
    """Bytes → events, within a bound and in time linear in the bytes.

    Args:
        max_event_bytes: What a line, and the data lines of an event together, may have.

    Attributes:
        last_event_id: What `Last-Event-ID` says after a reconnection; None to leave it out.
        retry_milliseconds: How long to wait before a reconnection, as last said; None if nothing was.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self.last_event_id: str | None = None
        self.retry_milliseconds: int | None = None
        self._max_bytes = max_event_bytes
        self._opening: bytes | None = b""
        self._ended_in_cr = False
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._next_id: str | None = None
        self._start_event()

    def _start_event(self) -> None:
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._type = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes of the stream.

        Args:
            chunk: Any piece, cut anywhere; also none at all.

        Returns:
            The events that it completes. What follows the last empty line of a stream is no event.

        Raises:
            TransportError: A line or an event is larger than the bound; the stream cannot be read any further.
        """
        if self._opening is not None:
            chunk = self._skip_mark(self._opening + chunk)
        if not chunk:
            return []
        if self._ended_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the second half of a CRLF
        self._ended_in_cr = chunk.endswith(b"\r") if chunk else False
        lines = chunk.splitlines()  # bytes break at CR, LF and CRLF only
        rest = lines.pop() if lines and chunk[-1] not in _LINE_END else None
        events: list[Event] = []
        for line in lines:
            event = self._take(self._complete(line))
            if event is not None:
                events.append(event)
        if rest is not None:
            self._keep(rest)
        return events

    def _skip_mark(self, start: bytes) -> bytes:
        """Take a byte order mark from the start of a stream, of which there may be too little to tell."""
        if len(start) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(start):
            self._opening = start
            return b""
        self._opening = None
        return start.removeprefix(_BYTE_ORDER_MARK)

    def _keep(self, part: bytes) -> None:
        """Keep a piece of a line that has not ended; joined once, so that tiny pieces cost no more."""
        self._parts.append(part)
        self._parts_bytes += len(part)
        self._check_size(self._parts_bytes, "line")

    def _complete(self, line: bytes) -> bytes:
        if self._parts:
            self._parts.append(line)
            line = b"".join(self._parts)
            self._parts, self._parts_bytes = [], 0
        self._check_size(len(line), "line")
        return line

    def _check_size(self, size: int, what: str) -> None:
        if size > self._max_bytes:
            raise TransportError(
                f"event stream: a {what} of more than {self._max_bytes} bytes, which is the limit here; "
                "the peer must send less at once"
            )

    def _take(self, line: bytes) -> Event | None:
        """Take one line, which may end an event."""
        if not line:
            return self._dispatch()
        if line.startswith(b"data: "):  # how nearly all are written; a large one is copied once
            name, value = b"data", line[6:]
        else:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(line) + 1  # with its line end: empty lines are bounded too
            self._check_size(self._data_bytes, "event")
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._next_id = value.decode("utf-8", "replace") or None
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry = self.retry_milliseconds = int(value)
        return None  # a comment has an empty name, and is ignored as unknown fields are

    def _dispatch(self) -> Event | None:
        """End an event: without a data line it leaves only its id."""
        self.last_event_id = self._next_id
        event = None
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            event = Event(data, self.last_event_id, self._type or "message", self._retry)
        self._start_event()
        return event
