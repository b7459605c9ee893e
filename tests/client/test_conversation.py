"""Time and loss of single requests, over a link of the test's own and over a child process that takes nothing."""

import asyncio
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from twofold import Client, MCPServer, StdioServer
from twofold.client.conversation import Conversation
from twofold.errors import OutcomeUnknown, TransportError
from twofold.protocol.messages import Implementation
from twofold.protocol.wire.asking import Asking

SECONDS = 0.2


class Link:
    """A link whose way out is as the test says.

    Args:
        send: What sending a request does.
    """

    name = "the link"
    has_own_streams = False
    has_lost_session = False

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send = send
        self.sent: list[bytes] = []

    async def open(self, receiver: object) -> None:
        pass

    async def send(self, message: bytes, *, request_id: Any, headers: Mapping[str, str]) -> None:
        self.sent.append(message)
        if request_id is not None:
            await self._send()

    async def close(self) -> None:
        pass


async def _at_once() -> None:
    pass


async def _without_end() -> None:
    await asyncio.sleep(3600)


def _converse(link: Link) -> Conversation:
    asking = Asking("2025-11-25", False, Implementation("c", "1"), {})
    return Conversation(link, asking, on_log=None, on_list_changed=lambda: None)


async def _outcome(conversation: Conversation) -> str:
    """Ask, and tell how it ended and how often the task counts as cancelled."""
    task = asyncio.current_task()
    assert task is not None
    try:
        ended = bytes(await conversation.request("tools/call", {}, timeout_seconds=SECONDS)).decode()
    except TransportError as error:
        ended = str(error)
    return f"{ended} ({task.cancelling()})"


async def test_a_request_that_waits_for_room_ends_in_time_where_the_answers_have_ended() -> None:
    """C6: nothing more comes, and nothing more is taken: the time is what ends it."""
    conversation = _converse(Link(_without_end))
    asked = asyncio.create_task(_outcome(conversation))
    await asyncio.sleep(SECONDS / 4)
    conversation.lost(TransportError("nothing more comes"))
    async with asyncio.timeout(20):
        assert await asked == "the link did not answer tools/call within 0.2 seconds (0)"


async def test_an_answer_that_came_in_time_is_given_though_it_is_looked_at_late() -> None:
    """C6: a program that was busy meanwhile is not told that nobody knows what happened."""
    conversation = _converse(Link(_at_once))
    asked = asyncio.create_task(_outcome(conversation))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    loop.call_later(SECONDS - 0.05, conversation.take, b'{"jsonrpc":"2.0","id":1,"result":{"late":true}}')
    time.sleep(SECONDS * 2)  # noqa: ASYNC251 - both are due in one turn now
    assert await asked == '{"late":true} (0)'


async def test_a_cancellation_from_outside_stays_one_though_the_time_is_over_too() -> None:
    """Whoever cancels is heard."""
    conversation = _converse(Link(_at_once))
    asked = asyncio.create_task(_outcome(conversation))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(SECONDS - 0.05, asked.cancel)
    time.sleep(SECONDS * 2)  # noqa: ASYNC251 - both are due in one turn now
    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_time_that_is_over_while_sending_leaves_no_cancellation_behind() -> None:
    """A link that makes an error of its own of it: the task goes on as if nothing had been."""

    async def broken_off() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise TransportError("writing was broken off") from None

    assert await _outcome(_converse(Link(broken_off))) == "writing was broken off (0)"


async def test_a_burst_of_times_that_are_over_ends_each_of_them() -> None:
    """One timer looks after all: those that are due together end together, the others wait on."""
    link = Link(_at_once)
    conversation = _converse(link)
    asked = [asyncio.create_task(_outcome(conversation)) for _ in range(200)]
    await asyncio.sleep(SECONDS / 2)
    late = asyncio.create_task(_outcome(conversation))
    ends = await asyncio.gather(*asked)
    assert set(ends) == {"the link did not answer tools/call within 0.2 seconds (0)"}
    assert not late.done()
    conversation.take(b'{"jsonrpc":"2.0","id":201,"result":{}}')
    assert await late == "{} (0)"
    assert sum(b"notifications/cancelled" in message for message in link.sent) == 200


async def test_a_large_call_to_a_child_that_reads_no_more_ends_in_time(tmp_path: Path) -> None:
    """C6, with a real pipe: the child has closed its output, and goes on running without reading."""
    script = tmp_path / "deaf.py"
    script.write_text(
        textwrap.dedent(
            """
            import json, os, sys, time

            results = {
                "initialize": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "deaf", "version": "1"},
                },
                "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
            }
            for line in sys.stdin.buffer:
                message = json.loads(line)
                if "id" in message:
                    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}), flush=True)
                if message["method"] == "tools/list":
                    break
            time.sleep(0.3)
            os.close(1)
            time.sleep(60)
            """
        )
    )
    async with (
        asyncio.timeout(50),
        Client(StdioServer(command=sys.executable, args=[str(script)]), revision="2025-11-25") as client,
    ):
        await client.list_tools()
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("t", {"text": "a" * 3_000_000}, timeout_seconds=2)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 10**400, True, "5"])
def test_a_time_that_is_none_is_refused_when_it_is_given(seconds: Any) -> None:
    """A program's own mistake is told where it is made."""
    with pytest.raises(ValueError, match="timeout_seconds: expected a positive number, got "):
        Client(MCPServer("s"), timeout_seconds=seconds)
