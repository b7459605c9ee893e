"""What a hostile server does when: honest, but where its script says otherwise."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from twofold.protocol.structs import Json
from twofold.testing.hostile.answers import ANSWERS
from twofold.testing.hostile.http_answers import HTTP_ANSWERS
from twofold.testing.hostile.listings import LISTINGS
from twofold.testing.hostile.schemas import HONEST_VALUE, SCHEMAS
from twofold.testing.hostile.steps import Asked, Misbehaviour, Say, Step, Transport

MISBEHAVIOURS: Mapping[str, Misbehaviour] = {**ANSWERS, **HTTP_ANSWERS, **LISTINGS, **SCHEMAS}
"""All that a hostile server knows, by name."""

PER_REQUEST, HANDSHAKE = "2026-07-28", "2025-11-25"
CALL, LIST = "tools/call", "tools/list"
MAX_HEARD = 10_000
_VERSION = "io.modelcontextprotocol/protocolVersion"
_INFO: Mapping[str, Json] = {"name": "hostile", "version": "1.0.0"}
_ONCE = ":once"


class Entry(msgspec.Struct):
    """One entry of a script.

    Attributes:
        misbehaviour: What is done.
        method: What it answers.
        is_once: Only the first time.
        is_over: It was, and that is over.
    """

    misbehaviour: Misbehaviour
    method: str
    is_once: bool = False
    is_over: bool = False

    @property
    def is_tool(self) -> bool:
        """Whether it answers calls of the tool that has its name."""
        return self.method == CALL


class Incoming(msgspec.Struct, frozen=True):
    """A message of the client's, of which nothing has to be as it should."""

    method: str = ""
    id: int | str | None = None
    params: dict[str, Any] = {}


def read_entry(text: str, *, transport: Transport) -> Entry:
    """Read `NAME`, `NAME@METHOD`, each perhaps with `:once` at its end.

    Raises:
        ValueError: There is no such misbehaviour, or not over this transport.
    """
    place = text.removesuffix(_ONCE)
    name, mark, method = place.partition("@")
    found = MISBEHAVIOURS.get(name)
    if found is None:
        raise ValueError(f"{name!r:.80} is no misbehaviour; expected one of {', '.join(MISBEHAVIOURS)}")
    if found.transport not in (None, transport):
        raise ValueError(f"{name!r} is for {found.transport} alone; leave it out over {transport}")
    if mark and not method:
        raise ValueError(f"{text!r:.80} names no method; write it as {name}@tools/list")
    return Entry(found, method or found.method, place != text)


class Script:
    """Decides what answers each message. A server has one for all its connections.

    Args:
        entries: As `read_entry` takes them.
        transport: What messages come over.
        origin: Where the server can be asked for other documents.

    Attributes:
        entries: What was read of them.
        heard: The method of each message that came, `answer` for an answer; the last 10,000.
        cancelled: The ids that were taken back.
    """

    def __init__(self, entries: Sequence[str], *, transport: Transport, origin: str = "http://127.0.0.1:9") -> None:
        self.entries = [read_entry(each, transport=transport) for each in entries]
        self.origin = origin
        self.heard: deque[str] = deque(maxlen=MAX_HEARD)
        self.cancelled: list[Json] = []
        self._last_id: int | str | None = None

    def has(self, method: str) -> bool:
        """Tell whether anything misbehaves there."""
        return any(entry.method == method for entry in self.entries)

    def answer(self, text: bytes) -> tuple[Misbehaviour | None, Iterator[Step]]:
        """Decide what answers a message; no step at all for a notification."""
        try:
            message = msgspec.json.decode(text, type=Incoming)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message = Incoming()  # what a client answers, say; nobody waits for anything
        self.heard.append(message.method or "answer")
        if message.method == "notifications/cancelled":
            self.cancelled.append(message.params.get("requestId"))
        asked = self._describe(message)
        if message.id is not None and message.method:
            self._last_id = message.id
        misbehaviour = self._choose(message.method, str(message.params.get("name", "")))
        if misbehaviour is not None:
            return misbehaviour, misbehaviour.play(asked)
        if message.id is None or not message.method:
            return None, iter(())
        return None, iter([Say(self._answer_honestly(message, asked))])

    def at(self, moment: str) -> tuple[Misbehaviour | None, Iterator[Step]]:
        """Decide what happens at a moment at which no message comes: `start`, `end`, `GET`."""
        misbehaviour = self._choose(moment, "")
        asked = Asked(self._last_id, moment, {}, origin=self.origin)
        return misbehaviour, iter(()) if misbehaviour is None else misbehaviour.play(asked)

    def _choose(self, method: str, name: str) -> Misbehaviour | None:
        for entry in self.entries:
            is_meant = not entry.is_tool or entry.misbehaviour.name == name
            if entry.method == method and is_meant and not entry.is_over:
                entry.is_over = entry.is_once
                return entry.misbehaviour
        return None

    def _describe(self, message: Incoming) -> Asked:
        meta = message.params.get("_meta")
        cursor = message.params.get("cursor")
        return Asked(
            message.id,
            message.method,
            self._result_of(message),
            progress_token=meta.get("progressToken") if isinstance(meta, dict) else None,
            origin=self.origin,
            last_id=self._last_id,
            cursor=cursor if isinstance(cursor, str) else None,
        )

    def _answer_honestly(self, message: Incoming, asked: Asked) -> bytes:
        if asked.result or message.method == "ping":
            return asked.answer()
        error = {"code": -32601, "message": f"no such method: {message.method:.80}"}
        return asked.answer(result=msgspec.UNSET, error=error)

    def _result_of(self, message: Incoming) -> Mapping[str, Json]:
        """Give what an honest server answers; nothing to what it does not serve."""
        fresh: dict[str, Json] = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
        offer: dict[str, Json] = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": _INFO}
        if message.method == "server/discover":
            meta = {"io.modelcontextprotocol/serverInfo": _INFO}
            return {**fresh, **offer, "supportedVersions": [PER_REQUEST, HANDSHAKE], "_meta": meta}
        if message.method == "initialize":
            return {**offer, "protocolVersion": HANDSHAKE}
        if message.method == LIST:
            return {**fresh, "tools": self._list_tools(message)}
        if message.method == CALL:
            content = [{"type": "text", "text": "done"}]
            return {"resultType": "complete", "content": content, "structuredContent": self._call(message)}
        return {}

    def _call(self, message: Incoming) -> Json:
        """`echo` gives back its arguments, `heard` what was heard, everything else an object."""
        name = message.params.get("name")
        if name == "echo":
            return message.params.get("arguments", {})
        if name == "heard":
            return {"methods": list(self.heard), "cancelled": self.cancelled}
        return HONEST_VALUE

    def _list_tools(self, message: Incoming) -> list[Json]:
        asked = Asked(message.id, LIST, {}, origin=self.origin)
        honest: list[Json] = [_plain_tool("echo"), _plain_tool("heard")]
        misbehaviours = [entry.misbehaviour for entry in self.entries if entry.is_tool]
        return honest + [_plain_tool(each.name) if each.tool is None else each.tool(asked) for each in misbehaviours]


def _plain_tool(name: str) -> Json:
    return {"name": name, "inputSchema": {"type": "object"}}
