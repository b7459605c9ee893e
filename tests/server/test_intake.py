"""A peer that sends more than can be done at once: nothing is lost, nothing is deaf, memory is bounded."""

import asyncio
import gc
import json
import weakref

import pytest

from tests.peer import Peer, text_of
from twofold import MCPServer
from twofold.server import intake
from twofold.server.intake import CAREFREE_RUNNING, MAX_RUNNING, Intake


class Throttled(Peer):
    """A peer whose lines go through an intake, and who may stop taking answers."""

    has_room = True

    async def __aenter__(self) -> "Throttled":
        await super().__aenter__()
        self.connection_itself = self.connection
        self.intake = Intake(self.connection, self)
        self.connection = self  # what the peer sends goes to the intake
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.intake.close(grace_seconds=2)
        self.connection = self.connection_itself
        await super().__aexit__()

    def receive(self, line: bytes) -> None:
        self.intake.receive(line)


def make_server() -> tuple[MCPServer, asyncio.Event]:
    mcp, release = MCPServer("s"), asyncio.Event()

    @mcp.tool()
    async def wait() -> str:
        await release.wait()
        return "done"

    @mcp.tool()
    async def quick() -> str:
        return "now"

    return mcp, release


async def test_requests_beyond_the_bound_wait_and_are_all_answered_in_the_end():
    mcp, release = make_server()
    async with Throttled(mcp) as peer:
        answers = [peer.send("tools/call", peer.params({"name": "wait"})) for _ in range(MAX_RUNNING + 50)]
        late = peer.send("tools/call", peer.params({"name": "wait"}))
        await asyncio.sleep(0)
        assert peer.connection_itself.running == CAREFREE_RUNNING
        assert not late.done()
        release.set()
        assert [text_of((await answer)["result"]) for answer in answers] == ["done"] * (MAX_RUNNING + 50)
        assert text_of((await late)["result"]) == "done"


async def test_a_tool_of_which_many_calls_wait_holds_up_no_other():
    """Issue 5: one slow tool never starves another, however many calls of it there are."""
    mcp, release = make_server()
    async with Throttled(mcp) as peer:
        slow = [peer.send("tools/call", peer.params({"name": "wait"})) for _ in range(1000)]
        assert [text_of(await peer.call("quick")) for _ in range(100)] == ["now"] * 100
        assert not any(answer.done() for answer in slow)
        release.set()
        assert [text_of((await answer)["result"]) for answer in slow] == ["done"] * 1000


async def test_a_cancellation_is_heard_whatever_the_load():
    """A server that does not hear it could never be freed."""
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        for number in range(MAX_RUNNING):
            peer.send("tools/call", peer.params({"name": "wait"}), id=f"w{number}")
        waiting = peer.send("tools/call", peer.params({"name": "wait"}), id="waits")
        late = peer.send("tools/call", peer.params({"name": "quick"}), id="late")
        await asyncio.sleep(0)
        peer.notify("notifications/cancelled", {"requestId": "waits"})
        for number in range(MAX_RUNNING):
            peer.notify("notifications/cancelled", {"requestId": f"w{number}"})
        assert text_of((await late)["result"]) == "now"
        assert not waiting.done()


async def test_subscriptions_do_not_count_as_work_and_have_a_bound_of_their_own():
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        for number in range(1000):
            peer.send("subscriptions/listen", peer.params({"notifications": {}}), id=f"l{number}")
        await asyncio.sleep(0)
        assert text_of(await peer.call("quick")) == "now"
        refused = await peer.send("subscriptions/listen", peer.params({"notifications": {}}), id="one more")
        assert refused["error"]["code"] == -32600


async def test_what_cannot_even_wait_is_told_to_come_again(monkeypatch):
    mcp, release = make_server()
    monkeypatch.setattr(intake, "MAX_WAITING", 3)
    async with Throttled(mcp) as peer:
        answers = [peer.send("tools/call", peer.params({"name": "wait"})) for _ in range(CAREFREE_RUNNING + 3)]
        busy = await peer.send("tools/call", peer.params({"name": "wait"}))
        assert busy["error"] == {
            "code": -32603,
            "message": f"busy: {CAREFREE_RUNNING} requests are running and 3 wait; send this one again later",
        }
        release.set()
        await asyncio.gather(*answers)
        assert text_of(await peer.call("quick")) == "now"


async def test_a_peer_that_takes_no_answers_gets_no_more_of_them_until_it_does():
    """A slow reader costs no memory: listings are not made while the last ones are not taken."""
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        peer.has_room = False
        answers = [peer.send("tools/list") for _ in range(100)]
        await asyncio.sleep(0)
        assert peer.sent == []
        assert not peer.intake.is_full
        peer.has_room = True
        peer.intake.release()
        assert all([len((await answer)["result"]["tools"]) == 2 for answer in answers])


async def test_reading_stops_only_when_no_refusal_could_be_written(monkeypatch):
    mcp, _ = make_server()
    monkeypatch.setattr(intake, "MAX_WAITING_BYTES", 1000)
    async with Throttled(mcp) as peer:
        peer.has_room = False
        changes = []
        peer.intake.on_change = lambda: changes.append(peer.intake.is_full)
        for _ in range(10):
            peer.send("tools/list")
        assert peer.intake.is_full
        peer.has_room = True
        peer.intake.release()
        assert (changes, peer.intake.is_full) == ([False], False)


async def test_an_id_that_waits_is_in_use():
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        for number in range(MAX_RUNNING):
            peer.send("tools/call", peer.params({"name": "wait"}), id=f"w{number}")
        peer.send("tools/call", peer.params({"name": "wait"}), id="same")
        second = peer.send("tools/call", peer.params({"name": "wait"}), id="same")
        assert (await second)["error"] == {
            "code": -32600,
            "message": "the id 'same' is in use by a request that is not answered yet",
        }


async def test_a_cancellation_means_the_request_that_runs_and_not_a_second_one_of_its_id():
    """Else a call could never be taken back once its id was sent twice."""
    mcp, release = make_server()
    async with Throttled(mcp) as peer:
        first = peer.send("tools/call", peer.params({"name": "wait"}), id="w0")
        for number in range(1, MAX_RUNNING):
            peer.send("tools/call", peer.params({"name": "wait"}), id=f"w{number}")
        second = peer.send("tools/call", peer.params({"name": "wait"}), id="w0")
        peer.notify("notifications/cancelled", {"requestId": "w0"})
        release.set()
        assert text_of((await second)["result"]) == "done"  # it got the place of the one that was cancelled
        assert not first.done()


async def test_a_doubled_id_costs_nothing_unbounded_while_nothing_can_be_written():
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        peer.has_room = False
        for _ in range(5):
            peer.send("tools/list", id="same")
        assert peer.sent == []
        peer.has_room = True
        peer.intake.release()
        assert len(peer.sent) == 5


async def test_a_client_can_ask_how_the_server_is_while_every_place_is_taken():
    mcp, _ = make_server()
    async with Throttled(mcp, "2025-06-18") as peer:
        for number in range(MAX_RUNNING + 1):
            peer.send("tools/call", peer.params({"name": "wait"}), id=f"w{number}")
        assert await peer.request("ping", {}) == {}
        assert list(await peer.list()) == ["wait", "quick"]


async def test_what_waits_when_the_client_has_gone_is_still_answered():
    mcp, release = make_server()
    async with Throttled(mcp) as peer:
        answers = [peer.send("tools/call", peer.params({"name": "wait"})) for _ in range(MAX_RUNNING)]
        late = peer.send("tools/call", peer.params({"name": "quick"}))
        asyncio.get_running_loop().call_later(0.01, release.set)
        await peer.intake.close(grace_seconds=10)
        assert text_of((await late)["result"]) == "now"
        assert all(answer.done() for answer in answers)


@pytest.mark.parametrize("line", [b"nonsense", b"[]", b"5"])
async def test_what_cannot_be_read_is_answered_in_its_turn(line):
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        peer.has_room = False
        peer.intake.receive(line)
        assert peer.unasked == []
        peer.has_room = True
        peer.intake.release()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert json.loads(peer.sent[-1])["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize("has_room", [True, False])
async def test_each_request_that_waits_or_comes_while_the_server_ends_is_told(has_room):
    """Issue 5: graceful shutdown finishes or tells each running call, and what was never begun."""
    mcp, _ = make_server()
    async with Throttled(mcp) as peer:
        answers = [peer.send("tools/call", peer.params({"name": "wait"})) for _ in range(CAREFREE_RUNNING + 5)]
        await asyncio.sleep(0)
        peer.has_room = has_room
        closing = asyncio.create_task(peer.intake.close(grace_seconds=0.05))
        await asyncio.sleep(0)
        late = peer.send("tools/call", peer.params({"name": "quick"}))
        await closing
        told = [(await answer)["error"]["message"] for answer in [*answers, late]]
    given_up = "the server ends: the call was given up before it had an answer"
    not_begun = "the server ends: the request was not begun; send it to another one"
    assert told == [given_up] * CAREFREE_RUNNING + [not_begun] * 6


async def test_a_call_that_heeds_no_cancellation_is_answered_for_when_the_server_ends():
    """Its client would else wait for an answer that nobody is going to send; its own, should it come, is not."""
    mcp, heard = MCPServer("s"), asyncio.Event()

    @mcp.tool()
    async def stubborn() -> str:
        while not heard.is_set():
            try:
                await heard.wait()
            except asyncio.CancelledError:
                pass
        return "late"

    async with Throttled(mcp) as peer:
        answer = peer.send("tools/call", peer.params({"name": "stubborn"}))
        await asyncio.sleep(0)
        await peer.intake.close(grace_seconds=0.01)
        assert (await answer)["error"]["code"] == -32603
        sent = len(peer.sent)
        heard.set()
        await asyncio.sleep(0.01)
        assert len(peer.sent) == sent


async def test_a_batch_that_runs_when_the_server_ends_is_answered_whole():
    """Issue 5: each of its requests is told, also those that had not begun; its notifications are owed nothing."""
    mcp, _ = make_server()
    async with Throttled(mcp, "2025-03-26") as peer:
        calls = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "wait"}} for n in range(100)]
        batch = [*calls, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
        peer.intake.receive(json.dumps(batch).encode())
        await asyncio.sleep(0.01)
        await peer.intake.close(grace_seconds=0.01)
        answers = json.loads(peer.sent[-1])
    given_up = "the server ends: the call was given up before it had an answer"
    assert [(each["id"], each["error"]["message"]) for each in answers] == [(n, given_up) for n in range(100)]


async def test_a_cancelled_call_of_a_batch_is_left_out_and_leaves_nothing():
    """JSON-RPC batches: what was taken back is not answered; a long session keeps nothing of it."""
    mcp, release = make_server()
    async with Throttled(mcp, "2025-03-26") as peer:
        calls = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "wait"}} for n in "ab"]
        peer.intake.receive(json.dumps(calls).encode())
        await asyncio.sleep(0.01)
        gone = weakref.ref(peer.connection_itself._in_flight["a"])
        peer.notify("notifications/cancelled", {"requestId": "a"})
        await asyncio.sleep(0)
        release.set()
        await asyncio.sleep(0.01)
        gc.collect()
        assert [each["id"] for each in json.loads(peer.sent[-1])] == ["b"]
        assert gone() is None
