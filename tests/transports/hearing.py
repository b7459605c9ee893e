"""A client's end of a link for tests: keeps what it is told, and lets a test wait for it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from twofold.errors import TransportError


class Heard:
    """What a link has handed over so far."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.broken: list[tuple[bytes, str]] = []
        self.ends: list[str] = []
        self._arrived = asyncio.Condition()
        self._waking: set[asyncio.Task[None]] = set()

    @property
    def messages(self) -> list[Any]:
        return [json.loads(each) for each in self.raw]

    def take(self, message: bytes, *, about: Any = None) -> None:
        self.raw.append(message)
        self._wake()

    def take_broken(self, head: bytes, error: TransportError) -> None:
        self.broken.append((head, str(error)))
        self._wake()

    def lost(self, error: TransportError) -> None:
        self.ends.append(str(error))
        self._wake()

    def _wake(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify())
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def _notify(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()

    async def until(self, is_so: Callable[["Heard"], bool]) -> "Heard":
        async with asyncio.timeout(20), self._arrived:
            await self._arrived.wait_for(lambda: is_so(self))
        return self


def request(method: str, params: Any = None, *, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode()


def per_request(params: Any = None) -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**(params or {}), "_meta": meta}


INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
