"""One document over HTTPS from a host that was listed, at an address that was looked at: nothing else is reached.

A program that opens addresses a stranger names can be made to open what only it can reach (SSRF). So the host has
to be on a list, its name is resolved once, each of its addresses has to be public, and the connection goes to one of
those very addresses; there are no redirects, no proxies, no credentials, and only so many bytes.

Source: RFC 9112 (HTTP/1.1) for what is read here; MCP 2026-07-28, "JSON Schema usage": references over the network
are not followed by default.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Collection, Sequence
from typing import TypeAlias

import msgspec

from twofold.contract.plain import cut

MAX_HEAD_BYTES = 32 * 1024
"""Status line and headers of an answer."""

MAX_URL = 2_000
"""Characters of a URL."""

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_HTTPS_PORT = 443
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_AUTHORITY = re.compile(rf"(?P<host>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[1-9][0-9]{{0,4}}))?\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
"""A last label that makes resolvers take the whole for an IPv4 address: `127.1`, `0x7f000001`."""
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?]*)(?P<target>.*)\Z", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]|\\")

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Where an IPv6-only network reaches IPv4: the last four bytes are the real address (RFC 6052)."""
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # protocol assignments; some releases of Python take a few of them for global
            "192.88.99.0/24",  # 6to4 relays, withdrawn (RFC 7526)
            "2001::/23",  # protocol assignments, Teredo among them, which carries an IPv4 address
            "2002::/16",  # 6to4: carries an IPv4 address
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)


class FetchRefused(Exception):
    """A document is not fetched, or what came is not taken; the message is a clause that says why."""


class Place(msgspec.Struct, frozen=True):
    """Where a document is asked for.

    Attributes:
        host: In lower case, as it is listed.
        port: 1 to 65535.
        target: Path and query.
    """

    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The host, and its port unless it is that of HTTPS: what is listed, and the `Host` header."""
        return self.host if self.port == _HTTPS_PORT else f"{self.host}:{self.port}"


def read_authority(text: str) -> str:
    """Read `host` or `host:port` as `Place.authority` writes it.

    Raises:
        FetchRefused: It is an IP address in any notation, or no host name (a wildcard, a letter beyond ASCII).
    """
    found = _AUTHORITY.match(text.lower())
    if found is None or len(found["host"]) > 253 or int(found["port"] or _HTTPS_PORT) > 65_535:
        raise FetchRefused(f"{cut(repr(text))} is no host name, with or without a port")
    if _NUMBER.match(found["host"].rpartition(".")[2]):
        raise FetchRefused(f"{cut(repr(text))} is an IP address and no host name")
    return Place(found["host"], int(found["port"] or _HTTPS_PORT), "").authority


def locate(url: str, hosts: Collection[str]) -> Place:
    """Tell from a URL where to ask for a document, if it may be asked for at all.

    Args:
        url: Without a fragment.
        hosts: As `read_authority` gives them.

    Raises:
        FetchRefused: It is relative, no HTTPS, names a user, an IP address, or a host or port that is not listed.
    """
    if len(url) > MAX_URL or _UNPRINTABLE.search(url):
        raise FetchRefused(f"a URL has at most {MAX_URL} characters, all of them printable ASCII, and no backslash")
    parts = _URL.match(url)
    if parts is None:
        raise FetchRefused("it is no absolute URL with a host, and the schema has no $id that would complete it to one")
    if parts["scheme"].lower() != "https":
        raise FetchRefused("only https is fetched")
    if "@" in parts["authority"]:
        raise FetchRefused("it carries a user name or a password")
    authority = read_authority(parts["authority"])
    if authority not in hosts:
        raise FetchRefused(f"the host {cut(authority)!r} is not among those listed in schema_fetching")
    host, _, port = authority.partition(":")
    target = parts["target"]
    return Place(host, int(port or _HTTPS_PORT), target if target.startswith("/") else f"/{target}")


def check_addresses(host: str, addresses: Sequence[str]) -> None:
    """Refuse a host unless all of its addresses are public: of one that has both kinds nothing good is to be expected.

    Args:
        host: Its name, for the message.
        addresses: What it was resolved to.

    Raises:
        FetchRefused: There is none, or one is private, of this machine or this network, reserved, for many or none,
            or carries such an IPv4 address in it.

    Source: IANA, special-purpose address registries (RFC 6890), as `ipaddress` knows them.
    """
    if not addresses:
        raise FetchRefused(f"the host {host!r} has no address")
    for each in addresses:
        try:
            is_public = _is_public(ipaddress.ip_address(each))
        except ValueError:
            is_public = False
        if not is_public:
            raise FetchRefused(f"the host {host!r} has the address {cut(each)}, which is not public")


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(address.packed[-4:]))
        if address not in _GLOBAL_UNICAST:
            return False
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    special = address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified
    return address.is_global and not (special or address.is_multicast or address.is_reserved)


async def resolve_host(place: Place) -> list[str]:
    """Resolve a host's name, by the system's own ways.

    Raises:
        OSError: It has no address, or nobody says so.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class TlsConnector:
    """Opens connections to hosts at addresses known beforehand; the certificate has to be the host's.

    Args:
        context: What certificates are judged by; the system's authorities by default.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context

    async def __call__(self, place: Place, address: str) -> Streams:
        """Connect to an address, so that no name is resolved a second time.

        Raises:
            OSError: There is no connection, or the certificate is not good.
        """
        if self._context is None:
            self._context = ssl.create_default_context()  # reads all authorities: for who needs it, once
        return await asyncio.open_connection(
            address, place.port, ssl=self._context, server_hostname=place.host, limit=MAX_HEAD_BYTES
        )


def write_request(place: Place) -> bytes:
    """Write the request: one that tells nothing of who asks, and ends the connection."""
    return (
        f"GET {place.target} HTTP/1.1\r\nHost: {place.authority}\r\nUser-Agent: twofold\r\n"
        "Accept: application/schema+json, application/json\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    ).encode("ascii")


async def read_answer(reader: asyncio.StreamReader, *, max_bytes: int) -> bytes:
    """Read the JSON text an answer carries.

    Args:
        reader: With a limit of `MAX_HEAD_BYTES`.
        max_bytes: Of the text; not one more is kept.

    Raises:
        FetchRefused: The status is not 200 (a redirect is not followed), the text is compressed, of another type or
            too long, or it ends before its end.
    """
    try:
        status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
        _check_head(status, headers)
        body = await _read_body(reader, headers, max_bytes)
    except asyncio.LimitOverrunError:
        raise FetchRefused(
            f"a line of the answer, or all of its headers, are longer than {MAX_HEAD_BYTES} bytes"
        ) from None
    except asyncio.IncompleteReadError:
        raise FetchRefused("the answer ends before its end") from None
    return body


_STATUS_LINE = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\Z)")


def _read_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Read status and headers; of a header that comes twice the values are joined by commas."""
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = _STATUS_LINE.match(line)
    if found is None:
        raise FetchRefused(f"the answer is no HTTP/1.1: {cut(repr(line))}")
    headers: dict[str, str] = {}
    for field in fields:
        name, _, value = field.partition(":")
        key = name.lower()
        headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
    return int(found[1]), headers


def _check_head(status: int, headers: dict[str, str]) -> None:
    if 300 <= status < 400:
        aim = cut(repr(headers.get("location", "").partition("?")[0]))
        raise FetchRefused(f"the status is {status}, a redirect to {aim}, and redirects are not followed")
    if status != 200:
        raise FetchRefused(f"the status is {status}, expected 200")
    coding = headers.get("content-encoding", "identity").lower()
    if coding != "identity":
        raise FetchRefused(f"the content is encoded as {cut(coding)!r}, which was not asked for")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not re.fullmatch(r"application/[a-z0-9.!#$&^_-]+\+json", media_type):
        raise FetchRefused(f"the content type is {cut(media_type)!r}, expected application/json or application/…+json")


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str], max_bytes: int) -> bytes:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise FetchRefused("how long the answer is cannot be told from its headers")
        return await _read_chunks(reader, max_bytes)
    if length is None:
        return await _read_to_end(reader, max_bytes)
    if not re.fullmatch(r"[0-9]{1,15}", length):
        raise FetchRefused(f"the content length is {cut(repr(length))}, expected a number")
    if int(length) > max_bytes:
        raise _too_long(max_bytes)
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    """Read a body of chunks (RFC 9112, 7.1); what may follow the last one is left where it is."""
    body = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        size = re.match(rb"([0-9a-fA-F]{1,8})[\t ]*(?:;|\r\n)", line)
        if size is None:
            raise FetchRefused(f"a chunk begins with its size, got {cut(repr(line.decode('latin-1')))}")
        count = int(size[1], 16)
        if count == 0:
            return bytes(body)
        if len(body) + count > max_bytes:
            raise _too_long(max_bytes)
        body += await reader.readexactly(count)
        if await reader.readexactly(2) != b"\r\n":
            raise FetchRefused("a chunk is longer than it says")


async def _read_to_end(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    body = bytearray()
    while piece := await reader.read(MAX_HEAD_BYTES):
        if len(body) + len(piece) > max_bytes:
            raise _too_long(max_bytes)
        body += piece
    return bytes(body)


def _too_long(max_bytes: int) -> FetchRefused:
    return FetchRefused(f"it has more than the {max_bytes} bytes that are left for it")
