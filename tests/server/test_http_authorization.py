"""Bearer tokens over HTTP: who calls, who is refused and where tokens are to be had.

Source: MCP 2026-07-28, Authorization; RFC 6750; RFC 9728. Verifying tokens is the author's part.
"""

import asyncio
import json

import pytest

from tests.http_peer import HttpPeer, HttpSession
from twofold import (
    Context,
    Forbidden,
    HttpRequest,
    InvalidDefinition,
    Limits,
    MCPServer,
    ProtectedResource,
    Unauthorized,
)

RESOURCE = ProtectedResource(
    resource="https://mcp.example.com/mcp",
    authorization_servers=["https://auth.example.com"],
    scopes_supported=["files:read", "files:write"],
    required_scopes=["files:read"],
)
METADATA_URL = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
PEOPLE = {"token-of-ann": "ann", "token-of-bob": "bob"}


def make_server(
    *, is_async: bool = False, resource: ProtectedResource | None = RESOURCE
) -> tuple[MCPServer, list[HttpRequest]]:
    """A server whose hook knows two people, and what it was told."""
    told: list[HttpRequest] = []

    def check(token: str, request: HttpRequest) -> str | None:
        told.append(request)
        if token == "narrow":
            raise Forbidden("writing needs more", scope=["files:read", "files:write"])
        if token == "expired":
            raise Unauthorized("the token has expired")
        if token == "breaks":
            raise RuntimeError("the key store is down: secret-of-the-store")
        return PEOPLE.get(token)

    async def check_later(token: str, request: HttpRequest) -> str | None:
        return check(token, request)

    server = MCPServer("files", authorize=check_later if is_async else check, protected_resource=resource)

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Say who calls."""
        return str(ctx.principal)

    return server, told


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_principal_is_shown_to_the_tool(is_async):
    """What the hook gives is `Context.principal`, in both eras; it is told what the head says, without the token."""
    server, told = make_server(is_async=is_async)
    async with HttpPeer(server) as http:
        result = await http.call("whoami", {}, bearer("token-of-ann"))
        async with HttpSession(http, headers=bearer("token-of-bob")) as session:
            answered = await session.call("whoami").whole()
    assert result["structuredContent"] == {"result": "ann"}
    assert answered.json["result"]["structuredContent"] == {"result": "bob"}
    first = told[0]
    assert (first.http_method, first.path, first.client_address) == ("POST", "/mcp", "127.0.0.1")
    assert (first.mcp_method, first.mcp_name) == ("tools/call", "whoami")
    assert "authorization" not in first.headers
    assert first.headers["mcp-method"] == "tools/call"
    assert {(each.mcp_method, each.mcp_name) for each in told[1:]} == {(None, None)}


@pytest.mark.parametrize(
    ("headers", "status", "has", "lacks"),
    [
        ({}, 401, [f'resource_metadata="{METADATA_URL}"', 'scope="files:read"'], ["error="]),
        (bearer("nobody"), 401, [f'resource_metadata="{METADATA_URL}"', 'error="invalid_token"'], ["nobody"]),
        (bearer("expired"), 401, ['error="invalid_token"', "the token has expired"], []),
        (
            bearer("narrow"),
            403,
            ['error="insufficient_scope"', 'scope="files:read files:write"', f'resource_metadata="{METADATA_URL}"'],
            [],
        ),
        ({"Authorization": "Basic YTpi"}, 401, ["resource_metadata"], ["YTpi"]),
        ({"Authorization": "Bearer a b"}, 400, ['error="invalid_request"', "resource_metadata"], ["a b"]),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_refusals_say_where_tokens_are_to_be_had(method, headers, status, has, lacks):
    """A challenge with every refusal, before a session or a body is looked at."""
    server, _ = make_server()
    async with HttpPeer(server) as http:
        response = await http.ask(method, b"{", headers).whole()
    assert response.status == status
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith("Bearer ")
    assert [part for part in has if part not in challenge] == []
    assert [part for part in lacks if part in challenge or part.encode() in response.body] == []
    assert "error" in response.json


async def test_a_hook_that_breaks_is_500_and_tells_nothing(caplog):
    """Neither the fault nor the token is sent; the log has the fault and not the token."""
    server, _ = make_server()
    async with HttpPeer(server) as http:
        response = await http.send("tools/call", {"name": "whoami"}, bearer("breaks")).whole()
    assert response.status == 500
    assert b"secret-of-the-store" not in response.body
    assert "key store is down" in caplog.text


async def test_a_session_is_its_openers_alone():
    """Whoever learns another's session id gets nothing by it: it is as if there were none."""
    server, _ = make_server()
    async with HttpPeer(server) as http:
        async with HttpSession(http, headers=bearer("token-of-ann")) as session:
            stolen = session.headers | bearer("token-of-bob")
            responses = [
                await session.post("tools/list", {}, stolen).whole(),
                await session.get(stolen).whole(),
                await http.ask("DELETE", b"", stolen).whole(),
            ]
            own = await session.post("tools/list").whole()
    assert [response.status for response in responses] == [404, 404, 404]
    assert own.status == 200


async def test_the_metadata_of_the_protected_resource_is_served():
    """RFC 9728, section 3: at the well-known place, without a token."""
    server, _ = make_server()
    async with HttpPeer(server, allowed_hosts=["mcp.example.com"]) as http:
        response = await http.ask(
            "GET", b"", {"Host": "mcp.example.com"}, path="/.well-known/oauth-protected-resource/mcp"
        ).whole()
        elsewhere = await http.ask(
            "GET", b"", {"Host": "mcp.example.com"}, path="/.well-known/oauth-protected-resource"
        ).whole()
        rebound = await http.ask(
            "GET", b"", {"Host": "evil.example"}, path="/.well-known/oauth-protected-resource/mcp"
        ).whole()
    assert json.loads(response.body) == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://auth.example.com"],
        "scopes_supported": ["files:read", "files:write"],
        "bearer_methods_supported": ["header"],
    }
    assert [elsewhere.status, rebound.status] == [404, 421]


async def test_without_metadata_the_challenge_is_bare():
    server, _ = make_server(resource=None)
    async with HttpPeer(server) as http:
        response = await http.send("tools/list").whole()
    assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")


def test_what_cannot_be_is_refused_at_construction():
    """A resource that nobody guards, a hook that cannot be called."""
    with pytest.raises(InvalidDefinition, match="authorize"):
        MCPServer("s", protected_resource=RESOURCE)
    with pytest.raises(InvalidDefinition, match="authorize"):
        MCPServer("s", authorize="token")


async def test_a_malformed_name_header_is_refused_before_the_hook_could_be_misled():
    server, told = make_server()
    async with HttpPeer(server) as http:
        response = await http.send(
            "tools/call", {"name": "whoami"}, bearer("token-of-ann") | {"Mcp-Name": "=?base64?@?="}
        ).whole()
    assert (response.status, response.json["error"]["code"], told) == (400, -32020, [])


async def test_a_hook_that_forgets_an_await_lets_nobody_in():
    """What it gives is awaited until it is somebody; a generator is nobody."""

    async def verify(token: str) -> str | None:
        return PEOPLE.get(token)

    async def forgets(token: str, request: HttpRequest):
        return verify(token)

    def generates(token: str, request: HttpRequest):
        yield "ann"

    for hook, good, bad in ((forgets, 200, 401), (generates, 500, 500)):
        server = MCPServer("s", authorize=hook)
        server.add_tool(lambda: None, name="one", description="One.")
        async with HttpPeer(server) as http:
            statuses = [
                (await http.send("tools/list", {}, bearer(token)).whole()).status for token in ("token-of-ann", "eve")
            ]
        assert statuses == [good, bad]


async def test_a_hook_that_hangs_is_503_and_keeps_no_place():
    """B3: whoever asks is told to come again, and the next is served when it works."""
    hangs = asyncio.Event()

    async def hang(token: str, request: HttpRequest) -> str:
        if not hangs.is_set():
            await asyncio.Event().wait()
        return "ann"

    server = MCPServer("s", authorize=hang)
    async with HttpPeer(server, limits=Limits(authorize_seconds=0.01, requests=2)) as http:
        refused = [await http.send("tools/list", {}, bearer("t")).whole() for _ in range(4)]
        hangs.set()
        served = await http.send("tools/list", {}, bearer("t")).whole()
    assert [(each.status, each.headers["retry-after"]) for each in refused] == [(503, "5")] * 4
    assert served.status == 200
