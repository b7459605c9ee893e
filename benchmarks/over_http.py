"""CPU a request of a server process over HTTP: Twofold beside the official SDK and a floor, in one run.

The servers run on one core, the load on another, as far as the machine lets us choose. What counts is the time the
kernel says the threads of the server were on a CPU (`/proc/…/schedstat`, so this part needs Linux), divided by the
requests they answered; what the load costs does not count, nor what else the machine is doing.
"""

import contextlib
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from payloads import CALLS
from peers import REVISION, request_bytes

ROUNDS = 7
SECONDS_A_TURN = 0.2
PATIENCE_SECONDS = 20.0
CONNECTIONS = (1, 32)
PAYLOADS = ("integer", "model", "models", "sync", "large")
MAX_CONNECTIONS = {"large": 1}
"""Answers of 0.9 MB take the official SDK so long that 32 at once would take most of the run."""

PARSERS = {"fast": "uvloop and httptools", "plain": "asyncio and h11"}
PEERS = {
    "twofold": ("twofold", "fast"),
    "floor": ("floor", "fast"),
    "mcp fastest": ("mcp-fastest", "fast"),
    "twofold plain": ("twofold", "plain"),
    "floor plain": ("floor", "plain"),
    "mcp default": ("mcp", "plain"),
}
"""What each is, and what uvicorn runs it on. `pip install mcp` installs neither uvloop nor httptools."""

AIMS = {
    "mcp default": {"integer": 12.0, "model": 12.0, "models": 12.0},
    "mcp fastest": {"integer": 6.0, "model": 6.0, "models": 6.0},
    "floor": {"integer": 1.8},
}
Figures = dict[str, dict[int, dict[str, list[float]]]]


class Server(msgspec.Struct):
    """A peer's server: its process, where it listens, what it writes on stderr."""

    pid: int
    port: int
    is_floor: bool
    has_ended: Callable[[], bool]
    log: Path


class Exchange(msgspec.Struct, frozen=True):
    """A request as it is sent, and what has to come back after the head."""

    request: bytes
    tail: bytes


def measure_http() -> Figures:
    """Every payload with every peer, at 1 and at 32 connections, in turns; microseconds of the server's CPU."""
    if not Path("/proc/self/schedstat").exists():
        raise SystemExit("HTTP cannot be measured: this system has no /proc/self/schedstat; run it on Linux")
    figures: Figures = {}
    with contextlib.ExitStack() as stack:
        servers = start_servers(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for name in PAYLOADS:
            exchanges = {peer: learn(server, name) for peer, server in servers.items()}
            for count in CONNECTIONS:
                if count > MAX_CONNECTIONS.get(name, count):
                    continue
                rows: dict[str, list[float]] = {peer: [] for peer in servers}
                for turn in range(ROUNDS + 1):
                    for peer, server in servers.items():
                        spent = measure_turn(server, exchanges[peer], connections=count)
                        if turn:  # the first of each warms up
                            rows[peer].append(spent)
                figures.setdefault(name, {})[count] = rows
    return figures


def start_servers(stack: contextlib.ExitStack, logs: Path) -> dict[str, Server]:
    """Start all, on a core of their own where there are two."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) > 1:
        stack.callback(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, cores[-1:])
    servers = {peer: start_server(stack, *how, log=logs / f"{peer}.log") for peer, how in PEERS.items()}
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:1])
    for server in servers.values():
        wait_until_served(server)
    return servers


def start_server(stack: contextlib.ExitStack, peer: str, parsers: str, *, log: Path) -> Server:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("http_servers.py"), peer, parsers, str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        )
    stack.callback(stop, process)
    return Server(process.pid, port, peer == "floor", lambda: process.poll() is not None, log)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_served(server: Server) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            connect(server).close()
            return
        if server.has_ended() or time.monotonic() > until:
            raise SystemExit(f"a server did not start:\n{server.log.read_text()[-2000:]}")
        time.sleep(0.05)


def connect(server: Server) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def learn(server: Server, name: str) -> Exchange:
    """Ask once, check the answer's value, and remember its bytes: every later one has to be the same."""
    with connect(server) as connection:
        connection.sendall(http_request(server, name, connection="close"))
        answer = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    head, _, tail = answer.partition(b"\r\n\r\n")
    message = read_message(head.lower(), tail)
    if not head.startswith(b"HTTP/1.1 200 ") or message["result"]["structuredContent"] != expected_value(name):
        raise SystemExit(f"{name}: a peer gives a wrong answer: {answer[:500]!r}")
    return Exchange(http_request(server, name, connection="keep-alive"), tail)


def expected_value(name: str) -> object:
    """What a tool gives, as JSON, an object."""
    function, arguments = next((each, arguments) for each, arguments in CALLS.items() if each.__name__ == name)
    value = function(**arguments)
    if name != "sync":
        try:
            value.send(None)
        except StopIteration as done:
            value = done.value
    plain = json.loads(msgspec.json.encode(value, enc_hook=lambda each: each.model_dump()))
    return plain if isinstance(plain, dict) else {"result": plain}


def http_request(server: Server, name: str, *, connection: str) -> bytes:
    """Write a call as a client of the newest revision sends it; the floor finds its answer by the path."""
    body = request_bytes(name, next(arguments for each, arguments in CALLS.items() if each.__name__ == name))
    path = f"/{name}" if server.is_floor else "/mcp"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAccept: application/json, text/event-stream\r\n"
        f"Accept-Encoding: gzip, deflate\r\nConnection: {connection}\r\nUser-Agent: bench/1\r\n"
        f"Content-Type: application/json\r\nMCP-Protocol-Version: {REVISION}\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def read_message(head: bytes, tail: bytes) -> dict:
    """Read the JSON-RPC message of an answer: plain, in chunks, as an event."""
    if b"transfer-encoding: chunked" in head:
        chunks = []
        while (size := int(tail.partition(b"\r\n")[0], 16)) > 0:
            tail = tail.partition(b"\r\n")[2]
            chunks.append(tail[:size])
            tail = tail[size + 2 :]
        tail = b"".join(chunks)
    if b"content-type: text/event-stream" in head:
        lines = [line for line in tail.splitlines() if line.startswith(b"data: {")]
        tail = lines[-1].removeprefix(b"data: ")
    return json.loads(tail)


def measure_turn(server: Server, exchange: Exchange, *, connections: int) -> float:
    """Microseconds of the server's CPU a request, over one turn in which each connection always has one open."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connect(server)) for _ in range(connections)]
        list(map(run_one, opened, [exchange] * connections))  # what a connection costs by itself is not measured
        before = read_cpu(server.pid)
        count = run_load(opened, exchange)
        after = read_cpu(server.pid)
    return sum(spent - before.get(thread, 0) for thread, spent in after.items()) / count / 1000


def run_one(connection: socket.socket, exchange: Exchange) -> None:
    connection.sendall(exchange.request)
    received = b""
    while not is_whole(received, exchange):
        received += receive(connection)


def run_load(connections: list[socket.socket], exchange: Exchange) -> int:
    """Send a request on each connection, and the next as soon as it is answered; count the answers."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, bytearray())
            connection.sendall(exchange.request)
        count, left, until = 0, len(connections), time.perf_counter() + SECONDS_A_TURN
        while left:
            for key, _ in selector.select():
                key.data.extend(receive(key.fileobj))
                if not is_whole(key.data, exchange):
                    continue
                count += 1
                key.data.clear()
                if time.perf_counter() < until:
                    key.fileobj.sendall(exchange.request)
                else:
                    left -= 1
    return count


def receive(connection: socket.socket) -> bytes:
    received = connection.recv(1 << 20)
    if not received:
        raise SystemExit("a server closed a connection")
    return received


def is_whole(received: bytes | bytearray, exchange: Exchange) -> bool:
    """Tell whether an answer is there; it has to be what was learned."""
    start = received.find(b"\r\n\r\n") + 4
    if start < 4 or len(received) < start + len(exchange.tail):
        return False
    if not received.startswith(b"HTTP/1.1 200 ") or received[start:] != exchange.tail:
        raise SystemExit(f"a server gives different answers to one request: {bytes(received[:500])!r}")
    return True


def read_cpu(pid: int) -> dict[int, int]:
    """Nanoseconds on a CPU of each thread of a process and of those it started."""
    spent: dict[int, int] = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            spent[int(thread.name)] = int((thread / "schedstat").read_text().split()[0])
            for child in (thread / "children").read_text().split():
                spent |= read_cpu(int(child))
    return spent


def print_http(figures: Figures) -> None:
    """Print a table for each number of connections."""
    for count in CONNECTIONS:
        print(f"\nCPU a request of the server over HTTP, {count} connection(s), in µs: median of {ROUNDS} turns\n")
        print(f"{'payload':10}{'on':8}{'twofold':>22}" + "".join(f"{peer:>14}{'ratio':>8}{'aim':>6}" for peer in AIMS))
        for parsers in PARSERS:
            for name in PAYLOADS:
                if count in figures[name]:
                    print(row(name, parsers, figures[name][count]))
    print("\n" + "; ".join(f"{name}: {what}" for name, what in PARSERS.items()), end="")
    print(". mcp default runs on plain, mcp fastest on fast; the floor on what Twofold runs on, beside it.")


def row(name: str, parsers: str, rows: dict[str, list[float]]) -> str:
    """One line of a table: how many times what Twofold takes the official SDK takes, and Twofold of the floor."""
    suffix = "" if parsers == "fast" else " plain"
    ours = rows["twofold" + suffix]
    line = f"{name:10}{parsers:8}{f'{statistics.median(ours):.0f} ({min(ours):.0f}–{max(ours):.0f})':>22}"
    for peer, aims in AIMS.items():
        theirs = rows[peer + suffix if peer == "floor" else peer]
        ratio = ratio_of(ours, theirs) if peer == "floor" else ratio_of(theirs, ours)
        aim = f"{aims[name]:g}×" if name in aims else ""
        line += f"{statistics.median(theirs):14.0f}{ratio:7.1f}×{aim:>6}"
    return line


def ratio_of(these: list[float], those: list[float]) -> float:
    """The median of the ratios of turns that followed each other: the machine is slower at times, for all of them."""
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


if __name__ == "__main__":
    started = time.perf_counter()
    print_http(measure_http())
    print(f"{time.perf_counter() - started:.0f} s")
