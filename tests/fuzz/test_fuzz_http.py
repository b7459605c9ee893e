"""Any bytes and any heads over HTTP: answers of the specification with their status, and the server goes on.

Values go into the application as an ASGI server would hand them over; bytes go over real sockets, with all that stands before the application.
"""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.fuzzed_server import make_server
from tests.fuzz.material import (
    HANDSHAKE,
    META,
    NEWEST,
    batches,
    cut,
    encode,
    fuzzed,
    messages,
    methods,
    mutated,
    no_faults,
    tool_names,
)
from tests.http_peer import BOTH, HttpPeer, HttpSession
from tests.oracle import judge_message
from tests.server.raw_http import RunningServer, running
from twofold import Limits
from twofold.errors import HeaderMismatch
from twofold.protocol.headers import decode_value, encode_value
from twofold.transports.http_server.bounds import HttpLimits

STATUS_OF = {
    -32700: {400},
    -32600: None,
    -32601: {404, 405},
    -32602: {400},
    -32603: {503},
    -32020: {400},
    -32022: {400},
}
"""By error code; -32600 also stands for what is refused before a message is read."""
REFUSED = {400, 403, 404, 405, 406, 408, 413, 415, 421, 431, 417, 503}
LIMITS = Limits(requests=50, watch_after_seconds=0.001, resumable_after_seconds=0.005, keep_alive_seconds=0.5)

tokens = st.text("abzAZ09!#$%&'*+.^_`|~-", min_size=1, max_size=12)
plain = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20)
encoded = st.one_of(
    st.text(max_size=10).map(encode_value),
    st.binary(max_size=8).map(lambda data: f"=?base64?{data.hex()}?="),
    st.sampled_from(
        ["=?base64??=", "=?base64?w6k=?=", "=?base64?/w==?=", "=?BASE64?aGk=?=", "=?base64?aGk=", "=?utf-8?Q?x?="]
    ),
)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "Host": st.sampled_from(["127.0.0.1", "localhost:80", "evil.example", "", "[::1]:1", "[::1", "127.0.0.1:x", "a b"]),
    "Origin": st.sampled_from(
        ["null", "http://localhost:1", "http://evil.example", "file://", "http://", "http://[::1"]
    ),
    "Content-Type": st.sampled_from(["application/json", "application/json; charset=x", "text/plain", "", ";", "*/*"]),
    "Accept": st.sampled_from([BOTH, "*/*", "application/json", "text/event-stream, application/json", "", ",;q=0"]),
    "MCP-Protocol-Version": st.sampled_from([NEWEST, *HANDSHAKE, "1999-01-01", "", " " + NEWEST, "2.0"]),
    "Mcp-Method": methods | encoded,
    "Mcp-Name": tool_names.filter(str.isascii) | encoded,
    "Mcp-Param-Text": encoded,
    "Mcp-Session-Id": st.sampled_from(["", "x", "é", "a" * 300]),
    "Last-Event-ID": st.sampled_from(["1-1", "x", "0-0", "-", "1-99999999999999999999", "é"]),
    "Authorization": st.sampled_from(["Bearer x", "Basic eA==", "Bearer", ""]),
    "Content-Length": st.sampled_from(["0", "5", "99999999999999999999", "-1", "x", "5000000"]),
}
heads = st.fixed_dictionaries(
    {},
    optional={
        name: (given_values | plain).filter(lambda value: "\r" not in value and "\n" not in value)
        for name, given_values in VALUES.items()
    },
)
usual = st.fixed_dictionaries(
    {"Content-Type": st.just("application/json"), "Accept": st.just(BOTH)},
    optional={name: VALUES[name] for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Text")},
)
bodies = st.one_of(messages.map(encode), batches.map(encode), mutated(messages.map(encode)), st.binary(max_size=30))


@st.composite
def agreeing(draw: Any) -> tuple[dict[str, str], bytes]:
    """A request of the newest revision whose head mostly says what its body says."""
    name = draw(tool_names)
    method = draw(st.sampled_from(["tools/call", "tools/call", "tools/list", "server/discover", "prompts/get"]))
    message = {
        "jsonrpc": "2.0", "id": draw(st.integers(0, 3)), "method": method,
        "params": {"name": name, "arguments": {"text": "x", "a": 1}, "_meta": META},
    }  # fmt: skip
    head = {"Content-Type": "application/json", "Accept": BOTH, "MCP-Protocol-Version": NEWEST, "Mcp-Method": method}
    head["Mcp-Name"] = encode_value(name)
    head |= draw(st.dictionaries(st.sampled_from(list(head)), plain | encoded, max_size=1))
    return head, encode(message)


def check_response(status: int, headers: dict[str, str], body: bytes, messages_sent: list[Any]) -> None:
    """Hold one answer of the application against the specification."""
    assert status in {200, 202, 204} | REFUSED, status
    if status in (202, 204):
        assert body == b""
        return
    if status != 200:
        assert headers["content-type"] == "application/json"
    for message in messages_sent:
        for each in message if isinstance(message, list) else [message]:
            if "error" not in each:
                continue
            judge_message(each, revision="2025-11-25")
            code = each["error"]["code"]
            assert "reference" not in each["error"]["message"], each
            assert code in STATUS_OF, each
            if status != 200 and STATUS_OF[code] is not None:
                assert status in STATUS_OF[code], each
    if status != 200:
        assert list(messages_sent[0]) in (["jsonrpc", "error"], ["jsonrpc", "id", "error"])


async def ask_app(method: str, head: dict[str, str], pieces: list[bytes], path: str) -> None:
    async with HttpPeer(SERVER, limits=LIMITS) as http:
        response = http.ask(method, pieces, head, path=path)
        for _ in range(30):
            await asyncio.sleep(0)
        if not response.is_complete:
            with contextlib.suppress(AssertionError, TimeoutError):
                async with asyncio.timeout(0.02):
                    await response.until(lambda: response.is_complete)
        if not response.is_complete:  # it waits: for a tool that waits, or for changes
            response.disconnect()
            async with asyncio.timeout(20):
                await response.task
            return
        sent = response.messages if response.headers.get("content-type") == "text/event-stream" else []
        if response.headers.get("content-type") == "application/json":
            sent = [response.json]
        check_response(response.status, response.headers, response.body, sent)
        assert await http.call("echo", {"text": "still here"}) is not None


SERVER = make_server()


@fuzzed(250)
@given(
    st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "PUT", "HEAD"]),
    usual | heads,
    bodies,
    st.lists(st.integers(0, 1000), max_size=3),
    st.sampled_from(["/mcp", "/mcp/", "/", "/mcpx", "/.well-known/oauth-protected-resource/mcp", "/é"]),
)
def test_whatever_is_asked_of_the_application_has_an_answer_and_the_next_call_works(method, head, body, places, path):
    """Each status is one the specification has for what is wrong; nothing is a fault of the server's own."""
    with no_faults():
        asyncio.run(ask_app(method, head, cut(body, places), path))


@fuzzed(150)
@given(agreeing())
def test_heads_that_disagree_with_their_body_are_refused_in_order(asked):
    """2026-07-28, "Server Validation": 400 and -32020 for what does not agree, in whatever way."""
    head, body = asked
    with no_faults():
        asyncio.run(ask_app("POST", head, [body], "/mcp"))


acts = st.one_of(
    st.tuples(st.just("POST"), bodies, st.just({})),
    st.tuples(st.just("POST"), messages.map(encode), st.fixed_dictionaries({}, optional={"Mcp-Session-Id": plain})),
    st.tuples(
        st.just("GET"), st.just(b""), st.fixed_dictionaries({}, optional={"Last-Event-ID": VALUES["Last-Event-ID"]})
    ),
    st.tuples(st.just("DELETE"), st.just(b""), st.just({})),
)


async def act_in_session(revision: str, given_acts: list[tuple[str, bytes, dict[str, str]]]) -> None:
    async with HttpPeer(SERVER, limits=LIMITS) as http, HttpSession(http, revision) as session:
        for method, body, head in given_acts:
            types = {"Content-Type": "application/json", "Accept": BOTH if method == "POST" else "text/event-stream"}
            response = http.ask(method, body, types | session.headers | head)
            for _ in range(30):
                await asyncio.sleep(0)
            if not response.is_complete:  # a stream that goes on: its client goes
                response.disconnect()
                async with asyncio.timeout(20):
                    await response.task
                continue
            sent = [response.json] if response.headers.get("content-type") == "application/json" else []
            check_response(response.status, response.headers, response.body, sent)
        async with HttpSession(http, revision) as another:
            served = await another.call("echo", {"text": "still here"}).whole()
            assert (served.status, served.json["result"]["content"][0]["text"]) == (200, "still here")


@fuzzed(150)
@given(st.sampled_from(HANDSHAKE), st.lists(acts, max_size=6))
def test_whatever_is_said_in_a_session_another_one_is_served(revision, given_acts):
    """2025-11-25, "Session Management": messages, streams and ends in any order, resumption from anywhere."""
    with no_faults():
        asyncio.run(act_in_session(revision, given_acts))


@fuzzed(300)
@given(plain | encoded)
def test_header_values_are_read_or_refused(value):
    """RFC 9110 field values: nothing but `HeaderMismatch` ever comes of decoding one, and text survives both ways."""
    try:
        text = decode_value(value.encode("latin-1"), header="Mcp-Name")
    except HeaderMismatch:
        return
    assert decode_value(encode_value(text).encode("latin-1"), header="Mcp-Name") == text


# Over real sockets.


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server whose deadlines are short enough that a test never waits for them."""
    limits = HttpLimits(head_seconds=5, linger_seconds=0.2)
    app = make_server().streamable_http_app(limits=LIMITS)
    with running(app, new_loop=asyncio.new_event_loop, limits=limits) as server:
        yield server


def frame(body: bytes, *, is_chunked: bool, head: dict[str, str], sizes: list[int]) -> bytes:
    fields = {"Host": "127.0.0.1"} | head
    fields.pop("Content-Length", None)
    if is_chunked:
        pieces = [piece for piece in cut(body, sizes) if piece]
        fields["Transfer-Encoding"] = "chunked"
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        fields["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return b"POST /mcp HTTP/1.1\r\n" + lines.encode("latin-1", "replace") + b"\r\n" + body


framed = st.one_of(
    st.builds(
        lambda asked, is_chunked, sizes: frame(asked[1], is_chunked=is_chunked, head=asked[0], sizes=sizes),
        agreeing().filter(lambda asked: b'"stop"' not in asked[1]),
        st.booleans(),
        st.lists(st.integers(0, 1000), max_size=3),
    ),
    st.builds(
        lambda head, body, is_chunked, sizes: frame(body, is_chunked=is_chunked, head=head, sizes=sizes),
        usual,
        bodies,
        st.booleans(),
        st.lists(st.integers(0, 1000), max_size=3),
    ),
)
HONEST = frame(
    encode({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}),
    is_chunked=False,
    head={
        "Content-Type": "application/json",
        "Accept": BOTH,
        "MCP-Protocol-Version": NEWEST,
        "Mcp-Method": "tools/list",
    },
    sizes=[],
)


def read_all(data: bytes) -> list[int]:
    """Read what a server wrote as HTTP/1.1 answers one after the other; gives their statuses."""
    statuses = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, head
        status_line, *fields = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z -]+", status_line)
        assert match is not None, status_line
        status = int(match[1])
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while True:
                size, end, data = data.partition(b"\r\n")
                if not end or (rest := int(size, 16)) + 2 > len(data):
                    return [*statuses, status]  # its end was cut off with the connection
                if rest == 0:
                    data = data[2:]
                    break
                body, data = body + data[:rest], data[rest + 2 :]
        elif status not in (100, 204):
            length = int(headers["content-length"])
            body, data = data[:length], data[length:]
            assert len(body) == length
        if headers.get("content-type") == "application/json":
            json.loads(body)
        assert status in {100, 200, 202, 204} | REFUSED, (status, body)
        statuses.append(status)
    return statuses


def exchange(port: int, pieces: list[bytes]) -> bytes:
    """Give all that a server writes until it closes, having been sent these pieces and told that no more come."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):  # it may have answered and closed before it had everything
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        received = []
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(65536):
                received.append(data)
    return b"".join(received)


@fuzzed(150)
@given(
    st.lists(framed | mutated(framed) | st.binary(max_size=60), min_size=1, max_size=3),
    st.lists(st.integers(0, 5000), max_size=4),
)
@example([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], [])
@example([b"\r\n" * 1000], [])
@example([HONEST, HONEST, b"GET"], [7])
@example([HONEST[:-1] + b"X" + HONEST], [])
def test_whatever_bytes_come_the_answers_are_http_and_the_next_connection_is_served(server, requests, places):
    """RFC 9112: what is no request is refused and its connection closed, in order; nothing hangs."""
    with no_faults():
        statuses = read_all(exchange(server.port, cut(b"".join(requests), places)))
        assert len(statuses) <= sum(each.count(b"HTTP/1") for each in requests) + 1
        assert read_all(exchange(server.port, [HONEST]))[0] == 200
