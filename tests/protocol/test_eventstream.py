"""Server-sent events: what is written is read back, whatever the pieces it arrives in."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import TransportError
from twofold.protocol.eventstream import KEEP_ALIVE, Event, EventStreamDecoder, encode_event

LIMIT = 1_000_000

ids = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1)
waits = st.none() | st.integers(0, 10**15 - 1)
pieces = st.sampled_from(
    [
        b"data",
        b"id",
        b"event",
        b"retry",
        b":",
        b" ",
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"7",
        b"x",
        b"\x00",
        b"\xef\xbb\xbf",
        b"data: x\n",
        b"id: 1\n",
        b": c\n",
        b"\xc3\xa9",
        b"\xff",
    ]
)
streams = st.lists(pieces | st.binary(max_size=3), max_size=60).map(b"".join)


def read(*chunks: bytes, limit: int = LIMIT) -> list[Event]:
    decoder = EventStreamDecoder(limit)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """Cut a stream at these places; some pieces may be empty."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(
    ("event", "written"),
    [
        (encode_event(b'{"a":1}'), b'data: {"a":1}\n\n'),
        (encode_event(b"{}", event_id="s1/7"), b"id: s1/7\ndata: {}\n\n"),
        (encode_event(b"", event_id="s1/0", retry_milliseconds=500), b"id: s1/0\nretry: 500\ndata: \n\n"),
        (encode_event(b"{}", retry_milliseconds=0), b"retry: 0\ndata: {}\n\n"),
        (encode_event(b"a\nb\r\nc\rd\n"), b"data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (encode_event("é".encode(), event_id="é"), "id: é\ndata: é\n\n".encode()),
        (KEEP_ALIVE, b":\r\n\r\n"),
    ],
)
def test_events_are_written_one_data_line_a_line(event, written):
    """Fields are lines, and CR, LF and CRLF end one (WHATWG, 9.2.5)."""
    assert event == written


@pytest.mark.parametrize("event_id", ["a\nb", "a\rb", "a\0b", "\n"])
def test_an_id_that_would_break_the_stream_is_refused(event_id):
    """CR and LF end the line, an id with NUL is ignored (WHATWG, 9.2.6)."""
    message = f"an event id has no CR, LF or NUL, got {event_id!r}; leave them out"
    with pytest.raises(ValueError, match=re.escape(message)):
        encode_event(b"{}", event_id=event_id)


def test_a_negative_wait_is_refused():
    """`retry` is digits."""
    with pytest.raises(ValueError, match="retry_milliseconds: expected 0 or more, got -1"):
        encode_event(b"{}", retry_milliseconds=-1)


@given(st.lists(st.tuples(st.binary(), ids, waits)), st.lists(st.integers(0, 2**20)))
def test_what_is_written_is_read_back(sent, places):
    """decode(encode(m)) = m but for line breaks, which all arrive as LF, however the stream is cut."""
    stream = b"".join(
        encode_event(data, event_id=event_id, retry_milliseconds=wait) + KEEP_ALIVE for data, event_id, wait in sent
    )
    assert read(*cut(stream, places)) == [
        Event(re.sub(rb"\r\n|\r", b"\n", data), event_id, "message", wait) for data, event_id, wait in sent
    ]


@given(streams, st.lists(st.integers(0, 2**20)))
def test_any_cutting_gives_the_same_events(stream, places):
    """A stream is bytes: where the network cuts it means nothing."""
    whole, pieced, single = EventStreamDecoder(LIMIT), EventStreamDecoder(LIMIT), EventStreamDecoder(LIMIT)
    events = whole.feed(stream)
    assert [event for chunk in cut(stream, places) for event in pieced.feed(chunk)] == events
    assert [event for at in range(len(stream)) for event in single.feed(stream[at : at + 1])] == events
    assert pieced.last_event_id == single.last_event_id == whole.last_event_id
    assert pieced.retry_milliseconds == single.retry_milliseconds == whole.retry_milliseconds


@given(streams)
def test_events_are_those_of_the_standard(stream):
    """The steps of WHATWG, 9.2.6, taken one after the other on the whole stream, give the same."""
    data: list[bytes] = []
    kind, seen_id, wait, expected = b"", b"", None, []
    for line in re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if data:
                shown_id = seen_id.decode("utf-8", "replace") or None
                shown_kind = kind.decode("utf-8", "replace") or "message"
                expected.append(Event(b"\n".join(data), shown_id, shown_kind, wait))
            data, kind, wait = [], b"", None
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
        elif name == b"id" and b"\0" not in value:
            seen_id = value
        elif name == b"retry" and re.fullmatch(rb"[0-9]{1,15}", value):
            wait = int(value)
    assert read(stream) == expected


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [Event(b"a")]),
        (b"data:a\r\n\r\n", [Event(b"a")]),
        (b"data:  a \r\r", [Event(b" a ")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: a\ndata: b\ndata\n\n", [Event(b"a\nb\n")]),
        (b"data\n\n", [Event(b"")]),
        (b"data\ndata\n\n", [Event(b"\n")]),
        (b"id: 1\ndata: \n\n", [Event(b"", "1")]),
        (b"id: 1\ndata:\n\ndata: a\n\n", [Event(b"", "1"), Event(b"a", "1")]),
        (b"id: 1\n\ndata: a\n\n", [Event(b"a", "1")]),
        (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [Event(b"a", "1"), Event(b"b")]),
        (b"id: 1\nid: 2\0\ndata: a\n\n", [Event(b"a", "1")]),
        (b"id: \xff\ndata: a\n\n", [Event(b"a", "\N{REPLACEMENT CHARACTER}")]),
        (b"event: endpoint\ndata: a\n\ndata: b\n\n", [Event(b"a", None, "endpoint"), Event(b"b")]),
        (b"event: endpoint\n\ndata: b\n\n", [Event(b"b")]),
        (b"retry: 500\ndata: a\n\ndata: b\n\n", [Event(b"a", None, "message", 500), Event(b"b")]),
        (b"retry: 5s\nretry: -5\nretry:\nretry: 1.5\ndata: a\n\n", [Event(b"a")]),
        (b"retry: " + b"9" * 5000 + b"\ndata: a\n\n", [Event(b"a")]),
        (b": a comment\n:\n\n:data: a\n\n", []),
        (b"Data: a\n data: a\ndatax: a\nfoo\n\n", []),
        (b"data: a\x0b\x0c\x1c\xc2\x85b\n\n", [Event(b"a\x0b\x0c\x1c\xc2\x85b")]),
        (b"data: a\n", []),
        (b"data: a", []),
        (b"\n\n\n\r\r\n", []),
        (b"", []),
    ],
)
def test_streams_are_read_as_the_standard_says(stream, events):
    """WHATWG, 9.2.6; an empty data line is an event, which primes a client to resume (MCP 2025-11-25)."""
    assert read(stream) == events


def test_an_id_and_a_wait_count_without_an_event():
    """What a client needs to reconnect is known even where no event came with it (WHATWG, 9.2.6)."""
    decoder = EventStreamDecoder(LIMIT)
    assert (decoder.last_event_id, decoder.retry_milliseconds) == (None, None)
    assert decoder.feed(b"id: 7\nretry: 250\n\n") == []
    assert (decoder.last_event_id, decoder.retry_milliseconds) == ("7", 250)
    assert decoder.feed(b"id: 8\n") == []
    assert decoder.last_event_id == "7"


def test_an_event_is_given_as_soon_as_it_is_complete():
    """A CR ends a line by itself: nothing waits for a LF that may not come."""
    decoder = EventStreamDecoder(LIMIT)
    assert decoder.feed(b"data: a\r\r") == [Event(b"a")]
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: b\n\n") == [Event(b"b")]


@pytest.mark.parametrize(
    ("chunks", "what"),
    [
        ([b"x" * 101], "line"),
        ([b"x" * 60, b"x" * 60], "line"),
        ([b"x"] * 101, "line"),
        ([b"data: " + b"x" * 95 + b"\n"], "line"),
        ([b":" * 101], "line"),
        ([b"data: " + b"x" * 60 + b"\n"] * 2, "event"),
        ([b"data\n" * 21], "event"),
    ],
)
def test_what_is_larger_than_the_limit_is_refused(chunks, what):
    """No peer fills the memory with one event, with empty lines neither."""
    message = f"event stream: a {what} of more than 100 bytes, which is the limit here; the peer must send less at once"
    with pytest.raises(TransportError, match=re.escape(message)):
        read(*chunks, limit=100)


def test_a_stream_may_be_of_any_length_within_the_limit():
    """The limit is for an event: comments and ended events do not add up."""
    decoder = EventStreamDecoder(100)
    for _ in range(100):
        assert decoder.feed(b":\r\n" * 50 + b"data: " + b"x" * 90 + b"\n\n") == [Event(b"x" * 90)]
