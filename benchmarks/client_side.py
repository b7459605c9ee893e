"""CPU a call on the client's side: call, read and judge, against a server that gives canned bytes over stdio."""

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from payloads import CALLS
from peers import make_twofold, request_bytes

ROUNDS = 7
SECONDS_A_TURN = 0.4
CANNED = Path(__file__).with_name("canned.py")
TOOLS = {"integer": 4, "models": 25, "large": 20}
"""Which payloads, and the aim against mcp."""

Call = Callable[[str], Awaitable[Any]]


async def make_canned() -> str:
    """Have a real server answer once, and give its results as JSON."""
    server = make_twofold()
    results: dict[str, str] = {}

    class Nowhere:
        def write(self, message: bytes) -> None: ...

        async def drain(self) -> None: ...

    async with server.live() as offer:
        connection = server.connect(Nowhere(), offer)
        meta = json.loads(request_bytes("integer", {}))["params"]["_meta"]
        for method in ("server/discover", "tools/list"):
            line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).encode()
            answered = await connection.answer(line)
            results[method] = json.dumps(json.loads(answered.body)["result"], separators=(",", ":"))
        for function, arguments in CALLS.items():
            if function.__name__ in TOOLS:
                answered = await connection.answer(request_bytes(function.__name__, arguments))
                body = answered.body
                results[function.__name__] = body[body.index(b'"result":') + 9 : -1].decode()
    return json.dumps(results)


async def open_clients(stack: contextlib.AsyncExitStack, canned: Path) -> dict[str, Call]:
    """Open each client on a canned server of its own."""
    from mcp import Client as OfficialClient
    from mcp.client.stdio import StdioServerParameters

    from twofold import Client, StdioServer

    arguments = {function.__name__: given for function, given in CALLS.items()}
    command = [str(CANNED), str(canned)]
    ours = await stack.enter_async_context(Client(StdioServer(command=sys.executable, args=command)))
    parameters = StdioServerParameters(command=sys.executable, args=command)
    theirs = await stack.enter_async_context(OfficialClient(parameters, mode="2026-07-28"))

    async def call_ours(name: str) -> Any:
        result = await ours.call_tool(name, arguments[name])
        if result.verdict.status != "valid":
            sys.exit(f"{name}: twofold finds {result.verdict}")
        return result.structured_content

    async def call_theirs(name: str) -> Any:
        return (await theirs.call_tool(name, arguments[name])).structured_content

    return {"twofold": call_ours, "mcp": call_theirs}


async def measure_turn(call: Call, name: str) -> float:
    """Microseconds of CPU of this process a call, over one turn."""
    count, spent, until = 0, time.process_time(), time.perf_counter() + SECONDS_A_TURN
    while time.perf_counter() < until or not count:
        await call(name)
        count += 1
    return (time.process_time() - spent) / count * 1e6


async def measure(canned: Path) -> dict[str, dict[str, list[float]]]:
    """Every payload with each client, in turns."""
    figures: dict[str, dict[str, list[float]]] = {}
    async with contextlib.AsyncExitStack() as stack:
        clients = await open_clients(stack, canned)
        for name in TOOLS:
            values = {peer: await call(name) for peer, call in clients.items()}
            ours = values["mcp"]["result"] if name != "large" else values["mcp"]
            if values["twofold"] != ours:
                sys.exit(f"{name}: the clients give different values")
            rows: dict[str, list[float]] = {peer: [] for peer in clients}
            for _ in range(ROUNDS):
                for peer, call in clients.items():
                    rows[peer].append(await measure_turn(call, name))
            figures[name] = rows
    return figures


def measure_client() -> dict[str, dict[str, list[float]]]:
    """Measure everything; payload → client → µs a call."""
    with tempfile.TemporaryDirectory() as folder:
        canned = Path(folder) / "canned.json"
        canned.write_text(asyncio.run(make_canned()))
        return asyncio.run(measure(canned))


def print_client(figures: dict[str, dict[str, list[float]]]) -> None:
    """Print the table."""
    print(f"\nClient: CPU a call and check against canned bytes over stdio, in µs: median of {ROUNDS} turns\n")
    print(f"{'payload':16}{'twofold':>12}{'mcp 2.3.0':>12}{'ratio':>9}{'aim':>6}")
    for name, rows in figures.items():
        ratio = statistics.median(theirs / ours for ours, theirs in zip(rows["twofold"], rows["mcp"], strict=True))
        medians = [statistics.median(rows[peer]) for peer in ("twofold", "mcp")]
        print(f"{name:16}{medians[0]:12.0f}{medians[1]:12.0f}{ratio:8.1f}×{TOOLS[name]:5}×")


if __name__ == "__main__":
    print_client(measure_client())
