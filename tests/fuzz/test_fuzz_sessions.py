"""Any order of requests, cancellations, batches and openings on one connection: each request has exactly one answer.

A machine keeps its own account of what was asked and what may be answered, and compares.
"""

import asyncio
import collections
import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.fuzz.material import HANDSHAKE, META, fuzzed, no_faults
from twofold import MCPServer
from twofold.server.connection import Connection
from twofold.server.intake import Intake

ids = st.integers(0, 7) | st.sampled_from(["a", "b"])


class Sessions(RuleBasedStateMachine):
    """One peer and its intake, whose outlet is now and then full; `wait` ends when the machine says so."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.faults = no_faults()
        self.faults.__enter__()
        self.has_room = True
        self.sent: list[Any] = []
        self.answered: collections.Counter[Any] = collections.Counter()
        self.asked: collections.Counter[Any] = collections.Counter()
        self.may_lack: collections.Counter[Any] = collections.Counter()
        self.released = asyncio.Event()
        self.is_open = False
        mcp = MCPServer("s")

        @mcp.tool()
        async def wait(n: int) -> int:
            await self.released.wait()
            return n

        @mcp.tool()
        async def quick(n: int) -> int:
            return n

        self.server = mcp
        self.run(self.open())

    def run(self, work: Any = None) -> Any:
        async def a_few_turns() -> Any:
            done = await work if work is not None else None
            for _ in range(8):
                await asyncio.sleep(0)
            return done

        return self.loop.run_until_complete(asyncio.wait_for(a_few_turns(), 20))

    async def open(self) -> None:
        self.live = self.server.live()
        self.connection: Connection = self.server.connect(self, await self.live.__aenter__())
        self.intake = Intake(self.connection, self)

    # What the connection writes to.

    def write(self, message: bytes) -> None:
        decoded = json.loads(message)
        for each in decoded if isinstance(decoded, list) else [decoded]:
            if "method" not in each:
                self.answered[each.get("id")] += 1
                self.sent.append(each)

    async def let_go(self) -> None:
        self.intake.release()

    async def drain(self) -> None:
        while not self.has_room:
            await asyncio.sleep(0)

    # What is done.

    def send(self, message: Any) -> None:
        async def receive() -> None:
            self.intake.receive(json.dumps(message).encode())

        self.run(receive())

    def call(self, id: Any, tool: str) -> Any:
        self.asked[id] += 1
        meta = {} if self.is_open else META
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": tool, "arguments": {"n": 1}, "_meta": meta}}  # fmt: skip

    @rule(id=ids, tool=st.sampled_from(["wait", "quick", "none"]))
    def ask(self, id, tool):
        self.send(self.call(id, tool))

    @rule(id=ids, method=st.sampled_from(["ping", "tools/list", "x", "server/discover"]))
    def ask_shortly(self, id, method):
        self.asked[id] += 1
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": {} if self.is_open else {"_meta": META}})

    @rule(id=ids)
    def listen(self, id):
        self.asked[id] += 1
        self.send({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen",
                   "params": {"notifications": {"toolsListChanged": True}, "_meta": META}})  # fmt: skip

    @rule(id=ids, revision=st.sampled_from(HANDSHAKE))
    def initialize(self, id, revision):
        self.asked[id] += 1
        info = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        self.send({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": info})
        self.is_open = self.connection.session is not None

    @rule(each=st.lists(st.tuples(ids, st.sampled_from(["wait", "quick"])), min_size=1, max_size=4))
    def batch(self, each):
        spoken = self.connection.session
        batch = [self.call(id, tool) for id, tool in each]
        if spoken is None or spoken.revision != "2025-03-26" or not self.has_room:
            for id, _ in each:  # refused as a whole, or in its turn: one error for all of them
                self.may_lack[id] += 1
        self.send(batch)

    @rule(id=ids)
    def cancel(self, id):
        self.may_lack[id] += 1  # at most one of this id is taken back
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})

    @rule()
    def release(self):
        self.released.set()
        self.run()
        self.released.clear()

    @rule(has_room=st.booleans())
    def turn(self, has_room):
        self.has_room = has_room
        self.run(self.let_go())

    @invariant()
    def nothing_is_answered_twice(self):
        assert all(count <= self.asked[id] for id, count in self.answered.items() if id not in (None, "unreadable"))

    def teardown(self) -> None:
        self.has_room = True
        self.run(self.let_go())
        self.released.set()
        self.run()
        self.run(self.intake.close(grace_seconds=1.0))
        self.run(self.live.__aexit__(None, None, None))
        left = asyncio.all_tasks(self.loop)
        self.loop.close()
        self.faults.__exit__(None, None, None)
        assert left == set()
        assert (self.connection.running, self.connection.subscriptions, self.connection._stopped) == (0, {}, set())
        for id, count in self.asked.items():
            assert count - self.may_lack[id] <= self.answered[id] <= count, (id, self.sent)


Sessions.TestCase.settings = fuzzed(80, stateful_step_count=25)
TestEachRequestHasOneAnswer = Sessions.TestCase
