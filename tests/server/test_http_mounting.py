"""The application in other people's hands: mounted in Starlette and FastAPI, with lifespan events and without."""

import asyncio
import contextlib

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.http_peer import HttpPeer, HttpSession
from twofold import Context, MCPServer


class Record:
    """A server whose lifespan tells when it opens and closes."""

    def __init__(self, *, fails: int = 0) -> None:
        self.events: list[str] = []
        self.fails = fails
        self.mcp = MCPServer("mounted", lifespan=self._live)
        self.mcp.add_tool(self.read)

    @contextlib.asynccontextmanager
    async def _live(self, server):
        if self.fails:
            self.fails -= 1
            raise OSError("no database")
        self.events.append("open")
        yield {"db": "connected"}
        self.events.append("close")

    def read(self, ctx: Context) -> str:
        """Read what the lifespan gave."""
        return ctx.lifespan["db"]


class Mounted(HttpPeer):
    """A peer of an application in which the server is mounted; it gets no lifespan events."""

    def __init__(self, app) -> None:
        self.app = app
        self.open_responses = []

    async def __aexit__(self, *_: object) -> None:
        for response in self.open_responses:
            response.disconnect()
            await asyncio.wait({response.task}, timeout=5)


async def lifespan_events(app, *events):
    """Send lifespan events one by one; gives what each was answered."""
    incoming: asyncio.Queue = asyncio.Queue()
    outgoing: asyncio.Queue = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan"}, incoming.get, outgoing.put))
    answers = []
    for event in events:
        await incoming.put({"type": f"lifespan.{event}"})
        answers.append(await asyncio.wait_for(outgoing.get(), 10))
    if not task.done():
        await asyncio.wait({task}, timeout=10 if "shutdown" in events else 0.01)
    return answers, task


@pytest.mark.parametrize("make", [lambda app: Starlette(routes=[Mount("/api", app)]), lambda app: _fastapi(app)])
async def test_a_mounted_server_needs_no_lifespan_events(make):
    """The outer application does not hand them on: the first request opens the lifespan, once."""
    record = Record()
    app = make(record.mcp.streamable_http_app())
    async with Mounted(app) as http:
        http.prefix = "/api"
        results = await asyncio.gather(*(http.call("read") for _ in range(3)))
        async with HttpSession(http) as session:
            answered = await session.call("read").whole()
    assert [result["structuredContent"]["result"] for result in results] == ["connected"] * 3
    assert answered.json["result"]["structuredContent"] == {"result": "connected"}
    assert record.events == ["open"]


def _fastapi(app):
    outer = FastAPI()
    outer.mount("/api", app)
    return outer


async def test_with_lifespan_events_the_server_is_open_from_start_to_end():
    record = Record()
    app = record.mcp.streamable_http_app()
    answers, task = await lifespan_events(app, "startup")
    assert (answers, record.events) == ([{"type": "lifespan.startup.complete"}], ["open"])
    async with Mounted(app) as http:
        assert (await http.call("read"))["structuredContent"] == {"result": "connected"}
    task.cancel()
    answers, _ = await lifespan_events(app, "shutdown")
    assert (answers, record.events) == ([{"type": "lifespan.shutdown.complete"}], ["open", "close"])


async def test_a_lifespan_that_fails_is_told_to_the_asgi_server(caplog):
    record = Record(fails=1)
    answers, _ = await lifespan_events(record.mcp.streamable_http_app(), "startup")
    assert answers == [{"type": "lifespan.startup.failed", "message": "OSError: no database"}]
    assert "the lifespan of server 'mounted' failed" in caplog.text


async def test_a_lifespan_that_fails_at_the_first_request_is_500_and_tried_again(caplog):
    """Nothing of the fault is sent; the log says it."""
    record = Record(fails=1)
    async with Mounted(record.mcp.streamable_http_app()) as http:
        refused = await http.send("tools/call", {"name": "read"}).whole()
        result = await http.call("read")
    assert refused.status == 500
    assert b"database" not in refused.body
    assert "no database" in caplog.text
    assert result["structuredContent"] == {"result": "connected"}


def test_each_event_loop_opens_the_lifespan_anew():
    """Test clients run each request on a loop of its own; the end of a loop closes what it opened."""
    record = Record()
    app = record.mcp.streamable_http_app()

    async def once():
        async with Mounted(app) as http:
            return (await http.call("read"))["structuredContent"]["result"]

    assert [asyncio.run(once()) for _ in range(2)] == ["connected"] * 2
    assert record.events == ["open", "close", "open", "close"]


async def test_one_server_may_be_served_at_two_places():
    """Each place has a lifespan of its own."""
    record = Record()
    async with HttpPeer(record.mcp) as one, HttpPeer(record.mcp, path="/other") as two:
        first = await one.call("read")
        second = await two.ask("GET", b"", {}, path="/other").whole()
    assert first["structuredContent"] == {"result": "connected"}
    assert second.status == 405
    assert record.events == ["open", "open", "close", "close"]
