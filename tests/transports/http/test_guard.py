"""Hosts and origins: this machine by default, whatever is listed else, and nothing that only looks like it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.transports.http.guard import PREFLIGHT_SECONDS, Guard, is_loopback_host

LISTED = Guard(
    allowed_hosts=["Example.com", "api.example.com:8443", "*.example.org", "*.tenants.example:8000", "[2001:DB8::1]"],
    allowed_origins=["https://app.example.com", "http://localhost:5173", "vscode-webview://abc"],
)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost:8000",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.255.255.254:65535",
        "[::1]",
        "[::1]:8000",
        "[0:0:0:0:0:0:0:1]",
    ],
)
def test_this_machine_is_served_by_default(host):
    """Any port, any loopback address, in any spelling of it."""
    guard = Guard()
    assert guard.refuse_host(host.encode()) is None
    assert guard.refuse_host(host.encode()) is None  # remembered


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "128.0.0.1",
        "0.0.0.0",
        "127.0.0.256",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "127.0.0.01",
        "[::2]",
        "[::ffff:127.0.0.1]",
        "192.168.0.1:80",
    ],
)
def test_other_hosts_are_refused_by_default(host):
    """A name that was rebound to this machine is still that name (2026-07-28, "Security & Endpoint")."""
    assert Guard().refuse_host(host.encode()) == (
        f"Host: {host!r} is no name this server answers to (only this machine's own names are by default); "
        f'if it is one, add it: allowed_hosts=["{host}"]'
    )


@pytest.mark.parametrize("host", [None, b""])
def test_a_missing_host_is_refused(host):
    """Every request of HTTP/1.1 has one (RFC 9110, 7.2), whatever is allowed."""
    for guard in (Guard(), Guard(allowed_hosts=["*"])):
        assert guard.refuse_host(host) == (
            "Host: the header is missing or empty; send the host and port the request goes to"
        )


@pytest.mark.parametrize(
    "host",
    [
        b"user@localhost",
        b"localhost ",
        b" localhost",
        b"localhost\t",
        b"localhost:",
        b"localhost:0",
        b"localhost:65536",
        b"localhost:8a",
        b"localhost:-1",
        b"localhost:080000",
        b":80",
        b"localhost.",
        b"a..b",
        b".localhost",
        b"l\xc3\xb6calhost",
        b"\xff",
        b"localhost/x",
        b"http://localhost",
        b"localhost,evil.example",
        b"[::1",
        b"::1",
        b"[::g]",
        b"[1]",
        b"[::1]x",
        b"[::1%lo]",
        b"%6cocalhost",
        b"localhost\n",
        b"localhost\x00",
        b"*",
        b"a" * 254,
    ],
)
def test_a_malformed_host_is_refused_whatever_is_allowed(host):
    """No user information, blanks, bad ports, dots at the end, or characters that no name has."""
    for guard in (Guard(), Guard(allowed_hosts=["*"])):
        assert guard.refuse_host(host) == (
            f"Host: expected a name or an address, perhaps with a port, got {host.decode('latin-1')!r:.80}"
        )


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "EXAMPLE.com:1234",
        "api.example.com:8443",
        "a.example.org",
        "a.b.example.org:80",
        "x.tenants.example:8000",
        "[2001:db8:0:0:0:0:0:1]:80",
    ],
)
def test_listed_hosts_are_served(host):
    """A name means any port, a name with a port that port, a star whatever stands before the name."""
    assert LISTED.refuse_host(host.encode()) is None


@pytest.mark.parametrize(
    "host",
    [
        "www.example.com",
        "api.example.com",
        "api.example.com:8444",
        "example.org",
        "evilexample.org",
        "x.tenants.example",
        "example.com.evil.example",
        "[2001:db8::2]",
        "localhost",
        "127.0.0.1:8000",
    ],
)
def test_a_list_replaces_the_default(host):
    """This machine's names must be listed too where they shall go on working."""
    assert LISTED.refuse_host(host.encode()) == (
        f"Host: {host!r} is no name this server answers to (it is not in allowed_hosts); "
        f'if it is one, add it: allowed_hosts=["{host}"]'
    )


@pytest.mark.parametrize("entry", ["example.com:443", "example.com:80"])
def test_a_listed_port_that_clients_leave_out_may_be_left_out(entry):
    """`Host` has no port where it is the scheme's own (RFC 9110, 4.2.3)."""
    guard = Guard(allowed_hosts=[entry])
    assert guard.refuse_host(entry.encode()) is None
    assert guard.refuse_host(b"example.com") is None
    assert guard.refuse_host(b"example.com:8000") is not None


def test_a_star_serves_every_well_formed_host():
    """For servers behind a proxy that checks."""
    assert Guard(allowed_hosts=["*"]).refuse_host(b"anything.example:1") is None


def test_an_empty_list_serves_nobody():
    """A list is a list."""
    assert Guard(allowed_hosts=[]).refuse_host(b"localhost") is not None


def test_what_is_remembered_decides_nothing():
    """A flood of hosts that are let through changes no later answer."""
    guard = Guard(allowed_hosts=["*.example.org"])
    for number in range(1000):
        assert guard.refuse_host(b"h%d.example.org" % number) is None
        assert guard.refuse_host(b"h%d.example.net" % number) is not None
    assert guard.refuse_host(b"h1.example.org") is None


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("https://example.com", "is a URL or has a path; write the host alone, as in 'example.com'"),
        ("example.com/mcp", "is a URL or has a path; write the host alone"),
        ("bücher.example", "is not ASCII; write the name as browsers send it, as in 'xn--bcher-kva.example'"),
        ("localhost:*", "has a star for its port; leave the port out to allow any: 'localhost'"),
        ("::1", "is an IPv6 address without brackets; write '[::1]'"),
        ("", "is no host; write 'example.com', 'example.com:8443', '*.example.com', '[::1]' or '*'"),
        ("*example.com", "is no host"),
        ("a.*.example", "is no host"),
        ("*.", "is no host"),
        ("*.[::1]", "is no host"),
        ("example.com:99999", "is no host"),
        ("user@example.com", "is no host"),
    ],
)
def test_a_malformed_host_entry_is_refused_at_once(entry, fault):
    """The developer is told what to write, before anything is served."""
    with pytest.raises(ValueError, match=re.escape(f"allowed_hosts: {entry!r} {fault}")):
        Guard(allowed_hosts=[entry])


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("example.com", "has no scheme; write 'https://example.com'"),
        ("https://example.com/", "has a path, or a slash at its end; write scheme://host or scheme://host:port alone"),
        ("https://example.com/x", "has a path, or a slash at its end"),
        ("null", "is what every page without an origin sends, whoever wrote it; serve the page from a host"),
        ("https://*.example.com", "is no origin; write 'https://app.example.com', 'http://localhost:5173' or '*'"),
        ("://example.com", "is no origin"),
        ("https://", "is no origin"),
        ("1a://example.com", "is no origin"),
    ],
)
def test_a_malformed_origin_entry_is_refused_at_once(entry, fault):
    """The developer is told what to write, before anything is served."""
    with pytest.raises(ValueError, match=re.escape(f"allowed_origins: {entry!r} {fault}")):
        Guard(allowed_origins=[entry])


@pytest.mark.parametrize("entries", ["example.com", b"example.com", [b"example.com"], [None]])
def test_what_is_no_list_of_texts_is_refused(entries):
    """A single text would be taken letter by letter."""
    message = re.escape(f": expected a list of texts, got {entries!r}")
    with pytest.raises(ValueError, match="allowed_hosts" + message):
        Guard(allowed_hosts=entries)
    with pytest.raises(ValueError, match="allowed_origins" + message):
        Guard(allowed_origins=entries)


@pytest.mark.parametrize(
    ("guard", "origin", "host"),
    [
        (Guard(), None, "localhost:8000"),
        (Guard(), "http://localhost:3000", "localhost:8000"),
        (Guard(), "https://127.0.0.1", "localhost:8000"),
        (Guard(), "http://[::1]:8000", "127.0.0.1:8000"),
        (Guard(allowed_hosts=["example.com"]), "https://example.com", "example.com"),
        (Guard(allowed_hosts=["example.com"]), "http://example.com", "example.com:80"),
        (Guard(allowed_hosts=["example.com"]), "https://example.com:443", "example.com"),
        (Guard(allowed_hosts=["example.com"]), "HTTPS://Example.com:8443", "example.com:8443"),
        (Guard(allowed_hosts=["localhost"]), "http://localhost:8000", "localhost:8000"),
        (LISTED, "https://app.example.com", "example.com"),
        (LISTED, "https://app.example.com:443", "example.com"),
        (LISTED, "http://localhost:5173", "example.com"),
        (LISTED, "vscode-webview://abc", "example.com"),
        (Guard(allowed_origins=["*"]), "https://anything.example", "localhost"),
    ],
)
def test_origins_that_may_call(guard, origin, host):
    """None at all, this machine's while it is served by default, the server's own, and those that are listed."""
    raw = None if origin is None else origin.encode()
    assert guard.refuse_origin(raw, host=host.encode()) is None
    assert guard.refuse_origin(raw, host=host.encode()) is None  # remembered


@pytest.mark.parametrize(
    ("guard", "origin", "host"),
    [
        (Guard(), "http://evil.example", "localhost:8000"),
        (Guard(), "http://localhost.evil.example", "localhost:8000"),
        (Guard(), "http://127.0.0.1.evil.example:8000", "localhost:8000"),
        (Guard(), "chrome-extension://localhost", "localhost:8000"),
        (Guard(), "http://localhost:8000", "evil.example"),
        (Guard(allowed_hosts=["localhost"]), "http://localhost:3000", "localhost:8000"),
        (Guard(allowed_hosts=["example.com"]), "http://localhost:3000", "example.com"),
        (Guard(allowed_hosts=["example.com"]), "https://example.com:8443", "example.com"),
        (Guard(allowed_hosts=["example.com"]), "http://example.com", "example.com:443"),
        (Guard(allowed_hosts=["*.example.com"]), "https://a.example.com", "b.example.com"),
        (LISTED, "http://app.example.com", "example.com"),
        (LISTED, "https://app.example.com:444", "example.com"),
        (LISTED, "https://evil.app.example.com", "example.com"),
        (LISTED, "vscode-webview://abd", "example.com"),
    ],
)
def test_other_origins_are_refused(guard, origin, host):
    """An Origin that is present and not allowed is answered with 403 (2026-07-28, "Security & Endpoint")."""
    assert guard.refuse_origin(origin.encode(), host=host.encode()) == (
        f"Origin: web pages of {origin!r} may not call this server; "
        f'if they shall, add them: allowed_origins=["{origin}"]'
    )


def test_an_origin_let_through_for_one_host_is_not_for_another():
    """What is remembered is the pair."""
    guard = Guard(allowed_hosts=["a.example", "b.example"])
    assert guard.refuse_origin(b"http://a.example", host=b"a.example") is None
    assert guard.refuse_origin(b"http://a.example", host=b"b.example") is not None


@pytest.mark.parametrize("guard", [Guard(), Guard(allowed_origins=["*"])])
def test_a_page_without_an_origin_is_refused_whatever_is_allowed(guard):
    """`null` is sent by sandboxed frames and files, whoever wrote them (RFC 6454, 7.3)."""
    assert guard.refuse_origin(b"null", host=b"localhost") == (
        "Origin: 'null' is sent by pages without an origin of their own, which may not call; serve the page from a host"
    )


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "localhost",
        "http:localhost",
        "http://",
        "http://localhost/",
        "http://u@localhost",
        "http://localhost:x",
        "http://localhost http://evil.example",
        "//localhost",
        "NULL",
        "http://löcalhost",
        "http://localhost\n",
    ],
)
def test_a_malformed_origin_is_refused_whatever_is_allowed(origin):
    """Browsers send scheme, host and port, nothing else."""
    for guard in (Guard(), Guard(allowed_origins=["*"])):
        assert guard.refuse_origin(origin.encode("latin-1"), host=b"localhost") == (
            f"Origin: expected scheme://host or scheme://host:port, got {origin!r}"
        )


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_arbitrary_bytes_are_refused_or_let_through(host, origin):
    """A hostile peer can send anything; by default nothing but this machine's names is let through."""
    guard = Guard()
    if guard.refuse_host(host) is None:
        assert re.match(rb"(?i)localhost|127\.|\[", host)
    refusal = guard.refuse_origin(origin, host=host)
    assert refusal is None or refusal.startswith("Origin: ")


def test_listed_origins_may_read_the_answers():
    """Their pages get the headers of CORS, and may read the session and the challenge."""
    assert LISTED.cors_headers(b"https://app.example.com") == [
        (b"access-control-allow-origin", b"https://app.example.com"),
        (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
        (b"vary", b"Origin"),
    ]
    assert Guard(allowed_origins=["*"]).cors_headers(b"https://a.example")[0] == (
        b"access-control-allow-origin",
        b"https://a.example",
    )


@pytest.mark.parametrize("origin", [None, b"null", b"http://localhost:3000", b"https://evil.example", b"x\r\ny: z"])
def test_other_origins_are_not_given_the_answers(origin):
    """What is let through by default may call, but only a listing lets a page of another origin read."""
    for guard in (Guard(), LISTED):
        assert guard.cors_headers(origin) == []
        assert guard.preflight_headers(origin, b"content-type") == []


@pytest.mark.parametrize(
    ("requested", "added"),
    [
        (None, b""),
        (b"content-type, x-evil", b""),
        (b"Mcp-Param-Region,  mcp-param-shard , mcp-param-region", b", mcp-param-region, mcp-param-shard"),
        (b"mcp-param-, mcp-param-a b, mcp-param-\xff, mcp-param-a\r\nx: y", b""),
    ],
)
def test_a_preflight_names_what_a_call_may_have(requested, added):
    """The headers of the protocol, and those of parameters that are asked for, once each."""
    assert LISTED.preflight_headers(b"https://app.example.com", requested) == [
        (b"access-control-allow-origin", b"https://app.example.com"),
        (b"access-control-allow-methods", b"POST, GET, DELETE"),
        (
            b"access-control-allow-headers",
            b"accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
            b"mcp-session-id" + added,
        ),
        (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
        (b"vary", b"Origin, Access-Control-Request-Headers"),
    ]


def test_a_preflight_answer_is_bounded():
    """However many headers are asked for."""
    requested = b",".join(b"mcp-param-%d" % number for number in range(10_000))
    allowed = dict(LISTED.preflight_headers(b"https://app.example.com", requested))[b"access-control-allow-headers"]
    assert allowed.count(b"mcp-param-") == 100


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("Localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("0:0:0:0:0:0:0:1", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("127.0.0.1.evil.example", False),
        ("localhost:8000", False),
        ("127.0.0.1:8000", False),
        ("[::1]:8000", False),
        ("example.com", False),
    ],
)
def test_addresses_of_this_machine_are_told_from_others(host, is_loopback):
    """Whoever binds to any other must say which hosts are allowed (B3)."""
    assert is_loopback_host(host) is is_loopback
