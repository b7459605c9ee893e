"""What the benchmark measures with: the kernel's account of a process, aims, options, and peers that fail."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest
from aims import Aim, Judged, judge
from figures import Figures, add_turn
from listing import check_tools
from over_http import read_message
from peers import check_value, request_bytes
from processes import Meter, percentiles, read_cpu, read_peak_mb, started

from tests.benchmarks.reference import BENCHMARKS

BUSY = """
import os, sys, threading, time
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: pass
held = bytearray(64 << 20)
sys.stdin.readline()
thread = threading.Thread(target=burn, args=(0.2,)); thread.start()
child = os.fork()
if not child:
    burn(0.2); sys.stdout.write("."); sys.stdout.flush(); sys.stdin.read(); os._exit(0)
burn(0.2); thread_done = threading.Event()
print("done", flush=True); sys.stdin.read()
"""


def test_cpu_of_a_process_is_that_of_its_threads_and_children(tmp_path):
    """Two threads here and one process of its own burn 0.2 seconds each; the first thread ends and is not counted."""
    with started([sys.executable, "-c", BUSY], log=tmp_path / "log", pipes=True) as process:
        meter = Meter(process.pid)
        process.stdin.write(b"go\n")
        said = b""
        while said.count(b".") + said.count(b"done") < 2:
            said += os.read(process.stdout.fileno(), 100)
        measured = meter.read(10)
        peak = read_peak_mb(process.pid)
        threads = read_cpu(process.pid)
    assert measured["cpu_us"] >= 40_000 * 0.95
    assert set(measured) == {"cpu_us", "per_second", "foreign_cores"}
    assert peak > 64
    assert process.pid in threads
    assert len(threads) >= 2


def test_a_server_runs_on_one_core_and_is_ended(tmp_path):
    """One that heeds neither stdin nor SIGTERM would be killed; this one ends when stdin does."""
    with started([sys.executable, "-c", "input()"], log=tmp_path / "log", pipes=True) as process:
        assert os.sched_getaffinity(process.pid) == {max(os.sched_getaffinity(0))}
    assert process.returncode is not None
    with suppress(ProcessLookupError):
        os.kill(process.pid, 0)
        pytest.fail("the process is still there")


def test_latencies_give_the_middle_and_the_slowest_hundredth():
    assert percentiles([each / 1e6 for each in range(200)]) == pytest.approx({"p50_us": 100, "p99_us": 198})
    assert percentiles([0.5]) == {"p50_us": 500_000, "p99_us": 500_000}


@pytest.mark.parametrize(
    ("aim", "measured", "is_reached"),
    [
        (Aim("in_process", "integer", "mcp", 25), 25.0, True),
        (Aim("in_process", "integer", "mcp", 25), 24.9, False),
        (Aim("http_32", "integer", "floor", 1.8, at_most=True), 1.8, True),
        (Aim("http_32", "integer", "floor", 1.8, at_most=True), 1.9, False),
    ],
)
def test_an_aim_is_reached_at_its_number(aim, measured, is_reached):
    assert Judged(aim, measured, measured, measured).is_reached is is_reached


def test_an_aim_against_a_peer_compares_the_turns_of_each_round():
    """The medians of 1, 2, 40 and of 30, 20, 400 would give another ratio than the rounds do."""
    figures = Figures()
    for ours, theirs in ((1.0, 30.0), (2.0, 20.0), (40.0, 400.0)):
        for peer, number in (("twofold", ours), ("mcp", theirs), ("typescript", theirs)):
            add_turn(figures, layer="cold_start", payload="one_tool", peer=peer, measured={"ms": number})
    judged = {each.aim.against: each for each in judge(figures)}
    assert (judged["mcp"].measured, judged["mcp"].lowest, judged["mcp"].highest) == (10.0, 10.0, 30.0)
    assert set(judged) == {"mcp", "typescript"}


@pytest.mark.parametrize(
    "result",
    [
        '{"structuredContent":{"result":41}}',
        '{"structuredContent":{"result":42},"isError":true}',
        "{}",
    ],
)
def test_a_peer_that_answers_differently_ends_the_run(result):
    """Figures of different work cannot be compared."""
    message = f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'.encode()
    with pytest.raises(SystemExit, match="integer: mcp gives a wrong answer"):
        check_value("integer", "mcp", message)


def test_a_right_answer_is_taken():
    check_value("integer", "mcp", b'{"result":{"structuredContent":{"result":42},"content":[]}}')


def test_a_list_that_says_something_else_ends_the_run():
    """A default that is missing is another list."""
    tool = {
        "name": "tool_0",
        "description": "Search things by query and return the best user.",
        "inputSchema": {
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "tag": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["query"],
        },
        "outputSchema": {
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "score": {"type": "number"}},
            "required": ["id", "name", "score"],
        },
    }
    with pytest.raises(SystemExit, match="tools/list: mcp lists .*'tool_0'"):
        check_tools("mcp", [tool] * 1000)


def test_a_message_is_found_in_chunks_and_in_events():
    """What the peers' HTTP servers send: RFC 9112, section 7.1, and server-sent events."""
    event = b'event: message\r\ndata: {"id":1}\r\n\r\n'
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)
    head = b"transfer-encoding: chunked\r\ncontent-type: text/event-stream"
    assert read_message(head, chunked) == b'{"id":1}'
    assert read_message(b"content-type: application/json", b'{"id":1}') == b'{"id":1}'


def test_a_request_is_one_of_the_newest_revision():
    assert request_bytes("model", {"id": 7}, 3).startswith(b'{"jsonrpc":"2.0","id":3,"method":"tools/call"')
    assert b'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' in request_bytes("model", {"id": 7})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "stdio,smoke"], "there is no part smoke; there are in-process, stdio, http, client"),
        (["--rounds", "0"], "--rounds: expected 1 or more, got 0"),
    ],
)
def test_an_option_that_means_nothing_is_refused(arguments, message):
    command = [sys.executable, str(BENCHMARKS / "run.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def test_nothing_is_measured_outside_its_own_environment():
    """Where peers are missing, the run says so and how to have them; it measures nothing."""
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "import"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "make bench" in done.stderr
