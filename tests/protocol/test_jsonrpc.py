"""Bytes ↔ JSON-RPC messages; arbitrary bytes never raise anything but a protocol error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import InvalidRequest, ParseError, ProtocolError
from twofold.protocol.jsonrpc import (
    MAX_LEVELS,
    TOO_DEEP,
    cut_depth,
    decode_batch,
    decode_message,
    encode_error,
    encode_notification,
    encode_result,
    recover_id,
)

ids = st.integers() | st.text()


@given(ids, st.text(min_size=1), st.dictionaries(st.text(), st.integers() | st.text()))
def test_a_request_is_read_as_it_was_written(request_id, method, params):
    """decode(encode(m)) = m."""
    line = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
    if any(0xD800 <= ord(character) <= 0xDFFF for character in line.decode()):
        return
    message = decode_message(line)
    assert (message.id, message.method, json.loads(bytes(message.params))) == (request_id, method, params)


@given(ids)
def test_an_answer_carries_the_id_it_was_asked_with(request_id):
    assert json.loads(encode_result(request_id, b'{"a":1}')) == {
        "jsonrpc": "2.0",
        "id": request_id,
        "result": {"a": 1},
    }


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_protocol_errors(data):
    """A hostile peer can send anything."""
    for read in (decode_message, decode_batch):
        try:
            read(data)
        except ProtocolError:
            pass
    recover_id(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), inner)
        ),
    )
)
def test_arbitrary_json_raises_nothing_but_protocol_errors(value):
    try:
        decode_message(json.dumps(value).encode())
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    ("line", "error", "opening"),
    [
        (b"this is not json", ParseError, "the line is not JSON: "),
        (b'{"jsonrpc":"2.0","id":1', ParseError, "the line is not JSON: "),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', ParseError, "the line is not JSON: "),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 100_000,
            ParseError,
            "the line is nested too deeply",
        ),
        (b"5", InvalidRequest, "not a JSON-RPC message: "),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', InvalidRequest, "not a JSON-RPC message: "),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', InvalidRequest, "not a JSON-RPC message: "),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', InvalidRequest, "not a JSON-RPC message: "),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', InvalidRequest, "not a JSON-RPC message: "),
        (
            b'{"jsonrpc":"2.0","id":1}',
            InvalidRequest,
            "not a JSON-RPC message: it has neither method, result nor error",
        ),
    ],
)
def test_what_is_no_message_is_refused_precisely(line, error, opening):
    with pytest.raises(error) as caught:
        decode_message(line)
    assert str(caught.value).startswith(opening)


def test_half_a_surrogate_pair_is_named_with_its_place():
    """Lone surrogates in arguments are an error that names the place."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"text":["\\ud800"]}}}'
    with pytest.raises(InvalidRequest) as caught:
        decode_message(line)
    assert str(caught.value) == (
        "params.arguments.text[0] holds half of a surrogate pair ('\\ud800'), which is no text; send whole characters"
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
        (b' {"id":"a\\n","method":', "a\n"),
        (b'{"params":{"id":3},"method":', None),
        (b'{"method":"x","params":{}}', None),
        (b"\xff", None),
    ],
)
def test_an_id_is_recovered_only_from_the_top(line, found):
    assert recover_id(line) == found


def test_an_empty_batch_is_refused():
    with pytest.raises(InvalidRequest, match="the batch is empty"):
        decode_batch(b"[]")


def test_an_error_without_an_id_sends_none():
    """2026-07-28: the id is left out where it could not be read."""
    assert json.loads(encode_error(None, ParseError("x"))) == {
        "jsonrpc": "2.0",
        "error": {"code": -32700, "message": "x"},
    }
    assert json.loads(encode_error("a", ProtocolError(7, "\ud800", [1]))) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": 7, "message": "?", "data": [1]},
    }


def test_a_notification_has_no_id():
    assert json.loads(encode_notification("notifications/x", b"{}")) == {
        "jsonrpc": "2.0",
        "method": "notifications/x",
        "params": {},
    }


@pytest.mark.parametrize("levels", [1, 199, 200, 201, 5000])
def test_what_is_nested_too_deeply_is_cut_out_and_nothing_else(levels):
    """`cut_depth` leaves `MAX_LEVELS` levels, marks where it cut, and keeps every sibling."""
    inner = rb'"a \" ] } \\","\\\\"'
    deep = b"[" * levels + inner + b"]" * levels
    cut = cut_depth(b'{"before":[{"a":1}],"deep":%b,"after":{"b":[2]}}' % deep)
    found = json.loads(cut)
    assert (found["before"], found["after"]) == ([{"a": 1}], {"b": [2]})
    value, depth = found["deep"], 1
    while isinstance(value, list) and len(value) == 1:
        value, depth = value[0], depth + 1
    if levels < MAX_LEVELS:
        assert (value, depth) == (['a " ] } \\', "\\\\"], levels)
    else:
        assert (value, depth) == (TOO_DEEP, MAX_LEVELS)


@pytest.mark.parametrize(
    "line",
    [b'{"a":"' + rb"\"" * 500_000, b"[" * 1_000_000, b"]" * 1_000_000, b'"' * 999_999, b"[]" * 400_000, b""],
    ids=["unended text", "opened", "closed", "quotes", "pairs", "nothing"],
)
def test_cutting_what_is_no_json_ends(line):
    """Bounded work whatever came: no part of the line is looked at twice."""
    assert len(cut_depth(line)) <= len(line) + 100
