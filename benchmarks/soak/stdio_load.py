"""Load over stdio: a peer that speaks in lines, one that reads slowly, and clients that come and go."""

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from account import Account
from messages import expected_outcome, make_call, read_outcome

from twofold import Client, NotSent, OutcomeUnknown, StdioServer

SERVER = str(Path(__file__).with_name("server.py"))
QUICK = ("echo", "compute", "refuse") * 15 + ("crash", "leave") * 2 + ("recurse",)
"""Each crash is logged with its trace, which costs a hundred times as much as a call."""


class LinePeer:
    """A server process over its pipes, and whoever waits for its answers."""

    def __init__(self, account: Account, log: Any) -> None:
        self.account = account
        self.log = log
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._may_read = asyncio.Event()
        self._may_read.set()

    async def __aenter__(self) -> "LinePeer":
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, SERVER, "stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, limit=2**26
        )
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self._reading
        if await self.process.wait() != 0:
            self.account.fault(f"a stdio server ended with status {self.process.returncode}")

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)
            if "id" not in message:
                if message.get("method") != "notifications/progress" and message["error"]["code"] != -32700:
                    self.account.fault(f"unasked for: {line!r:.200}")
                continue
            waiting = self._waiting.pop(message["id"], None)
            if waiting is None:
                self.account.answer(message["id"], message, expected=None)
            elif not waiting.done():
                waiting.set_result(message)
            await self._may_read.wait()

    async def send(self, *lines: bytes) -> None:
        """Send lines, as fast as they are taken."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        await self.process.stdin.drain()

    async def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool and wait for its answer."""
        value = self.account.ask(f"stdio {tool}")
        waiting = self._waiting[value] = asyncio.get_running_loop().create_future()
        await self.send(make_call(value, tool, **arguments))
        message = await waiting
        self.account.answer(value, read_outcome(message), expected=expected_outcome(tool, value))

    async def cancel(self, tool: str, after_seconds: float) -> None:
        """Call a tool and take it back."""
        value = self.account.ask(f"stdio {tool} cancelled")
        await self.send(make_call(value, tool, seconds=0.3))
        await asyncio.sleep(after_seconds)
        self.account.excuse(value)
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": value}}
        await self.send(json.dumps(notice).encode())

    async def read_slowly(self, seconds: float) -> None:
        """Ask for much and take nothing for a while."""
        self._may_read.clear()
        calls = [asyncio.create_task(self.call("big", kilobytes=100)) for _ in range(20)]
        await asyncio.sleep(seconds)
        self._may_read.set()
        await asyncio.gather(*calls)

    async def state(self) -> dict[str, int]:
        """Ask what the server holds."""
        waiting = self._waiting[-1] = asyncio.get_running_loop().create_future()
        line = make_call(-1, "state")
        await self.send(line.replace(b'"value": -1', b""))
        found: dict[str, int] = json.loads((await waiting)["result"]["content"][0]["text"])
        return found


async def speak_in_lines(peer: LinePeer, until: Callable[[], bool], rng: random.Random) -> None:
    """Call, take back, send rubbish."""
    while not until():
        match rng.choices(["quick", "tell", "nap", "cancel", "rubbish"], [80, 5, 5, 8, 2])[0]:
            case "quick":
                await peer.call(rng.choice(QUICK))
            case "tell":
                await peer.call("tell", steps=20, token="t")  # noqa: S106 - a progress token
            case "nap":
                await peer.call(rng.choice(("nap", "doze")), seconds=rng.random() / 20)
            case "cancel":
                await peer.cancel(rng.choice(("nap", "doze")), rng.random() / 50)
            case _:
                await peer.send(rng.choice((b"{", b"\xff\xfe", b"nonsense", b'{"jsonrpc": "2.0", "id": ')))


async def read_slowly(peer: LinePeer, until: Callable[[], bool], rng: random.Random) -> None:
    """Take nothing for a while, again and again."""
    while not until():
        await peer.read_slowly(rng.random() / 2)
        await asyncio.gather(*(peer.call("echo") for _ in range(50)))


async def come_and_go(account: Account, until: Callable[[], bool], rng: random.Random) -> None:
    """Start a server by a client, use it, give up on some calls, and close; nothing is left behind."""
    while not until():
        async with Client(StdioServer(command=sys.executable, args=[SERVER, "stdio"])) as client:
            for _ in range(rng.randrange(60)):
                value = account.ask("client over stdio")
                seconds = rng.choice((0.0, 0.0, 0.0, 0.2))
                with contextlib.suppress(*((OutcomeUnknown, NotSent) if seconds else ())):
                    result = await client.call_tool(
                        "nap", {"value": value, "seconds": seconds}, timeout_seconds=0.05 if seconds else 30.0
                    )
                    account.answer(value, result.content[0].text, expected=str(value))
                if seconds:
                    account.excuse(value)
