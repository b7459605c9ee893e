"""An HTTP server for tests that answers with any bytes, and keeps what it was asked."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import NamedTuple


class Request(NamedTuple):
    """A request as it came; headers by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def response(status: str, body: bytes = b"", *, content_type: str = "application/json", **headers: str) -> bytes:
    """Write an answer with its length."""
    fields = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    if content_type:
        fields["content-type"] = content_type
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def stream_head(**headers: str) -> bytes:
    """Write the head of an event stream that ends with its connection."""
    fields = {"content-type": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return ("HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n").encode()


def saying(*answers: bytes) -> Answer:
    """Answer each request with the next of these bytes, and all further ones with the last."""
    left = list(answers)

    async def answer(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answer


class RawServer:
    """Use as `async with RawServer(answer) as server`; a connection is closed after its answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server
        self.requests: list[Request] = []
        self.gone = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "RawServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def stop_listening(self) -> None:
        """Refuse whoever comes from now on."""
        self._server.close()

    def asked(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.strip().split("\r\n")
            method, target, _ = line.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            assert len(headers) == len(fields), fields  # no header came twice
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(method, target, headers, body)
            self.requests.append(request)
            await self._answer(request, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self.gone.set()


async def until_left(writer: asyncio.StreamWriter) -> None:
    """Send comments until the client has gone."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b":\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)
