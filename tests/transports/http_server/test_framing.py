"""Laws of cutting bytes into requests; what each refusal looks like to a client is in tests/server/test_serve_http.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.transports.http_server.framing import RequestFraming, RequestRefused

FIRST = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n"
)
BODILESS = b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"


def _cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Feed bytes in segments of these sizes, over and over, and join what belongs to one request."""
    framing, requests, at, turn = RequestFraming(), [b""], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        framing.receive(data[at : at + size])
        at, turn = at + size, turn + 1
        while piece := framing.take():
            requests[-1] += piece
            if framing.is_between_requests:
                requests.append(b"")
    assert (requests.pop(), framing.is_unfinished) == (b"", False)
    return requests


@given(st.lists(st.integers(1, 40), min_size=1), st.lists(st.sampled_from([FIRST, CHUNKED, BODILESS]), min_size=1))
def test_requests_are_cut_alike_however_they_arrive(sizes: list[int], requests: list[bytes]) -> None:
    """Segments of any size, one byte too, give the same requests (RFC 9112, 6.3: the length is in the message)."""
    assert _cut(b"".join(requests), sizes) == requests


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
    assert (framing.take(), framing.held_bytes) == (b"", 0)
    framing.receive(b"\r\n" + BODILESS)
    assert (framing.take(), framing.held_bytes) == (BODILESS, 0)


def test_offer_of_another_protocol_is_taken_out_of_the_head() -> None:
    """A server may ignore Upgrade (RFC 9110, 7.8), and no parser may switch protocols at it."""
    framing = RequestFraming()
    framing.receive(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUPGRADE: h2c\r\nX: 1\r\n\r\n")
    assert framing.take() == b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nX: 1\r\n\r\n"


def test_incomplete_head_is_refused_once_it_is_too_large() -> None:
    """No more of a head than its bound is kept while it is waited for."""
    framing = RequestFraming(max_head_bytes=100)
    framing.receive(b"GET / HTTP/1.1\r\nX: " + b"a" * 81)
    assert framing.take() == b""
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
    assert (framing.take(), framing.awaits_continue, framing.is_unfinished) == (b"ab", False, False)
