"""Load over HTTP: clients of both eras, and raw connections that vanish, half-close, stall or read slowly."""

import asyncio
import contextlib
import json
import random
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from account import Account
from messages import expected_outcome, make_call, plain_text, read_outcome
from stdio_load import QUICK, SERVER

from twofold import Client, NotSent, OutcomeUnknown
from twofold.protocol.eventstream import EventStreamDecoder

RESET = struct.pack("ii", 1, 0)


class HttpServer:
    """A server process that listens on a free port."""

    def __init__(self, account: Account, log: Any) -> None:
        self.account = account
        self.log = log

    async def __aenter__(self) -> "HttpServer":
        self.process = await asyncio.create_subprocess_exec(sys.executable, SERVER, "http", stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        line = await self.process.stderr.readline()
        found = re.search(rb"http://127.0.0.1:(\d+)/mcp", line)
        assert found is not None, line
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._logging = asyncio.create_task(self._log())
        return self

    async def _log(self) -> None:
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(65536):
            self.log.write(piece)

    async def __aexit__(self, *_: object) -> None:
        self.process.terminate()
        await self._logging
        if await self.process.wait() != 0:
            self.account.fault(f"the HTTP server ended with status {self.process.returncode}")

    def request(self, body: bytes, tool: str) -> bytes:
        """Write a request of the newest revision."""
        return (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            b"Mcp-Method: tools/call\r\nMcp-Name: %b\r\nContent-Length: %d\r\n\r\n" % (tool.encode(), len(body)) + body
        )


async def use_client(server: HttpServer, revision: str, until: Callable[[], bool], rng: random.Random) -> None:
    """Use a client as a program does, some calls with too little time; a new client now and then."""
    account = server.account
    while not until():
        async with Client(server.url, revision=revision) as client:
            for _ in range(rng.randrange(200)):
                if until():
                    break
                tool = rng.choice((*QUICK, "tell", "nap"))
                value = account.ask(f"client {revision}")
                arguments: dict[str, Any] = {"value": value}
                arguments |= {"tell": {"steps": 5}, "nap": {"seconds": 0.2}}.get(tool, {})
                with contextlib.suppress(*((OutcomeUnknown, NotSent) if tool == "nap" else ())):
                    result = await client.call_tool(tool, arguments, timeout_seconds=0.05 if tool == "nap" else 30.0)
                    outcome = plain_text(result.content[0].text)
                    account.answer(value, outcome, expected=expected_outcome(tool, value))
                if tool == "nap":
                    account.excuse(value)


async def vanish(server: HttpServer, until: Callable[[], bool], rng: random.Random) -> None:
    """Ask and go: before the request has ended, before its answer, or hard."""
    while not until():
        tool = rng.choice(("nap", "doze", "big", "tell"))
        value = server.account.ask("vanished client")
        more = {"big": {"kilobytes": 500}, "tell": {"steps": 200, "token": "t"}}.get(tool, {"seconds": 0.2})
        request = server.request(make_call(value, tool, **more), tool)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request[: rng.randrange(len(request))] if rng.random() < 0.3 else request)
        with contextlib.suppress(ConnectionError, TimeoutError):
            await writer.drain()
            await asyncio.sleep(rng.random() / 30)
            if rng.random() < 0.5:
                async with asyncio.timeout(0.1):
                    await reader.read(100)
        if rng.random() < 0.5:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        server.account.excuse(value)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader, value: int, *, pause_seconds: float = 0.0) -> dict[str, Any]:
    """Read a whole answer, JSON or stream, in small pieces if it is to be slow."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if (length := re.search(rb"\r\ncontent-length: (\d+)", head)) is not None:
        found: dict[str, Any] = json.loads(await read_slowly(reader, int(length[1]), pause_seconds))
        return found
    decoder, messages = EventStreamDecoder(2**24), []
    while size := int(await reader.readline(), 16):
        messages += [json.loads(event.data) for event in decoder.feed(await read_slowly(reader, size, pause_seconds))]
        await reader.readexactly(2)
    await reader.readexactly(2)
    answers = [message for message in messages if message.get("id") == value]
    return answers[0] if len(answers) == 1 else {"error": f"{len(answers)} answers in one stream"}


async def read_slowly(reader: asyncio.StreamReader, size: int, pause_seconds: float) -> bytes:
    """Read so many bytes, pausing between pieces."""
    if not pause_seconds:
        return await reader.readexactly(size)
    data = b""
    while len(data) < size:
        data += await reader.readexactly(min(100_000, size - len(data)))
        await asyncio.sleep(pause_seconds)
    return data


async def be_slow(server: HttpServer, until: Callable[[], bool], rng: random.Random) -> None:
    """Take a large answer in small pieces, over a small receive buffer, half-closed now and then."""
    while not until():
        tool = rng.choice(("big", "tell"))
        value = server.account.ask("slow reader")
        more: dict[str, Any] = {"kilobytes": 1500} if tool == "big" else {"steps": 300, "token": "t"}
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", server.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=16_384)
        writer.write(server.request(make_call(value, tool, **more), tool))
        answer = await read_answer(reader, value, pause_seconds=0.01)
        server.account.answer(value, read_outcome(answer), expected=expected_outcome(tool, value))
        writer.close()
        await writer.wait_closed()


async def pipeline(server: HttpServer, until: Callable[[], bool], rng: random.Random) -> None:
    """Send several requests at once on a connection; each is answered, in order."""
    while not until():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(rng.randrange(1, 20)):
            calls = [(server.account.ask("pipelined"), rng.choice(QUICK)) for _ in range(rng.randrange(1, 6))]
            writer.write(b"".join(server.request(make_call(value, tool), tool) for value, tool in calls))
            for value, tool in calls:
                answer = await read_answer(reader, value)
                server.account.answer(value, read_outcome(answer), expected=expected_outcome(tool, value))
        writer.close()
        await writer.wait_closed()


async def abandon_sessions(server: HttpServer, until: Callable[[], bool], rng: random.Random) -> None:
    """Open sessions, call something in them, and never end them."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "0"}}
    while not until():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        value = server.account.ask("abandoned session")
        body = json.dumps({"jsonrpc": "2.0", "id": value, "method": "initialize", "params": info}).encode()
        common = (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\n"
        )
        writer.write(common + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
        found = re.search(rb"mcp-session-id: (\S+)", head)
        is_busy = b" 503 " in head.partition(b"\r\n")[0] + b" "  # every session is in use for the moment
        server.account.answer(value, "open" if found or is_busy else head, expected="open")
        if found:
            called = server.account.ask("call of an abandoned session")
            body = make_call(called, "nap", seconds=rng.random() / 10).replace(b"io.modelcontextprotocol", b"x")
            writer.write(common + b"Mcp-Session-Id: %b\r\nContent-Length: %d\r\n\r\n" % (found[1], len(body)) + body)
            server.account.excuse(called)
        await asyncio.sleep(rng.random() / 20)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
