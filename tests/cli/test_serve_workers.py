"""`twofold serve --workers`: several processes at one address, as a client and an operator meet them."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from twofold import Client
from twofold.cli.asgi import app_from_environment
from twofold.cli.failures import NotLoaded

BOUND_SECONDS = 60
"""Generous: machines are shared; what has happened is noticed at once."""
SERVER = """
import asyncio, os, pathlib
from twofold import MCPServer

mcp = MCPServer("shop")


@mcp.tool()
def process_id() -> int:
    return os.getpid()


@mcp.tool()
async def hold(name: str) -> str:
    pathlib.Path(f"{name}.begun").write_text(str(os.getpid()))
    while not pathlib.Path(f"{name}.released").exists():
        await asyncio.sleep(0.02)
    return f"held {name}"
"""
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}


@dataclass(frozen=True)
class Served:
    """A parent with its workers."""

    process: subprocess.Popen[str]
    said: str
    port: int

    def post(self, message: object, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Post on a connection of its own; gives status, headers and body."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_SECONDS)) as opened:
            opened.request("POST", "/mcp", json.dumps(message), headers)
            response = opened.getresponse()
            return response.status, dict(response.headers), response.read()

    def is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=BOUND_SECONDS).close()
        except ConnectionRefusedError:
            return False
        return True

    def call(self, tool: str, **arguments: object) -> object:
        """Call a tool on a connection of its own; gives what it returned."""
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, headers, body = self.post(message, HEADERS | {"Mcp-Name": tool})
        assert status == 200, body
        if headers["content-type"].startswith("text/event-stream"):
            body = re.findall(rb"^data: (.+)$", body, re.MULTILINE)[-1]
        return json.loads(body)["result"]["structuredContent"]["result"]

    def workers(self) -> set[int]:
        """Look up the processes that the parent has begun."""
        return {
            int(each) for each in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        }

    def wait_for_workers(self, count: int) -> set[object]:
        """Wait until so many different processes have answered."""
        seen: set[object] = set()

        def have_answered() -> bool:
            seen.update(pool.map(lambda _: self.call("process_id"), range(8)))
            return len(seen) >= count

        with ThreadPoolExecutor(8) as pool:
            wait_until(have_answered)
        return seen

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Signal the parent; gives its exit status and what was said since it served."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        output, errors = self.process.communicate(timeout=BOUND_SECONDS)
        assert output == ""
        return self.process.returncode, errors


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + BOUND_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Tell whether a process has not ended; one whose parent was killed may be left as a zombie for a while."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # there is none, or there was one a moment ago
        return False


@contextlib.contextmanager
def served(*options: str, target: str = "shop.py", begin: tuple[str, ...] = ()) -> Iterator[Served]:
    """Run `twofold serve` with options on a free port; whatever happens, nothing of it is left."""
    command = begin or ("-P", "-c", "import sys; from twofold.cli import main; sys.exit(main())", "serve", target)
    process = subprocess.Popen(
        [sys.executable, *command, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(2 * BOUND_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        found, said = None, ""
        while found is None and (said := process.stderr.readline()):
            found = re.search(r" (?:at|on) http://127\.0\.0\.1:(\d+)", said)
        assert found, "it ended without serving"
        yield Served(process, said, int(found[1]))
    finally:
        process.kill()  # the workers notice
        with contextlib.suppress(ValueError):  # read to the end already
            process.communicate()
        watchdog.cancel()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a server in `shop.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SERVER)
    return tmp_path


WORKERS = ("--http", "127.0.0.1:0", "--workers")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_serve_one_address_until_a_signal_ends_them_all(folder, number):
    """Issue 5, scale-out: N processes serve one address, told once; a signal ends all in order, exit code 0."""
    with served(*WORKERS, "3") as fleet:
        pids = fleet.wait_for_workers(3)
        assert pids == fleet.workers()
        assert fleet.end(number) == (0, "")
    assert fleet.said == f"Serving at http://127.0.0.1:{fleet.port}/mcp with 3 workers (Ctrl-C ends them)\n"
    assert not any(map(is_running, pids))


def test_a_worker_that_is_killed_is_replaced_and_no_call_is_lost(folder):
    """Issue 5: what is not in flight on the killed one is answered: by the others, or by who takes its place."""
    with served(*WORKERS, "2") as fleet, ThreadPoolExecutor(8) as pool:
        killed, *_ = before = fleet.wait_for_workers(2)
        os.kill(killed, signal.SIGSTOP)  # so that it has begun no call when it is killed
        calls = [pool.submit(fleet.call, "process_id") for _ in range(32)]
        os.kill(killed, signal.SIGKILL)
        answers = [call.result() for call in calls]
        assert killed not in answers
        after = fleet.wait_for_workers(2)
        assert (len(after - before), killed in after) == (1, False)
        assert fleet.end() == (0, f"worker {killed} was ended by SIGKILL; another takes its place\n")


def test_the_only_worker_is_replaced_too_and_calls_wait_for_it(folder):
    """`--workers 1` is one process that is watched: the parent holds the socket, so who comes meanwhile is served."""
    with served(*WORKERS, "1") as fleet:
        first = fleet.call("process_id")
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_running(first))
        second = fleet.call("process_id")
        assert second != first
        assert fleet.end() == (0, f"worker {first} was ended by SIGKILL; another takes its place\n")


def test_running_calls_finish_when_everything_is_told_to_end(folder):
    """B7 as with one process; also where all processes are signalled, as a service's manager does."""
    with served(*WORKERS, "2") as fleet, ThreadPoolExecutor(1) as pool:
        pids = fleet.wait_for_workers(2)
        call = pool.submit(fleet.call, "hold", name="a")
        wait_until(Path("a.begun").exists)
        for pid in (fleet.process.pid, *pids):
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: sum(map(is_running, pids)) == 1)  # the idle one has ended
        told = fleet.process.stderr.readline()
        Path("a.released").touch()
        assert call.result() == "held a"
        assert fleet.wait() == (0, "")
    assert told == "ending: 1 requests are running and have 5 seconds; a second signal ends at once\n"
    assert not any(map(is_running, pids))


def test_a_second_signal_ends_everything_at_once(folder):
    """Nobody has to wait for a call that does not end; no worker outlives its parent."""
    with served(*WORKERS, "2") as fleet, ThreadPoolExecutor(1) as pool:
        pids = fleet.wait_for_workers(2)
        call = pool.submit(fleet.call, "hold", name="a")
        wait_until(Path("a.begun").exists)
        fleet.process.send_signal(signal.SIGTERM)
        wait_until(lambda: sum(map(is_running, pids)) == 1)
        assert fleet.end()[0] == -signal.SIGTERM
        wait_until(lambda: not any(map(is_running, pids)))
        assert isinstance(call.exception(), ConnectionError | http.client.HTTPException)


def test_workers_end_by_themselves_when_their_parent_is_killed(folder):
    """Issue 5: none left behind; what runs is finished first."""
    with served(*WORKERS, "2") as fleet, ThreadPoolExecutor(1) as pool:
        pids = fleet.wait_for_workers(2)
        call = pool.submit(fleet.call, "hold", name="a")
        wait_until(Path("a.begun").exists)
        fleet.process.kill()
        wait_until(lambda: sum(map(is_running, pids)) == 1)
        Path("a.released").touch()
        assert call.result() == "held a"
        wait_until(lambda: not any(map(is_running, pids)))


def test_a_worker_that_is_told_to_end_is_replaced(folder):
    """An operator may renew workers one by one: each finishes what it runs."""
    with served(*WORKERS, "1") as fleet:
        first = fleet.call("process_id")
        os.kill(first, signal.SIGTERM)
        wait_until(lambda: not is_running(first))
        assert fleet.call("process_id") != first
        assert fleet.end() == (0, f"worker {first} ended with exit code 0; another takes its place\n")


def test_workers_keep_no_sessions_and_every_bound(folder):
    """Decision 13: sessions cannot be shared, so there are none; B3: each worker checks what one process checks."""
    posted = {name: value for name, value in HEADERS.items() if not name.lower().startswith("mcp")}
    with served(*WORKERS, "1", "--allow-host", "127.0.0.1", "--allow-origin", "https://app.example.com") as fleet:
        status, headers, body = fleet.post(INITIALIZE, posted | {"Origin": "https://app.example.com"})
        assert (status, json.loads(body)["result"]["serverInfo"]["name"]) == (200, "shop")
        assert "mcp-session-id" not in {name.lower() for name in headers}
        refused = [
            fleet.post(INITIALIZE, posted | {"Host": "evil.example"})[0],
            fleet.post(INITIALIZE, posted | {"Origin": "https://evil.example"})[0],
            fleet.post(INITIALIZE, posted | {f"X-{number}": "" for number in range(101)})[0],
            fleet.post("x" * (4 * 1024 * 1024 + 1), posted)[0],
        ]
        assert refused == [421, 403, 431, 413]
        assert fleet.end() == (0, "")


def run_to_failure(*options: str) -> tuple[int, str]:
    """Run `twofold serve` where it does not serve; gives exit code and stderr."""
    command = [sys.executable, "-c", "import sys; from twofold.cli import main; sys.exit(main())", "serve", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        (
            "import nowhere",
            3,
            "twofold: cannot load bad.py: ModuleNotFoundError: No module named 'nowhere' (*, line 1)\n",
        ),
        ("", 3, "twofold: bad.py has no MCPServer at its top level; give module:object, file.py or file.py:name\n"),
        ("import os; os._exit(7)", 3, "twofold: no worker serves: the first ended with exit code 7\n"),
        ("import os; os.abort()", 3, "twofold: no worker serves: the first was ended by SIGABRT\n"),
    ],
)
def test_what_lets_no_worker_start_is_told_once(folder, program, code, said):
    """The exit code and the line are those of one process, whatever the number of workers."""
    (folder / "bad.py").write_text(program)
    got, errors = run_to_failure("bad.py", *WORKERS, "4")
    assert (got, errors.replace(str(folder / "bad.py"), "*")) == (code, said)


def test_a_port_in_use_is_told_before_anything_is_begun(folder):
    """The parent binds, once: exit code 3, and what to do."""
    with served(*WORKERS, "1") as fleet:
        code, said = run_to_failure("shop.py", "--http", f"127.0.0.1:{fleet.port}", "--workers", "2")
    assert code == 3
    assert said == (
        f"twofold: cannot serve at 127.0.0.1:{fleet.port}: Address already in use; "
        "stop what listens there, or choose another port (0 picks a free one)\n"
    )


@pytest.mark.parametrize("count", ["0", "65", "100000", "-1", "two", "1.5", "", "２"])
def test_a_number_of_workers_that_cannot_be_is_bad_usage(folder, count):
    """Exit code 2, which there can be, and what came."""
    assert run_to_failure("shop.py", "--http", "127.0.0.1:0", f"--workers={count}") == (
        2,
        f"twofold: --workers: expected a whole number from 1 to 64, got {count!r}\n",
    )


def test_workers_are_for_http(folder):
    """Over stdio there is one client and one process; nothing is dropped without a word."""
    assert run_to_failure("shop.py", "--workers", "2") == (
        2,
        "twofold: --path, --allow-host, --allow-origin, --stateless and --workers are for serving over HTTP; add --http\n",
    )


def test_a_module_beside_the_target_is_not_taken_for_one_of_ours(folder):
    """A worker finds what the target imports, and its own modules first: files may be called like the library's."""
    (folder / "select.py").write_text("raise SystemExit('taken for the standard library')")
    (folder / "stock.py").write_text("LEFT = 3")
    (folder / "shop.py").write_text("from stock import LEFT\n" + SERVER)
    with served(*WORKERS, "1", target="shop:mcp") as fleet:
        assert isinstance(fleet.call("process_id"), int)
        assert fleet.end() == (0, "")


async def test_a_client_calls_through_workers_in_both_eras(folder):
    """Issue 5: 2026-07-28 needs nothing shared, and the handshake revisions are served without sessions."""
    with served(*WORKERS, "2") as fleet:
        for revision in ("2026-07-28", "2025-11-25"):
            async with Client(f"http://127.0.0.1:{fleet.port}/mcp", revision=revision) as client:
                results = [await client.call_tool("process_id") for _ in range(4)]
            assert {result.structured_content for result in results} <= fleet.workers()
        assert fleet.end() == (0, "")


# For those who have a process manager of their own.


def test_plain_uvicorn_serves_a_target_from_the_environment(folder, monkeypatch):
    """Issue 5: an importable factory that reads the target from the environment, here in two workers of uvicorn's."""
    monkeypatch.setenv("TWOFOLD_TARGET", "shop.py")
    monkeypatch.setenv("TWOFOLD_ALLOWED_HOSTS", "127.0.0.1, mcp.example.com")
    begin = ("-m", "uvicorn", "--factory", "twofold.cli.asgi:app_from_environment", "--no-access-log")
    with served("--workers", "2", "--port", "0", begin=begin) as fleet:
        wait_until(fleet.is_listening)  # uvicorn says its address before any worker is there
        pids = fleet.wait_for_workers(2)
        assert len(pids) == 2
        posted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        answers = [
            fleet.post(INITIALIZE, posted | {"Host": host}) for host in ("mcp.example.com", "localhost", "127.0.0.1:80")
        ]
        assert [status for status, _, _ in answers] == [200, 421, 200]
        assert "mcp-session-id" not in {name.lower() for name in answers[0][1]}
        fleet.process.send_signal(signal.SIGTERM)
        fleet.process.communicate(timeout=BOUND_SECONDS)
        wait_until(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize(
    ("environment", "error", "said"),
    [
        ({}, NotLoaded, "TWOFOLD_TARGET: expected what is to be served, found nothing; give module:object, file.py or"),
        ({"TWOFOLD_TARGET": "nowhere.py"}, NotLoaded, "there is no file 'nowhere.py' in "),
        ({"TWOFOLD_TARGET": "shop.py", "TWOFOLD_STATELESS": "yes"}, ValueError, "TWOFOLD_STATELESS: expected 1 or 0, got 'yes'"),
        ({"TWOFOLD_TARGET": "shop.py", "TWOFOLD_PATH": "mcp"}, ValueError, "path: expected a path such as '/mcp', got 'mcp'"),
        ({"TWOFOLD_TARGET": "shop.py", "TWOFOLD_ALLOWED_HOSTS": ""}, ValueError, "allowed_hosts: ''"),
        ({"TWOFOLD_TARGET": "shop.py", "TWOFOLD_ALLOWED_ORIGINS": "a.example"}, ValueError, "allowed_origins: 'a.example' has no scheme"),
    ],
)  # fmt: skip
def test_an_environment_that_cannot_hold_says_which_name_to_mend(folder, environment, error, said):
    """Whoever starts the process sees the variable, what was expected, and what came."""
    with pytest.raises(error) as refused:
        app_from_environment(environment)
    assert str(refused.value).startswith(said)


def test_the_environment_says_the_path(folder):
    """Each option of `twofold serve` has its variable."""
    assert app_from_environment({"TWOFOLD_TARGET": "shop.py", "TWOFOLD_PATH": "/tools"}).path == "/tools"
