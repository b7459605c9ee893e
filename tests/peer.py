"""A client's end for tests: speaks raw messages to a server in this process, and has each answer judged."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.oracle import judge_message
from twofold import MCPServer

Json = Any

PER_REQUEST = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
REVISIONS = (PER_REQUEST, *HANDSHAKE)


class Refused(Exception):
    """An error answer."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]
        self.data = error.get("data")


class Peer:
    """Use as `async with Peer(mcp) as peer`; `revision` decides the era, and initialises where it has to."""

    def __init__(self, server: MCPServer, revision: str = PER_REQUEST, *, start: bool = True) -> None:
        self.server = server
        self.revision = revision
        self.sent: list[bytes] = []
        self.notifications: list[Json] = []
        self.unasked: list[Json] = []
        self._start = start
        self._next_id = 0
        self._waiting: dict[Any, tuple[str, asyncio.Future[Json]]] = {}
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> "Peer":
        self._live = self.server.live()
        offer = await self._live.__aenter__()
        self.connection = self.server.connect(self, offer)
        if self._start and self.revision != PER_REQUEST:
            params = {
                "protocolVersion": self.revision,
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "0"},
            }
            self.opening = await self.request("initialize", params)
            self.notify("notifications/initialized")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.close(grace_seconds=2)
        self.server.disconnect(self.connection)
        await self._live.__aexit__(None, None, None)

    # What the connection writes to.

    def write(self, message: bytes) -> None:
        assert b"\n" not in message, message
        self.sent.append(message)
        decoded = json.loads(message)
        for each in decoded if isinstance(decoded, list) else [decoded]:
            self._take(each)

    async def drain(self) -> None:
        """There is always room."""

    def _take(self, message: Json) -> None:
        if "method" in message:
            judge_message(message, revision=self.revision)
            self.notifications.append(message)
            return
        method, waiting = self._waiting.pop(message.get("id"), (None, None))
        if waiting is None:
            if "error" in message:
                judge_message(message, revision=self.revision)
            self.unasked.append(message)
            return
        judge_message(message, revision=self.revision, method=method)
        if not waiting.done():
            waiting.set_result(message)

    # What a test says.

    def params(self, params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        """Add what this era wants in `_meta`; `meta` keys without a slash are the protocol's."""
        own = dict(params or {})
        added = {
            key if key == "progressToken" or "/" in key else f"io.modelcontextprotocol/{key}": value
            for key, value in meta.items()
        }
        if self.revision == PER_REQUEST:
            added = {
                "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": {},
            } | added
        if added or "_meta" in own:
            own["_meta"] = {**added, **own.get("_meta", {})}
        return own

    def send(self, method: str, params: Json = None, *, id: Any = None) -> asyncio.Future[Json]:
        """Send a request and give a future of its whole answer."""
        if id is None:
            self._next_id += 1
            id = self._next_id
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[id] = (method, future)
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": self.params() if params is None else params,
        }
        self.connection.receive(json.dumps(message).encode())
        return future

    def notify(self, method: str, params: Json = None) -> None:
        self.connection.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    async def request(self, method: str, params: Json = None, *, id: Any = None) -> Json:
        """Send a request and give its result; an error answer is raised as `Refused`."""
        answer = await asyncio.wait_for(self.send(method, params, id=id), 20)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    async def call(self, tool: str, arguments: Json = None, **meta: Any) -> Json:
        params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
        return await self.request("tools/call", self.params(params, **meta))

    async def get_prompt(self, prompt: str, arguments: Json = None, **meta: Any) -> Json:
        params = {"name": prompt} if arguments is None else {"name": prompt, "arguments": arguments}
        return await self.request("prompts/get", self.params(params, **meta))

    async def list(self) -> dict[str, Json]:
        """List all tools, by name, going through the pages."""
        tools: dict[str, Json] = {}
        cursor: str | None = None
        while True:
            page = await self.request("tools/list", self.params({} if cursor is None else {"cursor": cursor}))
            tools.update({tool["name"]: tool for tool in page["tools"]})
            cursor = page.get("nextCursor")
            if cursor is None:
                return tools

    async def raw(self, line: bytes) -> Json:
        """Send bytes as they are and give the next message that answers no known request."""
        before = len(self.unasked)
        self.connection.receive(line)
        for _ in range(200):
            if len(self.unasked) > before:
                return self.unasked[before]
            await asyncio.sleep(0)
        raise AssertionError(f"no answer to {line[:80]!r}")


def text_of(result: Json) -> str:
    """The text of a result that has one text block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    return block["text"]
