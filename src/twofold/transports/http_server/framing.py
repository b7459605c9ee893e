"""Where one HTTP/1 request ends and the next begins: values only, no I/O.

The parsers that uvicorn runs on differ in what they forgive, and a proxy in front may read the same bytes in a third
way: that is how requests are smuggled. So each head is checked here first, strictly and alike for every parser, and
a parser is handed one request at a time. What clients of this protocol have no use for (trailers, chunk extensions,
absolute targets) is refused rather than interpreted.

Source: RFC 9112, sections 2.2, 3, 5, 6, 7.1 and 11.2.
"""

import enum
import re

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
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r]*+", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_CHUNK_SIZE_START = re.compile(rb"[0-9A-Fa-f]{0,8}+\r?")
_MAX_LENGTH_DIGITS = 15
"""More than a petabyte is no length but an attempt at an overflow."""


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
        self._searched = 0
        self._part = _Part.HEAD
        self._left = 0
        self._chunks = 0
        self._chunk_bytes = 0
        self.awaits_continue = False

    @property
    def is_between_requests(self) -> bool:
        """Whether what comes next is a head."""
        return self._part is _Part.HEAD

    @property
    def is_unfinished(self) -> bool:
        """Whether a part of a request, be it one byte of its head, has come and the rest has not been taken."""
        return self._part is not _Part.HEAD or bool(self._buffer)

    @property
    def held_bytes(self) -> int:
        """How much has come and not been taken."""
        return len(self._buffer)

    def receive(self, data: bytes) -> None:
        """Add what the connection has received."""
        self._buffer = self._buffer + data if self._buffer else data

    def take(self) -> bytes:
        """Take the next bytes to parse: the start of a request as far as it is there, or more of the one begun.

        Returns:
            Bytes of one request only, its head always whole; nothing until there is more.

        Raises:
            RequestRefused: The bytes are no request that can be served.
        """
        head = b""
        if self._part is _Part.HEAD:
            head = self._take_head()
            if not head or self._part is _Part.HEAD:  # not all there, or a request without a body
                return head
        end = self._end_of_body() if self._part is _Part.BODY else self._end_of_chunks()
        if end:
            self.awaits_continue = False
        body, self._buffer = self._buffer[:end], self._buffer[end:]
        return head + body if head else body

    def _take_head(self) -> bytes:
        """Take a whole head, if there is one, and note what follows it."""
        empty_lines = _EMPTY_LINES.match(self._buffer)  # RFC 9112, 2.2: some clients end a body with one
        if empty_lines is not None:
            self._buffer, self._searched = self._buffer[empty_lines.end() :], 0
        found = self._buffer.find(b"\r\n\r\n", self._searched)
        if found < 0:
            self._check_head_start()
            return b""
        end = found + 4
        self._searched = 0
        head, self._buffer = self._buffer[:end], self._buffer[end:]
        if end > self._max_head_bytes or head.count(b"\r\n") - 2 > self._max_fields:
            raise self._too_large()
        return self._check_head(head)

    def _check_head_start(self) -> None:
        """Refuse early what cannot become a head: another protocol's bytes, bare line feeds, too much."""
        if len(self._buffer) > self._max_head_bytes:
            raise self._too_large()
        if self._buffer[:1] != b"\r" and self._buffer and not _HEAD_START.match(self._buffer):
            raise RequestRefused(400, "the request does not begin as HTTP/1 does; this port speaks plain HTTP/1.1")
        if _LONE_LINE_FEED.search(self._buffer, self._searched):
            raise RequestRefused(400, "a line of the request head ends in LF alone; end each in CR LF")
        self._searched = max(0, len(self._buffer) - 3)

    def _too_large(self) -> RequestRefused:
        return RequestRefused(
            431,
            f"the request head is larger than {self._max_head_bytes} bytes or {self._max_fields} fields; send less",
        )

    def _check_head(self, head: bytes) -> bytes:
        """Check a head and note how its body ends; give it back as it is to be parsed."""
        match = _HEAD.fullmatch(head)
        if match is None:
            raise RequestRefused(400, "the request head is malformed; see RFC 9112, sections 3 and 5")
        method, target, minor_version = match.groups()
        if not target.startswith(b"/"):
            raise RequestRefused(400, "the request target has to be a path beginning with /")
        if method not in METHODS:
            raise RequestRefused(405, "the request method is not served here")
        fields = head.lower()
        if fields.count(b"\r\nhost:") != 1:
            raise RequestRefused(400, "the request has to have one Host header")
        self._note_body(fields, is_http_1_0=minor_version == b"0")
        # RFC 9110, 7.8 lets a server ignore the offer of another protocol, which some clients make in every first
        # request; the parsers would take what follows such a head for that protocol.
        return _UPGRADE.sub(b"", head) if b"\r\nupgrade:" in fields else head

    def _note_body(self, fields: bytes, *, is_http_1_0: bool) -> None:
        """Note how the body ends, from the lower-case head; RFC 9112, 6.3, without its leniencies."""
        self.awaits_continue = False
        lengths, codings = fields.count(b"\r\ncontent-length:"), fields.count(b"\r\ntransfer-encoding:")
        if lengths + codings > 1:
            raise RequestRefused(400, "the request says twice how long it is (Content-Length, Transfer-Encoding)")
        if codings:
            if is_http_1_0 or _value(fields, b"\r\ntransfer-encoding:") != b"chunked":
                raise RequestRefused(400, "the only transfer encoding taken is chunked, in HTTP/1.1")
            self._part = _Part.CHUNK_SIZE
            self._chunks = self._chunk_bytes = 0
        elif lengths:
            digits = _value(fields, b"\r\ncontent-length:")
            if not digits.isdigit() or len(digits) > _MAX_LENGTH_DIGITS:
                raise RequestRefused(400, "Content-Length has to be one number in decimal digits")
            self._left = int(digits)
            if self._left:
                self._part = _Part.BODY
        if b"\r\nexpect:" in fields:
            if fields.count(b"\r\nexpect:") > 1 or _value(fields, b"\r\nexpect:") != b"100-continue":
                raise RequestRefused(417, "the only expectation that can be met is 100-continue")
            self.awaits_continue = self._part is not _Part.HEAD and not is_http_1_0

    def _end_of_body(self) -> int:
        """Tell how far the buffer belongs to a body of known length."""
        taken = min(self._left, len(self._buffer))
        self._left -= taken
        if not self._left:
            self._part = _Part.HEAD
        return taken

    def _end_of_chunks(self) -> int:
        """Tell how far the buffer belongs to a chunked body, checking its framing."""
        end = 0
        while self._part is not _Part.HEAD:
            if self._part is _Part.CHUNK_DATA:
                taken = min(self._left, len(self._buffer) - end)
                end += taken
                self._left -= taken
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


def _value(fields: bytes, name: bytes) -> bytes:
    """Give the value of a field that is there, without surrounding white space."""
    start = fields.index(name) + len(name)
    return fields[start : fields.index(b"\r\n", start)].strip(b" \t")
