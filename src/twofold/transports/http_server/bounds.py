"""What a connection over HTTP/1 may take: bounds on bytes, time and number."""

import contextlib
import socket
import struct

import msgspec

try:
    import fcntl
    import termios
except ModuleNotFoundError:  # Windows
    fcntl = termios = None  # type: ignore[assignment]  # asked before each use

from twofold.transports.http_server.framing import MAX_FIELDS, MAX_HEAD_BYTES


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection may take; times are in seconds.

    Attributes:
        max_head_bytes: Of request line and header fields; a longer head is answered with 431.
        max_fields: Header fields of one request; more are answered with 431.
        head_seconds: From the opening of a connection, or the first byte of a request, to the end of its head; also for
            the rest of a body that was answered before it had come.
        keep_alive_seconds: Between an answer and the next request. Longer than the minute after which the usual proxies
            and load balancers drop an idle connection, so that it is not closed just as they send a request on it.
        stall_seconds: Without the peer taking a byte of what is written to it.
        linger_seconds: Between the last answer and the closing, in which what the peer still sends is thrown away;
            closing at once would let the answer be lost with it.
        grace_seconds: For running requests when the server stops.
        max_connections: More are answered with 503. An open connection costs some 10 KiB, with heads of
            many fields up to 50, and a file descriptor.
    """

    max_head_bytes: int = MAX_HEAD_BYTES
    max_fields: int = MAX_FIELDS
    head_seconds: float = 10.0
    keep_alive_seconds: float = 65.0
    stall_seconds: float = 60.0
    linger_seconds: float = 2.0
    grace_seconds: float = 5.0
    max_connections: int = 1000

    @property
    def shortest_seconds(self) -> float:
        """The shortest time that `HttpProtocol.check_deadlines` keeps."""
        return min(self.head_seconds, self.keep_alive_seconds, self.stall_seconds, self.linger_seconds)


def count_unacknowledged(connection: socket.socket) -> int:
    """Tell how many bytes the system still has to deliver; 0 where it does not say.

    It takes more from us only once a good part of what it holds was taken, which is megabytes: a peer that reads slowly
    but steadily would look as if it took nothing.
    """
    if fcntl is None or not hasattr(termios, "TIOCOUTQ"):
        return 0
    with contextlib.suppress(OSError, ValueError):  # closed meanwhile, or a system that has it for terminals only
        held: int = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]
        return held
    return 0
