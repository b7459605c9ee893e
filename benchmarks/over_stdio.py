"""CPU a request of a server over stdio, one at a time and 32 in flight: each peer a process of its own, in turns."""

import asyncio
import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
from canned import make_canned
from figures import Figures, add_turn
from peers import arguments_of, check_value, python_of, request_bytes, serve_command
from processes import PATIENCE_SECONDS, Meter, load_on_first_core, percentiles, started

LAYERS = {"stdio_1": 1, "stdio_32": 32}
"""How many requests are in flight in each."""
PEERS = ("twofold", "floor", "mcp", "fastmcp", "typescript")
PAYLOADS = ("integer", "model", "models", "sync", "large")
ONE_AT_A_TIME = ("large",)
"""Answers of 0.9 MB take the slower peers so long that 32 at once would take most of the run."""
SECONDS_A_TURN = 0.2
FIRST_ID = 100_000_000
"""Ids have nine digits, so that answers have one length."""


class Exchange(msgspec.Struct, frozen=True):
    """A request around its id, and the answer around its id."""

    request: tuple[bytes, bytes]
    answer: tuple[bytes, bytes]


class Pipes:
    """A server at the end of two pipes, and which id comes next."""

    def __init__(self, peer: str, process: subprocess.Popen, log: Path) -> None:
        self.peer = peer
        self.pid = process.pid
        self._process = process
        self._log = log
        self._next_id = FIRST_ID
        self._received = bytearray()

    def send(self, request: tuple[bytes, bytes], count: int) -> list[int]:
        """Send a request some times in one write, and give the ids."""
        before, after = request
        ids = list(range(self._next_id, self._next_id + count))
        self._next_id += count
        self.write(b"".join([b"%b%d%b" % (before, each, after) for each in ids]))
        return ids

    def write(self, rest: bytes) -> None:
        """Write all of it."""
        try:
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]
        except BrokenPipeError:
            self._fail("has ended")

    def read_lines(self) -> list[bytes]:
        """Wait until lines are there."""
        stdout = self._process.stdout.fileno()
        while True:
            if not select.select([stdout], [], [], PATIENCE_SECONDS)[0]:
                self._fail("does not answer")
            chunk = os.read(stdout, 1 << 20)
            if not chunk:
                self._fail("has ended")
            self._received += chunk
            if b"\n" in chunk:
                *lines, rest = self._received.split(b"\n")
                self._received = rest
                return lines

    def _fail(self, how: str) -> NoReturn:
        raise SystemExit(f"{self.peer} {how}:\n{self._log.read_text()[-2000:]}")


@contextlib.contextmanager
def open_pipes(peer: str, command: list, folder: Path, *, where: Path | None = None) -> Iterator[Pipes]:
    """Start a server over stdio, its log in a folder; it runs here, or where it is told."""
    log = folder / f"{peer}.log"
    with started(command, log=log, pipes=True, folder=where) as process:
        yield Pipes(peer, process, log)


def measure(figures: Figures, *, rounds: int) -> None:
    """Measure every payload with every peer; the first turn of each warms up."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(load_on_first_core())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [stack.enter_context(open_pipes(peer, command_of(peer, folder), folder)) for peer in PEERS]
        for name in PAYLOADS:
            exchanges = {server.peer: learn(server, name) for server in servers}
            for layer, window in LAYERS.items():
                if window > 1 and name in ONE_AT_A_TIME:
                    continue
                for turn in range(rounds + 1):
                    for server in servers:
                        measured = measure_turn(server, exchanges[server.peer], window=window)
                        if turn:
                            add_turn(figures, layer=layer, payload=name, peer=server.peer, measured=measured)


def command_of(peer: str, folder: Path) -> list[str | Path]:
    """Say how a peer is started; the floor gives Twofold's results as canned bytes, over a bare pipe."""
    if peer != "floor":
        return serve_command(peer, "stdio")
    canned = folder / "canned.json"
    canned.write_text(asyncio.run(make_canned(PAYLOADS)))
    return [python_of("floor"), Path(__file__).with_name("canned.py"), canned]


def learn(server: Pipes, name: str) -> Exchange:
    """Ask once, check the answer's value, and remember its bytes: every later one has to be the same but for its id."""
    before, after = request_bytes(name, arguments_of(name), FIRST_ID).split(b"%d" % FIRST_ID)
    (number,) = server.send((before, after + b"\n"), 1)
    (line,) = server.read_lines()
    check_value(name, server.peer, line)
    answer_before, answer_after = line.split(b'"id":%d' % number)
    return Exchange((before, after + b"\n"), (bytes(answer_before) + b'"id":', bytes(answer_after)))


def measure_turn(server: Pipes, exchange: Exchange, *, window: int) -> dict[str, float]:
    """What a request takes over one turn in which `window` of them are always open."""
    meter = Meter(server.pid)
    latencies = run_load(server, exchange, window=window)
    return meter.read(len(latencies)) | percentiles(latencies)


def run_load(server: Pipes, exchange: Exchange, *, window: int) -> list[float]:
    """Send requests, a new one for each that is answered; give how long each took, in seconds."""
    began = time.perf_counter()
    until = began + SECONDS_A_TURN
    sent = dict.fromkeys(server.send(exchange.request, window), began)
    latencies = []
    while sent:
        lines = server.read_lines()
        now = time.perf_counter()
        latencies += [now - sent.pop(read_id(line, exchange, server.peer)) for line in lines]
        if now < until:
            now = time.perf_counter()
            sent |= dict.fromkeys(server.send(exchange.request, len(lines)), now)
    return latencies


def read_id(line: bytes, exchange: Exchange, peer: str) -> int:
    """Give the id of an answer; the rest has to be what was learned."""
    before, after = exchange.answer
    if not line.startswith(before) or line[len(before) + 9 :] != after:
        raise SystemExit(f"{peer} gives different answers to one request: {bytes(line[:500])!r}")
    return int(line[len(before) : len(before) + 9])
