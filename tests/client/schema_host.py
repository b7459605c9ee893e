"""A host of schemas on loopback, with a throwaway certificate for `schemas.example.com`."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType

from twofold.client.pinned_request import Place, Streams, TlsConnector

HOST = "schemas.example.com"
PUBLIC = "93.184.216.34"
CERTIFICATE = Path(__file__).with_name("schemas_example_com.pem")

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def response(
    body: bytes, *, status: str = "200 OK", content_type: str = "application/schema+json", **more: str
) -> bytes:
    """Write an answer with its length."""
    headers = {"content-length": str(len(body)), "content-type": content_type}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def document(schema: object) -> bytes:
    """Write an answer that carries a schema."""
    return response(json.dumps(schema).encode())


def trust() -> ssl.SSLContext:
    """Believe the throwaway certificate, and no other."""
    return ssl.create_default_context(cafile=CERTIFICATE)


class SchemaHost:
    """Use as `async with SchemaHost({"/a.json": answer}) as host`; one request a connection, others get a 404."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.requests: list[bytes] = []
        self.names: list[str | None] = []
        self.addresses: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "SchemaHost":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        context.sni_callback = lambda _, name, __: self.names.append(name)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
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
    def targets(self) -> list[str]:
        """What was asked for."""
        return [request.split(b" ")[1].decode() for request in self.requests]

    async def connect(self, place: Place, address: str) -> Streams:
        """Note where a client would connect to, and connect it here."""
        self.addresses.append(address)
        return await TlsConnector(trust())(Place(place.host, self.port, place.target), "127.0.0.1")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            answer = self.answers.get(self.targets[-1], response(b"{}", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
