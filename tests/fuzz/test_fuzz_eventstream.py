"""Any bytes as an event stream: the decoder reads what the standard reads, wherever the bytes are cut.

The oracle follows WHATWG HTML, 9.2.6, line by line over the whole text, in another way than the decoder: it decodes
first, splits by a pattern, and keeps nothing between pieces.
"""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.material import cut, encode, fuzzed, messages, mutated
from twofold.errors import TransportError
from twofold.protocol.eventstream import Event, EventStreamDecoder, encode_event

LIMIT = 10_000
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)")


def read_by_the_standard(stream: bytes) -> tuple[list[Event], str | None, int | None]:
    """Give the events, the last id and the reconnection time."""
    events: list[Event] = []
    data, kind, retry = [], "", None
    last_id = next_id = reconnection = None
    for match in _LINE.finditer(stream.removeprefix(b"\xef\xbb\xbf")):
        line = match[1]
        if line == b"":
            last_id = next_id
            if data:
                events.append(Event(b"\n".join(data), last_id, kind or "message", retry))
            data, kind, retry = [], "", None
            continue
        found = re.fullmatch(rb"([^:]*)(?::[ ]?(.*))?", line, re.DOTALL)
        assert found is not None
        name, value = found[1], found[2] or b""
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            next_id = value.decode("utf-8", "replace") or None
        elif name == b"retry" and re.fullmatch(rb"[0-9]{1,15}", value):
            retry = reconnection = int(value)
    return events, last_id, reconnection


pieces = st.sampled_from(
    [
        b"data", b"id", b"event", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"\r\r", b"7", b"x", b"\x00",
        b"\xef\xbb\xbf", b"\xef\xbb", b"data: x\n", b"id: 1\n", b"id\n", b"id:\n", b": c\n", b"\xc3\xa9", b"\xff",
        b"\x0b", b"\x0c", b"\x1c", b"\x85", b"retry: 10\n", b"retry: -1\n", b"retry: \xd9\xa1\n", b"event: a\n",
    ]
)  # fmt: skip
written = st.builds(
    lambda message, name, wait: encode_event(message, event_id=name, retry_milliseconds=wait),
    messages.map(encode),
    st.none() | st.sampled_from(["1-1", "", "é"]),
    st.none() | st.integers(0, 10**15 - 1),
)
streams = st.lists(pieces | mutated(written) | written | st.binary(max_size=4), max_size=30).map(b"".join)


@fuzzed(400)
@given(streams, st.lists(st.integers(0, 100_000), max_size=12))
@example(b"data: a\r\ndata: b\r\n\r\n", [8, 9, 17, 18])
@example(b"\xef\xbb\xbfdata: a\n\n", [1, 2, 3])
@example(b"\xef\xbbdata: a\n\n", [1])
def test_a_stream_is_read_as_the_standard_says_wherever_it_is_cut(stream, places):
    """WHATWG HTML, 9.2.5 and 9.2.6: events, last event id and reconnection time."""
    decoder = EventStreamDecoder(10**7)
    found = [event for piece in cut(stream, places) for event in decoder.feed(piece)]
    assert (found, decoder.last_event_id, decoder.retry_milliseconds) == read_by_the_standard(stream)


@fuzzed(200)
@given(streams, st.lists(st.integers(0, 100_000), max_size=12), st.integers(1, 60))
def test_the_bound_cuts_a_stream_at_the_same_event_wherever_it_is_cut(stream, places, limit):
    """What is larger than the bound is refused, nothing smaller is, and what came before it is kept."""

    def read(*chunks: bytes) -> tuple[list[Event], bool]:
        decoder, found = EventStreamDecoder(limit), []
        try:
            for chunk in chunks:
                for byte in (chunk[start : start + 1] for start in range(len(chunk))):
                    found += decoder.feed(byte)
        except TransportError:
            return found, True
        return found, False

    at_once, is_refused = EventStreamDecoder(limit), False
    try:
        whole = [event for piece in cut(stream, places) for event in at_once.feed(piece)]
    except TransportError:
        is_refused, whole = True, []
    found, was_refused = read(stream)
    assert is_refused is was_refused
    if not is_refused:
        assert whole == found
        assert all(len(event.data) <= limit for event in whole)
