"""What the fuzz tests are made of: how long they run, JSON of every shape, messages, and bytes that nearly are some."""

import itertools
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = os.environ.get("TWOFOLD_FUZZ_EXAMPLES")
"""How many examples each test tries, anew each time; without it a fixed few hundred, so that CI is stable."""


def fuzzed(examples: int, **more: Any) -> settings:
    """Say how a test is run: so many examples and always the same ones, or as many others as were asked for."""
    return settings(
        max_examples=int(EXAMPLES) if EXAMPLES else examples,
        derandomize=EXAMPLES is None,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        **more,
    )


NEWEST = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

texts = st.text(max_size=8) | st.sampled_from(["", "é", "\U0001f600", "\u2028", "a\x00b", "../x", "x" * 300])
numbers = st.integers() | st.floats(allow_nan=False) | st.sampled_from([0, -0.0, 2**63, -(2**63) - 1, 10**400])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
deep = st.integers(1, 400).map(lambda depth: json.loads("[" * depth + "]" * depth))

ids = st.one_of(st.integers(-3, 9), st.sampled_from(["", "a", "é", "unreadable", 2**63 - 1, -(2**63)]))
not_ids = st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.just([]), st.just({}), st.just(2**70))
methods = st.sampled_from(
    [
        "initialize", "server/discover", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get",
        "logging/setLevel", "subscriptions/listen", "resources/list", "notifications/cancelled",
        "notifications/initialized", "notifications/progress", "notifications/roots/list_changed", "rpc.discover", "x",
    ]
)  # fmt: skip
tool_names = st.sampled_from(["echo", "add", "fail", "stop", "tell", "none", "é", ""])
arguments = st.one_of(
    st.just({"text": "hi"}), st.just({"a": 1, "b": 2}), st.just({}), st.none(), values,
    st.dictionaries(st.sampled_from(["text", "a", "b", "x"]), values, max_size=3),
)  # fmt: skip
metas = st.one_of(
    st.just(META),
    st.just({}),
    values,
    st.dictionaries(st.sampled_from([*META, "progressToken", "io.modelcontextprotocol/logLevel", "x"]), values),
    st.fixed_dictionaries(
        {**{key: st.just(value) for key, value in META.items()}, "progressToken": ids | not_ids},
        optional={"io.modelcontextprotocol/logLevel": st.sampled_from(["debug", "error", "loud"]) | values},
    ),
)
params = st.one_of(
    st.fixed_dictionaries({"name": tool_names, "arguments": arguments, "_meta": metas}),
    st.fixed_dictionaries(
        {},
        optional={
            "_meta": metas,
            "name": tool_names | values,
            "arguments": arguments,
            "cursor": texts | values,
            "level": st.sampled_from(["debug", "emergency", "x"]) | values,
            "notifications": st.dictionaries(
                st.sampled_from(["toolsListChanged", "promptsListChanged", "x"]), st.booleans() | values
            )
            | values,
            "protocolVersion": st.sampled_from([NEWEST, *HANDSHAKE, "1", ""]) | values,
            "capabilities": st.just({}) | values,
            "clientInfo": st.just({"name": "t", "version": "0"}) | values,
            "requestId": ids | not_ids,
            "reason": texts | values,
        },
    ),
    values,
)
requests = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": ids, "method": methods, "params": params})
notices = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": methods, "params": params})
cancellations = st.builds(
    lambda id: {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}, ids
)
openings = st.builds(
    lambda id, revision: {
        "jsonrpc": "2.0",
        "id": id,
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"},
        },
    },
    ids,
    st.sampled_from(HANDSHAKE),
)
nearly = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
        "id": ids | not_ids,
        "method": methods | values,
        "params": params,
        "result": values,
        "error": values,
        "x": values,
    },
)
messages = st.one_of(requests, requests, openings, notices, cancellations, nearly, values, deep)
batches = st.lists(st.one_of(requests, notices, cancellations, nearly, values), max_size=6)


fillers = st.one_of(
    st.binary(max_size=4),
    st.just(b""),
    st.sampled_from(
        [b"\\ud800", b"\xff", b"\x00", b"1e999", b"NaN", b"{", b"]", b'"', b",", b"\r", b"\xef\xbb\xbf", b"-0", b"null"]
    ),
)
edits = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 20), fillers | st.none()), max_size=3)
"""Places to change in bytes that are not known yet: where, how much, with what; None doubles what is there."""


def damage(data: bytes, given: list[tuple[int, int, bytes | None]]) -> bytes:
    """Change a few places."""
    for place, size, filler in given:
        start = place % (len(data) + 1)
        old = data[start : start + size]
        data = data[:start] + (old * 2 if filler is None else filler) + data[start + size :]
    return data


def mutated(given: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes with a few places changed, left out, doubled or filled with what parsers stumble over."""
    return st.builds(damage, given, edits)


def encode(value: Any) -> bytes:
    """Write JSON, now and then with characters as they are."""
    return json.dumps(value, ensure_ascii=len(repr(value)) % 2 == 0).encode("utf-8", "surrogatepass")


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at these places, as a wire would; some pieces are empty."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


class _Faults(logging.Handler):
    """Notes what must never be logged: a fault of our own, or a trace."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        is_tool = "crashed, reference" in record.msg  # a tool that is meant to fail
        if not is_tool and (record.levelno >= logging.ERROR or record.exc_info):
            self.texts.append(logging.Formatter().format(record))


@contextmanager
def no_faults() -> Iterator[None]:
    """Hold that no fault of the server's own, and nothing that asyncio complains of, is logged meanwhile."""
    faults = _Faults()
    loggers = [logging.getLogger(name) for name in ("twofold", "asyncio")]
    for each in loggers:
        each.addHandler(faults)
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(faults)
    assert faults.texts == []
