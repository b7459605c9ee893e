"""Only listed hosts are reached, only at addresses that are public, and only so much of an answer is taken."""

import asyncio
import ssl
from typing import Any

import pytest

from tests.client.schema_host import HOST, SchemaHost, document, response, trust
from twofold.client.pinned_request import (
    MAX_HEAD_BYTES,
    FetchRefused,
    Place,
    TlsConnector,
    check_addresses,
    locate,
    read_answer,
    read_authority,
    resolve_host,
    write_request,
)

LISTED = (HOST, f"{HOST}:8443")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (f"https://{HOST}/a/b.json", Place(HOST, 443, "/a/b.json")),
        (f"https://{HOST}", Place(HOST, 443, "/")),
        (f"https://{HOST}?v=1", Place(HOST, 443, "/?v=1")),
        ("HTTPS://SCHEMAS.Example.COM:443/a?b=@c", Place(HOST, 443, "/a?b=@c")),
        (f"https://{HOST}:8443/a", Place(HOST, 8443, "/a")),
    ],
)
def test_a_listed_host_is_located(url: str, place: Place):
    """Opt-in fetching: an explicit list of hosts, the port a part of each."""
    assert locate(url, LISTED) == place


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"http://{HOST}/a", "only https is fetched"),
        ("file://localhost/etc/passwd", "only https is fetched"),
        ("ftp://schemas.example.com/a", "only https is fetched"),
        ("urn:example:a", "no absolute URL"),
        ("other.json", "no absolute URL"),
        (f"//{HOST}/a", "no absolute URL"),
        (f"https:/{HOST}/a", "no absolute URL"),
        ("https:///a", "no host name"),
        ("https://evil.example/a", "'evil.example' is not among those listed"),
        (f"https://{HOST}.evil.example/a", "not among those listed"),
        (f"https://evil.{HOST}/a", "not among those listed"),
        (f"https://{HOST}:444/a", "'schemas.example.com:444' is not among those listed"),
        (f"https://{HOST}:65536/a", "is no host name"),
        (f"https://{HOST}:0443/a", "is no host name"),
        (f"https://{HOST}:/a", "is no host name"),
        (f"https://{HOST}:443:80/a", "is no host name"),
        (f"https://{HOST}./a", "is no host name"),
        (f"https://user:secret@{HOST}/a", "a user name or a password"),
        (f"https://{HOST}@evil.example/a", "a user name or a password"),
        (f"https://{HOST}#@evil.example/a", "a user name or a password"),
        (f"https://{HOST}#.evil.example/a", "is no host name"),
        (f"https://{HOST}%2eevil.example/a", "is no host name"),
        (f"https://evil.example\\@{HOST}/a", "no backslash"),
        (f"https://{HOST}\\.evil.example/a", "no backslash"),
        ("https://schemas。example.com/a", "printable ASCII"),
        ("https://ѕchemas.example.com/a", "printable ASCII"),
        (f"https://{HOST}/a b", "printable ASCII"),
        (f"https://{HOST}/a\r\nX: y", "printable ASCII"),
        (f"ht\ttps://{HOST}/a", "printable ASCII"),
        (f"https://{HOST}/{'a' * 2000}", "at most 2000 characters"),
        ("https://127.0.0.1/a", "is an IP address"),
        ("https://127.1/a", "is an IP address"),
        ("https://2130706433/a", "is an IP address"),
        ("https://0x7f000001/a", "is an IP address"),
        ("https://[::1]/a", "is no host name"),
        ("https://*/a", "is no host name"),
    ],
)
def test_any_other_place_is_refused(url: str, reason: str):
    """Opt-in fetching: nothing but HTTPS to a host of exactly a listed name, whatever a URL is made to look like."""
    with pytest.raises(FetchRefused, match=reason):
        locate(url, (*LISTED, "localhost"))


@pytest.mark.parametrize(
    ("text", "read"),
    [(HOST, HOST), ("Schemas.Example.com:443", HOST), ("localhost:8443", "localhost:8443"), ("xn--bcher-kva.de",) * 2],
)
def test_a_host_is_written_one_way(text: str, read: str):
    assert read_authority(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*.example.com",
        "https://a.example",
        "a.example/",
        "a_b.example",
        "-a.example",
        "bücher.de",
        "10.0.0.1",
        "::1",
        "[::1]",
        "1.2.3.0x4",
        "a." + "b" * 64,
        ".".join(["b" * 60] * 5),
        "a.example:99999",
        "a.example\n",
    ],
)
def test_what_is_no_host_is_not_listed(text: str):
    """A wildcard or an address would be taken for more, or for something else, than is meant."""
    with pytest.raises(FetchRefused):
        read_authority(text)


@pytest.mark.parametrize(
    "addresses",
    [["93.184.216.34"], ["93.184.216.34", "8.8.8.8"], ["2606:2800:220:1::1"], ["64:ff9b::5db8:d822"]],
)
def test_public_addresses_are_taken(addresses: list[str]):
    """An IPv6-only network reaches a public IPv4 host under an address that carries its own (RFC 6052)."""
    check_addresses(HOST, addresses)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.0.9",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "0.1.2.3",
        "192.0.0.8",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:93.184.216.34",
        "::93.184.216.34",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:0a00:0001::1",
        "2002:5db8:d822::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "2606:2800:220:1::1%1",
        "",
        "localhost",
        "0177.0.0.1",
    ],
)
def test_any_other_address_is_refused_even_among_public_ones(address: str):
    """Opt-in fetching refuses private addresses; a name that leads to both kinds is an attack, or a mistake."""
    with pytest.raises(FetchRefused, match="which is not public"):
        check_addresses(HOST, [address])
    with pytest.raises(FetchRefused, match="which is not public"):
        check_addresses(HOST, ["93.184.216.34", address])


def test_a_host_without_an_address_is_refused():
    with pytest.raises(FetchRefused, match="no address"):
        check_addresses(HOST, [])


async def test_a_name_is_resolved_to_all_its_addresses():
    """The system's own resolver; `localhost` is what a test can know."""
    found = await resolve_host(Place("localhost", 443, "/"))
    assert set(found) <= {"127.0.0.1", "::1"} and found
    with pytest.raises(FetchRefused, match="not public"):
        check_addresses("localhost", found)


async def test_the_connection_goes_to_the_address_under_the_hosts_name():
    """No second resolution (DNS rebinding): the name only stands in the handshake and the request."""
    async with SchemaHost({"/a?b": document({"type": "string"})}) as host:
        place = Place(HOST, host.port, "/a?b")
        reader, writer = await TlsConnector(trust())(place, "127.0.0.1")
        writer.write(write_request(place))
        assert await read_answer(reader, max_bytes=18) == b'{"type": "string"}'
        writer.transport.abort()
    assert host.names == [HOST]
    assert host.requests == [
        f"GET /a?b HTTP/1.1\r\nHost: {HOST}:{host.port}\r\nUser-Agent: twofold\r\n"
        "Accept: application/schema+json, application/json\r\nAccept-Encoding: identity\r\n"
        "Connection: close\r\n\r\n".encode()
    ]


@pytest.mark.parametrize(("name", "context"), [("evil.example", trust), (HOST, lambda: None)])
async def test_a_certificate_of_another_host_or_of_nobodys_is_refused(name: str, context: Any):
    """TLS is what makes a listed name mean something: by default the system's authorities are believed."""
    async with SchemaHost({}) as host:
        with pytest.raises(ssl.SSLCertVerificationError):
            await TlsConnector(context())(Place(name, host.port, "/"), "127.0.0.1")
    assert host.requests == []


async def answer_of(raw: bytes, *, max_bytes: int = 10) -> bytes:
    reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
    reader.feed_data(raw)
    reader.feed_eof()
    return await read_answer(reader, max_bytes=max_bytes)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
CHUNKED = HEAD + b"\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        response(b'{"a": 1.5}'),
        response(b'{"a": 1.5}', content_type="Application/JSON; charset=utf-8", content_encoding="identity"),
        response(b'{"a": 1.5}', content_type="application/vnd.x.schema+json"),
        HEAD.replace(b"1.1 200 OK", b"1.0 200") + b'\r\n\r\n{"a": 1.5}',
        HEAD + b'\r\ncontent-length:10\r\n\r\n{"a": 1.5}more',
        CHUNKED + b'4\r\n{"a"\r\n6;x="y"\r\n: 1.5}\r\n0\r\nTrailer: x\r\n\r\n',
        CHUNKED + b'00A \r\n{"a": 1.5}\r\n000\r\n\r\n',
    ],
)
async def test_an_answer_is_read_however_its_end_is_told(raw: bytes):
    """RFC 9112, section 6.3: a length, chunks, or the end of the connection."""
    assert await answer_of(raw) == b'{"a": 1.5}'


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            response(b"", status="302 Found", location="https://127.0.0.1/x?secret"),
            "a redirect to 'https://127.0.0.1/x',",
        ),
        (response(b"{}", status="301 Moved Permanently"), "a redirect to '', and redirects are not followed"),
        (response(b"{}", status="404 Not Found"), "the status is 404"),
        (response(b"{}", status="206 Partial Content"), "the status is 206"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" + response(b"{}"), "the status is 103"),
        (response(b"{}", content_type="text/html"), "the content type is 'text/html'"),
        (response(b"{}", content_type="application/jsonp"), "the content type"),
        (response(b"{}", content_type=""), "the content type is ''"),
        (response(b"\x1f\x8b", content_encoding="gzip"), "encoded as 'gzip'"),
        (response(b"{}", content_encoding="identity, br"), "encoded as 'identity, br'"),
        (response(b"x" * 11), "more than the 10 bytes"),
        (HEAD + b"\r\nContent-Length: 99999999999999\r\n\r\n", "more than the 10 bytes"),
        (HEAD + b"\r\n\r\n" + b"x" * 11, "more than the 10 bytes"),
        (CHUNKED + b"5\r\nxxxxx\r\n6\r\nxxxxxx\r\n0\r\n\r\n", "more than the 10 bytes"),
        (CHUNKED + b"ffffffff\r\n", "more than the 10 bytes"),
        (CHUNKED + b"fffffffff\r\n", "a chunk begins with its size"),
        (CHUNKED + b"-1\r\n", "a chunk begins with its size"),
        (CHUNKED + b"\r\n", "a chunk begins with its size"),
        (CHUNKED + b"2\r\n{}xx", "a chunk is longer than it says"),
        (CHUNKED + b"2\r\n{}\r\n", "ends before its end"),
        (CHUNKED + b"1;" + b"x" * MAX_HEAD_BYTES + b"\r\n", "longer than 32768 bytes"),
        (HEAD + b"\r\nContent-Length: 5\r\n\r\n{}", "ends before its end"),
        (HEAD + b"\r\nContent-Length: +2\r\n\r\n{}", "the content length is '\\+2'"),
        (HEAD + b"\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "the content length is '2, 3'"),
        (HEAD + b"\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", "cannot be told from its headers"),
        (HEAD + b"\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "cannot be told from its headers"),
        (HEAD, "ends before its end"),
        (b"", "ends before its end"),
        (HEAD + b"\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "longer than 32768 bytes"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the answer is no HTTP/1.1: 'SSH-2.0-OpenSSH'"),
        (b"HTTP/2 200\r\n\r\n", "the answer is no HTTP/1.1"),
        (b"HTTP/1.1 2000\r\n\r\n", "the answer is no HTTP/1.1"),
    ],
)
async def test_any_other_answer_is_refused(raw: bytes, reason: str):
    """Opt-in fetching: no redirects, nothing compressed, nothing but JSON, and not a byte more than is allowed."""
    with pytest.raises(FetchRefused, match=reason):
        await answer_of(raw)
