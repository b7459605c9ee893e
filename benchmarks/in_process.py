"""CPU a call in one process, from the bytes of a request to the bytes of its answer."""

import asyncio
import gc
import time
from contextlib import AsyncExitStack

from figures import Figures, add_turn
from payloads import CALLS
from peers import Answer, check_value, open_fastmcp, open_floor, open_mcp, open_twofold, request_bytes
from processes import load_on_first_core, read_busy_seconds

LAYER = "in_process"
SECONDS_A_TURN = 0.2
OPEN = {"twofold": open_twofold, "mcp": open_mcp, "fastmcp": open_fastmcp}


def measure(
    figures: Figures, *, rounds: int, peers: tuple[str, ...] = tuple(OPEN), seconds: float = SECONDS_A_TURN
) -> None:
    """Measure every payload with every peer and the floor, in turns.

    Args:
        figures: Where the figures go.
        rounds: Turns of each peer.
        peers: Which ones beside the floor; `twofold` has to be among them.
        seconds: How long a turn is.
    """
    with load_on_first_core():  # as servers are kept to one: what a thread costs depends on where it runs
        asyncio.run(_measure(figures, rounds=rounds, peers=peers, seconds=seconds))


async def _measure(figures: Figures, *, rounds: int, peers: tuple[str, ...], seconds: float) -> None:
    async with AsyncExitStack() as stack:
        answers = {peer: await OPEN[peer](stack) for peer in peers}
        spare_collector()
        for function, arguments in CALLS.items():
            name = function.__name__
            line = request_bytes(name, arguments)
            for peer, answer in answers.items():
                check_value(name, peer, await answer(line))
            everyone = {**answers, "floor": open_floor({line: await answers["twofold"](line)})}
            for _ in range(rounds):
                for peer, answer in everyone.items():
                    measured = await measure_turn(answer, line, seconds)
                    add_turn(figures, layer=LAYER, payload=name, peer=peer, measured=measured)


def spare_collector() -> None:
    """Have the garbage collector leave alone what is loaded by now: nobody pays for the modules of others."""
    gc.collect()
    gc.freeze()


async def measure_turn(answer: Answer, line: bytes, seconds: float) -> dict[str, float]:
    """Microseconds of CPU a call, over one turn, and the cores that others used meanwhile."""
    count, busy, began, spent = 0, read_busy_seconds(), time.perf_counter(), time.process_time()
    until = began + seconds
    while time.perf_counter() < until:
        for _ in range(4):
            await answer(line)
        count += 4
    spent, elapsed = time.process_time() - spent, time.perf_counter() - began
    others = max(0.0, (read_busy_seconds() - busy - spent) / elapsed)
    return {"cpu_us": spent / count * 1e6, "foreign_cores": others}
