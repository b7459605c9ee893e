"""CPU a call on the client's side: call, read and judge, against a server that gives canned bytes over stdio."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from canned import make_canned
from figures import Figures, add_turn
from in_process import spare_collector
from peers import REVISION, arguments_of, expected_value, python_of
from processes import CORES, load_on_first_core, read_busy_seconds

LAYER = "client"
SECONDS_A_TURN = 0.4
PAYLOADS = ("integer", "models", "large")
Call = Callable[[str], Awaitable[Any]]


def measure(figures: Figures, *, rounds: int) -> None:
    """Measure every payload with each client, in turns; the first turn of each warms up."""
    with tempfile.TemporaryDirectory() as folder:
        canned = Path(folder) / "canned.json"
        canned.write_text(asyncio.run(make_canned(PAYLOADS)))
        with load_on_first_core():
            asyncio.run(_measure(figures, canned, rounds=rounds))


async def _measure(figures: Figures, canned: Path, *, rounds: int) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = await open_clients(stack, canned)
        spare_collector()
        for name in PAYLOADS:
            for peer, call in clients.items():
                if await call(name) != expected_value(name):
                    raise SystemExit(f"{name}: the client of {peer} gives a wrong value")
            for turn in range(rounds + 1):
                for peer, call in clients.items():
                    measured = await measure_turn(call, name)
                    if turn:
                        add_turn(figures, layer=LAYER, payload=name, peer=peer, measured=measured)


async def open_clients(stack: contextlib.AsyncExitStack, canned: Path) -> dict[str, Call]:
    """Open each client on a canned server of its own; each call gives the structured content, judged."""
    from fastmcp import Client as FastMcpClient
    from fastmcp.client.transports import StdioTransport
    from mcp import Client as OfficialClient
    from mcp.client.stdio import StdioServerParameters

    from twofold import Client, StdioServer

    command = str(python_of("floor"))
    args = [str(Path(__file__).with_name("canned.py")), str(canned), str(max(CORES))]
    ours = await stack.enter_async_context(Client(StdioServer(command=command, args=args)))
    parameters = StdioServerParameters(command=command, args=args)
    official = await stack.enter_async_context(OfficialClient(parameters, mode=REVISION))
    fast = await stack.enter_async_context(FastMcpClient(StdioTransport(command, args), mode=REVISION))

    async def call_ours(name: str) -> Any:
        result = await ours.call_tool(name, arguments_of(name))
        if result.verdict.status != "valid":
            raise SystemExit(f"{name}: twofold finds {result.verdict}")
        value = result.structured_content  # without the wrapper of a value that is no object
        return value if name == "large" else {"result": value}

    async def call_official(name: str) -> Any:
        return (await official.call_tool(name, arguments_of(name))).structured_content

    async def call_fast(name: str) -> Any:
        return (await fast.call_tool(name, arguments_of(name))).structured_content

    return {"twofold": call_ours, "mcp": call_official, "fastmcp": call_fast}


async def measure_turn(call: Call, name: str) -> dict[str, float]:
    """Microseconds of CPU of this process a call, over one turn, and what is using the machine besides."""
    count, busy, began, spent = 0, read_busy_seconds(), time.perf_counter(), time.process_time()
    until = began + SECONDS_A_TURN
    while time.perf_counter() < until or not count:
        await call(name)
        count += 1
    spent, elapsed = time.process_time() - spent, time.perf_counter() - began
    # The canned server counts as another: it does next to nothing.
    return {"cpu_us": spent / count * 1e6, "foreign_cores": max(0.0, (read_busy_seconds() - busy - spent) / elapsed)}
