"""With every place taken, what may free one is still heard: cancellations and the end of a session."""

import asyncio
import json

from tests.http_peer import HttpPeer, HttpSession
from twofold import Limits, MCPServer

BUSY = "busy: 1 requests are running; send this one again later"


def make_server() -> tuple[MCPServer, asyncio.Event, asyncio.Event]:
    server, started, cancelled = MCPServer("s"), asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    return server, started, cancelled


def sized(message: object) -> tuple[bytes, dict[str, str]]:
    """A message as clients send it: with its length."""
    body = json.dumps(message).encode()
    types = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return body, types | {"Content-Length": str(len(body))}


async def test_a_cancellation_of_a_session_is_heard_while_every_place_is_taken():
    """Else a server that is full of calls nobody wants could never be freed by those who sent them."""
    server, started, cancelled = make_server()
    async with HttpPeer(server, limits=Limits(requests=1)) as http, HttpSession(http) as session:
        session.call("wait")  # id 2, after initialize
        await asyncio.wait_for(started.wait(), 20)
        body, head = sized({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        refused = await http.ask("POST", body, head | session.headers).whole()
        batch, head = sized([{"jsonrpc": "2.0", "id": 9, "method": "ping"}])
        also_refused = await http.ask("POST", batch, head | session.headers).whole()
        large, head = sized({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {"x": "y" * 5000}})
        too_large = await http.ask("POST", large, head | session.headers).whole()
        body, head = sized({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        heard = await http.ask("POST", body, head | session.headers).whole()
        missing = await http.ask("POST", body, head | session.headers | {"Mcp-Session-Id": "x"}).whole()
        await asyncio.wait_for(cancelled.wait(), 20)
    statuses = [each.status for each in (refused, also_refused, too_large, heard, missing)]
    assert statuses == [503, 503, 503, 202, 404]
    assert [each.json["error"]["message"] for each in (refused, also_refused, too_large)] == [BUSY] * 3


async def test_a_session_can_be_ended_while_every_place_is_taken():
    """2025-11-25, "Session Management": DELETE; what runs in the session ends with it."""
    server, started, cancelled = make_server()
    async with HttpPeer(server, limits=Limits(requests=1)) as http, HttpSession(http) as session:
        session.call("wait")  # id 2, after initialize
        await asyncio.wait_for(started.wait(), 20)
        ended = await http.ask("DELETE", b"", session.headers).whole()
        await asyncio.wait_for(cancelled.wait(), 20)
        async with HttpSession(http) as next_one:
            served = await next_one.post("ping").whole()
    assert (ended.status, served.status) == (204, 200)
