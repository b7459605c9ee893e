"""Any bytes on a line transport: each request gets exactly one answer of the specification, and the next call works.

Lines go through the same buffer and intake as a process's stdin; the oracle reads them with another JSON decoder.
"""

import asyncio
import collections
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.fuzzed_server import make_server
from tests.fuzz.material import HANDSHAKE, META, batches, cut, encode, fuzzed, messages, mutated, no_faults
from tests.oracle import judge_message
from twofold.server.intake import Intake
from twofold.transports.stdio import LineBuffer

CODES = {-32700, -32600, -32601, -32602, -32603, -32022}
SERVER = make_server()
LAST = {"jsonrpc": "2.0", "id": "last", "method": "tools/call"}
LAST_PARAMS = {"name": "echo", "arguments": {"text": "still here"}}


class Wire:
    """Takes what the server writes."""

    has_room = True

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.arrived = asyncio.Event()

    def write(self, message: bytes) -> None:
        assert b"\n" not in message
        self.messages.append(json.loads(message))
        self.arrived.set()

    async def drain(self) -> None:
        """There is always room."""

    @property
    def answers(self) -> list[Any]:
        each = [part for message in self.messages for part in (message if isinstance(message, list) else [message])]
        return [message for message in each if "method" not in message]


async def serve(pieces: list[bytes]) -> Wire:
    """Give what a server writes to these bytes and then to an honest call, having ended in order."""
    wire = Wire()
    async with SERVER.live() as offer:
        connection = SERVER.connect(wire, offer)
        intake, buffer = Intake(connection, wire), LineBuffer(1_000_000)
        for piece in pieces:
            for line in buffer.feed(piece):
                assert line is not None
                intake.receive(line)
            await asyncio.sleep(0)
        last = buffer.finish()
        if last is not None:
            intake.receive(last)
        for _ in range(20):
            await asyncio.sleep(0)
        meta = {} if connection.session else META
        intake.receive(json.dumps({**LAST, "params": LAST_PARAMS | {"_meta": meta}}).encode())
        async with asyncio.timeout(20):
            while not any(message.get("id") == "last" for message in wire.answers):
                wire.arrived.clear()
                await wire.arrived.wait()
        await intake.close(grace_seconds=0.0)
        SERVER.disconnect(connection)
        assert (connection.running, connection.subscriptions) == (0, {})
    return wire


def read(line: bytes) -> Any:
    """Read a line as its sender would: strict UTF-8 JSON; raises ValueError."""

    def refuse(text: str) -> Any:
        raise ValueError(text)

    return json.loads(line.decode(), parse_constant=refuse)


def is_id(value: Any) -> bool:
    return isinstance(value, str) or (type(value) is int and -(2**63) <= value < 2**64)


def asked_ids(line: bytes) -> list[Any] | None:
    """Give the ids of the requests that a line certainly makes; None if it makes something else."""
    try:
        value = read(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("method"), str) or not value["method"]:
        return None
    return [value["id"]] if is_id(value.get("id")) and value.get("jsonrpc") == "2.0" else None


def check(lines: list[bytes], wire: Wire) -> None:
    """Hold the answers against what was asked."""
    asked = collections.Counter(id for line in lines for id in asked_ids(line) or ())
    cancelled = {id for line in lines if b"cancelled" in line for id in asked}
    others = sum(line.count(b",") + 1 for line in lines if asked_ids(line) is None)  # of a batch, each element
    answered = collections.Counter(message["id"] for message in wire.answers if "id" in message)
    assert answered.pop("last") == 1
    for id, count in asked.items():
        least = 0 if id in cancelled else count
        assert least <= answered.pop(id, 0) <= count + others, id
    without = sum("id" not in message for message in wire.answers)
    assert sum(answered.values()) + without <= others
    for message in wire.answers:
        assert ("error" in message) != ("result" in message)
        if "error" in message:
            judge_message(message, revision="2025-11-25")
            assert message["error"]["code"] in CODES, message
            assert "reference" not in message["error"]["message"], message


lines = st.one_of(
    messages.map(encode),
    messages.map(encode),
    batches.map(encode),
    mutated(messages.map(encode)),
    st.binary(max_size=40),
).map(lambda line: line.replace(b"\n", b" "))


@fuzzed(300)
@given(st.lists(lines, max_size=8), st.lists(st.integers(0, 10_000), max_size=6))
def test_whatever_lines_come_each_request_has_one_answer_and_the_next_call_works(given_lines, places):
    """Nothing but the errors of the specification, whatever was said before (issue 5)."""
    whole = b"".join(line + b"\n" for line in given_lines)
    with no_faults():
        wire = asyncio.run(serve(cut(whole, places)))
    check([line for line in given_lines if line.strip()], wire)


@fuzzed(150)
@given(st.sampled_from(HANDSHAKE), st.lists(batches.map(encode) | lines, max_size=5), st.booleans())
def test_in_a_session_batches_and_messages_of_every_shape_are_answered(revision, given_lines, is_at_once):
    """JSON-RPC batches exist in 2025-03-26 only; elsewhere the whole is refused with one error."""
    opening = {
        "jsonrpc": "2.0", "id": "open", "method": "initialize",
        "params": {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }  # fmt: skip
    every = [encode(opening), *(line.replace(b"\n", b" ") for line in given_lines)]
    whole = b"".join(line + b"\n" for line in every)
    with no_faults():
        wire = asyncio.run(serve([whole] if is_at_once else whole.splitlines(keepends=True)))
    check([line for line in every if line.strip()], wire)


@fuzzed(200)
@given(
    mutated(st.lists(messages.map(encode), min_size=1, max_size=3).map(b"\n".join)), st.lists(st.integers(0, 10_000))
)
@example(b"\x00" * 100, [])
@example(b"[" * 100_000, [])
@example(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 50_000 + b"]" * 50_000 + b"}", [])
def test_damaged_bytes_end_nothing(data, places):
    """A damaged line costs itself; the honest call after it is answered."""
    with no_faults():
        wire = asyncio.run(serve(cut(data, places)))
    check([line for line in data.split(b"\n") if line.strip()], wire)
