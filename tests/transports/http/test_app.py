"""The application as a whole: places, event loops and lifespans, what ASGI servers send, what the log never shows."""

import asyncio
import contextlib
import contextvars
import json
import logging

import pytest

from tests.http_peer import BOTH, PER_REQUEST, HttpPeer, HttpSession, per_request_params
from twofold import Context, Limits, MCPServer, ToolError

LIST = {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": "tools/list"}
POSTED = {"Content-Type": "application/json", "Accept": BOTH}
_who: contextvars.ContextVar[str] = contextvars.ContextVar("_who", default="nobody")


class Record:
    """A server whose lifespan tells what it does, and raises or waits where it is told to."""

    def __init__(self, *faults: BaseException) -> None:
        self.events: list[str] = []
        self.faults = list(faults)
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.mcp = MCPServer("recorded", lifespan=self._live)
        self.mcp.add_tool(self.read)

    @contextlib.asynccontextmanager
    async def _live(self, server):
        if self.faults:
            raise self.faults.pop(0)
        number = sum(event.startswith("open") for event in self.events) + 1
        self.events.append(f"open {number} for {_who.get()}")
        yield number
        self.events.append(f"closing {number}")
        await self.may_close.wait()
        self.events.append(f"closed {number}")

    def read(self, ctx: Context) -> int:
        """Read what the lifespan gave."""
        return ctx.lifespan


class Lifespan:
    """The lifespan events of an ASGI server, sent one by one."""

    def __init__(self, app) -> None:
        self._incoming: asyncio.Queue = asyncio.Queue()
        self._outgoing: asyncio.Queue = asyncio.Queue()
        self.task = asyncio.create_task(app({"type": "lifespan"}, self._incoming.get, self._outgoing.put))

    def send(self, what: str) -> None:
        self._incoming.put_nowait({"type": f"lifespan.{what}"})

    async def answered(self) -> dict:
        async with asyncio.timeout(20):
            return await self._outgoing.get()


class Scoped:
    """An application whose requests come from an ASGI server with ways of its own."""

    def __init__(self, app, **changes) -> None:
        self.app = app
        self.changes = changes

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            scope = scope | {name: change(scope[name]) for name, change in self.changes.items()}
        await self.app(scope, receive, send)


async def let_others_run(turns: int = 50) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def make_waiting() -> tuple[MCPServer, asyncio.Event, asyncio.Event]:
    """A server with a tool that waits: when it has begun, and what lets it go on."""
    server = MCPServer("s")
    started, go_on = asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait() -> str:
        """Wait."""
        started.set()
        await go_on.wait()
        return "done"

    return server, started, go_on


# Places.


async def test_a_call_of_a_session_takes_a_request_s_place_whatever_its_head_says():
    """B3: in a session nothing ties `Mcp-Method` to the body, so that no client counts as one who only waits by it."""
    server, started, go_on = make_waiting()
    listening = {"Mcp-Method": "subscriptions/listen"}
    async with HttpPeer(server, limits=Limits(requests=1, streams=9)) as http, HttpSession(http) as session:
        running = session.call("wait", headers=listening)
        await asyncio.wait_for(started.wait(), 20)
        refused = [await session.post("ping", headers=each).whole() for each in ({}, listening)]
        go_on.set()
        await running.whole()
        served = await session.post("ping", headers=listening).whole()
    assert [response.status for response in refused] == [503, 503]
    assert {response.json["error"]["message"] for response in refused} == {
        "busy: 1 requests are running; send this one again later"
    }
    assert (running.status, served.status) == (200, 200)


async def test_a_call_of_the_newest_revision_cannot_pass_as_a_subscription():
    """B1, B3: the head has to agree with the body: whoever takes a stream's place gets no call done in it."""
    server, started, _ = make_waiting()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": per_request_params({"name": "wait"})}
    head = {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": "subscriptions/listen", "Mcp-Name": "wait"}
    async with HttpPeer(server, limits=Limits(requests=0)) as http:
        refused = await http.post(body, head).whole()
    assert (refused.status, refused.json["error"]["code"], started.is_set()) == (400, -32020, False)


async def test_listeners_leave_requests_their_places():
    """B3: streams of changes have places of their own, in both eras."""
    server = MCPServer("s")
    async with HttpPeer(server, limits=Limits(requests=1, streams=2)) as http, HttpSession(http) as session:
        streams = [session.get(), http.send("subscriptions/listen", {"notifications": {}}, id="l")]
        for stream in streams:
            await stream.until(lambda got=stream: got.events)
        refused = await session.get().whole()
        served = await session.post("ping").whole()
    assert (refused.status, served.status) == (503, 200)


async def test_a_place_is_left_however_a_request_ends():
    """B3: refused, broken off, failed or answered: after it the next one is served."""
    server = MCPServer("s")

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ToolError("no")

    async with HttpPeer(server, limits=Limits(requests=1)) as http:
        begun = http.ask("POST", [b"{", b""], LIST | POSTED)
        await let_others_run()
        begun.disconnect()
        await asyncio.wait_for(begun.task, 20)
        statuses = [
            (await http.ask("POST", b"", {}).whole()).status,
            (await http.ask("POST", b"x", LIST | POSTED).whole()).status,
            (await http.send("tools/call", {"name": "fail"}).whole()).status,
            (await http.send("tools/list").whole()).status,
        ]
    assert statuses == [415, 400, 200, 200]


# Event loops and lifespans.


def test_a_loop_that_ended_with_a_session_open_breaks_nothing_later(caplog):
    """Issue: without lifespan events nobody says goodbye; what changes later is announced to who is there, and no fault."""
    server = MCPServer("s")
    app = server.streamable_http_app()
    earlier: list[HttpSession] = []

    async def use(name: str) -> tuple[list[int], list[str], int]:
        http = HttpPeer(server)
        http.app = app
        async with HttpSession(http) as session:
            listening = session.get()
            await listening.until(lambda: listening.events)
            server.add_tool(lambda: None, name=name, description="Added.")
            await listening.until(lambda: len(listening.events) == 2)
            gone = [(await http.ask("GET", b"", each.headers).whole()).status for each in earlier]
            listed = await session.post("tools/list").whole()
            earlier.append(session)
        return gone, [tool["name"] for tool in listed.json["result"]["tools"]], len(server._connections)

    first = asyncio.run(use("one"))
    server.add_tool(lambda: None, name="two", description="Added.")
    second = asyncio.run(use("three"))
    server.add_tool(lambda: None, name="four", description="Added.")
    assert first == ([], ["one"], 1)
    assert second == ([404], ["one", "two", "three"], 1)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_request_that_comes_while_the_lifespan_closes_begins_anew():
    """Issue: nobody is served with what is being torn down; the shutdown that was asked for ends in order."""
    record = Record()
    async with HttpPeer(record.mcp) as http:
        lifespan = Lifespan(http.app)
        lifespan.send("startup")
        answers = [await lifespan.answered()]
        before = await http.call("read")
        record.may_close.clear()
        lifespan.send("shutdown")
        async with asyncio.timeout(20):
            while "closing 1" not in record.events:
                await asyncio.sleep(0)
        during = await http.call("read")
        async with HttpSession(http) as session:
            record.may_close.set()
            answers.append(await lifespan.answered())
            after = await session.call("read").whole()
    results = [before["structuredContent"], during["structuredContent"], after.json["result"]["structuredContent"]]
    assert results == [{"result": 1}, {"result": 2}, {"result": 2}]
    assert answers == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]
    assert record.events == [
        "open 1 for nobody",
        "closing 1",
        "open 2 for nobody",
        "closed 1",
        "closing 2",
        "closed 2",
    ]


async def test_the_lifespan_does_not_run_in_the_context_of_the_first_request():
    """Issue: what a request's middleware sets (its user, its trace) is that request's alone."""
    record = Record()
    async with HttpPeer(record.mcp) as http:
        _who.set("the first request")
        await http.call("read")
    assert record.events[0] == "open 1 for nobody"


FAULTS = [OSError("no database"), SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_whatever_a_lifespan_raises_at_the_first_request_is_500_and_tried_again(fault, caplog):
    """B3: not the end of the event loop that others run on; the log says what it was, the client nothing of it."""
    record = Record(fault)
    async with HttpPeer(record.mcp) as http:
        refused = await http.send("tools/call", {"name": "read"}).whole()
        result = await http.call("read")
    assert (refused.status, refused.json["error"]) == (
        500,
        {"code": -32603, "message": "the server failed to start; its log says why"},
    )
    assert type(fault).__name__ in caplog.text
    assert result["structuredContent"] == {"result": 1}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_whatever_a_lifespan_raises_at_the_start_is_told_to_the_asgi_server(fault, caplog):
    """ASGI, lifespan: `startup.failed` with a message; then the events are over."""
    record = Record(fault)
    lifespan = Lifespan(record.mcp.streamable_http_app())
    lifespan.send("startup")
    answer = await lifespan.answered()
    async with asyncio.timeout(20):
        await lifespan.task
    assert answer["type"] == "lifespan.startup.failed"
    assert type(fault).__name__ in answer["message"]
    assert "the lifespan of server 'recorded' failed" in caplog.text


# What ASGI servers send.


@pytest.mark.parametrize("gather", [tuple, iter, lambda fields: (each for each in fields)])
async def test_headers_may_come_as_any_iterable(gather):
    """ASGI, HTTP connection scope: whole requests of both eras."""
    server = MCPServer("s")
    async with HttpPeer(server) as http:
        http.app = Scoped(http.app, headers=gather)
        result = await http.request("tools/list")
        async with HttpSession(http) as session:
            listed = await session.post("tools/list").whole()
    assert (result["tools"], listed.json["result"]) == ([], {"tools": []})


async def test_an_event_without_a_body_is_an_empty_part():
    """ASGI, Request event: `body` may be missing, at the end of a POST and where a GET has none."""
    server = MCPServer("s")

    def without_body(app):
        async def leave_out(scope, receive, send):
            async def receive_less():
                event = await receive()
                is_empty = event["type"] == "http.request" and not event["body"]
                return {"type": "http.request"} if is_empty else event

            await app(scope, receive_less, send)

        return leave_out

    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": per_request_params()}).encode()
    async with HttpPeer(server) as http, HttpSession(http) as session:
        application = http.app
        http.app = without_body(application)
        posted = http.ask("POST", [body, b""], LIST | POSTED)
        posted._to_app.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        await posted.whole()
        listening = session.get()
        await listening.until(lambda: listening.events)
        empty = await http.ask("POST", b"", LIST | POSTED).whole()
        http.app = application
    assert (posted.json["result"]["tools"], listening.status) == ([], 200)
    assert (empty.status, empty.json["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize(("http_version", "connection"), [("1.0", "close"), ("1.1", "close"), ("2", None), ("3", None)])
@pytest.mark.parametrize(("body", "status"), [([b"x" * 11], 413), ([b"x", b""], 408)])
async def test_only_http_1_is_told_in_a_header_that_its_connection_closes(body, status, http_version, connection):
    """RFC 9113, section 8.2.2: a message with a `connection` header is malformed from HTTP/2 on."""
    async with HttpPeer(MCPServer("s"), max_body_bytes=10, limits=Limits(body_seconds=0.002)) as http:
        http.app = Scoped(http.app, http_version=lambda _: http_version)
        response = await http.ask("POST", body, LIST | POSTED).whole()
        http.app = http.app.app
    assert (response.status, response.headers.get("connection")) == (status, connection)


async def test_a_refusal_that_leaves_the_connection_usable_does_not_close_it():
    """B3: only what follows on a connection with half a body cannot be told."""
    async with HttpPeer(MCPServer("s")) as http:
        responses = [
            await http.ask("POST", b"", {}).whole(),
            await http.ask("PUT", b"", {}).whole(),
            await http.ask("POST", b"", {"Host": "evil.example"}).whole(),
            await http.ask("POST", b"", POSTED, path="/other").whole(),
        ]
    assert [(each.status, "connection" in each.headers) for each in responses] == [
        (415, False),
        (405, False),
        (421, False),
        (404, False),
    ]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("root_path", ["", "/api"])
async def test_a_mounted_endpoint_is_found_whichever_way_the_path_is_told(root_path, path):
    """ASGI, `root_path`: some servers leave it in `path`, some take it out."""
    async with HttpPeer(MCPServer("s")) as http:
        http.app = Scoped(http.app, path=lambda _: root_path + path, root_path=lambda _: root_path)
        result = await http.request("tools/list")
        http.app = http.app.app
    assert result["tools"] == []


# What the log never shows.

TOKEN = "eyJhbGciOi.c2VjcmV0LXBhcnQ.c2lnbmF0dXJl"  # three parts, as a JSON Web Token has them


def raise_plainly(token, request):
    raise RuntimeError(f"the key store does not know {token}")


def raise_in_a_chain(token, request):
    try:
        {}[token]
    except KeyError as error:
        raise RuntimeError(f"cannot check the signature {token.split('.')[2]}") from error


def raise_with_a_note(token, request):
    error = RuntimeError("cannot check it")
    error.add_note(f"the token was {token!r}")
    raise error


def raise_a_group(token, request):
    raise ExceptionGroup("two stores failed", [ValueError(token), KeyError(token.split(".")[1])])


async def raise_later(token, request):
    await asyncio.sleep(0)
    raise_in_a_chain(token, request)


HOOKS = [raise_plainly, raise_in_a_chain, raise_with_a_note, raise_a_group, raise_later]


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_s_fault_is_logged_without_the_token(hook, caplog):
    """Decision 14: whatever the author puts into an exception; neither the whole token nor a part of it that tells."""
    caplog.set_level(logging.DEBUG)
    async with HttpPeer(MCPServer("s", authorize=hook)) as http:
        response = await http.send("tools/list", {}, {"Authorization": f"Bearer {TOKEN}"}).whole()
    shown = caplog.text + "".join(repr(record.__dict__) for record in caplog.records) + response.body.decode()
    assert [part for part in (TOKEN, *TOKEN.split(".")) if part in shown] == []
    assert "authorize failed: " in caplog.text
    assert "Error" in caplog.text
    assert (response.status, response.json["error"]["message"]) == (
        500,
        "the server failed to check the authorization",
    )


async def test_nothing_is_left_of_requests_that_ended():
    """B3: neither a connection nor a task, whether they streamed or not."""
    server = MCPServer("s")

    @server.tool()
    async def report(ctx: Context) -> str:
        """Report."""
        await ctx.report_progress(1)
        return "done"

    async with HttpPeer(server, limits=Limits(watch_after_seconds=0)) as http:
        await http.request("tools/list")
        tasks = asyncio.all_tasks()
        for meta in ({}, {"progressToken": 1}) * 50:
            await http.send("tools/call", {"name": "report"}, **meta).whole()
        async with asyncio.timeout(20):
            while asyncio.all_tasks() - tasks:
                await asyncio.sleep(0)
        assert (server._connections, http.app._connections) == (set(), set())
