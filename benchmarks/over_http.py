"""CPU a request of a server over HTTP, at 1 and at 32 connections: each peer a process of its own, in turns.

A client keeps the connections busy with the requests of the newest revision, headers and all, and compares every answer
with the first, whose value was checked.
"""

import contextlib
import selectors
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from figures import Figures, add_turn
from peers import PEERS as ENVIRONMENTS
from peers import REVISION, arguments_of, check_value, request_bytes, serve_command
from processes import PATIENCE_SECONDS, Meter, load_on_first_core, percentiles, started

LAYERS = {"http_1": 1, "http_32": 32}
"""How many connections there are in each."""
PAYLOADS = ("integer", "model", "models", "sync", "large")
ONE_CONNECTION = ("large",)
"""Answers of 0.9 MB take the slower peers so long that 32 at once would take most of the run."""
SECONDS_A_TURN = 0.2

SERVERS = {
    "twofold": ("twofold", "fast"),
    "floor": ("floor", "fast"),
    "mcp fastest": ("mcp", "fast"),
    "fastmcp fastest": ("fastmcp", "fast"),
    "typescript": ("typescript", "fast"),
    "twofold plain": ("twofold", "plain"),
    "floor plain": ("floor", "plain"),
    "floor uvicorn": ("uvicorn", "fast"),
    "mcp": ("mcp", "plain"),
    "fastmcp": ("fastmcp", "plain"),
}
"""Each peer, and what it runs on: Twofold on uvloop or not, others under uvicorn, `fast` with uvloop and httptools."""


class Server(msgspec.Struct):
    """A peer's server: what it is, its process, where it listens, what it writes on stderr."""

    peer: str
    process: subprocess.Popen
    port: int
    log: Path


class Exchange(msgspec.Struct, frozen=True):
    """A request as it is sent, and what has to come back after the head."""

    request: bytes
    tail: bytes


def measure(figures: Figures, *, rounds: int) -> None:
    """Measure every payload with every peer; the first turn of each warms up."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(load_on_first_core())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {name: stack.enter_context(open_server(name, folder)) for name in SERVERS}
        for payload in PAYLOADS:
            exchanges = {name: learn(server, payload) for name, server in servers.items()}
            for layer, connections in LAYERS.items():
                if connections > 1 and payload in ONE_CONNECTION:
                    continue
                for turn in range(rounds + 1):
                    for name, server in servers.items():
                        measured = measure_turn(server, exchanges[name], connections=connections)
                        if turn:
                            add_turn(figures, layer=layer, payload=payload, peer=name, measured=measured)


@contextlib.contextmanager
def open_server(name: str, folder: Path) -> Iterator[Server]:
    """Start a server of the table and wait until it listens."""
    peer, parsers = SERVERS[name]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = parsers == "plain" or peer in {"twofold", "floor"}
    python = None if own else ENVIRONMENTS / "bench" / "bin" / "python"  # where uvloop and httptools are
    log = folder / f"{name}.log"
    with started(serve_command(peer, "http", parsers, str(port), python=python), log=log) as process:
        server = Server(name, process, port, log)
        wait_until_served(server)
        yield server


def wait_until_served(server: Server) -> None:
    """Wait until a connection is accepted.

    Raises:
        SystemExit: The server has ended, or takes too long.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            connect(server).close()
            return
        if server.process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{server.peer} did not start:\n{server.log.read_text()[-2000:]}")
        time.sleep(0.05)


def connect(server: Server) -> socket.socket:
    """Open a connection."""
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def learn(server: Server, payload: str) -> Exchange:
    """Ask once, check the answer's value, and remember its bytes: every later one has to be the same."""
    with connect(server) as connection:
        connection.sendall(http_request(server, payload, connection="close"))
        answer = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    head, _, tail = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"{payload}: {server.peer} answers {answer[:500]!r}")
    check_value(payload, server.peer, read_message(head.lower(), tail))
    return Exchange(http_request(server, payload, connection="keep-alive"), tail)


def http_request(server: Server, payload: str, *, connection: str) -> bytes:
    """Write a call as a client of the newest revision sends it; the floor finds its answer by the path."""
    body = request_bytes(payload, arguments_of(payload))
    path = f"/{payload}" if SERVERS[server.peer][0] in {"floor", "uvicorn"} else "/mcp"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAccept: application/json, text/event-stream\r\n"
        f"Accept-Encoding: gzip, deflate\r\nConnection: {connection}\r\nUser-Agent: bench/1\r\n"
        f"Content-Type: application/json\r\nMCP-Protocol-Version: {REVISION}\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: {payload}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def read_message(head: bytes, tail: bytes) -> bytes:
    """Find the JSON-RPC message of an answer: plain, in chunks, as an event."""
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
    return tail


def measure_turn(server: Server, exchange: Exchange, *, connections: int) -> dict[str, float]:
    """What a request takes over one turn in which each connection always has one open."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connect(server)) for _ in range(connections)]
        for connection in opened:  # what a connection costs by itself is not measured
            run_one(connection, exchange)
        meter = Meter(server.process.pid)
        latencies = run_load(opened, exchange)
        return meter.read(len(latencies)) | percentiles(latencies)


def run_one(connection: socket.socket, exchange: Exchange) -> None:
    """Send a request and wait for its answer."""
    connection.sendall(exchange.request)
    received = bytearray()
    while not is_whole(received, exchange):
        received += receive(connection)


def run_load(connections: list[socket.socket], exchange: Exchange) -> list[float]:
    """Send a request on each connection, and the next as soon as it is answered; give the seconds that each took."""
    with selectors.DefaultSelector() as selector:
        began = time.perf_counter()
        until = began + SECONDS_A_TURN
        sent = dict.fromkeys(connections, began)
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, bytearray())
            connection.sendall(exchange.request)
        latencies = []
        while sent:
            for key, _ in wait_for(selector):
                key.data.extend(receive(key.fileobj))
                if not is_whole(key.data, exchange):
                    continue
                now = time.perf_counter()
                latencies.append(now - sent.pop(key.fileobj))
                key.data.clear()
                if now < until:
                    sent[key.fileobj] = now
                    key.fileobj.sendall(exchange.request)
    return latencies


def wait_for(selector: selectors.BaseSelector) -> list[tuple[selectors.SelectorKey, int]]:
    """Wait until a connection has something.

    Raises:
        SystemExit: None has, for too long.
    """
    ready = selector.select(PATIENCE_SECONDS)
    if not ready:
        raise SystemExit(f"a server has not answered for {PATIENCE_SECONDS:.0f} seconds")
    return ready


def receive(connection: socket.socket) -> bytes:
    """Wait for bytes."""
    received = connection.recv(1 << 20)
    if not received:
        raise SystemExit("a server closed a connection")
    return received


def is_whole(received: bytearray, exchange: Exchange) -> bool:
    """Tell whether an answer is there; it has to be what was learned."""
    start = received.find(b"\r\n\r\n") + 4
    if start < 4 or len(received) < start + len(exchange.tail):
        return False
    if not received.startswith(b"HTTP/1.1 200 ") or received[start:] != exchange.tail:
        raise SystemExit(f"a server gives different answers to one request: {bytes(received[:500])!r}")
    return True
