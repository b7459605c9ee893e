"""A server in this process is talked to in bytes, and is closed in order."""

import asyncio
import contextlib
import contextvars

import pytest

from tests.transports.hearing import INITIALIZE, Heard, per_request, request
from twofold import MCPServer
from twofold.errors import NotSent
from twofold.transports.memory import MemoryLink

where = contextvars.ContextVar("where", default="nowhere")


async def ask(link: MemoryLink, heard: Heard, method: str, params: object = None, *, id: object = 1) -> object:
    await link.send(request(method, params, id=id), request_id=1, headers={})
    await heard.until(lambda heard: any(each.get("id") == id for each in heard.messages))
    return next(each for each in heard.messages if each.get("id") == id)


async def test_a_call_is_answered_in_either_era():
    """C1: one client for an in-process server, whichever revision is spoken."""
    mcp = MCPServer("s")

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    link, heard = MemoryLink(mcp), Heard()
    await link.open(heard)
    newest = await ask(link, heard, "tools/call", per_request(params), id=1)
    opened = await ask(link, heard, "initialize", INITIALIZE, id="i")
    earlier = await ask(link, heard, "tools/call", params, id=2)
    await link.close()
    assert newest["result"]["structuredContent"] == earlier["result"]["structuredContent"] == {"result": 3}
    assert opened["result"]["protocolVersion"] == "2025-11-25"
    assert (link.name, link.has_own_streams) == ("server 's' in this process", False)
    assert (heard.broken, heard.ends) == ([], [])


async def test_what_comes_back_never_reenters_who_sends():
    """The same order of events as over a wire: `send` returns before its answer is there."""
    link, heard = MemoryLink(MCPServer("s")), Heard()
    await link.open(heard)
    await link.send(request("ping"), request_id=1, headers={})
    assert heard.raw == []
    await heard.until(lambda heard: len(heard.raw) == 1)
    await link.close()
    assert heard.messages == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_bytes_that_are_no_message_are_answered_as_over_a_wire():
    link, heard = MemoryLink(MCPServer("s")), Heard()
    await link.open(heard)
    await link.send(b"{not json", request_id=1, headers={})
    await heard.until(lambda heard: len(heard.raw) == 1)
    await link.close()
    assert heard.messages[0]["error"]["code"] == -32700


async def test_closing_ends_calls_then_the_connection_then_the_lifespan():
    """In order: what runs is given its time and then cancelled while its resources are still there."""
    before = asyncio.all_tasks()
    order = []

    @contextlib.asynccontextmanager
    async def lifespan(server):
        order.append("opened")
        yield
        order.append("closed")

    mcp = MCPServer("s", lifespan=lifespan)
    started = asyncio.Event()

    @mcp.tool()
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            order.append("call ended")
        return ""

    link, heard = MemoryLink(mcp), Heard()
    await link.open(heard)
    await link.send(request("tools/call", per_request({"name": "wait"})), request_id=1, headers={})
    await started.wait()
    await link.close()
    await link.close()
    assert order == ["opened", "call ended", "closed"]
    assert heard.raw == []
    assert asyncio.all_tasks() == before
    with pytest.raises(NotSent, match="the link is not open"):
        await link.send(request("ping"), request_id=1, headers={})


async def test_a_link_may_be_opened_and_closed_in_different_tasks():
    """A lifespan with a cancel scope of its own has to be closed where it was opened."""
    before = asyncio.all_tasks()

    @contextlib.asynccontextmanager
    async def lifespan(server):
        async with asyncio.timeout(60):
            yield

    link = MemoryLink(MCPServer("s", lifespan=lifespan))
    await asyncio.create_task(link.open(Heard()))
    await asyncio.create_task(link.close())
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("failure", [RuntimeError("no database"), SystemExit("no database")])
async def test_a_lifespan_that_fails_is_told_when_it_is_opened(failure):
    """NotSent: nothing has reached the server; its author reads why."""

    @contextlib.asynccontextmanager
    async def lifespan(server):
        raise failure
        yield

    link = MemoryLink(MCPServer("s", lifespan=lifespan))
    with pytest.raises(
        NotSent, match=f"its lifespan failed .{type(failure).__name__}: no database.; mend it"
    ) as caught:
        await link.open(Heard())
    assert caught.value.__cause__ is failure
    await link.close()


async def test_a_lifespan_that_fails_as_it_closes_is_logged(caplog):
    """`close` never raises."""

    @contextlib.asynccontextmanager
    async def lifespan(server):
        yield
        raise RuntimeError("left open")

    link = MemoryLink(MCPServer("s", lifespan=lifespan))
    await link.open(Heard())
    await link.close()
    assert [record.getMessage() for record in caplog.records] == [
        "server 's' in this process: its lifespan failed as it was closed"
    ]


async def test_giving_up_while_it_opens_leaves_nothing_behind():
    """Cancelled halfway, it is closed again."""
    before = asyncio.all_tasks()
    closed, entered = [], asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(server):
        try:
            entered.set()
            await asyncio.sleep(600)
            yield
        finally:
            closed.append(True)

    link = MemoryLink(MCPServer("s", lifespan=lifespan))
    opening = asyncio.create_task(link.open(Heard()))
    await entered.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert closed == [True]
    assert asyncio.all_tasks() == before


async def test_tools_see_the_lifespan_and_not_the_callers_context():
    """As over a wire: whoever calls hands over bytes, and nothing beside them."""

    @contextlib.asynccontextmanager
    async def lifespan(server):
        where.set("lifespan")
        yield

    mcp = MCPServer("s", lifespan=lifespan)

    @mcp.tool()
    def tell() -> str:
        return where.get()

    link, heard = MemoryLink(mcp), Heard()
    await link.open(heard)
    where.set("caller")
    answer = await ask(link, heard, "tools/call", per_request({"name": "tell"}))
    await link.close()
    assert answer["result"]["structuredContent"] == {"result": "lifespan"}


async def test_a_link_is_opened_once():
    link = MemoryLink(MCPServer("s"))
    await link.open(Heard())
    with pytest.raises(NotSent, match="opened before"):
        await link.open(Heard())
    await link.close()


async def test_a_change_of_the_tools_is_heard():
    """What concerns no request comes too."""
    mcp = MCPServer("s")
    link, heard = MemoryLink(mcp), Heard()
    await link.open(heard)
    await ask(link, heard, "initialize", INITIALIZE)
    await link.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', request_id=None, headers={})
    mcp.add_tool(_later)
    await heard.until(lambda heard: any("method" in each for each in heard.messages))
    await link.close()
    assert heard.messages[-1] == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


def _later() -> str:
    return ""
