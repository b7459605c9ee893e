"""Laws of cutting bytes into requests; what each refusal looks like to a client is in tests/server/test_serve_http.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.transports.http_server.framing import (
    KNOWN_HEAD_BYTES,
    KNOWN_HEAD_FIELDS,
    KNOWN_HEADS,
    Piece,
    RequestFraming,
    RequestHead,
    RequestRefused,
)

FIRST = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n"
)
BODILESS = b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"


READ = {
    FIRST: (RequestHead("POST", b"/mcp", False, ((b"host", b"a"), (b"content-length", b"5")), True), b"hello"),
    CHUNKED: (
        RequestHead("POST", b"/mcp", False, ((b"host", b"a"), (b"transfer-encoding", b"chunked")), True),
        b"hello0123456789",
    ),
    BODILESS: (RequestHead("GET", b"/mcp", False, ((b"host", b"a"),), True), b""),
}


def _cut(data: bytes, sizes: list[int]) -> list[tuple[RequestHead | None, bytes]]:
    """Feed bytes in segments of these sizes, over and over, and join what belongs to one request."""
    framing, requests, at, turn = RequestFraming(), [], 0, 0
    head, body = None, b""
    while at < len(data):
        size = sizes[turn % len(sizes)]
        framing.receive(data[at : at + size])
        at, turn = at + size, turn + 1
        while piece := framing.take():
            head, body = piece.head or head, body + piece.body
            assert piece.is_last == framing.is_between_requests
            if piece.is_last:
                requests.append((head, body))
                head, body = None, b""
    assert (head, body, framing.is_unfinished) == (None, b"", False)
    return requests


@given(st.lists(st.integers(1, 40), min_size=1), st.lists(st.sampled_from([FIRST, CHUNKED, BODILESS]), min_size=1))
def test_requests_are_cut_alike_however_they_arrive(sizes: list[int], requests: list[bytes]) -> None:
    """Segments of any size, one byte too, give the same requests (RFC 9112, 6.3: the length is in the message)."""
    assert _cut(b"".join(requests), sizes) == [READ[each] for each in requests]


@given(st.binary(max_size=300), st.sampled_from([b"", b"POST /", FIRST[:40], CHUNKED[:60], CHUNKED[:70]]))
def test_arbitrary_bytes_raise_nothing_but_a_refusal(data: bytes, start: bytes) -> None:
    """Whatever a peer sends is taken, waited on or refused."""
    framing, statuses = RequestFraming(), []
    framing.receive(start + data)
    try:
        while framing.take():
            pass
    except RequestRefused as refusal:
        statuses.append(refusal.status)
    assert set(statuses) <= {400, 405, 417, 431}


def test_empty_lines_before_a_request_are_dropped_and_leave_nothing() -> None:
    """A server should ignore empty lines before a request (RFC 9112, 2.2)."""
    framing = RequestFraming()
    framing.receive(b"\r\n" * 1000)
    assert (framing.take(), framing.held_bytes) == (None, 0)
    framing.receive(b"\r\n" + BODILESS)
    assert (framing.take(), framing.held_bytes) == (Piece(READ[BODILESS][0], b"", True), 0)


def test_offer_of_another_protocol_changes_nothing() -> None:
    """A server may ignore Upgrade (RFC 9110, 7.8): what follows is HTTP/1 all the same."""
    framing = RequestFraming()
    framing.receive(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUPGRADE: h2c\r\n\r\n" + BODILESS)
    assert [framing.take().head.target for _ in range(2)] == [b"/", b"/mcp"]


def test_heads_that_come_again_are_read_as_the_first_time() -> None:
    """A known head is known by all of its bytes, and no more are kept than so many."""
    heads = [b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (n, n % 3) for n in range(3 * KNOWN_HEADS)]
    framing, got = RequestFraming(), []
    for head in (*heads, *heads, *reversed(heads)):
        framing.receive(head + b"x" * (int(head[6:].partition(b" ")[0]) % 3))
        piece = framing.take()
        got.append((piece.head.target, piece.body, piece.is_last))
        assert len(framing._known) <= KNOWN_HEADS
    expected = [(b"/%d" % n, b"x" * (n % 3), True) for n in range(3 * KNOWN_HEADS)]
    assert got == [*expected, *expected, *reversed(expected)]


def _head_of(*, size: int = 0, fields: int = 1) -> bytes:
    """Make a head of so many fields, filled up to so many bytes."""
    start = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (fields - 2) + (b"X: " if fields > 1 else b"")
    return start + b"a" * (size - len(start) - 4) + b"\r\n\r\n" if fields > 1 else start + b"\r\n"


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (_head_of(), True),
        (_head_of(size=KNOWN_HEAD_BYTES, fields=2), True),
        (_head_of(size=KNOWN_HEAD_BYTES + 1, fields=2), False),
        (_head_of(fields=KNOWN_HEAD_FIELDS), True),
        (_head_of(fields=KNOWN_HEAD_FIELDS + 1), False),
    ],
)
def test_only_heads_within_both_bounds_are_kept(head: bytes, is_kept: bool) -> None:
    """Else an idle connection could hold as much as its peer likes; a head that is not kept is read as well."""
    framing, taken = RequestFraming(), []
    for _ in range(2):
        framing.receive(head)
        taken.append(framing.take().head)
    assert (len(framing._known), taken[0] is taken[1]) == (int(is_kept), is_kept)
    assert taken[0] == taken[1]


def test_white_space_round_a_value_is_not_part_of_it() -> None:
    """RFC 9110, 5.5; names are compared without regard to case (5.1)."""
    framing = RequestFraming()
    framing.receive(b"GET /a?b=c HTTP/1.0\r\nHOST: \t a \r\nConnection: x, Keep-Alive\r\nX:\r\n\r\n")
    fields = ((b"host", b"a"), (b"connection", b"x, Keep-Alive"), (b"x", b""))
    assert framing.take() == Piece(RequestHead("GET", b"/a?b=c", True, fields, True), b"", True)


def test_incomplete_head_is_refused_once_it_is_too_large() -> None:
    """No more of a head than its bound is kept while it is waited for."""
    framing = RequestFraming(max_head_bytes=100)
    framing.receive(b"GET / HTTP/1.1\r\nX: " + b"a" * 81)
    assert framing.take() is None
    framing.receive(b"a")
    with pytest.raises(RequestRefused) as refused:
        framing.take()
    assert (refused.value.status, str(refused.value)) == (
        431,
        "the request head is larger than 100 bytes or 100 fields; send less",
    )


def test_expectation_is_pending_until_the_body_comes() -> None:
    """Whether a client waits for `100 Continue` decides whether an early answer leaves the connection usable."""
    framing = RequestFraming()
    framing.receive(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
    framing.take()
    assert framing.awaits_continue
    framing.receive(b"ab")
    assert (framing.take(), framing.awaits_continue, framing.is_unfinished) == (Piece(None, b"ab", True), False, False)
