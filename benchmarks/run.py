"""CPU a call, bytes to bytes and over HTTP, and cold start: Twofold beside the official SDK and a floor, in one run.

The machines are shared and noisy: peers take turns within each round, CPU time is compared and not the
clock (but for cold start), and what counts is the ratio of the medians. Prints a table; with a file name
as argument, writes the figures as JSON too.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from client_side import measure_client, print_client
from over_http import measure_http, print_http
from payloads import CALLS
from peers import META, open_floor, open_mcp, open_twofold, request_bytes

ROUNDS = 9
SECONDS_A_TURN = 0.25
COLD_STARTS = 11
AIMS = {
    "integer": 25, "model": 18, "models": 8, "models_checked": 4, "large": 6, "large_checked": 3, "sync": 4,
    "cold start": 4,
}  # fmt: skip

COLD = {
    "twofold": "from twofold import MCPServer\nmcp = MCPServer('cold')\n",
    "mcp": "from mcp.server.mcpserver import MCPServer\nmcp = MCPServer('cold', log_level='WARNING')\n",
}
COLD_TOOL = (
    '@mcp.tool()\nasync def add(x: int, y: int) -> int:\n    "Add two numbers."\n    return x + y\nmcp.run("stdio")\n'
)


async def measure_turn(answer, line: bytes) -> float:
    """Microseconds of CPU a call, over one turn."""
    count, spent, until = 0, time.process_time(), time.perf_counter() + SECONDS_A_TURN
    while time.perf_counter() < until:
        for _ in range(4):
            await answer(line)
        count += 4
    return (time.process_time() - spent) / count * 1e6


async def measure_calls() -> dict[str, dict[str, list[float]]]:
    """Every payload with every peer, in turns."""
    figures: dict[str, dict[str, list[float]]] = {}
    async with AsyncExitStack() as stack:
        twofold, mcp = await open_twofold(stack), await open_mcp(stack)
        for function, arguments in CALLS.items():
            name = function.__name__
            line = request_bytes(name, arguments)
            answers = {"twofold": await twofold(line), "mcp": await mcp(line)}
            check_same(name, answers)
            peers = {"twofold": twofold, "mcp": mcp, "floor": open_floor({line: answers["twofold"]})}
            rows: dict[str, list[float]] = {peer: [] for peer in peers}
            for _ in range(ROUNDS):
                for peer, answer in peers.items():
                    rows[peer].append(await measure_turn(answer, line))
            figures[name] = rows
    return figures


def check_same(name: str, answers: dict[str, bytes]) -> None:
    """Peers that answer differently cannot be compared."""
    results = {peer: json.loads(answer)["result"] for peer, answer in answers.items()}
    if results["twofold"]["structuredContent"] != results["mcp"]["structuredContent"]:
        sys.exit(f"{name}: the peers give different values")
    if any(result.get("isError") for result in results.values()):
        sys.exit(f"{name}: a peer gives an error")


def measure_cold_start() -> dict[str, list[float]]:
    """Milliseconds from spawning a server of one tool to its first answer to a call."""
    rows: dict[str, list[float]] = {peer: [] for peer in COLD}
    for turn in range(COLD_STARTS + 1):
        for peer, opening in COLD.items():
            milliseconds = start_once(opening + COLD_TOOL)
            if turn:  # the first of each fills the disk's cache
                rows[peer].append(milliseconds)
    return rows


def start_once(program: str) -> float:
    """Spawn, call, stop."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        process.stdin.write(request_bytes("add", {"x": 2, "y": 40}) + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        elapsed = (time.perf_counter() - started) * 1e3
        process.stdin.close()
    if answer["result"]["structuredContent"] != {"result": 42}:
        sys.exit(f"cold start: wrong answer {answer}")
    return elapsed


def main() -> None:
    """Measure and print."""
    figures = asyncio.run(measure_calls())
    print(f"CPU a call, bytes to bytes, in µs: median of {ROUNDS} turns (lowest to highest)\n")
    head = f"{'payload':16}{'twofold':>28}{'mcp 2.3.0':>30}{'floor':>9}{'ratio':>8}{'aim':>6}"
    print(head)
    for name, rows in figures.items():
        print(row(name, rows["twofold"], rows["mcp"], f"{statistics.median(rows['floor']):9.2f}"))
    cold = measure_cold_start()
    print(f"\nSpawn to first answer, in ms: median of {COLD_STARTS} turns\n\n{head}")
    print(row("cold start", cold["twofold"], cold["mcp"], f"{'':9}"))
    over_http = measure_http()
    print_http(over_http)
    client = measure_client()
    print_client(client)
    if len(sys.argv) > 1:
        written = {**figures, "cold start": cold, "http": over_http, "client": client, "meta": META}
        Path(sys.argv[1]).write_text(json.dumps(written, indent=1))


def row(name: str, ours: list[float], theirs: list[float], floor: str) -> str:
    """One line of the table."""
    ratio = statistics.median(theirs) / statistics.median(ours)
    spread = [f"{statistics.median(each):11.1f} ({min(each):.1f}–{max(each):.1f})" for each in (ours, theirs)]
    return f"{name:16}{spread[0]:>28}{spread[1]:>30}{floor}{ratio:7.1f}×{AIMS[name]:5}×"


if __name__ == "__main__":
    main()
