"""Keeping worker processes, with small programs in their place; what clients see is in tests/cli/test_serve_workers.py."""

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from twofold.server.serve_http import BACKLOG
from twofold.server.worker import TURN_CONNECTIONS, TURN_SECONDS, listen_by_turns
from twofold.server.worker_processes import Replacement, WorkerFailed, run_workers

BOUND_SECONDS = 60
QUICK = Replacement(first_delay_seconds=0.001, max_delay_seconds=0.004, steady_seconds=60, end_seconds=60)
PRELUDE = """
    import os, signal, socket, sys, time
    control = socket.socket(fileno=int(sys.argv[2]))
    runs = open(sys.argv[1], "a+")
    runs.write("x"); runs.flush(); runs.seek(0)
    run = len(runs.read())

    def serve():
        control.send(b"s")

    def serve_to_end():
        serve()
        control.recv(1)
        sys.exit(0)

    def end_everything():
        os.kill(os.getppid(), signal.SIGTERM)
"""


def run(program: str, folder: Path, *, count: int = 1, replacement: Replacement = QUICK) -> int:
    """Keep workers that run a program, until something ends them; gives how often one was said to serve."""
    text = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    told: list[bool] = []

    def make_command(_: Sequence[int], control: int) -> list[str]:
        return [sys.executable, "-c", text, str(folder / "runs"), str(control)]

    listener = socket.create_server(("127.0.0.1", 0))
    try:
        run_workers(
            make_command, [listener], count=count, on_serving=lambda: told.append(True), replacement=replacement
        )
    finally:
        assert listener.fileno() == -1
    return len(told)


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def test_a_worker_that_ends_again_and_again_is_replaced_ever_more_slowly(tmp_path, caplog):
    """A worker that dies as soon as it serves takes no more of the machine than it must; serving goes on."""
    program = """
        if run == 6:
            end_everything()
            serve_to_end()
        serve()
        sys.exit(run)
    """
    assert run(program, tmp_path) == 1
    assert runs(tmp_path) == 6
    said = [record.getMessage().partition(" ended with ")[2] for record in caplog.records]
    assert said == [
        "exit code 1; another takes its place",
        "exit code 2; another takes its place in 0.001 s",
        "exit code 3; another takes its place in 0.002 s",
        "exit code 4; another takes its place in 0.004 s",
        "exit code 5; another takes its place in 0.004 s",
    ]


def test_a_worker_that_has_lasted_is_replaced_at_once(tmp_path, caplog):
    """What ends it after a while is not how it was started."""
    program = """
        if run == 4:
            end_everything()
            serve_to_end()
        serve()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run(program, tmp_path, replacement=Replacement(steady_seconds=0)) == 1
    said = [record.getMessage().partition(" was ")[2] for record in caplog.records]
    assert said == ["ended by SIGKILL; another takes its place"] * 3


def test_workers_that_no_longer_start_end_everything(tmp_path, caplog):
    """Issue 5: bounded, with a clear error; workers that serve are told to end in order."""
    program = """
        if run == 1:
            serve_to_end()
        sys.exit(9)
    """
    replacement = msgspec.structs.replace(QUICK, max_failed_starts=3)
    with pytest.raises(WorkerFailed) as failure:
        run(program, tmp_path, count=2, replacement=replacement)
    assert (str(failure.value), failure.value.exit_code) == (
        "workers no longer start: the last of 3 ended with exit code 9; mend what they say, then serve again",
        9,
    )
    assert (runs(tmp_path), len(caplog.records)) == (1 + 3, 2)


def test_starts_that_fail_now_and_then_end_nothing(tmp_path):
    """Only so many in a row do."""
    program = """
        if run == 8:
            end_everything()
            serve_to_end()
        if run % 3 == 1:
            serve()
        sys.exit(9)
    """
    assert run(program, tmp_path, replacement=msgspec.structs.replace(QUICK, max_failed_starts=3)) == 1
    assert runs(tmp_path) == 8


def test_the_first_that_does_not_serve_ends_everything_at_once(tmp_path):
    """What lets none start would let none start again: only one is begun, and nobody is told that it serves."""
    with pytest.raises(WorkerFailed) as failure:
        run("os.kill(os.getpid(), signal.SIGKILL)", tmp_path, count=4)
    assert (str(failure.value), failure.value.exit_code) == ("no worker serves: the first was ended by SIGKILL", -9)
    assert runs(tmp_path) == 1


def test_a_command_that_cannot_be_begun_is_told():
    """The system's own reason."""
    listener = socket.create_server(("127.0.0.1", 0))
    with pytest.raises(
        WorkerFailed, match=r"^no worker serves: the first could not be begun \(No such file or directory\)$"
    ):
        run_workers(lambda *_: ["/nowhere/python"], [listener], count=2, on_serving=lambda: None)
    assert listener.fileno() == -1


def test_a_worker_that_does_not_end_is_killed(tmp_path, caplog):
    """Issue 5: none is left behind, whatever a tool does."""
    program = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        serve()
        with open(sys.argv[1] + ".pid", "w") as file:
            file.write(str(os.getpid()))
        end_everything()
        while True:
            time.sleep(60)
    """
    assert run(program, tmp_path, replacement=msgspec.structs.replace(QUICK, end_seconds=0.2)) == 1
    assert [record.getMessage() for record in caplog.records] == ["1 workers did not end within 0.2 seconds: killed"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "runs.pid").read_text()), 0)


def test_a_signal_before_anything_serves_ends_it(tmp_path):
    """A target may take long to load."""
    program = """
        end_everything()
        control.recv(1)
    """
    assert run(program, tmp_path, count=3) == 0
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("word", [b"e", b""], ids=["told to end", "parent gone"])
def test_a_worker_that_still_loads_its_target_ends_at_once(tmp_path, word):
    """Issue 5: none is left behind, even if it never gets as far as serving."""
    (tmp_path / "slow.py").write_text("print('loading', flush=True)\nimport time\ntime.sleep(600)\n")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        task = {"target": "slow.py", "options": {}, "listeners": [], "control": theirs.fileno()}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "twofold.cli.worker", msgspec.json.encode(task).decode()],
            cwd=tmp_path,
            pass_fds=(theirs.fileno(),),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            theirs.close()
            assert process.stderr is not None
            assert process.stderr.readline() == "loading\n"
            if word:
                ours.send(word)
            else:
                ours.close()
            assert process.communicate(timeout=BOUND_SECONDS) == (None, "")
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0


def test_the_program_of_a_worker_says_who_starts_it():
    """Whoever finds it in a list of processes and tries it is told what is for them."""
    command = [sys.executable, "-P", "-m", "twofold.cli.worker", "shop.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "twofold: this program is for twofold serve --workers to start; it was given 'shop.py'\n",
    )


class Taken(asyncio.Protocol):
    """A connection that tells whose it is."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._name)  # type: ignore[attr-defined]  # a stream transport
        transport.close()


async def test_connections_that_come_together_are_shared():
    """Issue 5: no worker takes all of a burst, and each connection is taken once."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        clients = [socket.create_connection(listener.getsockname()) for _ in range(32)]
        takers = [await listen_by_turns(lambda name=name: Taken(name), listener.dup()) for name in (b"a", b"b")]
        loop = asyncio.get_running_loop()
        for client in clients:
            client.setblocking(False)
        names = [await loop.sock_recv(client, 10) for client in clients]
        for client in clients:
            client.close()
        for taker in takers:
            taker.close()
    assert (names.count(b"a") + names.count(b"b"), min(names.count(b"a"), names.count(b"b")) >= TURN_CONNECTIONS) == (
        32,
        True,
    )


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__()

    def time(self) -> float:
        return self.now


def test_a_worker_rests_after_a_few_connections():
    """Issue 5: of a burst it takes so many in one go, and the next only after others had time to take some."""
    accepted: list[int] = []

    async def main(loop: SteppedLoop) -> None:
        taken: list[Taken] = []

        def connect() -> Taken:
            taken.append(Taken(b"a"))
            return taken[-1]

        with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
            address = listener.getsockname()
            clients = [socket.create_connection(address) for _ in range(3 * TURN_CONNECTIONS - 1)]
            taker = await listen_by_turns(connect, listener)
            for _ in range(3):
                for _ in range(50):
                    await asyncio.sleep(0)
                accepted.append(len(taken))
                loop.now += 2 * TURN_SECONDS
            taker.close()
        for client in clients:
            client.close()

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(main(runner.get_loop()))
    assert accepted == [TURN_CONNECTIONS, 2 * TURN_CONNECTIONS, 3 * TURN_CONNECTIONS - 1]


class Exhausted(socket.socket):
    """A listener whose first connection the system does not hand over."""

    refusals: ClassVar = [OSError(24, "Too many open files")]

    def accept(self) -> tuple[socket.socket, object]:
        if self.refusals:
            raise self.refusals.pop()
        return super().accept()


async def test_accepting_goes_on_after_the_system_refused(caplog):
    """Out of file descriptors for a moment is no reason to stop, or to spin."""
    with Exhausted() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taker = await listen_by_turns(lambda: Taken(b"a"), listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        assert await reader.read() == b"a"
        writer.close()
        await writer.wait_closed()
        taker.close()
    assert [record.getMessage() for record in caplog.records if record.name == "twofold"] == [
        "no connection can be accepted for 1 seconds: [Errno 24] Too many open files"
    ]
