"""Shortcuts of our own server, taken only where nobody stands between it and the application."""

import asyncio
import json
from typing import Any

import pytest

from tests.http_peer import PER_REQUEST
from tests.server.raw_http import Response, running
from twofold import Context, MCPServer


async def _believe(token: str, request: Any) -> str:
    return token


def _app(authorize: Any = _believe) -> Any:
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
                event["body"] = event["body"].replace(b'"id": 1', b'"id": 2')
            return event

        await inner(scope, change if scope["type"] == "http" else receive, send)

    for response in _exchange_twice(app, _call()):
        assert (response.status, json.loads(response.body)["id"]) == (200, 2)


class _Passing:
    """Stands for a callable and passes on what else is asked of it, as proxies do that trace or count."""

    def __init__(self, wrapped: Any, seen: list[str]) -> None:
        self._wrapped = wrapped
        self._seen = seen

    async def __call__(self, *event: Any) -> Any:
        result = await self._wrapped(*event)
        self._seen.append((result or event[0])["type"])
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    def __eq__(self, other: object) -> bool:
        return bool(self._wrapped == other)

    __hash__ = None  # type: ignore[assignment]  # as of any class that compares and has no hash


def test_proxy_that_passes_attributes_on_sees_every_event() -> None:
    """What looks like the server's own `send` is not taken for it."""
    inner, seen = _app(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            receive, send = _Passing(receive, seen), _Passing(send, seen)
        await inner(scope, receive, send)

    assert [_text(each) for each in _exchange_twice(app, _call())] == ["ada", "ada"]
    assert seen == ["http.request", "http.response.start", "http.response.body"] * 2


def _append(headers: list[Any], number: int) -> list[Any]:
    headers.append((b"authorization", b"Bearer number-%d" % number))
    return headers


@pytest.mark.parametrize(
    ("change", "token", "expected"),
    [
        (lambda headers, n: [*headers, (b"authorization", b"Bearer number-%d" % n)], None, ["number-1", "number-2"]),
        (_append, None, ["number-1", "number-2"]),
        (lambda headers, n: headers if n == 1 else headers.pop(6) and headers, "ada", ["ada", 401]),
        (lambda headers, n: [h for h in headers if n == 1 or h[0] != b"authorization"], "ada", ["ada", 401]),
        (lambda headers, n: iter([*headers, (b"x", b"%d" % n)]), "ada", ["ada", "ada"]),
        (lambda headers, n: [*headers, *[(b"origin", b"https://evil.example")][: n - 1]], "ada", ["ada", 403]),
        (
            lambda headers, n: headers.extend([(b"origin", b"https://evil.example")][: n - 1]) or headers,
            "ada",
            ["ada", 403],
        ),
    ],
    ids=["new list", "append", "pop", "left out", "iterator", "foreign origin", "extend"],
)
def test_headers_that_middleware_writes_for_each_request_are_read(change: Any, token: Any, expected: Any) -> None:
    """A head that came before is not known any more where somebody has changed it, be it in place."""
    inner, asked = _app(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            asked.append(None)
            assert [name for name, _ in scope["headers"]].count(b"authorization") == (token is not None)
            scope["headers"] = change(scope["headers"], len(asked))
        await inner(scope, receive, send)

    answers = _exchange_twice(app, _call(caller=token))
    assert [_text(each) if each.status == 200 else each.status for each in answers] == expected


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [("path", "/elsewhere", 404), ("root_path", "/mcp", 404), ("method", "PUT", 405), ("client", ("10.0.0.9", 1), 200)],
)
def test_what_else_middleware_writes_for_each_request_is_read(key: str, value: Any, status: int) -> None:
    """The same holds for what a head is read from beside its headers; the author is told the client's own address."""
    asked: list[str | None] = []

    async def authorize(token: str, request: Any) -> str:
        asked.append(request.client_address)
        return token

    inner, requests = _app(authorize), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            requests.append(None)
            if len(requests) == 2:
                scope[key] = value
        await inner(scope, receive, send)

    assert [each.status for each in _exchange_twice(app, _call())] == [200, status]
    assert asked == ["127.0.0.1", "10.0.0.9"][: 2 if status == 200 else 1]


def test_what_middleware_writes_into_a_scope_is_gone_with_the_request() -> None:
    """Each request has a scope of its own, though much in it is the same."""
    found: list[Any] = []
    inner = _app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            found.append([name in place for place in (scope, scope["asgi"], scope["state"]) for name in ("mine",)])
            scope["mine"] = scope["asgi"]["mine"] = scope["state"]["mine"] = True
        await inner(scope, receive, send)

    assert [each.status for each in _exchange_twice(app, _call())] == [200, 200]
    assert found == [[False] * 3] * 2


def test_two_applications_behind_one_server_decide_each_for_itself() -> None:
    """What one made of a head is not the other's."""

    async def upper(token: str, request: Any) -> str:
        return token.upper()

    apps, asked = [_app(), _app(upper)], []
    strict = MCPServer("strict").streamable_http_app(allowed_hosts=["other.example"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await apps[0](scope, receive, send)
            return
        asked.append(None)
        await [*apps, strict][len(asked) - 1](scope, receive, send)

    with running(app, new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        answers = [client.exchange(_call()) for _ in range(3)]
    assert [_text(answer) if answer.status == 200 else answer.status for answer in answers] == ["ada", "ADA", 421]


def test_notes_of_a_head_do_not_grow() -> None:
    """What is kept of a connection is bounded, whatever middleware writes."""
    inner, sizes = _app(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["root_path"] = f"/tenant-{len(sizes)}"
            await inner(scope, receive, send)
            sizes.append(len(scope["extensions"]["twofold.request"].notes))
        else:
            await inner(scope, receive, send)

    with running(app, new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        answers = [client.exchange(_call()).status for _ in range(5)]
    assert (answers, len(set(sizes))) == ([200] * 5, 1)


def test_the_same_head_twice_is_answered_alike() -> None:
    """Without middleware, what was found out about a head holds for the next request, and only for this head."""
    with running(_app(), new_loop=asyncio.new_event_loop) as server, server.connect() as client:
        answers = [client.exchange(_call(caller=caller)) for caller in ("ada", "ada", "bob", None, "ada")]
    assert [answer.status for answer in answers] == [200, 200, 200, 401, 200]
    assert [_text(answer) for answer in answers if answer.status == 200] == ["ada", "ada", "bob", "ada"]
    assert answers[0].headers.keys() == answers[1].headers.keys() == {"date", "content-type", "content-length"}
