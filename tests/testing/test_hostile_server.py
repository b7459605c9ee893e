"""The hostile server is honest where its script is silent, and misbehaves where it says so: `docs/testing.md`."""

import asyncio
import gzip
import json
import re
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import judge_message
from twofold.testing.hostile import MISBEHAVIOURS, HostileServer, hostile_command
from twofold.testing.hostile.steps import Asked, Pour, Say

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
NEWEST, EARLIER = "2026-07-28", "2025-11-25"


def request(method: str, *, id: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def serve_lines(*lines: bytes, script: tuple[str, ...] = ()) -> list[bytes]:
    """Give what a server writes for these lines until its stdin ends."""
    given = b"".join(line + b"\n" for line in lines)
    done = subprocess.run(hostile_command(*script), input=given, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.splitlines()


async def post(server: HostileServer, message: bytes, *, method: str = "POST") -> bytes:
    """Give all that a server sends for one HTTP request, until it closes."""
    port = int(server.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: {len(message)}\r\n\r\n"
    writer.write(head.encode() + message)
    writer.write_eof()
    try:
        async with asyncio.timeout(30):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def honest_requests() -> list[tuple[str, str, bytes]]:
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in [("protocolVersion", NEWEST)]}
    listed = {"name": "echo", "arguments": {"a": 1}}
    return [
        (NEWEST, "server/discover", request("server/discover", _meta=meta)),
        (NEWEST, "tools/list", request("tools/list", _meta=meta)),
        (NEWEST, "tools/call", request("tools/call", **listed, _meta=meta)),
        (EARLIER, "initialize", request("initialize", protocolVersion=EARLIER)),
        (EARLIER, "tools/list", request("tools/list")),
        (EARLIER, "tools/call", request("tools/call", **listed)),
        (EARLIER, "ping", request("ping")),
    ]


def test_an_honest_answer_over_stdio_is_valid_in_its_revision():
    """What the script does not name is answered as the specification says."""
    asked = honest_requests()
    answers = serve_lines(*(line for _, _, line in asked))
    assert len(answers) == len(asked)
    for (revision, method, _), answer in zip(asked, answers, strict=True):
        judge_message(json.loads(answer), revision=revision, method=method)


async def test_an_honest_answer_over_http_is_valid_in_its_revision():
    async with HostileServer() as server:
        for revision, method, body in honest_requests():
            head, _, answer = (await post(server, body)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            judge_message(json.loads(answer), revision=revision, method=method)
        assert [each.path for each in server.requests] == ["/mcp"] * len(honest_requests())


def test_what_is_not_served_is_refused_and_notifications_are_not_answered():
    notice = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
    heard = request("tools/call", id="h", name="heard")
    refused, answer = serve_lines(notice, request("resources/list"), b"no json", heard)
    assert json.loads(refused)["error"]["code"] == -32601
    assert json.loads(answer)["result"]["structuredContent"] == {
        "methods": ["notifications/cancelled", "resources/list", "answer", "tools/call"],
        "cancelled": [7],
    }


def test_a_misbehaviour_is_a_tool_unless_it_is_put_elsewhere():
    (listing,) = serve_lines(request("tools/list"), script=("nan", "silence@ping", "outside_reference"))
    tools = {tool["name"]: tool for tool in json.loads(listing)["result"]["tools"]}
    assert list(tools) == ["echo", "heard", "nan", "outside_reference"]
    assert tools["outside_reference"]["outputSchema"] == {"$ref": "http://127.0.0.1:9/schema.json"}


def test_a_misbehaviour_answers_its_own_tool_alone():
    bad = request("tools/call", name="nan")
    good = request("tools/call", id=2, name="echo", arguments={"a": 1})
    first, second = serve_lines(bad, good, script=("nan",))
    assert b'"value":NaN' in first
    assert json.loads(second)["result"]["structuredContent"] == {"a": 1}


def test_once_is_once():
    first, second = serve_lines(request("ping"), request("ping", id=2), script=("wrong_version@ping:once",))
    assert (json.loads(first)["jsonrpc"], json.loads(second)["jsonrpc"]) == ("1.0", "2.0")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("no_such", "'no_such' is no misbehaviour; expected one of nan, "),
        ("", "'' is no misbehaviour"),
        ("nan@", "'nan@' names no method; write it as nan@tools/list"),
        ("gzip_bomb", "'gzip_bomb' is for http alone; leave it out over stdio"),
    ],
)
def test_a_script_that_says_nothing_is_refused(entry, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        hostile_command(entry)
    done = subprocess.run(
        [sys.executable, "-m", "twofold.testing.hostile", entry],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, told in done.stderr) == (2, "", True)


def test_what_is_for_stdio_is_refused_over_http():
    with pytest.raises(ValueError, match="'outlives' is for stdio alone"):
        HostileServer("outlives")


def test_the_help_names_every_misbehaviour():
    done = subprocess.run(
        [sys.executable, "-m", "twofold.testing.hostile", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert re.findall(r"^  (\w+)@", done.stdout, re.MULTILINE) == list(MISBEHAVIOURS)


def test_the_page_names_every_misbehaviour_and_what_it_is():
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(each.name, each.what.partition("\n")[0]) for each in MISBEHAVIOURS.values()]


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_every_misbehaviour_says_what_it_is_and_has_steps(name):
    """A sentence for people; something happens; what has no end is made as it is needed."""
    each = MISBEHAVIOURS[name]
    assert re.match(r"[A-Z0-9`].*\.\Z", each.what, re.DOTALL)
    asked = Asked(1, each.method, {"structuredContent": {"value": 1}, "content": [], "tools": []})
    steps = list(islice(each.play(asked), 100))
    assert steps
    if name.startswith("endless") and name not in ("endless_cursor", "endless_cursors", "endless_resumption"):
        assert len(steps) == 100


def test_what_pretends_to_be_an_answer_is_one_but_for_what_is_wrong_with_it():
    asked = Asked(7, "tools/call", {"content": [], "structuredContent": 1})
    (step,) = MISBEHAVIOURS["nan"].play(asked)
    assert isinstance(step, Say)
    assert step.message == b'{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"value":NaN},"content":[]}}'
    (bomb,) = MISBEHAVIOURS["gzip_bomb"].play(asked)
    assert isinstance(bomb, Pour)
    head, _, body = bomb.data.partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head
    assert (len(body) < 1_000_000, len(gzip.decompress(body)) > 200_000_000) == (True, True)


@pytest.mark.parametrize(("name", "output"), [("closed", b""), ("truncated", rb'\{"jsonrpc":"2.0"[^\n]*')])
def test_a_process_that_closes_ends_at_once(name, output):
    with subprocess.Popen(hostile_command(f"{name}@ping"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(request("ping") + b"\n")
        process.stdin.flush()
        said = process.stdout.read()
        assert (process.wait(60), re.fullmatch(output, said) is not None) == (3, True)


def test_a_process_that_half_closes_goes_on():
    with subprocess.Popen(
        hostile_command("half_closed@ping"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(request("ping") + b"\n")
        process.stdin.flush()
        assert process.stdout.read() == b""
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_process_that_outlives_is_ended_by_sigkill_alone():
    with subprocess.Popen(hostile_command("outlives"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(request("ping") + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"] == {}
        process.stdin.close()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL


async def test_over_http_a_lone_message_is_json_several_are_events_and_bytes_are_chunks():
    async with HostileServer("nan", "two_answers", "truncated") as server:
        lone, several, cut = [
            await post(server, request("tools/call", name=name)) for name in ("nan", "two_answers", "truncated")
        ]
        assert server.heard == ["tools/call"] * 3
    assert b"content-type: application/json\r\ncontent-length: " in lone
    assert (several.count(b"data: {"), several.endswith(b"0\r\n\r\n")) == (2, True)
    assert (b"transfer-encoding: chunked" in cut, cut.endswith(b"0\r\n\r\n")) == (True, False)


async def test_a_session_has_a_stream_where_that_is_to_be_answered():
    async with HostileServer() as plain, HostileServer("truncated@GET") as server:
        assert b" 405 " in await post(plain, b"", method="GET")
        assert b"mcp-session-id: hostile" in await post(server, request("initialize"))
        assert b" 405 " not in await post(server, b"", method="GET")
        assert b" 202 " in await post(server, b"", method="DELETE")


async def test_other_paths_are_noted_and_a_broken_request_ends_its_connection():
    before = asyncio.all_tasks()
    async with HostileServer() as server:
        for line in (
            b"GET /schema.json HTTP/1.1\r\n\r\n",
            b"nonsense\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.origin.rpartition(":")[2]))
            writer.write(line)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 20)
            writer.close()
            await writer.wait_closed()
        assert [(each.method, each.path) for each in server.requests] == [("GET", "/schema.json")]
    assert asyncio.all_tasks() == before


def test_a_server_that_does_not_listen_has_no_address():
    with pytest.raises(RuntimeError, match="async with HostileServer"):
        HostileServer().url  # noqa: B018 - to read it is the fault


def test_no_http_library_is_loaded():
    code = "import sys, twofold.testing.hostile; print([m for m in ('httpx2', 'uvicorn', 'starlette', 'http.client') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
