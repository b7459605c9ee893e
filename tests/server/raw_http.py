"""A client of one socket that sends any bytes and reads answers, and a server in a thread to send them to."""

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from twofold.server.serve_http import AsgiApp, bind, serve
from twofold.transports.http_server.bounds import HttpLimits

TIMEOUT_SECONDS = 20.0


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class RawClient:
    """One connection; every wait is bounded."""

    def __init__(self, port: int, *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_SECONDS)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(("127.0.0.1", port))
        self._buffer = bytearray()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send, even if the server has answered and closed before it took everything."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def _fill(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"the connection ended after {self._buffer!r:.200}")
        self._buffer += data

    def _read_until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            self._fill()
        return self._read_exactly(self._buffer.index(end) + len(end))[: -len(end)]

    def _read_exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._fill()
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def read_response(self) -> Response:
        """Read one whole answer."""
        status_line, *lines = self._read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(status_line.split(" ")[1])
        if status == 100:
            return Response(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._read_until(b"\r\n"), 16):
                body += self._read_exactly(size + 2)[:-2]
            self._read_until(b"\r\n")
        else:
            body = self._read_exactly(int(headers["content-length"]))
        return Response(status, headers, body)

    def read_to_end(self) -> bytes:
        """Read until the server closes the connection, be it hard."""
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                self._fill()
        return self._read_exactly(len(self._buffer))

    def send_until_refused(self) -> None:
        """Send on after the server's last byte, until it has closed for good and the system resets the connection."""
        watch = select.poll()
        watch.register(self.socket, 0)  # errors are always told
        with contextlib.suppress(ConnectionError):
            for _ in range(int(TIMEOUT_SECONDS * 100)):
                self.socket.sendall(b"x")
                watch.poll(10)
            raise TimeoutError("the server has ended its answers and keeps the connection")

    def exchange(self, data: bytes) -> Response:
        self.send(data)
        return self.read_response()


class RunningServer:
    """A server in a thread with a loop of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.loop: asyncio.AbstractEventLoop | None = None
        self.stop = asyncio.Event()
        self.serving = threading.Event()
        self.failure: BaseException | None = None

    def connect(self, *, receive_bytes: int | None = None) -> RawClient:
        return RawClient(self.port, receive_bytes=receive_bytes)

    def end(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.stop.set)


@contextlib.contextmanager
def running(
    app: AsgiApp,
    *,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    limits: HttpLimits | None = None,
    on_stopping: Callable[[], None] | None = None,
) -> Iterator[RunningServer]:
    """Serve until the block ends; what the server raised is raised here."""
    listeners = bind("127.0.0.1", 0, stall_seconds=60)
    server = RunningServer(listeners[0].getsockname()[1])

    async def main() -> None:
        server.loop = asyncio.get_running_loop()
        await serve(
            app,
            listeners,
            stop=server.stop,
            limits=limits,
            on_serving=server.serving.set,
            on_stopping=on_stopping,
        )

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(main())
        except BaseException as failure:  # noqa: BLE001 - raised where the server was started
            server.failure = failure
        finally:
            server.serving.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert server.serving.wait(TIMEOUT_SECONDS)
    try:
        yield server
    finally:
        with contextlib.suppress(RuntimeError):  # it has ended already
            server.end()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()
    if server.failure is not None:
        raise server.failure
