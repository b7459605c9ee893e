"""What a client asks: the head as it is read, the body within its bounds, the types both sides take."""

import asyncio
from typing import Any

import pytest

from tests.http_peer import PER_REQUEST
from twofold.transports.http.reply import Refusal
from twofold.transports.http.request import Head, check_accepted, check_posted_type, read_body, read_head

FIELDS = [(b"host", b"127.0.0.1"), (b"accept", b"*/*")]


def scope(**changes: Any) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": FIELDS, "client": ("127.0.0.1", 5)} | changes


def head(**headers: bytes) -> Head:
    fields = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return read_head(scope(headers=fields))


def refusal_of(check, *arguments) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        check(*arguments)
    return caught.value.status, caught.value.error.message


@pytest.mark.parametrize("gather", [list, tuple, iter, lambda fields: (each for each in fields)])
def test_headers_may_come_as_any_iterable(gather):
    """ASGI, HTTP connection scope: `headers` is an iterable of pairs."""
    assert read_head(scope(headers=gather(FIELDS))) == Head(
        "POST", "/mcp", "/mcp", {b"host": b"127.0.0.1", b"accept": b"*/*"}, False, "127.0.0.1"
    )


@pytest.mark.parametrize("gather", [list, tuple, iter])
def test_a_header_that_stands_twice_is_refused_however_they_come(gather):
    """Decision 14: two readers could take different ones."""
    fields = gather([*FIELDS, (b"mcp-name", b"a"), (b"mcp-name", b"a")])
    assert refusal_of(read_head, scope(headers=fields)) == (
        400,
        "the header 'mcp-name' stands more than once; send it once",
    )


def test_a_long_name_of_a_header_is_shown_cut():
    """B3: what a client sends is bounded in what it is told."""
    status, message = refusal_of(read_head, scope(headers=[(b"x" * 5000, b"1")] * 2))
    assert (status, len(message)) == (400, len("the header  stands more than once; send it once") + 80)


def test_lists_are_joined_in_their_order():
    """RFC 9110, section 5.3: a list may stand in several fields."""
    fields = [(b"accept", b"application/json"), (b"host", b"a"), (b"accept", b"text/event-stream")]
    assert read_head(scope(headers=fields)).headers == {
        b"accept": b"application/json, text/event-stream",
        b"host": b"a",
    }


@pytest.mark.parametrize(
    ("path", "root", "below"),
    [
        ("/mcp", None, "/mcp"),
        ("/api/mcp", "/api", "/mcp"),
        ("/mcp", "/api", "/mcp"),
        ("/api", "/api", ""),
        ("/mcp", "", "/mcp"),
    ],
)
def test_the_path_is_told_below_where_the_server_is_mounted(path, root, below):
    """ASGI, `root_path`: whether whoever mounts it leaves it in `path` or takes it out."""
    given = scope(path=path) if root is None else scope(path=path, root_path=root)
    read = read_head(given)
    assert (read.path, read.whole_path) == (below, path)


@pytest.mark.parametrize(
    ("version", "is_per_request"),
    [
        (PER_REQUEST.encode(), True),
        (f" {PER_REQUEST}\t".encode(), True),
        (b"2025-11-25", False),
        (b"2099-01-01", False),
        (b"", False),
        (b"\xff", False),
    ],
)
def test_the_era_is_told_by_the_version_header(version, is_per_request):
    """Decision 12: not by the method, and before the body is read."""
    assert head(mcp_protocol_version=version).is_per_request is is_per_request


@pytest.mark.parametrize("client", [None, ()])
def test_an_unknown_address_is_none(client):
    """ASGI: `client` may be missing, on a Unix socket, say."""
    given = scope(client=client)
    missing = scope()
    del missing["client"]
    assert (read_head(given).client, read_head(missing).client) == (None, None)


class Parts:
    """Gives the parts of a body, then waits for ever or says that the client has gone."""

    def __init__(self, *events: dict[str, Any], goes: bool = False) -> None:
        self.events = [*events, *([{"type": "http.disconnect"}] if goes else [])]

    async def __call__(self) -> dict[str, Any]:
        if not self.events:
            await asyncio.Event().wait()
        return self.events.pop(0)


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def read(parts: Parts, *, seconds: float = 1000, **headers: bytes) -> bytes | None:
    async with asyncio.timeout(20):
        return await read_body(head(**headers), parts, max_bytes=10, seconds=seconds)


@pytest.mark.parametrize(
    ("events", "body"),
    [
        ([part(b"0123456789")], b"0123456789"),
        ([part(b"01", True), part(b"23", True), part(b"45")], b"012345"),
        ([part(b"01", True), {"type": "http.request"}], b"01"),
        ([{"type": "http.request"}], b""),
        ([{"type": "http.request", "more_body": True}, {"type": "http.request", "body": b"0"}], b"0"),
        ([part(b"", True)] * 100 + [part(b"0")], b"0"),
    ],
)
async def test_a_body_is_put_together_from_what_comes(events, body):
    """ASGI, Request event: `body` and `more_body` may be missing."""
    assert await read(Parts(*events)) == body


@pytest.mark.parametrize("events", [[], [part(b"01", True)]])
async def test_a_client_that_goes_while_it_sends_has_asked_nothing(events):
    """B3: nobody is left to be answered."""
    assert await read(Parts(*events, goes=True)) is None


@pytest.mark.parametrize(
    ("parts", "announced", "said"),
    [
        (Parts(), b"11", "11 bytes are announced"),
        (Parts(), b"9" * 5000, "99999999999999999999 bytes are announced"),
        (Parts(part(b"x" * 11)), b"", "11 bytes came"),
        (Parts(part(b"x" * 6, True), part(b"x" * 6, True)), b"", "12 bytes came"),
        (Parts(part(b"x" * 11)), b"3", "11 bytes came"),
        (Parts(part(b"x" * 11)), b"-1", "11 bytes came"),
    ],
)
async def test_a_body_that_is_too_large_is_413_as_soon_as_it_is_known(parts, announced, said):
    """B3: by what is announced, before anything is read, or by what has come; the connection is closed."""
    with pytest.raises(Refusal) as caught:
        await read(parts, content_length=announced)
    refusal = caught.value
    assert (refusal.status, refusal.closes) == (413, True)
    assert refusal.error.message == f"the body is too large: {said}, 10 are allowed (the server's max_body_bytes)"


@pytest.mark.parametrize("events", [[], [part(b"01", True)]])
async def test_a_body_that_is_too_slow_is_408(events):
    """B3: a slow client costs nothing lasting; the connection is closed, since the rest may still come."""
    with pytest.raises(Refusal) as caught:
        await read(Parts(*events), seconds=0.002)
    refusal = caught.value
    assert (refusal.status, refusal.closes) == (408, True)
    assert refusal.error.message == "the body did not arrive within 0.002 seconds; send it again"


async def test_a_server_that_ends_while_a_body_comes_is_heeded():
    """B3: a cancellation from elsewhere is no slow client."""
    reading = asyncio.create_task(read(Parts()))
    for _ in range(5):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading}, timeout=20)
    assert reading.cancelled()


@pytest.mark.parametrize("kind", [b"application/json", b"Application/JSON", b"application/json ; charset=utf-8"])
def test_json_is_taken_by_any_spelling(kind):
    """RFC 9110, section 8.3.1: types are case-insensitive, parameters do not matter here."""
    assert check_posted_type({b"content-type": kind}) is None


@pytest.mark.parametrize(
    "kind", [b"text/plain", b"application/json-seq", b"application/json, text/plain", b"\xff", b""]
)
def test_a_body_that_is_not_said_to_be_json_is_415(kind):
    """Decision 14: a web page may send other types without being asked first."""
    status, message = refusal_of(check_posted_type, {b"content-type": kind})
    assert (status, message) == (415, f"Content-Type: expected application/json, got {kind.decode('latin-1')!r}")
    assert refusal_of(check_posted_type, {})[0] == 415


@pytest.mark.parametrize(
    "accept",
    [
        None,
        b"*/*",
        b"application/json, text/event-stream",
        b"text/event-stream;q=0.5,Application/Json",
        b"application/*, text/*",
        b"text/html, */*;q=0.1",
    ],
)
def test_a_client_that_takes_both_kinds_is_served(accept):
    """2026-07-28, Streamable HTTP: it lists both; a range is a list of all in it."""
    headers = {} if accept is None else {b"accept": accept}
    assert check_accepted(headers, b"application/json", b"text/event-stream") is None


@pytest.mark.parametrize("accept", [b"application/json", b"text/event-stream", b"text/*", b"", b"application"])
def test_a_client_that_does_not_take_both_is_406(accept):
    """2026-07-28, Streamable HTTP: which of the two comes is the server's to say."""
    assert refusal_of(check_accepted, {b"accept": accept}, b"application/json", b"text/event-stream") == (
        406,
        f"Accept: expected application/json and text/event-stream, got {accept.decode()!r}",
    )
