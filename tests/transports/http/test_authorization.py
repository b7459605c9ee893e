"""Bearer tokens: where they stand, how a refusal is said, and that nothing of one is ever said."""

import asyncio
import json
import threading

import pytest

from twofold.errors import Forbidden, HeaderMismatch, InvalidDefinition, Unauthorized
from twofold.transports.http.authorization import (
    HttpRequest,
    ProtectedResource,
    authorize,
    challenge,
    describe_request,
    read_bearer,
)

RESOURCE = ProtectedResource("https://mcp.example.com/mcp", ["https://login.example.com"])
REQUEST = HttpRequest("POST", "/mcp", {})
TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("address", "path", "url"),
    [
        ("https://mcp.example.com/mcp", "/mcp", "https://mcp.example.com{}"),
        ("https://mcp.example.com", "", "https://mcp.example.com{}"),
        ("https://mcp.example.com/", "", "https://mcp.example.com{}"),
        ("https://mcp.example.com:8443/a/mcp/", "/a/mcp/", "https://mcp.example.com:8443{}"),
        ("http://localhost:8000/mcp", "/mcp", "http://localhost:8000{}"),
        ("http://127.0.0.1/mcp", "/mcp", "http://127.0.0.1{}"),
        ("http://[::1]:8000/mcp", "/mcp", "http://[::1]:8000{}"),
        ("HTTPS://MCP.example.com/mcp", "/mcp", "HTTPS://MCP.example.com{}"),
    ],
)
def test_metadata_lies_at_the_well_known_path_of_the_resource(address, path, url):
    """The well-known path goes between host and path (RFC 9728, 3.1)."""
    resource = ProtectedResource(address, ["https://login.example.com"])
    well_known = f"/.well-known/oauth-protected-resource{path}"
    assert (resource.metadata_path, resource.metadata_url) == (well_known, url.format(well_known))


def test_metadata_says_what_is_known_and_nothing_else():
    """RFC 9728, section 2; tokens are taken from the header alone (RFC 6750, 2.1)."""
    assert json.loads(RESOURCE.metadata()) == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://login.example.com"],
        "bearer_methods_supported": ["header"],
    }
    full = ProtectedResource(
        "https://mcp.example.com/mcp",
        ("https://login.example.com/a", "http://localhost:9000"),
        scopes_supported=["files:read", "files:write"],
        required_scopes=["files:read"],
        resource_name='Files "of" Ada',
        resource_documentation="https://docs.example.com/mcp?page=1#top",
    )
    assert json.loads(full.metadata()) == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://login.example.com/a", "http://localhost:9000"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["files:read", "files:write"],
        "resource_name": 'Files "of" Ada',
        "resource_documentation": "https://docs.example.com/mcp?page=1#top",
    }


ADDRESS = "expected an address such as 'https://mcp.example.com/mcp', got"
ONLY_TO_PATH = "an address that names a server has no query and no fragment, got"
NO_SCOPE = "is no scope: visible ASCII without blanks, double quotes and backslashes (RFC 6749, 3.3)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource": "mcp.example.com"}, f"resource: {ADDRESS} 'mcp.example.com'"),
        ({"resource": "ftp://mcp.example.com"}, f"resource: {ADDRESS} 'ftp://mcp.example.com'"),
        ({"resource": "https://"}, f"resource: {ADDRESS} 'https://'"),
        ({"resource": "https://u:p@example.com"}, f"resource: {ADDRESS} 'https://u:p@example.com'"),
        ({"resource": "https://example.com/ü"}, f"resource: {ADDRESS} 'https://example.com/ü'"),
        ({"resource": 'https://example.com/"x'}, f"resource: {ADDRESS} 'https://example.com/\"x'"),
        ({"resource": "https://example.com/\n"}, f"resource: {ADDRESS} 'https://example.com/\\n'"),
        ({"resource": "https://example.com:0/"}, f"resource: {ADDRESS} 'https://example.com:0/'"),
        ({"resource": None}, f"resource: {ADDRESS} None"),
        (
            {"resource": "http://mcp.example.com"},
            "resource: 'http://mcp.example.com' is not encrypted; write https:, http: is for this machine only",
        ),
        (
            {"resource": "https://mcp.example.com#x"},
            f"resource: {ONLY_TO_PATH} 'https://mcp.example.com#x'; leave it out",
        ),
        (
            {"resource": "https://mcp.example.com/mcp?x"},
            f"resource: {ONLY_TO_PATH} 'https://mcp.example.com/mcp?x'; leave it out",
        ),
        ({"authorization_servers": []}, "authorization_servers: at least one is needed, got none"),
        (
            {"authorization_servers": "https://login.example.com"},
            "authorization_servers: expected a list of texts, got 'https://login.example.com'",
        ),
        (
            {"authorization_servers": ["http://login.example.com"]},
            (
                "authorization_servers: 'http://login.example.com' is not encrypted; "
                "write https:, http: is for this machine only"
            ),
        ),
        ({"scopes_supported": "a b"}, "scopes_supported: expected a list of texts, got 'a b'"),
        ({"scopes_supported": [1]}, "scopes_supported: expected a list of texts, got [1]"),
        ({"scopes_supported": ["a b"]}, f"scopes_supported: 'a b' {NO_SCOPE}"),
        ({"required_scopes": ['a"']}, f"required_scopes: 'a\"' {NO_SCOPE}"),
        ({"required_scopes": [""]}, f"required_scopes: '' {NO_SCOPE}"),
        ({"resource_name": 7}, "resource_name: expected a text, got 7"),
        ({"resource_documentation": "docs"}, f"resource_documentation: {ADDRESS} 'docs'"),
    ],
)
def test_what_clients_could_not_follow_is_refused_at_once(changes, message):
    """https but on this machine, an identifier without a fragment (RFC 9728, 1.2 and 2)."""
    given = {"resource": "https://mcp.example.com", "authorization_servers": ["https://login.example.com"], **changes}
    with pytest.raises(InvalidDefinition) as caught:
        ProtectedResource(**given)
    assert str(caught.value) == f"protected resource, {message}"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        (b"Bearer " + TOKEN.encode(), TOKEN),
        (b"bearer abc", "abc"),
        (b"BEARER   abc", "abc"),
        (b"  Bearer abc\t", "abc"),
        (b"Bearer a-._~+/9==", "a-._~+/9=="),
    ],
)
def test_tokens_are_read(header, token):
    """The scheme in any case, then `b64token` (RFC 6750, 2.1); no header, no token."""
    assert read_bearer(header) == token


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearersecret99",
        b"Basic secret99",
        b"Bearer secret99 secret98",
        b"secret99",
        b'Bearer "secret99"',
        b"Bearer secret99,",
        b"Bearer =secret99",
        b"Bearer\tsecret99",
        b"Bearer secret99\xff",
        b"Bearer secret99\n",
        b"Bearer secret99=x",
    ],
)
def test_what_is_no_token_is_refused_without_being_shown(header):
    """Another scheme, or anything that is not one token."""
    with pytest.raises(Unauthorized) as caught:
        read_bearer(header)
    assert caught.value.message == ("Authorization: expected 'Bearer' and one token in its base64 alphabet; send that")


SCOPED = ProtectedResource(
    "https://mcp.example.com/mcp", ["https://login.example.com"], required_scopes=["files:read", "files:list"]
)
METADATA = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


@pytest.mark.parametrize(
    ("error", "had_token", "resource", "expected"),
    [
        (Unauthorized("send one"), False, None, (401, "Bearer")),
        (Unauthorized("send one"), False, RESOURCE, (401, f"Bearer {METADATA}")),
        (Unauthorized("send one"), False, SCOPED, (401, f'Bearer scope="files:read files:list", {METADATA}')),
        (Unauthorized("send one", scope=["a"]), False, SCOPED, (401, f'Bearer scope="a", {METADATA}')),
        (Unauthorized("send one", scope=[]), False, SCOPED, (401, f"Bearer {METADATA}")),
        (
            Unauthorized("it has expired"),
            True,
            SCOPED,
            (
                401,
                (
                    f'Bearer error="invalid_token", scope="files:read files:list", {METADATA}, '
                    'error_description="it has expired"'
                ),
            ),
        ),
        (
            Forbidden("may not write", scope=["files:read", "files:write"]),
            True,
            RESOURCE,
            (
                403,
                (
                    f'Bearer error="insufficient_scope", scope="files:read files:write", {METADATA}, '
                    'error_description="may not write"'
                ),
            ),
        ),
        (
            Forbidden("may not write", scope="files:read  files:write"),
            True,
            None,
            (
                403,
                'Bearer error="insufficient_scope", scope="files:read files:write", error_description="may not write"',
            ),
        ),
        (Forbidden(""), True, None, (403, 'Bearer error="insufficient_scope"')),
        (
            Unauthorized('of "Ada" \\ Größe\r\nX-Evil: 1'),
            True,
            None,
            (401, 'Bearer error="invalid_token", error_description="of \'Ada\' ? Gr??e??X-Evil: 1"'),
        ),
        (
            Unauthorized("x" * 5000),
            True,
            None,
            (401, f'Bearer error="invalid_token", error_description="{"x" * 200}"'),
        ),
    ],
)
def test_a_challenge_says_what_a_client_needs(error, had_token, resource, expected):
    """Where the metadata is, which scopes are needed, and what is wrong, if a token came.

    Source: RFC 6750, section 3 and 3.1; RFC 9728, 5.1; MCP 2026-07-28, "Scope Challenge Handling".
    """
    status, value = expected
    assert challenge(error, had_token=had_token, resource=resource) == (status, value.encode())


@pytest.mark.parametrize("scope", [['a" b'], ["a", "ü"], [""], [3]])
def test_a_scope_that_would_break_the_challenge_is_refused(scope):
    """The fault of whoever wrote the hook."""
    with pytest.raises(ValueError, match="Forbidden: .* is no scope"):
        challenge(Forbidden("no", scope=scope), had_token=True, resource=None)


HEADERS = {
    b"host": b"localhost",
    b"authorization": b"Bearer secret99",
    b"proxy-authorization": b"Basic secret99",
    b"x-tenant": b"gr\xfcn",
    b"mcp-method": b" tools/call ",
    b"mcp-name": b"=?base64?Z3LDtsOfZQ==?=",
}


def test_a_hook_is_told_of_the_request_but_not_of_credentials():
    """The token is handed over by itself; names are found in any case (RFC 9110, 5.1)."""
    request = describe_request(HEADERS, http_method="POST", path="/mcp", client_address="192.0.2.7", is_mirrored=True)
    assert request == HttpRequest(
        "POST", "/mcp", request.headers, "192.0.2.7", mcp_method="tools/call", mcp_name="größe"
    )
    assert dict(request.headers) == {
        "host": "localhost",
        "x-tenant": "grün",
        "mcp-method": " tools/call ",
        "mcp-name": "=?base64?Z3LDtsOfZQ==?=",
    }
    assert len(request.headers) == 4
    assert (request.headers["X-Tenant"], request.headers.get("Authorization")) == ("grün", None)
    assert "proxy-authorization" not in request.headers
    assert "ö✓" not in request.headers


def test_headers_that_nothing_ties_to_the_body_are_not_told():
    """In handshake revisions a client could name one tool and call another."""
    request = describe_request(HEADERS, http_method="POST", path="/", client_address=None, is_mirrored=False)
    assert (request.mcp_method, request.mcp_name) == (None, None)
    bare = describe_request({}, http_method="GET", path="/", client_address=None, is_mirrored=True)
    assert bare == HttpRequest("GET", "/", bare.headers)


def test_a_malformed_name_is_refused_before_the_hook():
    """-32020, as when it is compared with the body."""
    headers = {b"mcp-name": b"=?base64?!?="}
    with pytest.raises(HeaderMismatch, match="Mcp-Name: expected base64"):
        describe_request(headers, http_method="POST", path="/", client_address=None, is_mirrored=True)


async def test_hooks_of_every_kind_give_the_principal():
    """Plain functions, coroutine functions, objects with either call, and functions that give an awaitable."""

    def plain(token: str, request: HttpRequest) -> tuple[str, str]:
        return token, request.path

    async def asynchronous(token: str, request: HttpRequest) -> tuple[str, str]:
        await asyncio.sleep(0)
        return token, request.path

    class Plain:
        def __call__(self, token: str, request: HttpRequest) -> tuple[str, str]:
            return token, request.path

    class Asynchronous:
        async def __call__(self, token: str, request: HttpRequest) -> tuple[str, str]:
            return token, request.path

    def promising(token: str, request: HttpRequest) -> object:
        return asynchronous(token, request)

    for hook in (plain, asynchronous, Plain(), Asynchronous(), promising):
        assert await authorize(hook, "t", REQUEST) == ("t", "/mcp")


async def test_only_a_plain_hook_leaves_the_event_loop():
    """It may ask another server and wait; a coroutine function waits by itself."""

    async def asynchronous(token, request):
        return threading.get_ident()

    here = threading.get_ident()
    assert await authorize(lambda *_: threading.get_ident(), "t", REQUEST) != here
    assert await authorize(asynchronous, "t", REQUEST) == here


@pytest.mark.parametrize("principal", [0, "", (), {}])
async def test_a_principal_may_be_falsy(principal):
    """Only None and False refuse."""
    assert await authorize(lambda *_: principal, "t", REQUEST) == principal


@pytest.mark.parametrize("refusal", [None, False])
async def test_a_hook_that_finds_nobody_refuses(refusal):
    """A hook that looks a token up gives nothing back for one it does not know."""
    with pytest.raises(Unauthorized) as caught:
        await authorize(lambda *_: refusal, "t", REQUEST)
    assert (caught.value.message, caught.value.scope) == ("the token is not accepted here; obtain another", None)


async def test_without_a_token_the_hook_is_not_asked():
    """Every request needs one (2026-07-28, "Token Requirements"), and hooks may count on it."""
    asked: list[str] = []
    with pytest.raises(Unauthorized) as caught:
        await authorize(lambda token, _: asked.append(token), None, REQUEST)
    assert (caught.value.message, asked) == ("a token is needed; send Authorization: Bearer and the token", [])


@pytest.mark.parametrize("error", [Forbidden("too far", scope=["a"]), Unauthorized("too old"), KeyError("kid")])
async def test_what_a_hook_raises_arrives_as_it_is(error):
    """Refusals are answered as such, anything else is a fault of the hook's own."""

    def plain(token, request):
        raise error

    async def asynchronous(token, request):
        raise error

    for hook in (plain, asynchronous):
        with pytest.raises(type(error)) as caught:
            await authorize(hook, TOKEN, REQUEST)
        assert caught.value is error


async def test_a_hook_that_runs_out_of_an_iterator_is_at_fault_and_nobody_waits():
    """No future can hold a StopIteration."""
    with pytest.raises(RuntimeError, match=r"the authorize hook raised StopIteration; give next\(\) a default"):
        await authorize(lambda *_: next(iter(())), "t", REQUEST)


@pytest.mark.parametrize("kind", [Unauthorized, Forbidden])
async def test_nothing_of_a_token_is_said(kind):
    """Not even where the hook's message holds it or a part of it."""

    def hook(token, request):
        head, _, signature = token.split(".")
        raise kind(f"{token} has header {head} and signature {signature}", scope=["a"])

    with pytest.raises(kind) as caught:
        await authorize(hook, TOKEN, REQUEST)
    assert (caught.value.message, str(caught.value)) == ("… has header … and signature …",) * 2
    assert caught.value.scope == ["a"]


async def test_a_refusal_no_challenge_can_say_is_a_fault_of_the_hook():
    """Found before it is answered, so that it is logged like any other."""

    def hook(token, request):
        raise Forbidden("no", scope=['a"'])

    with pytest.raises(ValueError, match="Forbidden: .* is no scope"):
        await authorize(hook, "t", REQUEST)
