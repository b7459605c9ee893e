"""Who may ask over HTTP, and how much: hosts, origins, types, sizes; B3 of the contract."""

import asyncio
import json

import pytest

from tests.http_peer import BOTH, PER_REQUEST, HttpPeer
from tests.server.raw_http import running
from twofold import Context, Limits, MCPServer
from twofold.transports.http.app import StreamableHTTP
from twofold.transports.http.guard import Guard

mcp = MCPServer("shop")


@mcp.tool()
def echo(text: str) -> str:
    """Echo."""
    return text


LIST = {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": "tools/list"}


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example:8000", "file://", ""]
)
async def test_a_foreign_page_is_403(origin):
    """X01: any web page could else drive a local server."""
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, {"Origin": origin}).whole()
    assert response.status == 403
    assert "id" not in response.json
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 400), ("127.0.0.1:8000@evil.example", 400)],
)
async def test_a_host_of_another_name_is_421(host, status):
    """X01: a page whose own name was rebound to this machine says that name in `Host`; what is no host is 400."""
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, {"Host": host}).whole()
    assert response.status == status
    assert response.json["error"]["message"].startswith("Host: ")


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT"])
async def test_host_and_origin_are_checked_for_every_method(method):
    async with HttpPeer(mcp) as http:
        host = await http.ask(method, b"", {"Host": "evil.example"}).whole()
        origin = await http.ask(method, b"", {"Origin": "https://evil.example"}).whole()
    assert (host.status, origin.status) == (421, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost"},
        {"Host": "[::1]:8000"},
        {"Host": "127.0.0.1:8000", "Origin": "http://127.0.0.1:8000"},
        {"Host": "localhost:8000", "Origin": "http://localhost:6274"},
    ],
)
async def test_loopback_is_served_by_default(headers):
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, headers).whole()
    assert response.status == 200


async def test_listed_hosts_and_origins_are_served_and_nothing_else():
    """Said once, they replace the names of the loopback interface; a listed page can read the answer."""
    async with HttpPeer(mcp, allowed_hosts=["mcp.example.com"], allowed_origins=["https://app.example.com"]) as http:
        listed = await http.send(
            "tools/list", {}, {"Host": "mcp.example.com", "Origin": "https://app.example.com"}
        ).whole()
        own = await http.send(
            "tools/list", {}, {"Host": "mcp.example.com", "Origin": "https://mcp.example.com"}
        ).whole()
        other = await http.send("tools/list", {}, {"Host": "mcp.example.com", "Origin": "https://evil.example"}).whole()
        loopback = await http.send("tools/list", {}, {"Host": "127.0.0.1:8000"}).whole()
        preflight = await http.ask(
            "OPTIONS",
            b"",
            {
                "Host": "mcp.example.com",
                "Origin": "https://app.example.com",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type, mcp-param-region, x-other",
            },
        ).whole()
    assert (listed.status, listed.headers["access-control-allow-origin"]) == (200, "https://app.example.com")
    assert "access-control-allow-origin" not in own.headers
    assert [own.status, other.status, loopback.status, preflight.status] == [200, 403, 421, 204]
    allowed = preflight.headers["access-control-allow-headers"]
    assert ("mcp-param-region" in allowed, "x-other" in allowed) == (True, False)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Mcp-Name",
        "Mcp-Method",
        "MCP-Protocol-Version",
        "Authorization",
        "Content-Type",
        "Origin",
        "Content-Length",
    ],
)
async def test_a_header_that_stands_twice_is_refused(name):
    """Two readers could take different ones; also where both say the same."""
    value = {"Host": "127.0.0.1:8000", "Origin": "http://127.0.0.1:8000", "Content-Type": "application/json"}.get(
        name, "1"
    )
    headers = [("Content-Type", "application/json"), ("Accept", BOTH), *LIST.items()]
    headers = [each for each in headers if each[0] != name] + [(name, value)] * 2
    async with HttpPeer(mcp) as http:
        response = await http.ask("POST", b"{}", headers).whole()
    assert (response.status, "more than once" in response.json["error"]["message"]) == (400, True)


async def test_lists_may_stand_in_several_headers():
    headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept", "text/event-stream"),
        *LIST.items(),
    ]
    async with HttpPeer(mcp) as http:
        response = await http.ask("POST", b"{}", headers).whole()
    assert (response.status, response.json["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        None,
        "application/jsonp",
        "text/json",
    ],
)
async def test_bodies_of_other_types_are_415(kind):
    """A web page may send those without asking first."""
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, {"Content-Type": kind}).whole()
    assert response.status == 415


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_json_is_recognised(kind):
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, {"Content-Type": kind}).whole()
    assert response.status == 200


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("application/json;q=0.9 , text/event-stream", 200),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("", 406),
    ],
)
async def test_clients_take_both_kinds_of_answers(accept, status):
    async with HttpPeer(mcp) as http:
        response = await http.send("tools/list", {}, {"Accept": accept}).whole()
    assert response.status == status


async def test_a_body_over_the_limit_is_413_before_it_is_read():
    """By what is announced, or as soon as too much has come; the connection is closed."""
    headers = LIST | {"Content-Type": "application/json", "Accept": BOTH}
    async with HttpPeer(mcp, max_body_bytes=1000) as http:
        announced = await http.ask("POST", [b"{", b""], headers | {"Content-Length": "1001"}).whole()
        in_parts = await http.ask("POST", [b"x" * 600, b"x" * 600, b""], headers).whole()
        at_once = await http.ask("POST", b"x" * 1001, headers).whole()
        endless = await http.ask("POST", [b"x", b""], headers | {"Content-Length": "9" * 4000}).whole()
        fits = await http.ask("POST", b"x" * 1000, headers | {"Content-Length": "1000"}).whole()
    for response in (announced, in_parts, at_once, endless):
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert "1000 are allowed" in response.json["error"]["message"]
    assert fits.status == 400


async def test_four_mebibytes_are_the_limit_unless_said_otherwise():
    text = "x" * (4 * 1024 * 1024 - 1000)
    async with HttpPeer(mcp) as http:
        result = await http.call("echo", {"text": text})
        refused = await http.send("tools/call", {"name": "echo", "arguments": {"text": text + "x" * 2000}}).whole()
    assert result["structuredContent"]["result"] == text
    assert refused.status == 413


async def test_a_body_in_parts_is_put_together():
    async with HttpPeer(mcp) as http:
        whole = http.send("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        await whole.whole()
        import json

        from tests.http_peer import per_request_params

        body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": per_request_params({"name": "echo", "arguments": {"text": "hello"}}),
            }
        ).encode()
        headers = {
            "Content-Type": "application/json",
            "Accept": BOTH,
            "MCP-Protocol-Version": PER_REQUEST,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "echo",
        }
        parts = [bytes([each]) for each in body]
        split = await http.ask("POST", parts, headers).whole()
    assert split.json == whole.json


async def test_a_body_that_does_not_come_is_408():
    """B3: a slow client costs nothing lasting."""
    headers = LIST | {"Content-Type": "application/json", "Accept": BOTH}
    async with HttpPeer(mcp, limits=Limits(body_seconds=0.05)) as http:
        begun = await http.ask("POST", [b"{", b""], headers).whole()
        never = await http.ask("POST", [b"", b""], headers).whole()
    assert [(each.status, each.headers["connection"]) for each in (begun, never)] == [(408, "close")] * 2


async def test_a_client_that_goes_while_it_sends_is_forgotten():
    headers = LIST | {"Content-Type": "application/json", "Accept": BOTH}
    async with HttpPeer(mcp) as http:
        response = http.ask("POST", [b"{", b""], headers)
        await asyncio.sleep(0)
        response.disconnect()
        await asyncio.wait_for(response.task, 10)
    assert response.status == 0


async def test_other_paths_are_404_and_a_slash_more_is_not():
    async with HttpPeer(mcp, path="/tools/mcp") as http:
        statuses = [
            (await http.ask("POST", b"", {}, path=path).whole()).status
            for path in ("/tools/mcp", "/tools/mcp/", "/", "/tools", "/mcp", "/tools/mcp/x", "/TOOLS/MCP")
        ]
    assert statuses == [415, 415, 404, 404, 404, 404, 404]


async def test_too_much_at_once_is_503_with_when_to_come_again():
    """Load past capacity: a clear answer at once; what only waits has places of its own."""
    server = MCPServer("s")
    go_on, both = asyncio.Event(), asyncio.Barrier(3)

    @server.tool()
    async def wait() -> str:
        """Wait."""
        await both.wait()
        await go_on.wait()
        return "done"

    async with HttpPeer(server, limits=Limits(requests=2, streams=1)) as http:
        running = [http.send("tools/call", {"name": "wait"}, id=each) for each in range(2)]
        await both.wait()
        listening = http.send("subscriptions/listen", {"notifications": {}})
        await listening.until(lambda: listening.events)
        refused = await http.send("tools/list").whole()
        no_stream = await http.send("subscriptions/listen", {"notifications": {}}).whole()
        go_on.set()
        for response in running:
            await response.whole()
        served = await http.send("tools/list").whole()
    assert [(each.status, each.headers["retry-after"]) for each in (refused, no_stream)] == [(503, "1")] * 2
    assert [response.status for response in running] == [200, 200]
    assert served.status == 200


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"path": "mcp"}, ValueError),
        ({"path": 3}, ValueError),
        ({"path": "/mcp?x"}, ValueError),
        ({"max_body_bytes": 0}, ValueError),
        ({"max_body_bytes": True}, ValueError),
        ({"allowed_hosts": ["https://example.com"]}, ValueError),
        ({"allowed_hosts": "example.com"}, (ValueError, TypeError)),
        ({"allowed_origins": ["example.com"]}, ValueError),
        ({"paths": "/mcp"}, TypeError),
        ({"limits": {"requests": 1}}, TypeError),
        ({"stateless": "false"}, TypeError),
        ({"host": "127.0.0.1"}, TypeError),
    ],
)
def test_options_that_cannot_hold_are_refused_when_they_are_given(options, fault):
    """Nothing is dropped without a word."""
    with pytest.raises(fault):
        mcp.streamable_http_app(**options)


@pytest.mark.parametrize(
    ("transport", "options", "fault", "said"),
    [
        ("streamable-http", {"host": "0.0.0.0"}, ValueError, "allowed_hosts"),
        ("streamable-http", {"host": "192.0.2.1"}, ValueError, "allowed_hosts"),
        ("streamable-http", {"host": None}, ValueError, "host"),
        ("streamable-http", {"port": "8000"}, ValueError, "port"),
        ("streamable-http", {"prot": 1}, TypeError, "prot"),
        ("stdio", {"port": 1}, TypeError, "port"),
        ("streamable_http", {}, ValueError, "did you mean 'streamable-http'"),
        ("sse", {}, ValueError, "there are 'stdio' and 'streamable-http'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_bound(transport, options, fault, said):
    with pytest.raises(fault, match=said):
        mcp.run(transport, **options)


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), "1", True, None])
def test_limits_that_bound_nothing_are_refused(value):
    with pytest.raises(ValueError, match="limits: sessions"):
        Limits(sessions=value)


async def test_websockets_are_refused_in_their_own_terms():
    sent = []

    async def send(event):
        sent.append(event)

    await mcp.streamable_http_app()({"type": "websocket"}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1003}]


async def test_notifications_from_a_thread_reach_the_stream():
    """A sync tool runs in a thread of its own; what it sends goes out in order."""
    server = MCPServer("s")

    @server.tool()
    def count(ctx: Context, upto: int) -> str:
        """Count."""
        for step in range(1, upto + 1):
            ctx.report_progress(step)
        return "done"

    async with HttpPeer(server) as http:
        response = await http.send("tools/call", {"name": "count", "arguments": {"upto": 200}}, progressToken=1).whole()
    assert [each["params"]["progress"] for each in response.messages[:-1]] == list(range(1, 201))
    assert response.messages[-1]["result"]["structuredContent"] == {"result": "done"}


LISTING = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
).encode()


def post(*fields: str, host: str = "localhost", path: str = "/mcp") -> bytes:
    """Make the head of a `tools/list`, but for how long its body is."""
    return "\r\n".join(
        [
            f"POST {path} HTTP/1.1",
            f"Host: {host}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {PER_REQUEST}",
            "Mcp-Method: tools/list",
            *fields,
            "",
            "",
        ]
    ).encode()


@pytest.mark.parametrize(("room", "status"), [(0, 200), (-1, 413)])
def test_body_that_came_whole_without_a_length_is_bounded(room, status):
    """B3: our own server hands a chunked body over in one piece; it may be as long as any other, and no longer."""
    app = mcp.streamable_http_app(max_body_bytes=len(LISTING) + room)
    with running(app, new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LISTING), LISTING)
        response = client.exchange(post("Transfer-Encoding: chunked") + chunk)
    assert response.status == status


class CountingGuard(Guard):
    """Tells which hosts and origins it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes | None] = []

    def refuse_host(self, host: bytes | None) -> str | None:
        self.asked.append(host)
        return super().refuse_host(host)


def test_known_head_is_judged_once_and_another_one_anew():
    """X01: what was decided about a head holds for the same head on its connection, and for nothing else."""
    guard = CountingGuard()
    app = StreamableHTTP(
        mcp,
        path="/mcp",
        guard=guard,
        max_body_bytes=1000,
        limits=Limits(),
        stateless=False,
        hook=None,
        resource=None,
    )
    length = f"Content-Length: {len(LISTING)}"
    heads = [
        post(length),
        post(length),
        post(length, host="evil.example"),
        post(length),
        post(length, "Origin: https://evil.example"),
        post(length, path="/elsewhere"),
        post(length, path="/elsewhere"),
        post(length),
    ]
    with running(app, new_loop=asyncio.new_event_loop) as server:
        with server.connect() as client:
            statuses = [client.exchange(head + LISTING).status for head in heads]
        assert statuses == [200, 200, 421, 200, 403, 404, 404, 200]
        assert guard.asked == [b"localhost", b"evil.example", b"localhost", b"localhost"]
        with server.connect() as client:
            assert client.exchange(heads[0] + LISTING).status == 200
    assert len(guard.asked) == 5


async def _no_lifespan(scope, receive, send):
    for what in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{what}.complete"})


def test_two_apps_on_one_connection_judge_a_head_each_for_itself():
    """X01: behind one server, the app that lets a host in does not let it into another app."""
    opened = mcp.streamable_http_app(allowed_hosts=["shop.example"])
    local = mcp.streamable_http_app()
    turns = [opened, local, opened, local]

    async def app(scope, receive, send):
        await (turns.pop(0) if scope["type"] == "http" else _no_lifespan)(scope, receive, send)

    head = post(f"Content-Length: {len(LISTING)}", host="shop.example")
    with running(app, new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        statuses = [client.exchange(head + LISTING).status for _ in range(4)]
    assert statuses == [200, 421, 200, 421]
