"""From the bytes of a connection to HTTP/1 requests: values only, no I/O.

A proxy in front may read the same bytes in another way than the server behind: that is how requests are smuggled. So
each head is checked strictly, and what clients of this protocol have no use for (trailers, chunk extensions, absolute
targets) is refused rather than interpreted.

Source: RFC 9112, sections 2.2, 3, 5, 6, 7.1 and 11.2.
"""

import enum
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from twofold.errors import TransportError

MAX_HEAD_BYTES = 64 * 1024
"""Request line and fields. Browsers and proxies send up to 8 KiB; parameters in `Mcp-Param-*` need some more."""
MAX_FIELDS = 100
"""Fields of one head: clients send about 20, and every one costs an object."""
MAX_TINY_CHUNKS = 1000
TINY_CHUNK_BYTES = 64
"""A body of more chunks than that has to have so many bytes in each, on the average."""
METHODS = frozenset({b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT"})

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_HEAD = re.compile(
    rb"(" + _TOKEN + rb") ([\x21-\x7e]++) HTTP/1\.([01])\r\n(?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n"
)
_HEAD_START = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]")
_LONE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_EMPTY_LINES = re.compile(rb"(?:\r\n)++")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_CHUNK_SIZE_START = re.compile(rb"[0-9A-Fa-f]{0,8}+\r?")
_MAX_LENGTH_DIGITS = 15
"""More than a petabyte is no length but an attempt at an overflow."""
KNOWN_HEADS = 4
"""Of one connection: most clients send the same few heads again and again, and reading one costs as much as a call."""
KNOWN_HEAD_BYTES = 2048
KNOWN_HEAD_FIELDS = 32
"""Longer ones, and those of more fields, are read each time: what is kept of an idle connection is bounded by it."""


class RequestRefused(TransportError):
    """What arrived is no request that can be served; the peer's fault, and the end of its connection.

    Attributes:
        status: The HTTP status to answer with.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Part(enum.Enum):
    """What the next byte belongs to."""

    HEAD = enum.auto()
    BODY = enum.auto()
    CHUNK_SIZE = enum.auto()
    CHUNK_DATA = enum.auto()
    CHUNK_END = enum.auto()
    LAST_CHUNK_END = enum.auto()


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request.

    Attributes:
        method: One of `METHODS`.
        target: The path, and the query behind a `?`.
        is_http_1_0: The older of the two versions.
        fields: Names in lower case, values without the white space around them, in their order.
        keeps_alive: Whether the peer wants to go on using the connection.
        notes: What an application made of it, to be found when the same head comes again on the connection.
    """

    method: str
    target: bytes
    is_http_1_0: bool
    fields: tuple[tuple[bytes, bytes], ...]
    keeps_alive: bool
    notes: dict[object, Any] = {}


class Piece(msgspec.Struct, frozen=True, gc=False):
    """What has come of one request.

    Attributes:
        head: Its head, in the first piece.
        body: More of its body, without the framing of chunks.
        is_last: Whether nothing of it follows.
    """

    head: RequestHead | None
    body: bytes
    is_last: bool


class _Framed(msgspec.Struct, frozen=True, gc=False):
    """A head that was read, and how its body ends."""

    head: RequestHead
    part: _Part
    left: int
    awaits_continue: bool


class RequestFraming:
    """Cuts the bytes of one connection into requests.

    Args:
        max_head_bytes: A longer head is refused with 431.
        max_fields: A head of more fields is refused with 431.

    Attributes:
        awaits_continue: The head of this request says `Expect: 100-continue`, and nothing of its body has come.
    """

    def __init__(self, *, max_head_bytes: int = MAX_HEAD_BYTES, max_fields: int = MAX_FIELDS) -> None:
        self._max_head_bytes = max_head_bytes
        self._max_fields = max_fields
        self._buffer = b""
        self._at = 0  # what stands before was taken: a rest is not copied with each request
        self._searched = 0
        self._part = _Part.HEAD
        self._left = 0
        self._chunks = 0
        self._chunk_bytes = 0
        self._known: dict[bytes, _Framed] = {}
        self.awaits_continue = False

    @property
    def is_between_requests(self) -> bool:
        """Whether what comes next is a head."""
        return self._part is _Part.HEAD

    @property
    def is_unfinished(self) -> bool:
        """Whether a part of a request, be it one byte of its head, has come and the rest has not been taken."""
        return self._part is not _Part.HEAD or self._at < len(self._buffer)

    @property
    def held_bytes(self) -> int:
        """How much has come and not been taken."""
        return len(self._buffer) - self._at

    def receive(self, data: bytes) -> None:
        """Add what the connection has received."""
        self._searched = max(0, self._searched - self._at)
        self._buffer = self._buffer[self._at :] + data if self.held_bytes else data
        self._at = 0

    def take(self) -> Piece | None:
        """Take what has come next: the start of a request as far as it is there, or more of the one begun.

        Returns:
            A piece of one request only, its head always whole; None until there is more.

        Raises:
            RequestRefused: The bytes are no request that can be served.
        """
        head = None
        if self._part is _Part.HEAD:
            head = self._take_head()
            if head is None:
                return None
        body = b""
        if self._part is _Part.BODY:
            body = self._take_body()
        elif self._part is not _Part.HEAD:
            body = self._take_chunks()
        is_last = self._part is _Part.HEAD
        return Piece(head, body, is_last) if head is not None or body or is_last else None

    def _take_head(self) -> RequestHead | None:
        """Take a whole head, if there is one, and note what follows it."""
        if self._buffer.startswith(b"\r\n", self._at):  # RFC 9112, 2.2: some clients end a body with an empty line
            self._at = _end_of_empty_lines(self._buffer, self._at)
        found = self._buffer.find(b"\r\n\r\n", max(self._at, self._searched))
        if found < 0:
            self._check_head_start()
            return None
        end = found + 4
        raw, self._at = self._buffer[self._at : end], end
        framed = self._known.get(raw)
        if framed is None:
            if len(raw) > self._max_head_bytes or raw.count(b"\r\n") - 2 > self._max_fields:
                raise self._too_large()
            framed = _read_head(raw)
            if len(raw) <= KNOWN_HEAD_BYTES and len(framed.head.fields) <= KNOWN_HEAD_FIELDS:
                if len(self._known) == KNOWN_HEADS:
                    self._known.clear()
                self._known[raw] = framed
        self._part, self._left = framed.part, framed.left
        self._chunks = self._chunk_bytes = 0
        self.awaits_continue = framed.awaits_continue
        return framed.head

    def _check_head_start(self) -> None:
        """Refuse early what cannot become a head: another protocol's bytes, bare line feeds, too much."""
        if self.held_bytes > self._max_head_bytes:
            raise self._too_large()
        begins_badly = not self._buffer.startswith(b"\r", self._at) and not _HEAD_START.match(self._buffer, self._at)
        if self.held_bytes and begins_badly:
            raise RequestRefused(400, "the request does not begin as HTTP/1 does; this port speaks plain HTTP/1.1")
        if _LONE_LINE_FEED.search(self._buffer, max(self._at, self._searched)):
            raise RequestRefused(400, "a line of the request head ends in LF alone; end each in CR LF")
        self._searched = max(self._at, len(self._buffer) - 3)

    def _too_large(self) -> RequestRefused:
        return RequestRefused(
            431,
            f"the request head is larger than {self._max_head_bytes} bytes or {self._max_fields} fields; send less",
        )

    def _take_body(self) -> bytes:
        """Take as much of the buffer as belongs to a body of known length."""
        body = self._buffer[self._at : self._at + self._left]
        self._at += len(body)
        self._left -= len(body)
        if not self._left:
            self._part = _Part.HEAD
        if body:
            self.awaits_continue = False
        return body

    def _take_chunks(self) -> bytes:
        """Take as much of the buffer as belongs to a chunked body, checking its framing; gives what the chunks hold."""
        parts: list[bytes] = []
        end = self._read_chunks(parts)
        if end > self._at:
            self.awaits_continue = False
            self._at = end
        return b"".join(parts)

    def _read_chunks(self, parts: list[bytes]) -> int:
        """Put what chunks hold into a list, and tell how far the buffer was read."""
        end = self._at
        while self._part is not _Part.HEAD:
            if self._part is _Part.CHUNK_DATA:
                data = self._buffer[end : end + self._left]
                parts.append(data)
                end += len(data)
                self._left -= len(data)
                if self._left:
                    return end
                self._part = _Part.CHUNK_END
            elif self._part is _Part.CHUNK_SIZE:
                size = _CHUNK_SIZE.match(self._buffer, end)
                if size is None:
                    self._check_chunk_size_start(end)
                    return end
                end = size.end()
                self._left = int(size[1], 16)
                self._part = _Part.CHUNK_DATA if self._left else _Part.LAST_CHUNK_END
                self._count_chunk()
            else:
                line_end = self._buffer[end : end + 2]
                if line_end != b"\r\n":
                    if not b"\r\n".startswith(line_end):
                        raise RequestRefused(400, "a chunk of the body does not end where its size says it does")
                    return end
                end += 2
                self._part = _Part.CHUNK_SIZE if self._part is _Part.CHUNK_END else _Part.HEAD
        return end

    def _count_chunk(self) -> None:
        """Refuse a body in many tiny chunks, each of which costs as much as a large one."""
        self._chunks += 1
        self._chunk_bytes += self._left
        if self._chunks > MAX_TINY_CHUNKS and self._chunk_bytes < self._chunks * TINY_CHUNK_BYTES:
            raise RequestRefused(400, "the body comes in too many tiny chunks; send larger ones, or its length")

    def _check_chunk_size_start(self, start: int) -> None:
        """Refuse what cannot become the size of a chunk."""
        if not _CHUNK_SIZE_START.fullmatch(self._buffer, start):
            raise RequestRefused(400, "the size of a chunk has to be up to 8 hexadecimal digits and CR LF")


def _end_of_empty_lines(buffer: bytes, start: int) -> int:
    found = _EMPTY_LINES.match(buffer, start)
    return start if found is None else found.end()


def _read_head(raw: bytes) -> _Framed:
    """Read a head: request line, fields, how the body ends."""
    match = _HEAD.fullmatch(raw)
    if match is None:
        raise RequestRefused(400, "the request head is malformed; see RFC 9112, sections 3 and 5")
    method, target, minor_version = match.groups()
    if not target.startswith(b"/"):
        raise RequestRefused(400, "the request target has to be a path beginning with /")
    if method not in METHODS:
        raise RequestRefused(405, "the request method is not served here")
    fields = []
    for line in raw[match.end(3) + 2 : -4].split(b"\r\n"):
        name, _, value = line.partition(b":")
        fields.append((name.lower(), value.strip(b" \t")))
    if len(_values(fields, b"host")) != 1:
        raise RequestRefused(400, "the request has to have one Host header")
    is_http_1_0 = minor_version == b"0"
    wishes = {wish.strip(b" \t").lower() for value in _values(fields, b"connection") for wish in value.split(b",")}
    keeps_alive = b"keep-alive" in wishes if is_http_1_0 else b"close" not in wishes
    head = RequestHead(method.decode(), target, is_http_1_0, tuple(fields), keeps_alive)
    return _note_body(head)


def _note_body(head: RequestHead) -> _Framed:
    """Note how the body ends; RFC 9112, 6.3, without its leniencies."""
    lengths, codings = _values(head.fields, b"content-length"), _values(head.fields, b"transfer-encoding")
    if len(lengths) + len(codings) > 1:
        raise RequestRefused(400, "the request says twice how long it is (Content-Length, Transfer-Encoding)")
    part, left = _Part.HEAD, 0
    if codings:
        if head.is_http_1_0 or codings[0].lower() != b"chunked":
            raise RequestRefused(400, "the only transfer encoding taken is chunked, in HTTP/1.1")
        part = _Part.CHUNK_SIZE
    elif lengths:
        if not lengths[0].isdigit() or len(lengths[0]) > _MAX_LENGTH_DIGITS:
            raise RequestRefused(400, "Content-Length has to be one number in decimal digits")
        left = int(lengths[0])
        part = _Part.BODY if left else _Part.HEAD
    expectations = _values(head.fields, b"expect")
    if expectations and (len(expectations) > 1 or expectations[0].lower() != b"100-continue"):
        raise RequestRefused(417, "the only expectation that can be met is 100-continue")
    awaits_continue = bool(expectations) and part is not _Part.HEAD and not head.is_http_1_0
    return _Framed(head, part, left, awaits_continue)


def _values(fields: Sequence[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for each, value in fields if each == name]
