"""A hostile server over HTTP on a loopback address: an endpoint at `/mcp`, and whatever else is asked for noted."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain, islice

import msgspec

from twofold.testing.hostile.http_answers import body, head
from twofold.testing.hostile.script import Script
from twofold.testing.hostile.steps import Close, HalfClose, Pour, Say, Step, Wait

MAX_BODY_BYTES = 1 << 27
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_NO_STREAM = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"


class Request(msgspec.Struct, frozen=True):
    """A request as it came; headers by lower-case name."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class _Gone(Exception):
    """The connection has ended."""


class HttpConversation:
    """One connection of a client's.

    Args:
        script: What is done when.
        reader: From `asyncio.start_server`.
        writer: So.
        requests: Is given every request.
    """

    def __init__(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: list[Request]
    ) -> None:
        self._script = script
        self._reader = reader
        self._writer = writer
        self._requests = requests

    async def serve(self) -> None:
        """Answer one request after the other until either side has enough."""
        try:
            while True:
                request = await self._read_request()
                self._requests.append(request)
                await self._answer(request)
        except (_Gone, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client has left, or speaks something else
        finally:
            self._writer.transport.abort()

    async def _read_request(self) -> Request:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        size = int(headers.get("content-length", 0))
        if size > MAX_BODY_BYTES:
            raise _Gone
        return Request(method, path, headers, await self._reader.readexactly(size))

    async def _answer(self, request: Request) -> None:
        if request.path != "/mcp":
            await self._write(body("200 OK", b"{}"))
        elif request.method == "DELETE":
            await self._write(_ACCEPTED)
        elif request.method == "GET":
            misbehaviour, steps = self._script.at("GET")
            is_raw = misbehaviour is not None and misbehaviour.transport == "http"
            await (self._play(steps, is_raw=is_raw) if misbehaviour is not None else self._write(_NO_STREAM))
        else:
            misbehaviour, steps = self._script.answer(request.body)
            await self._play(steps, is_raw=misbehaviour is not None and misbehaviour.transport == "http")

    async def _play(self, steps: Iterator[Step], *, is_raw: bool) -> None:
        first = list(islice(steps, 2))
        if not first:
            await self._write(_ACCEPTED)
        elif len(first) == 1 and isinstance(first[0], Say):
            await self._write(body("200 OK", first[0].message, **self._session()))
        else:
            framing = (
                _Raw() if is_raw else _Chunks("application/json" if isinstance(first[0], Pour) else "text/event-stream")
            )
            for step in chain(first, steps):
                await self._take(step, framing)
            await self._write(framing.end())

    def _session(self) -> dict[str, str]:
        """A session is opened where a client's own stream is to be answered."""
        return {"mcp_session_id": "hostile"} if self._script.has("GET") else {}

    async def _take(self, step: Step, framing: "_Raw | _Chunks") -> None:
        if isinstance(step, Say):
            await self._write(framing.say(step.message))
        elif isinstance(step, Pour):
            await self._write(framing.pour(step.data))
        elif isinstance(step, Wait):
            await self._wait(step.seconds)
        elif isinstance(step, HalfClose):
            await self._write(framing.begin())
            self._writer.write_eof()
        elif isinstance(step, Close):
            await self._leave()

    async def _leave(self) -> None:
        """Close; what was written still goes out."""
        await self._writer.drain()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        raise _Gone

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                if not await self._reader.read(1):  # who sends more than one request at once is not served further
                    raise _Gone
        except TimeoutError:
            pass

    async def _write(self, data: bytes) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()
            await asyncio.sleep(0)  # `drain` does not wait where there is room, and others have a turn too


class _Raw:
    """What is poured is the whole response."""

    def begin(self) -> bytes:
        return b""

    def say(self, message: bytes) -> bytes:
        return message

    def pour(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class _Chunks:
    """A response of unknown length, whose head goes out with its first bytes."""

    def __init__(self, content_type: str) -> None:
        self._content_type = content_type
        self._has_begun = False

    def begin(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return head("200 OK", content_type=self._content_type, transfer_encoding="chunked")

    def say(self, message: bytes) -> bytes:
        return self.pour(b"data: %b\n\n" % message)

    def pour(self, data: bytes) -> bytes:
        return self.begin() + b"%x\r\n%b\r\n" % (len(data), data)

    def end(self) -> bytes:
        return b"0\r\n\r\n" if self._has_begun else b""
