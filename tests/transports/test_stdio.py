"""Standard streams carry messages only: framing as values, then a real process over real pipes."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import judge_message
from twofold.transports.stdio import LineBuffer, LineWriter, Streams, serve_lines

REVISION = "2025-06-18"


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line and line.strip())), st.integers(1, 7))
def test_lines_come_out_whole_however_they_arrive(lines, size):
    """A stream has no message borders but the line ends."""
    data = b"".join(line + b"\n" for line in lines)
    buffer = LineBuffer()
    found = [line for start in range(0, len(data), size) for line in buffer.feed(data[start : start + size])]
    assert found == lines
    assert buffer.finish() is None


def test_a_last_line_without_an_end_is_not_lost():
    buffer = LineBuffer()
    assert list(buffer.feed(b"one\ntwo")) == [b"one"]
    assert buffer.finish() == b"two"


@pytest.mark.parametrize(
    "pieces", [[b"12345\nok\n"], [b"123", b"45", b"67\nok\n"], [b"12345", b"\nok\n"], [b"1234567890", b"123456\nok\n"]]
)
def test_a_line_that_is_too_long_is_told_once_and_the_next_one_read(pieces):
    buffer = LineBuffer(max_bytes=4)
    assert [line for piece in pieces for line in buffer.feed(piece)] == [None, b"ok"]


def test_empty_lines_are_nothing():
    assert list(LineBuffer().feed(b"\n \r\n\t\nx\n")) == [b"x"]


class Listener:
    """Takes lines, and answers each with itself; full when the test says so."""

    def __init__(self, writer):
        self.on_change = None
        self.is_full = False
        self.on_line = lambda: None
        self.lines = []
        self._writer = writer

    def receive(self, line):
        self.lines.append(line)
        self.on_line()
        self._writer.write(line)

    def refuse_line(self, error):
        raise AssertionError(error)

    def release(self):
        pass

    async def close(self, *, grace_seconds):
        pass


@contextlib.asynccontextmanager
async def listening():
    """Serve lines within this process; gives what sends to it, what hears it, a packet for each write, and what listens."""
    read_fd, write_fd = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listeners, stop = [], asyncio.Event()

    def connect(writer):
        listeners.append(Listener(writer))
        return listeners[0]

    with ours, theirs, os.fdopen(read_fd, "rb") as reading, os.fdopen(write_fd, "wb", 0) as peer:
        ours.setblocking(False)
        streams = Streams(reading.fileno(), theirs.fileno())
        serving = asyncio.create_task(serve_lines(streams, connect, stop=stop))
        while not listeners:
            await asyncio.sleep(0)
        yield peer, ours, listeners[0]
        stop.set()
        await serving


async def test_reading_stops_while_no_more_can_be_taken():
    """What a peer sends ahead stays with the system; it is read when there is room again, and nothing is lost."""
    loop = asyncio.get_running_loop()
    async with listening() as (peer, hearing, listener):
        listener.is_full = True
        peer.write(b"one\n")
        assert await loop.sock_recv(hearing, 100) == b"one\n"
        peer.write(b"two\n")
        for _ in range(20):
            await asyncio.sleep(0)
        assert listener.lines == [b"one"]
        listener.is_full = False
        listener.on_change()
        assert await loop.sock_recv(hearing, 100) == b"two\n"
        assert listener.lines == [b"one", b"two"]


async def test_answers_to_what_was_read_at_once_are_one_write_before_anything_else_runs():
    """Each write is a call of the system; what a line has begun may take its time, and no answer waits for it."""
    loop = asyncio.get_running_loop()
    seen = []
    async with listening() as (peer, hearing, listener):

        def look():
            try:
                seen.append(hearing.recv(100))
            except BlockingIOError:
                seen.append(b"(nothing)")

        listener.on_line = lambda: loop.call_soon(look)
        peer.write(b"one\ntwo\nthree\n")
        while len(listener.lines) < 3:
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
    assert seen == [b"one\ntwo\nthree\n", b"(nothing)", b"(nothing)"]


async def test_what_is_said_in_one_turn_is_one_write_on_the_next():
    """Outside a read too: messages of several calls go out together, in their order."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        writer = LineWriter()
        await writer.open(os.dup(theirs.fileno()))
        for message in (b"one", b"two"):
            writer.write(message)
        with pytest.raises(BlockingIOError):
            ours.recv(100)
        assert await asyncio.get_running_loop().sock_recv(ours, 100) == b"one\ntwo\n"
        await writer.close(grace_seconds=1)


SERVER = """
import asyncio, os, subprocess, sys, time
print("said before serving")
from twofold import MCPServer
mcp = MCPServer("s")

@mcp.tool()
def chatty() -> str:
    print("a print")
    os.write(1, b"a native banner\\n")
    subprocess.run([sys.executable, "-c", "import sys; sys.stdin.read(); print('a child')"], timeout=20)
    return "done"

@mcp.tool()
def read_stdin() -> str:
    return repr(sys.stdin.read())

@mcp.tool()
def huge() -> str:
    return "x" * 3_000_000

@mcp.tool()
def leave() -> str:
    sys.exit(3)

@mcp.tool()
def hang() -> str:
    time.sleep(600)
    return ""

@mcp.tool()
async def quick() -> str:
    return "now"

@mcp.tool()
async def stubborn() -> str:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@mcp.tool()
async def wait() -> str:
    await asyncio.sleep(600)
    return ""

@mcp.tool(timeout_seconds=600)
async def cleans_up() -> str:
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0.05)
        sys.stderr.write("cleaned up\\n")
    return ""

@mcp.tool()
async def thread() -> str:
    await asyncio.to_thread(time.sleep, 600)
    return ""

@mcp.tool()
async def blocks_the_loop() -> str:
    sys.stderr.write("blocking\\n")
    time.sleep(600)
    return ""

@mcp.tool()
async def leaves_tasks() -> str:
    async def fail():
        raise RuntimeError("x" * 5000)
    asyncio.create_task(fail())
    return "left"

@mcp.tool()
def crash(size: int) -> str:
    raise ValueError("x" * size)

@mcp.tool()
def close_stdout() -> str:
    sys.stdout.close()
    return "closed"

mcp.run()
"""


# With PYTHONUNBUFFERED a print before `run()` is out before anyone could divert it.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}


class Process:
    """A server as a real child process."""

    def __init__(self, *, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        self.stderr: list[bytes] = []
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()

    def _read_stderr(self) -> None:
        self.stderr.extend(self.popen.stderr)

    def send(self, method: str, params: dict | None = None, *, id: object = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if id is not None:
            message["id"] = id
        self.popen.stdin.write(json.dumps(message).encode() + b"\n")
        self.popen.stdin.flush()

    def receive(self, method: str | None = None) -> dict:
        message = json.loads(self.popen.stdout.readline())
        judge_message(message, revision=REVISION, method=method)
        return message

    def start(self) -> "Process":
        self.send(
            "initialize",
            {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
            id=0,
        )
        self.receive("initialize")
        self.send("notifications/initialized")
        return self

    def call(self, name: str, id: object = 1) -> str:
        self.send("tools/call", {"name": name}, id=id)
        return self.receive("tools/call")["result"]["content"][0]["text"]

    def end(self) -> int:
        self.popen.stdin.close()
        code = self.popen.wait(20)
        self._drain.join(20)
        self.popen.stdout.close()
        self.popen.stderr.close()
        return code


@pytest.fixture
def process():
    running = Process().start()
    try:
        yield running
    finally:
        if running.popen.poll() is None:
            running.popen.kill()
        with contextlib.suppress(BrokenPipeError):
            running.end()


def test_prints_banners_and_children_stay_off_the_messages(process):
    """A24, T01, T07: stdout carries messages only; the rest goes to stderr."""
    assert process.call("chatty") == "done"
    assert process.call("quick") == "now"
    assert process.end() == 0
    told = b"".join(process.stderr)
    assert all(each in told for each in (b"said before serving", b"a print", b"a native banner", b"a child"))


def test_a_tool_that_reads_stdin_finds_it_empty(process):
    assert process.call("read_stdin") == "''"


def test_large_results_arrive_while_others_wait(process):
    """T04: a result far larger than the pipe's buffer."""
    for number in range(3):
        process.send("tools/call", {"name": "huge"}, id=f"huge {number}")
    process.send("tools/call", {"name": "quick"}, id="quick")
    answers = {message["id"]: message for message in (process.receive("tools/call") for _ in range(4))}
    assert set(answers) == {"huge 0", "huge 1", "huge 2", "quick"}
    assert all(len(answers[f"huge {number}"]["result"]["content"][0]["text"]) == 3_000_000 for number in range(3))


def test_broken_bytes_do_not_end_the_server(process):
    """T02."""
    for line in (b"\xff\xfe\n", b"this is not json\n", b"\n", b"[" * 100_000 + b"\n"):
        process.popen.stdin.write(line)
    process.popen.stdin.flush()
    assert [process.receive()["error"]["code"] for _ in range(3)] == [-32700, -32700, -32600]
    assert process.call("quick") == "now"


def test_a_tool_that_exits_ends_its_call_and_not_the_server(process):
    """Never a dead server."""
    assert process.call("leave").startswith("Error executing tool leave (reference ")
    assert process.call("quick") == "now"


def test_the_server_ends_when_its_client_closes_the_stream_even_with_a_hanging_tool(process):
    """stdio, shutdown: exit promptly when standard input is closed."""
    process.send("tools/call", {"name": "hang"}, id=1)
    assert process.call("quick", id=2) == "now"
    assert process.end() == 0


def test_requests_sent_before_the_stream_closed_are_answered(process):
    process.send("tools/call", {"name": "quick"}, id=1)
    process.popen.stdin.close()
    assert process.receive("tools/call")["result"]["content"][0]["text"] == "now"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_quietly(process, number):
    process.popen.send_signal(number)
    assert process.popen.wait(20) == 0
    process.end()
    assert not any(b"Traceback" in line for line in process.stderr)


def test_a_client_that_vanishes_ends_the_server():
    process = Process().start()
    process.popen.stdout.close()
    process.send("tools/call", {"name": "huge"}, id=1)
    assert process.popen.wait(20) == 0
    process.popen.stdin.close()
    process._drain.join(20)
    process.popen.stderr.close()


def test_files_serve_as_streams_too(tmp_path):
    """A shell redirects: `server < requests > answers`."""
    requests = [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
        },
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "quick"}},
    ]
    asked, answered = tmp_path / "requests", tmp_path / "answers"
    asked.write_text("\n".join(json.dumps(request) for request in requests))
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-c", SERVER],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env=ENVIRONMENT,
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in answered.read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answered.stat().st_size == sum(len(line) + 1 for line in answered.read_bytes().split(b"\n")) - 1


def test_a_reader_that_comes_late_loses_nothing(process):
    """More answers than the pipe holds, and more requests than run at once, before the first answer is taken."""
    count = 3000
    for number in range(count):
        process.send("tools/call", {"name": "quick"}, id=number)
    assert sorted(process.receive("tools/call")["id"] for _ in range(count)) == list(range(count))


@pytest.mark.parametrize("fd", [0, 1])
def test_a_closed_stream_is_told_in_words(fd):
    program = f"import os; os.close({fd})\n" + SERVER.replace("mcp.run()", "").replace(
        'print("said before serving")', ""
    )
    program += "from twofold import TransportError\ntry:\n    mcp.run()\nexcept TransportError as error:\n    sys.stderr.write(str(error))\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "standard input or output is closed; a server over stdio needs both open"


def test_a_tool_that_heeds_no_cancellation_does_not_keep_the_process(process):
    process.send("tools/call", {"name": "stubborn"}, id=1)
    assert process.call("quick", id=2) == "now"
    assert process.end() == 0


def test_a_server_full_of_hanging_calls_hears_cancellations_and_the_end(process):
    """The bound on running calls must not make the server deaf."""
    for number in range(300):
        process.send("tools/call", {"name": "wait"}, id=number)
    for number in range(100):
        process.send("notifications/cancelled", {"requestId": number})
    assert process.call("quick", id="after") == "now"
    assert process.end() == 0


def test_answers_nobody_takes_do_not_keep_the_process(process):
    for number in range(5):
        process.send("tools/call", {"name": "huge"}, id=number)
    process.popen.stdin.close()
    assert process.popen.wait(20) == 0


def test_a_call_with_a_deadline_cleans_up_when_the_client_has_gone(process):
    process.send("tools/call", {"name": "cleans_up"}, id=1)
    assert process.call("quick", id=2) == "now"
    assert process.end() == 0
    assert b"cleaned up\n" in process.stderr


def test_a_thread_that_does_not_end_does_not_keep_the_process(process):
    process.send("tools/call", {"name": "thread"}, id=1)
    assert process.call("quick", id=2) == "now"
    assert process.end() == 0


def test_a_second_signal_ends_a_server_whose_loop_is_blocked(process):
    process.send("tools/call", {"name": "blocks_the_loop"}, id=1)
    while b"blocking\n" not in process.stderr:
        threading.Event().wait(0.01)
    process.popen.send_signal(signal.SIGTERM)
    while process.popen.poll() is None:  # the first is taken note of between two steps of the interpreter
        process.popen.send_signal(signal.SIGTERM)
        threading.Event().wait(0.05)
    assert process.popen.returncode == -signal.SIGTERM


def test_a_stderr_nobody_reads_stops_neither_calls_nor_the_end():
    """stdio: the client may ignore the server's stderr."""
    code = SERVER.replace('print("said before serving")', "")
    popen = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    with popen:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        for number in range(100):
            crash = {"name": "crash", "arguments": {"size": 5000}, "_meta": meta}
            params = crash if number % 2 else {"name": "leaves_tasks", "_meta": meta}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            popen.stdin.write(json.dumps(message).encode() + b"\n")
        popen.stdin.flush()
        answers = [json.loads(popen.stdout.readline()) for _ in range(100)]
        assert sorted(answer["id"] for answer in answers) == list(range(100))
        popen.stdin.close()
        assert popen.wait(20) == 0


def test_a_tool_that_closes_stdout_ends_nothing(process):
    assert process.call("close_stdout") == "closed"
    assert process.call("quick", id=2) == "now"
    assert process.end() == 0
    assert not any(b"Traceback" in line for line in process.stderr)


SLOW_START = """
import asyncio, contextlib, sys
from twofold import MCPServer

@contextlib.asynccontextmanager
async def lifespan(server):
    sys.stderr.write("starting\\n")
    await asyncio.sleep(600)
    yield

MCPServer("s", lifespan=lifespan).run()
"""


@pytest.mark.parametrize("how", ["the client goes", "a signal"])
def test_a_server_that_is_still_starting_can_be_ended(how):
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as popen:
        assert popen.stderr.readline() == b"starting\n"
        if how == "a signal":
            popen.send_signal(signal.SIGTERM)
        else:
            popen.stdin.close()
        assert popen.wait(20) == 0


def test_one_socket_for_everything_serves_and_stays_as_it_was():
    """As a super-server starts it: standard input, output and error are one socket."""
    ours, theirs = socket.socketpair()
    code = SERVER.replace('print("said before serving")', "").replace(
        "mcp.run()", "mcp.run(); print(os.get_blocking(0))"
    )
    with (
        ours,
        subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT),
    ):
        theirs.close()
        file = ours.makefile("rwb")
        for number in range(200):
            file.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode() + b"\n")
        file.flush()
        assert [json.loads(file.readline())["id"] for _ in range(200)] == list(range(200))
        ours.shutdown(socket.SHUT_WR)
        assert file.read() == b"True\n"
        file.close()


async def test_run_inside_a_running_loop_is_explained():
    from twofold import MCPServer

    with pytest.raises(RuntimeError, match="call it outside async code"):
        MCPServer("s").run()


def test_a_lifespan_that_does_not_close_does_not_keep_the_process():
    code = SLOW_START.replace("await asyncio.sleep(600)\n    yield", "yield\n    await asyncio.sleep(600)")
    assert "yield\n    await" in code
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
