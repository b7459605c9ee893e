"""Shortcuts of our own server, taken only where nobody stands between it and the application."""

import asyncio
import json
from typing import Any

from tests.http_peer import PER_REQUEST
from tests.server.raw_http import Response, running
from twofold import Context, MCPServer


def _app() -> Any:
    async def authorize(token: str, request: Any) -> str:
        return token

    server = MCPServer("s", authorize=authorize)

    @server.tool
    async def who(ctx: Context) -> str:
        """Tell who asks."""
        return str(ctx.principal)

    return server.streamable_http_app()


def _call(name: str = "who", *, caller: str | None = "ada") -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {PER_REQUEST}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {name}",
        *([] if caller is None else [f"Authorization: Bearer {caller}"]),
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


def _text(response: Response) -> str:
    result = json.loads(response.body)["result"]
    assert result["isError"] is False
    return str(result["content"][0]["text"])


def _exchange_twice(app: Any, request: bytes) -> list[Response]:
    """Send the very same bytes twice on one connection: the second time their head is known."""
    with running(app, new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        return [client.exchange(request) for _ in range(2)]


def test_middleware_that_wraps_send_sees_every_answer() -> None:
    """ASGI: what stands before an application may add to each of its answers."""
    inner = _app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def add(event: Any) -> None:
            if event["type"] == "http.response.start":
                event["headers"] = [*event["headers"], (b"x-added", b"yes")]
            await send(event)

        await inner(scope, receive, add if scope["type"] == "http" else send)

    for response in _exchange_twice(app, _call()):
        assert (response.status, response.headers.get("x-added"), _text(response)) == (200, "yes", "ada")


def test_middleware_that_wraps_receive_gives_the_body() -> None:
    """ASGI: what stands before an application may change what comes."""
    inner = _app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def change() -> Any:
            event = await receive()
            if event["type"] == "http.request":
                event["body"] = event["body"].replace(b'"wha"', b'"who"')
            return event

        if scope["type"] == "http":
            scope["headers"] = [(k, b"who" if k == b"mcp-name" else v) for k, v in scope["headers"]]
        await inner(scope, change if scope["type"] == "http" else receive, send)

    for response in _exchange_twice(app, _call("wha")):
        assert (response.status, _text(response)) == (200, "ada")


def test_headers_that_middleware_writes_for_each_request_are_read() -> None:
    """A head that came before is not known any more where somebody has changed it."""
    inner, asked = _app(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked.append(None)
            scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer number-%d" % len(asked))]
        await inner(scope, receive, send)

    assert [_text(each) for each in _exchange_twice(app, _call(caller=None))] == ["number-1", "number-2"]


def test_path_that_middleware_writes_for_each_request_is_read() -> None:
    """The same holds for the path."""
    inner, asked = _app(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked.append(None)
            scope["path"] = "/mcp" if len(asked) == 1 else "/elsewhere"
        await inner(scope, receive, send)

    assert [each.status for each in _exchange_twice(app, _call())] == [200, 404]


def test_the_same_head_twice_is_answered_alike() -> None:
    """Without middleware, what was found out about a head holds for the next request, and only for this head."""
    with running(_app(), new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        answers = [client.exchange(_call(caller=caller)) for caller in ("ada", "ada", "bob", None, "ada")]
    assert [answer.status for answer in answers] == [200, 200, 200, 401, 200]
    assert [_text(answer) for answer in answers if answer.status == 200] == ["ada", "ada", "bob", "ada"]
    assert answers[0].headers.keys() == answers[1].headers.keys() == {"date", "content-type", "content-length"}
