"""A server as a child process: what it says is heard, how it ends is told, and nothing of it is left behind."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from tests.transports.hearing import INITIALIZE, Heard, per_request, request
from twofold.errors import NotSent, TransportError
from twofold.transports.child_process import (
    ChildProcessLink,
    LastLines,
    MessageLines,
    StdioServer,
    make_environment,
)

ECHO = """
import sys
for line in sys.stdin:
    sys.stdout.write(line)
    sys.stdout.flush()
"""


ADDING = """
from twofold import MCPServer
mcp = MCPServer("s")

@mcp.tool()
def add(a: int, b: int) -> int:
    return a + b

mcp.run()
"""


def script(text: str, *args: str, env: dict[str, str] | None = None) -> StdioServer:
    """A program that is given as text; -I -S starts it faster."""
    return StdioServer(sys.executable, ["-I", "-S", "-c", textwrap.dedent(text), *args], env=env)


@contextlib.asynccontextmanager
async def opened(server: StdioServer, **options):
    link, heard = ChildProcessLink(server, **options), Heard()
    await link.open(heard)
    try:
        yield link, heard
    finally:
        await link.close()


def exists(pid: int) -> bool:
    """Tell whether a process is there, and not only its remains, which the system's first process clears away."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def is_listed(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def open_files() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


async def send(link: ChildProcessLink, message: bytes) -> None:
    await link.send(message, request_id=1, headers={})


async def send_until_refused(link: ChildProcessLink) -> None:
    """Send until the system has told that nobody reads."""
    async with asyncio.timeout(20):
        while True:
            await send(link, b"{}")
            await asyncio.sleep(0)


def test_another_event_loop_does_as_well():
    """uvloop's transports are of classes of its own."""

    async def main() -> None:
        async with opened(script(ECHO)) as (link, heard):
            await send(link, b"{}")
            await heard.until(lambda heard: heard.raw)
        for _ in range(10):  # an end at once may be told before the start
            async with opened(StdioServer("false")) as (_, ended):
                await ended.until(lambda heard: heard.ends)
        assert (heard.raw, ended.ends) == (
            [b"{}"],
            ["server 'false' ended with exit code 1; it said nothing on stderr"],
        )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), 60))


# What is said.


async def test_a_call_is_answered_in_either_era():
    """C1: one client for a command, whichever revision is spoken; no process, pipe or task is left."""
    before = asyncio.all_tasks()
    server = StdioServer(sys.executable, ["-c", ADDING])
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    async with opened(server) as (link, heard):
        await send(link, request("tools/call", per_request(params), id=1))
        await send(link, request("initialize", INITIALIZE, id=2))
        await send(link, request("tools/call", params, id=3))
        await heard.until(lambda heard: len(heard.raw) == 3)
        assert link.has_own_streams is False
    answers = {each["id"]: each["result"] for each in heard.messages}
    assert answers[1]["structuredContent"] == answers[3]["structuredContent"] == {"result": 3}
    assert answers[2]["protocolVersion"] == "2025-11-25"
    assert (heard.broken, heard.ends) == ([], [])
    assert asyncio.all_tasks() == before


async def test_line_ends_inside_a_message_do_not_break_it():
    """The message is delimited by newlines, and must not contain one."""
    async with opened(script(ECHO)) as (link, heard):
        await send(link, b'{"a":\n1}')
        await heard.until(lambda heard: heard.raw)
    assert heard.raw == [b'{"a": 1}']


async def test_megabytes_go_both_ways():
    message = json.dumps({"text": "x" * 5_000_000}).encode()
    async with opened(script(ECHO)) as (link, heard):
        await send(link, message)
        await send(link, b"{}")
        await heard.until(lambda heard: len(heard.raw) == 2)
    assert heard.raw == [message, b"{}"]


async def test_what_is_no_message_is_told_once_and_not_handed_on(caplog):
    """The server must not write anything to its stdout that is no message: it costs only itself."""
    noisy = """
        import sys
        print("Starting up…\\x1b[31m", flush=True)
        print(flush=True)
        print("Ready", flush=True)
        print('{"id": 1}', flush=True)
        print('[{"id": 2}]', flush=True)
        sys.stdin.read()
    """
    async with opened(script(noisy, env={"PYTHONIOENCODING": "utf-8"})) as (link, heard):
        await heard.until(lambda heard: len(heard.raw) == 2)
        name = link.name
    assert heard.raw == [b'{"id": 1}', b'[{"id": 2}]']
    assert [record.getMessage() for record in caplog.records] == [
        f"{name}: what is no message came on its stdout: 'Starting up…\\x1b[31m'; it should write that to its stderr"
    ]


async def test_a_line_that_is_too_long_is_told_by_its_start_and_the_next_one_read():
    """A server cannot take all memory with one line."""
    long = """
        import sys
        sys.stdout.write('{"id": 7, "result": "' + "x" * 100_000 + '"}\\n')
        sys.stdout.write("y" * 100_000 + "\\n")
        print('{"id": 8}', flush=True)
        sys.stdin.read()
    """
    async with opened(script(long), max_line_bytes=10_000) as (link, heard):
        await heard.until(lambda heard: heard.raw)
        name = link.name
    assert heard.raw == [b'{"id": 8}']
    assert heard.broken == [
        (
            b'{"id": 7, "result": "' + b"x" * (4096 - 21),
            f"{name}: a line of more than 10000 bytes came, which is the limit; it must send less at once",
        )
    ]


async def test_a_flood_on_stderr_holds_nothing_up_and_its_end_is_kept():
    """stderr is always read: 50 MB neither block the server nor stay in memory."""
    flood = """
        import sys
        line = "x" * 999 + "\\n"
        for _ in range(50):
            sys.stderr.write(line * 1000)
        sys.stderr.write("the end\\n")
        print('{"id": 1}', flush=True)
        sys.exit(4)
    """
    async with opened(script(flood)) as (link, heard):
        await heard.until(lambda heard: heard.ends)
        name = link.name
    assert heard.raw == [b'{"id": 1}']
    lines = [f"\n  {'x' * 500}"] * 19
    assert heard.ends == [f"{name} ended with exit code 4; its last words on stderr: {''.join(lines)}\n  the end"]


# How it ends.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit(3)", "ended with exit code 3; it said nothing on stderr"),
        ("pass", "ended with exit code 0; it said nothing on stderr"),
        (
            "import sys; sys.stderr.write('no\\x1b[0m database'); sys.exit(1)",
            "ended with exit code 1; its last words on stderr: no\\x1b[0m database",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "was killed by SIGKILL; it said nothing on stderr",
        ),
        (
            "print('usage: …'.encode('ascii', 'replace').decode()); print('{} ')",
            "ended with exit code 0; what was no message on its stdout: usage: ?; it said nothing on stderr",
        ),
        (
            "print('{\"id\": 1, \"resu', end='')",
            'ended with exit code 0 in the middle of a message (15 bytes: \'{"id": 1, "resu\'); it said nothing on stderr',
        ),
    ],
)
async def test_its_end_is_told_in_its_own_words(text, told):
    """A child process that dies is reported with its last lines, once; what is sent afterwards is not sent."""
    async with opened(script(text)) as (link, heard):
        await heard.until(lambda heard: heard.ends)
        with pytest.raises(NotSent) as caught:
            await send(link, b"{}")
        name = link.name
    assert heard.ends == [f"{name} {told}"]
    assert str(caught.value) == heard.ends[0]


async def test_a_last_message_without_a_line_end_is_not_lost():
    async with opened(script("print('{\"id\": 1}', end='')")) as (_, heard):
        await heard.until(lambda heard: heard.ends)
    assert heard.messages == [{"id": 1}]


async def test_a_server_that_closes_its_stdout_has_gone_although_it_lives():
    """Half-closed streams: nothing more can come, so nobody waits for it."""
    async with opened(script("import os, sys; os.close(1); sys.stdin.read(); os._exit(0)")) as (link, heard):
        await heard.until(lambda heard: heard.ends)
        name = link.name
    assert heard.ends == [f"{name} closed its stdout, although it goes on running; it said nothing on stderr"]


async def test_a_server_that_closes_its_stdin_is_sent_nothing_more():
    closing = """
        import os, time
        os.close(0)
        os.write(1, b"{}\\n")
        time.sleep(600)
    """
    async with opened(script(closing)) as (link, heard):
        await heard.until(lambda heard: heard.raw)
        with pytest.raises(NotSent, match="closed its stdin, although it goes on running"):
            await send_until_refused(link)
    assert heard.ends == []


async def test_its_death_is_told_although_what_it_started_holds_its_streams():
    """A grandchild has the same stdout: the end of the stream alone would never come."""
    leaving = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", IGNORES])
        child_out = child.pid
        print('{"pid": %d}' % child_out, flush=True)
        sys.exit(5)
    """.replace("IGNORES", repr("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"))
    async with opened(script(leaving)) as (link, heard):
        await heard.until(lambda heard: heard.ends)
        name = link.name
    assert heard.ends == [f"{name} ended with exit code 5; it said nothing on stderr"]
    assert not exists(heard.messages[0]["pid"])


# What it does not take.


async def test_a_server_that_reads_nothing_holds_up_who_sends_and_nobody_else():
    """Writes never block the loop: `send` waits for room, as long as its caller lets it; then nothing is added."""
    async with opened(script("import time; time.sleep(600)")) as (link, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await send(link, b'"' + b"x" * 5_000_000 + b'"')
        held = link._child._stdin.get_write_buffer_size()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await send(link, b"{}")
        assert link._child._stdin.get_write_buffer_size() == held


async def test_who_sends_while_the_server_dies_is_told():
    async with opened(script("import time; time.sleep(0.3)")) as (link, _):
        with pytest.raises(TransportError, match="ended with exit code 0") as caught:
            await send(link, b'"' + b"x" * 5_000_000 + b'"')
    assert type(caught.value) is TransportError


async def test_who_sends_while_the_link_is_closed_is_told():
    link = ChildProcessLink(script("import time; time.sleep(600)"))
    await link.open(Heard())
    sending = asyncio.create_task(send(link, b'"' + b"x" * 5_000_000 + b'"'))
    waiting = asyncio.create_task(send(link, b"{}"))
    await asyncio.sleep(0)
    await link.close()
    with pytest.raises(TransportError, match="the client was closed") as first:
        await sending
    with pytest.raises(NotSent, match="the client was closed"):
        await waiting
    assert type(first.value) is TransportError


# Nothing is left.


STUBBORN = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    print('{"pids": [%d, %d]}' % (os.getpid(), child.pid), flush=True)
    while True:
        time.sleep(600)
"""


async def test_a_server_that_heeds_nothing_is_killed_with_what_it_started():
    """close(): stdin closed, SIGTERM to the group, SIGKILL to the group, waited for; no zombie, no pipe."""
    before, tasks = open_files(), asyncio.all_tasks()
    async with opened(script(STUBBORN)) as (_, heard):
        await heard.until(lambda heard: heard.raw)
    pids = heard.messages[0]["pids"]
    assert [exists(pid) for pid in pids] == [False, False]
    assert not is_listed(pids[0])  # it was waited for: no zombie
    assert asyncio.all_tasks() == tasks
    assert open_files() == before
    assert heard.ends == []


async def test_a_server_is_let_end_by_itself(tmp_path):
    """The end of its stdin is the first thing it is told; what it still has to do, it does."""
    ending = """
        import sys
        sys.stdin.read()
        open(sys.argv[1], "w").write("saved")
    """
    async with opened(script(ending, str(tmp_path / "file"))):
        pass
    assert (tmp_path / "file").read_text() == "saved"


async def test_closing_that_is_cancelled_still_kills():
    link, heard = ChildProcessLink(script(STUBBORN)), Heard()
    await link.open(heard)
    await heard.until(lambda heard: heard.raw)
    closing = asyncio.create_task(link.close())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(20):
        while any(exists(pid) for pid in heard.messages[0]["pids"]):
            await asyncio.sleep(0.01)


async def test_opening_that_is_cancelled_leaves_no_process(tmp_path):
    """Also if `open` is cancelled halfway."""
    before, tasks = open_files(), asyncio.all_tasks()
    link = ChildProcessLink(script(ECHO))
    opening = asyncio.create_task(link.open(Heard()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(NotSent, match="not open"):
        await send(link, b"{}")
    assert asyncio.all_tasks() == tasks
    assert open_files() == before


def test_a_loop_that_ends_without_closing_leaves_no_process():
    """Nothing is left behind when the event loop ends without close: at the latest as the interpreter exits."""
    program = f"""
        import asyncio, sys, warnings
        warnings.simplefilter("ignore")
        sys.path[:0] = {sys.path!r}
        from tests.transports.hearing import Heard
        from tests.transports.test_child_process import STUBBORN, script
        from twofold.transports.child_process import ChildProcessLink
        kept = []
        async def main():
            link, heard = ChildProcessLink(script(STUBBORN)), Heard()
            kept.append(link)
            await link.open(heard)
            await heard.until(lambda heard: heard.raw)
            print(heard.messages[0]["pids"], flush=True)
        asyncio.run(main())
        print("over", flush=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=60, check=True)
    pids, over = done.stdout.splitlines()
    assert over == b"over"
    for pid in json.loads(pids):
        for _ in range(1000):
            if not exists(pid):
                break
            signal.sigtimedwait([], 0.01)
        assert not exists(pid)


async def test_a_link_that_is_forgotten_leaves_no_process():
    """The best that can be done for who never closes."""
    link, heard = ChildProcessLink(script(STUBBORN)), Heard()
    await link.open(heard)
    await heard.until(lambda heard: heard.raw)
    child = link._child
    del link
    gc.collect()
    await heard.until(lambda heard: heard.ends)
    assert not any(exists(pid) for pid in heard.messages[0]["pids"])
    await child.close()


# What cannot be started.


NOT_STARTED = [
    (
        StdioServer("no-such-program", ["x"]),
        "there is no program 'no-such-program' on PATH; install it, or give its whole path",
    ),
    (StdioServer("/no/program"), "there is no program '/no/program' at that path; install it, or give its whole path"),
    (
        StdioServer("python x.py"),
        "there is no such program; a command is one program, give what follows it as args=[…]",
    ),
    (
        StdioServer(sys.executable, cwd="/no/folder"),
        "its folder '/no/folder' cannot be entered (No such file or directory); give another cwd",
    ),
    (
        StdioServer(sys.executable, cwd=sys.executable),
        f"its folder {sys.executable!r} cannot be entered (Not a directory); give another cwd",
    ),
    (StdioServer("x\ud800"), "UnicodeEncodeError; a part of the command cannot be given to a program"),
]


@pytest.mark.parametrize(("server", "told"), NOT_STARTED, ids=range(len(NOT_STARTED)))
async def test_what_cannot_be_started_is_named_with_what_to_do(server, told):
    """NotSent: certainly nothing reached anybody."""
    before, tasks = open_files(), asyncio.all_tasks()
    link = ChildProcessLink(server)
    with pytest.raises(NotSent) as caught:
        await link.open(Heard())
    assert str(caught.value) == f"{link.name} cannot be started: {told}"
    with pytest.raises(NotSent, match="not open"):
        await send(link, b"{}")
    await link.close()
    assert (open_files(), asyncio.all_tasks()) == (before, tasks)


async def test_a_file_that_may_not_be_executed_is_named(tmp_path):
    file = tmp_path / "server"
    file.touch(mode=0o644)
    with pytest.raises(NotSent, match="server' is not executable; name a program, or make it one with chmod .x"):
        await ChildProcessLink(StdioServer(str(file))).open(Heard())


async def test_what_is_no_program_is_refused(tmp_path):
    """Exec format error: a script without its first line, say."""
    file = tmp_path / "server.py"
    file.write_text("print()")
    file.chmod(0o755)
    with pytest.raises(NotSent, match="Exec format error; name a program that this system can run"):
        await ChildProcessLink(StdioServer(str(file))).open(Heard())


async def test_a_link_is_opened_once():
    async with opened(script(ECHO)) as (link, _):
        with pytest.raises(NotSent, match="opened before"):
            await link.open(Heard())


@pytest.mark.parametrize(
    ("fields", "kind", "told"),
    [
        ({"command": ""}, ValueError, "command is empty"),
        ({"command": 3}, TypeError, "command is a text and args a list of texts"),
        ({"command": "x", "args": "y z"}, TypeError, "command is a text and args a list of texts"),
        ({"command": "x", "args": [1]}, TypeError, "command is a text and args a list of texts"),
        ({"command": "x", "env": {"A": 1}}, TypeError, "env maps names to texts"),
        ({"command": "x\0"}, ValueError, "no part of a command has a NUL"),
        ({"command": "x", "env": {"A": "\0"}}, ValueError, "no part of a command has a NUL"),
        ({"command": "x", "env": {"A=B": ""}}, ValueError, "no name in env a '='"),
    ],
)
def test_a_command_that_is_none_is_refused_where_it_is_written(fields, kind, told):
    with pytest.raises(kind, match=told):
        StdioServer(**fields)


# What it gets, and what is shown of it.


async def test_a_child_gets_no_secrets_of_ours(monkeypatch):
    """A small part of the environment, and what it is given."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of ours")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("LANG", "C")
    telling = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"
    async with opened(script(telling, env={"API_KEY": "its own", "LANG": "C.UTF-8"})) as (_, heard):
        await heard.until(lambda heard: heard.raw)
    (seen,) = heard.messages
    assert seen == make_environment({"API_KEY": "its own", "LANG": "C.UTF-8"})
    assert (seen["API_KEY"], seen["LANG"], seen["LC_TIME"], seen["PATH"]) == (
        "its own",
        "C.UTF-8",
        "C",
        os.environ["PATH"],
    )
    assert "AWS_SECRET_ACCESS_KEY" not in seen


async def test_it_starts_in_its_folder_and_in_a_session_of_its_own(tmp_path):
    telling = "import os, sys; print('[\"%s\", %d]' % (os.getcwd(), os.getsid(0) == os.getpid()), flush=True); sys.stdin.read()"
    async with opened(StdioServer(sys.executable, ["-I", "-S", "-c", telling], cwd=tmp_path)) as (_, heard):
        await heard.until(lambda heard: heard.raw)
    assert heard.messages == [[str(tmp_path), 1]]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["server.py", "--port", "80"], "server 'npx server.py --port 80'"),
        (["--api-key", "s3cret", "x"], "server 'npx --api-key … x'"),
        (["--token=s3cret"], "server 'npx --token=…'"),
        (["-e", "GITHUB_TOKEN=s3cret"], "server 'npx -e GITHUB_TOKEN=…'"),
        (["--header", "Authorization: Bearer s3cret=="], "server 'npx --header Authorization:…'"),
        (["postgres://user:s3cret@db/x"], "server 'npx postgres://…@db/x'"),
        (["a b", ""], 'server \'npx "a b" ""\''),
        (["--secret", "--x"], "server 'npx --secret --x'"),
        (["x" * 200], f"server 'npx {'x' * 75}…'"),
    ],
)
def test_a_name_shows_no_secrets(args, shown):
    """Foreign values are cut to 80 characters; secrets never show."""
    server = StdioServer("npx", args, env={"KEY": "s3cret"}, cwd="there")
    assert ChildProcessLink(server).name == shown
    assert "s3cret" not in repr(server)
    assert repr(server).endswith("env={'KEY': …}, cwd='there')")


# Lines.


class Sorted:
    def __init__(self, max_bytes: int) -> None:
        self.found: list[tuple[str, bytes]] = []
        self.lines = MessageLines(
            max_bytes,
            on_message=lambda line: self.found.append(("message", line)),
            on_rubbish=lambda line: self.found.append(("rubbish", line)),
            on_too_long=lambda line: self.found.append(("long", line)),
        )


@given(
    st.lists(st.sampled_from([b"{1}", b"[2]", b" {3}", b"x", b"", b" ", b"{" + b"y" * 9, b"z" * 12])), st.integers(1, 7)
)
def test_lines_are_told_apart_however_they_arrive(lines, size):
    """A stream has no message borders but the line ends."""
    data = b"".join(line + b"\n" for line in lines)
    by_pieces, at_once = Sorted(8), Sorted(8)
    for start in range(0, len(data), size):
        by_pieces.lines.feed(data[start : start + size])
    at_once.lines.feed(data)
    kinds = {b"{": "message", b"[": "message"}
    expected = [
        ("long" if len(line) > 8 and line[0] == 123 else kinds.get(line.strip()[:1], "rubbish"), len(line))
        for line in lines
        if line.strip()
    ]
    assert (
        [kind for kind, _ in by_pieces.found] == [kind for kind, _ in at_once.found] == [kind for kind, _ in expected]
    )
    assert [line for kind, line in by_pieces.found if kind == "message"] == [
        line for line in lines if line.strip()[:1] in (b"{", b"[") and len(line) <= 8
    ]
    assert by_pieces.lines.finish() is None


@given(st.lists(st.sampled_from([b"one", b"", b"x" * 3000, b"two"]), max_size=60), st.integers(1, 4000))
def test_the_last_lines_are_kept_however_they_arrive(lines, size):
    """The last 20, each cut to 500 characters."""
    data = b"\n".join(lines)
    by_pieces = LastLines()
    for start in range(0, len(data), size):
        by_pieces.feed(data[start : start + size])
    kept = [line[:500].decode() for line in lines if line]
    assert by_pieces.is_empty is (not kept)
    assert str(by_pieces).split() == kept[-20:]
