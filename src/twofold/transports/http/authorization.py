"""The resource server's side of OAuth 2.1: where a token stands, what a refusal says, where to get a token.

Whether a token is good is for the author's hook and a library of its choice; nothing here looks into one.

Source: MCP 2026-07-28, Authorization; RFC 6750 (bearer tokens); RFC 9728 (protected resource metadata).
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from twofold.errors import Forbidden, InvalidDefinition, Unauthorized
from twofold.protocol.headers import METHOD, NAME, decode_value
from twofold.transports.http.guard import is_loopback_host, read_authority

WELL_KNOWN_PATH = "/.well-known/oauth-protected-resource"
"""RFC 9728, section 3."""

_BEARER = re.compile(rb"(?i:bearer) +([A-Za-z0-9\-._~+/]+=*)\Z")
"""RFC 6750, section 2.1: the scheme in any case, one or more blanks, `b64token`."""
_URL = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?P<fragment>#.*)?\Z"
)
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+\Z")
"""RFC 3986, section 2; among them none that would end a quoted string."""
_SCOPE = re.compile(r"[!#-\[\]-~]+\Z")
"""RFC 6749, section 3.3: `scope-token`."""
_NO_SCOPE = "is no scope: visible ASCII without blanks, double quotes and backslashes (RFC 6749, 3.3)"
_NOT_IN_DESCRIPTION = re.compile(r"[^ !#-\[\]-~]")
"""RFC 6750, section 3: all that `error_description` may not hold."""
_MAX_DESCRIPTION = 200
_MIN_SECRET = 8
"""A piece of a token that is at least so long is taken out of messages; a shorter one is found in any sentence."""
_WITHHELD = frozenset({b"authorization", b"proxy-authorization"})


class ProtectedResource(msgspec.Struct, frozen=True):
    """What this server tells clients about the tokens it takes.

    Attributes:
        resource: This server's own address as clients write it: `https://mcp.example.com/mcp`. Tokens are
            issued for it.
        authorization_servers: The issuers whose tokens are taken; at least one.
        scopes_supported: Scopes a client may ask for.
        required_scopes: Scopes that every request needs: a challenge names them unless its error names others.
        resource_name: What people call this server.
        resource_documentation: The address of a page for developers.

    Raises:
        InvalidDefinition: An address that is not `https:` (or `http:` on this machine itself), has a query or
            a fragment where none may be, or a scope that is none.

    Source: RFC 9728, section 2.
    """

    resource: str
    authorization_servers: Sequence[str]
    scopes_supported: Sequence[str] = ()
    required_scopes: Sequence[str] = ()
    resource_name: str | None = None
    resource_documentation: str | None = None

    def __post_init__(self) -> None:
        """Check what was given."""
        _check_identifier(self.resource, field="resource")
        for server in _check_texts(self.authorization_servers, field="authorization_servers"):
            _check_identifier(server, field="authorization_servers")
        if not self.authorization_servers:
            raise InvalidDefinition("protected resource, authorization_servers: at least one is needed, got none")
        for field in ("scopes_supported", "required_scopes"):
            for scope in _check_texts(getattr(self, field), field=field):
                if not _SCOPE.match(scope):
                    raise InvalidDefinition(f"protected resource, {field}: {scope!r:.80} {_NO_SCOPE}")
        if self.resource_name is not None and not isinstance(self.resource_name, str):
            raise InvalidDefinition(
                f"protected resource, resource_name: expected a text, got {self.resource_name!r:.80}"
            )
        if self.resource_documentation is not None:
            _read_url(self.resource_documentation, field="resource_documentation")

    @property
    def metadata_path(self) -> str:
        """Where the metadata is served: the resource's own path behind the well-known one (section 3.1)."""
        path = self._url["path"] or ""
        return WELL_KNOWN_PATH + ("" if path == "/" else path)

    @property
    def metadata_url(self) -> str:
        """The whole address of the metadata, for challenges."""
        url = self._url
        return f"{url['scheme']}://{url['authority']}{self.metadata_path}"

    @property
    def _url(self) -> re.Match[str]:
        return _read_url(self.resource, field="resource")

    def metadata(self) -> bytes:
        """Write the metadata document, as JSON (section 3.2)."""
        document: dict[str, object] = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
        }
        if self.scopes_supported:
            document["scopes_supported"] = list(self.scopes_supported)
        if self.resource_name is not None:
            document["resource_name"] = self.resource_name
        if self.resource_documentation is not None:
            document["resource_documentation"] = self.resource_documentation
        return msgspec.json.encode(document)


def _check_texts(values: Sequence[str], *, field: str) -> Sequence[str]:
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if not is_list or not all(isinstance(value, str) for value in values):
        raise InvalidDefinition(f"protected resource, {field}: expected a list of texts, got {values!r:.80}")
    return values


def _check_identifier(value: str, *, field: str) -> None:
    """Check an address that is compared as a whole, so that nothing may stand behind its path."""
    url = _read_url(value, field=field)
    if url["query"] is not None or url["fragment"] is not None:
        raise InvalidDefinition(
            f"protected resource, {field}: an address that names a server has no query and no fragment, "
            f"got {value!r:.80}; leave it out"
        )


def _read_url(value: str, *, field: str) -> re.Match[str]:
    """Split an address, refusing what clients would not follow.

    Raises:
        InvalidDefinition: It is malformed, or not `https:` although it leads to another machine.
    """
    url = _URL.match(value) if isinstance(value, str) and _URL_CHARACTERS.match(value) else None
    authority = None if url is None else read_authority(url["authority"])
    if url is None or authority is None:
        raise InvalidDefinition(
            f"protected resource, {field}: expected an address such as 'https://mcp.example.com/mcp', got {value!r:.80}"
        )
    if url["scheme"].lower() == "http" and not is_loopback_host(authority.host):
        raise InvalidDefinition(
            f"protected resource, {field}: {value!r:.80} is not encrypted; write https:, http: is for this machine only"
        )
    return url


class RequestHeaders(Mapping[str, str]):
    """A request's headers by name in any case, as text; those that carry credentials are left out."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        field = name.lower().encode("latin-1", "replace")
        if field in _WITHHELD:
            raise KeyError(name)
        return self._fields[field].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (field.decode("latin-1") for field in self._fields if field not in _WITHHELD)

    def __len__(self) -> int:
        return sum(field not in _WITHHELD for field in self._fields)


class HttpRequest(msgspec.Struct, frozen=True):
    """What is known of a request when its token is looked at, before its body is read.

    Attributes:
        http_method: `POST`, `GET` or `DELETE`.
        path: Below where the server is mounted.
        headers: By lower-case name; `Authorization` is left out, since the token is handed over by itself.
        client_address: Where it comes from; the last proxy's, if there is one. None if unknown.
        mcp_method: What it asks for (`tools/call`), in revision 2026-07-28, where a body that says something else
            is refused. None in earlier revisions, in which nothing ties a header to the body.
        mcp_name: The tool it calls; None as for `mcp_method`, and where no tool is called.
    """

    http_method: str
    path: str
    headers: Mapping[str, str]
    client_address: str | None = None
    mcp_method: str | None = None
    mcp_name: str | None = None


Authorize: TypeAlias = Callable[[str, HttpRequest], object]
"""An author's hook: token and request in, principal (or an awaitable of it) out."""


def describe_request(
    headers: Mapping[bytes, bytes],
    *,
    http_method: str,
    path: str,
    client_address: str | None,
    is_mirrored: bool,
) -> HttpRequest:
    """Gather what an author's hook is told of a request.

    Args:
        headers: By lower-case name.
        http_method: The method.
        path: Below where the server is mounted.
        client_address: Where it comes from; None if unknown.
        is_mirrored: Whether the headers will be compared with the body, as in revision 2026-07-28. Only then do
            `Mcp-Method` and `Mcp-Name` mean anything: else a client could name one tool and call another.

    Raises:
        HeaderMismatch: `Mcp-Method` or `Mcp-Name` is malformed.
    """
    method = headers.get(METHOD) if is_mirrored else None
    name = headers.get(NAME) if is_mirrored else None
    return HttpRequest(
        http_method,
        path,
        RequestHeaders(headers),
        client_address,
        None if method is None else method.strip(b" \t").decode("latin-1"),
        None if name is None else decode_value(name, header="Mcp-Name"),
    )


class MalformedAuthorization(Unauthorized):
    """An `Authorization` header of the right scheme that holds no token."""


def read_bearer(header: bytes | None) -> str | None:
    """Read the token of an `Authorization` header.

    Args:
        header: The header's value; None if there is none.

    Returns:
        The token, or None without the header.

    Raises:
        Unauthorized: Another scheme; never with anything of the header in it.
        MalformedAuthorization: The scheme is right, and what follows is no token.

    Source: RFC 6750, section 2.1.
    """
    if header is None:
        return None
    found = _BEARER.match(header.strip(b" \t"))
    if found is None:
        said = "Authorization: expected 'Bearer' and one token in its base64 alphabet; send that"
        raise (MalformedAuthorization if header.strip(b" \t")[:6].lower() == b"bearer" else Unauthorized)(said)
    return found[1].decode()


def challenge(
    error: Unauthorized | Forbidden, *, had_token: bool, resource: ProtectedResource | None
) -> tuple[int, bytes]:
    """Say what a refusal is answered with.

    Args:
        error: Why the request is refused. Its scopes stand in the challenge, else those every request needs.
        had_token: Whether a token came; without one a client is only told where to get one.
        resource: Where it is told that; None if the server publishes nothing.

    Returns:
        The status (400, 401 or 403) and the value of `WWW-Authenticate`.

    Raises:
        ValueError: The error names a scope that is none; `authorize` has checked those of a hook.

    Source: RFC 6750, section 3; RFC 9728, section 5.1; MCP 2026-07-28, Authorization, "Error Handling".
    """
    status, code = 401, "invalid_token" if had_token else None
    if isinstance(error, Forbidden):
        status, code = 403, "insufficient_scope"
    elif isinstance(error, MalformedAuthorization):
        status, code = 400, "invalid_request"
    parameters: dict[str, str] = {}
    if code is not None:
        parameters["error"] = code
    scope = _join_scopes(error, resource)
    if scope:
        parameters["scope"] = scope
    if resource is not None:
        parameters["resource_metadata"] = resource.metadata_url
    description = _NOT_IN_DESCRIPTION.sub("?", error.message.replace('"', "'"))[:_MAX_DESCRIPTION]
    if "error" in parameters and description:
        parameters["error_description"] = description
    value = "Bearer " + ", ".join(f'{name}="{text}"' for name, text in parameters.items())
    return status, value.rstrip().encode()


def _join_scopes(error: Unauthorized | Forbidden, resource: ProtectedResource | None) -> str:
    scopes = error.scope
    if scopes is None:
        scopes = () if resource is None else resource.required_scopes
    elif isinstance(scopes, str):  # the wire's own form, with blanks between them
        scopes = scopes.split()
    for scope in scopes:
        if not isinstance(scope, str) or not _SCOPE.match(scope):
            raise ValueError(f"{type(error).__name__}: {scope!r:.80} {_NO_SCOPE}")
    return " ".join(scopes)


async def authorize(hook: Authorize, token: str | None, request: HttpRequest) -> object:
    """Ask the author's hook who is calling.

    Args:
        hook: A function or coroutine function of token and request. A plain one runs in a thread, since
            checking a token may ask another server; a None or False it returns refuses the request.
        token: The token; without one the request is refused and the hook not asked.
        request: What is known of the request.

    Returns:
        The principal, whatever it is.

    Raises:
        Unauthorized: There is no token, or the hook refuses it.
        Forbidden: The hook finds that the token does not reach so far.
        ValueError: The hook refuses with a scope that is none.
        Exception: Any other that the hook raises; its own fault.
    """
    if token is None:
        raise Unauthorized("a token is needed; send Authorization: Bearer and the token")
    try:
        if _is_asynchronous(hook):
            principal = hook(token, request)
        else:
            principal = await asyncio.to_thread(_call, hook, token, request)
        while inspect.isawaitable(principal):  # also what a hook gives that forgets an `await`
            principal = await principal
    except (Unauthorized, Forbidden) as error:
        _join_scopes(error, None)  # what a challenge could not say is said to be the hook's fault here
        message = hide_token(error.message, token)
        if message == error.message:
            raise
        plain = Forbidden if isinstance(error, Forbidden) else Unauthorized  # a kind of its own may be made otherwise
        raise plain(message, scope=error.scope) from None
    if inspect.isgenerator(principal) or inspect.isasyncgen(principal):
        raise TypeError("the authorize hook gives a generator, which is nobody; let it return who calls")
    if principal is None or principal is False:
        raise Unauthorized("the token is not accepted here; obtain another")
    return principal


def _call(hook: Authorize, token: str, request: HttpRequest) -> object:
    try:
        return hook(token, request)
    except StopIteration as error:  # of a `next` that finds nobody; no future can hold it, and its waiter would wait on
        raise RuntimeError("the authorize hook raised StopIteration; give next() a default") from error


def _is_asynchronous(hook: Authorize) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004 - an object whose call is asynchronous


def hide_token(message: str, token: str) -> str:
    """Take a token, and the parts of one that has parts, out of a message that will be sent or logged."""
    for secret in (token, *token.split(".")):
        if len(secret) >= _MIN_SECRET:
            message = message.replace(secret, "…")
    return message
