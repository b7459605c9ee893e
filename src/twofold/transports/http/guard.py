"""Who may ask: the `Host` a request was sent to and the `Origin` of the web page that sends it.

A web page cannot choose its origin, and by rebinding its own name to a local address it can reach a local
server, but then its own name is what the `Host` says. Both are checked before anything else is looked at.

Source: MCP 2026-07-28, Streamable HTTP, "Security & Endpoint"; RFC 9110, section 7.2; RFC 6454, section 6.2;
Fetch, "CORS protocol".
"""

import re
import socket
from collections.abc import Sequence
from typing import TypeVar

import msgspec

ANY = "*"
"""As an entry it lets everything through that is well formed: for servers behind a proxy that checks."""
PREFLIGHT_SECONDS = 3600
"""So long a browser may keep an answer to its preflight; also how long it goes on after an origin is taken out."""

_MAX_REMEMBERED = 256
"""Accepted raw values; a server sees a handful, unless somebody makes them up."""
_MAX_REQUESTED_HEADERS = 100

_AUTHORITY = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z_](?:[0-9A-Za-z_-]|\.(?!\.|:|\Z)){0,252})(?::(?P<port>[0-9]{1,5}))?\Z"
)
"""RFC 3986, section 3.2, without user information, percent-encoding and the dot at the end."""
_LOOPBACK_V4 = re.compile(r"127(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,31}\Z")
_PARAM_HEADER = re.compile(rb"mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_Known = TypeVar("_Known")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_READABLE = b"mcp-session-id, www-authenticate"
_ALLOWED_METHODS = b"POST, GET, DELETE"
_ALLOWED_HEADERS = (
    b"accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id"
)


class Authority(msgspec.Struct, frozen=True, gc=False):
    """A host and a port, as in `Host` and after `scheme://`.

    Attributes:
        host: In lower case; an IPv6 address in its shortest form, between brackets.
        port: None if it is not said.
    """

    host: str
    port: int | None


class _Origin(msgspec.Struct, frozen=True, gc=False):
    """An origin; without a port it has the one its scheme is known for."""

    scheme: str
    host: str
    port: int | None


class _HostRule(msgspec.Struct, frozen=True):
    """An entry of `allowed_hosts`.

    Attributes:
        host: What the whole host is, or ends in if it begins with a dot.
        ports: None for any.
    """

    host: str
    ports: frozenset[int | None] | None

    def takes(self, authority: Authority) -> bool:
        fits = authority.host.endswith(self.host) if self.host.startswith(".") else authority.host == self.host
        return fits and (self.ports is None or authority.port in self.ports)


def read_authority(text: str) -> Authority | None:
    """Read `host[:port]`; None if it is malformed."""
    found = _AUTHORITY.match(text)
    if found is None:
        return None
    host, digits = found["host"].lower(), found["port"]
    port = None if digits is None else int(digits)
    if port is not None and not 0 < port < 2**16:
        return None
    if host.startswith("["):
        try:  # one address has many spellings
            host = f"[{socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host[1:-1]))}]"
        except OSError:
            return None
    return Authority(host, port)


def is_loopback_host(host: str) -> bool:
    """Say whether a host, as one binds to it or as a URL has it, is reached from this machine alone.

    That is `localhost`, `127.0.0.0/8` and `::1`, with or without brackets. Other names that lead to such an
    address do not count: whoever owns the name decides where it leads.
    """
    authority = read_authority(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    return authority is not None and authority.port is None and _is_loopback(authority.host)


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "[::1]"} or _LOOPBACK_V4.match(host) is not None


class Guard:
    """Decides by `Host` and `Origin`; made once, asked with each request.

    Args:
        allowed_hosts: Hosts a request may be sent to: `example.com` (any port), `example.com:8443`,
            `*.example.com` (whatever stands before it, but not `example.com` itself), or `*` for a server
            behind a proxy that checks. None stands for this machine: `localhost`, `127.0.0.0/8` and `[::1]`
            with any port. A list replaces that: name `localhost` in it if it shall go on working.
        allowed_origins: Origins whose web pages may call, exactly as browsers send them:
            `https://app.example.com`, `http://localhost:5173`, or `*`. They are also given the CORS headers
            that let their pages read the answers. Pages of the server's own host and port may always
            call; while `allowed_hosts` is None, so may pages of this machine.

    Raises:
        ValueError: An entry is malformed; the message names it.
    """

    def __init__(
        self, allowed_hosts: Sequence[str] | None = None, allowed_origins: Sequence[str] | None = None
    ) -> None:
        self._is_local = allowed_hosts is None
        hosts = _check_list(allowed_hosts, option="allowed_hosts")
        origins = _check_list(allowed_origins, option="allowed_origins")
        self._takes_any_host = ANY in hosts
        self._takes_any_origin = ANY in origins
        self._host_rules = [_read_host_rule(entry) for entry in hosts if entry != ANY]
        self._origins = {_read_origin_entry(entry) for entry in origins if entry != ANY}
        self._known_hosts: set[bytes] = set()
        self._known_origins: set[tuple[bytes, bytes]] = set()

    def refuse_host(self, host: bytes | None) -> str | None:
        """Say why a request to a host is refused, or None if it may come in.

        Args:
            host: The `Host` header; None if there is none.

        Returns:
            One sentence for the developer, for an answer with status 421 (400 where the header is no host).
        """
        if host in self._known_hosts:
            return None
        if not host:
            return "Host: the header is missing or empty; send the host and port the request goes to"
        text = host.decode("latin-1")
        authority = read_authority(text)
        if authority is None:
            return f"Host: expected a name or an address, perhaps with a port, got {text!r:.80}"
        if not self._takes_host(authority):
            hint = "only this machine's own names are by default" if self._is_local else "it is not in allowed_hosts"
            return (
                f"Host: {text!r:.80} is no name this server answers to ({hint}); "
                f"if it is one, add it: allowed_hosts=[{_quote(text)}]"
            )
        _remember(self._known_hosts, host)
        return None

    def _takes_host(self, authority: Authority) -> bool:
        if self._takes_any_host or (self._is_local and _is_loopback(authority.host)):
            return True
        return any(rule.takes(authority) for rule in self._host_rules)

    def refuse_origin(self, origin: bytes | None, *, host: bytes) -> str | None:
        """Say why a web page's request is refused, or None if it may come in.

        Args:
            origin: The `Origin` header; None if there is none, as from every client that is no browser.
            host: The `Host` header, which `refuse_host` has let through.

        Returns:
            One sentence for the developer, for an answer with status 403.
        """
        if origin is None or (origin, host) in self._known_origins:
            return None
        text = origin.decode("latin-1")
        if text == "null":
            return (
                "Origin: 'null' is sent by pages without an origin of their own, which may not call; "
                "serve the page from a host"
            )
        parsed = _read_origin(text)
        if parsed is None:
            return f"Origin: expected scheme://host or scheme://host:port, got {text!r:.80}"
        if not (self._is_listed(parsed) or self._is_own(parsed, host)):
            return (
                f"Origin: web pages of {text!r:.80} may not call this server; "
                f"if they shall, add them: allowed_origins=[{_quote(text)}]"
            )
        _remember(self._known_origins, (origin, host))
        return None

    def _is_listed(self, origin: _Origin) -> bool:
        return self._takes_any_origin or origin in self._origins

    def _is_own(self, origin: _Origin, host: bytes) -> bool:
        """Say whether a page comes from this server, or, where nothing else is said, from this machine."""
        authority = read_authority(host.decode("latin-1"))
        default_port = _DEFAULT_PORTS.get(origin.scheme)
        if authority is None or default_port is None:
            return False
        if self._is_local and _is_loopback(authority.host) and _is_loopback(origin.host):
            return True
        port = default_port if authority.port is None else authority.port
        return (authority.host, port) == (origin.host, origin.port)

    def cors_headers(self, origin: bytes | None) -> list[tuple[bytes, bytes]]:
        """Give the response headers that let a page read an answer; none unless its origin is in the list.

        Pages of the server's own origin need none. Other pages of this machine may call without being listed,
        but read the answers only if they are.

        Args:
            origin: The `Origin` header, which `refuse_origin` has let through; None if there is none.
        """
        parsed = None if origin is None else _read_origin(origin.decode("latin-1"))
        if origin is None or parsed is None or not self._is_listed(parsed):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _READABLE),
            (b"vary", b"Origin"),
        ]

    def preflight_headers(self, origin: bytes | None, requested_headers: bytes | None) -> list[tuple[bytes, bytes]]:
        """Give the response headers for a browser's question before a call; none unless the origin is listed.

        Args:
            origin: The `Origin` header, which `refuse_origin` has let through.
            requested_headers: The `Access-Control-Request-Headers` header; the `mcp-param-*` of it are allowed,
                whatever tools there are: a wrong one is refused with the call.
        """
        parsed = None if origin is None else _read_origin(origin.decode("latin-1"))
        if origin is None or parsed is None or not self._is_listed(parsed):
            return []
        names = (requested_headers or b"").lower().split(b",")[:_MAX_REQUESTED_HEADERS]
        asked = {name: None for each in names if _PARAM_HEADER.match(name := each.strip(b" \t"))}
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", _ALLOWED_METHODS),
            (b"access-control-allow-headers", b", ".join((_ALLOWED_HEADERS, *asked))),
            (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
            (b"vary", b"Origin, Access-Control-Request-Headers"),
        ]


def _check_list(entries: Sequence[str] | None, *, option: str) -> Sequence[str]:
    if isinstance(entries, str | bytes) or not all(isinstance(entry, str) for entry in entries or ()):
        raise ValueError(f"{option}: expected a list of texts, got {entries!r:.80}")
    return entries or ()


def _read_host_rule(entry: str) -> _HostRule:
    """Read an entry of `allowed_hosts`.

    Raises:
        ValueError: It is malformed.
    """
    is_suffix = entry.startswith("*.")
    authority = read_authority(entry[2:] if is_suffix else entry)
    if authority is None or (is_suffix and authority.host.startswith("[")):
        raise ValueError(f"allowed_hosts: {entry!r:.80} {_find_fault_in_host(entry)}")
    # `Host` leaves out the port its scheme is known for, and behind a proxy nobody here knows the scheme.
    spellings = {authority.port, None} if authority.port in _DEFAULT_PORTS.values() else {authority.port}
    ports = None if authority.port is None else frozenset(spellings)
    return _HostRule(f".{authority.host}" if is_suffix else authority.host, ports)


def _find_fault_in_host(entry: str) -> str:
    if "/" in entry:
        return "is a URL or has a path; write the host alone, as in 'example.com' or 'example.com:8443'"
    if not entry.isascii():
        return "is not ASCII; write the name as browsers send it, as in 'xn--bcher-kva.example'"
    if entry.endswith(":*"):
        return f"has a star for its port; leave the port out to allow any: {entry[:-2]!r:.80}"
    if entry.count(":") > 1 and "[" not in entry:
        return f"is an IPv6 address without brackets; write '[{entry:.60}]'"
    return "is no host; write 'example.com', 'example.com:8443', '*.example.com', '[::1]' or '*'"


def _read_origin(text: str) -> _Origin | None:
    """Read an origin as browsers write it; None if it is malformed."""
    scheme, mark, rest = text.partition("://")
    authority = read_authority(rest)
    if not mark or authority is None or not _SCHEME.match(scheme):
        return None
    scheme = scheme.lower()
    port = _DEFAULT_PORTS.get(scheme) if authority.port is None else authority.port
    return _Origin(scheme, authority.host, port)


def _read_origin_entry(entry: str) -> _Origin:
    """Read an entry of `allowed_origins`.

    Raises:
        ValueError: It is malformed.
    """
    origin = _read_origin(entry)
    if origin is None:
        raise ValueError(f"allowed_origins: {entry!r:.80} {_find_fault_in_origin(entry)}")
    return origin


def _find_fault_in_origin(entry: str) -> str:
    if entry == "null":
        return "is what every page without an origin sends, whoever wrote it; serve the page from a host and list that"
    if "://" not in entry:
        return f"has no scheme; write 'https://{entry:.60}'"
    if "/" in entry.partition("://")[2]:
        return "has a path, or a slash at its end; write scheme://host or scheme://host:port alone"
    return "is no origin; write 'https://app.example.com', 'http://localhost:5173' or '*'"


def _quote(text: str) -> str:
    return f'"{text:.80}"'


def _remember(known: set[_Known], value: _Known) -> None:
    if len(known) >= _MAX_REMEMBERED:
        known.clear()  # rather than to stop: a flood of made-up ones must not keep real ones out for good
    known.add(value)
