"""Soak: real servers over stdio and HTTP under mixed load and faults, watched for anything that grows or is lost.

`python benchmarks/soak/run.py [--minutes 3] [--seed 1]`. Prints a table, and ends with status 1 and what broke if a
promise did: every request answered exactly once; memory flat; no task, descriptor or child left; threads bounded.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NamedTuple

from account import Account
from holdings import count_holdings
from http_load import HttpServer, abandon_sessions, be_slow, pipeline, use_client, vanish
from stdio_load import LinePeer, come_and_go, read_slowly, speak_in_lines

from twofold import Client

WARM_UP = 0.4
"""The part of the time after which growth counts: pools, caches and threads have filled by then."""
GROWTH_BYTES = 6 * 2**20
"""What memory may grow from then to the end, by its slope (Theil and Sen): noise of the allocator, no leak."""
CLIENT_GROWTH_BYTES = 24 * 2**20
"""The same for the process of the clients, in which many answers of a megabyte and more are under way at once."""
GROWTH_OBJECTS = 3000
"""The same for what the garbage collector knows, in any of them: a session or a connection has some 50."""
MAX_THREADS = 64
"""More than the calls in threads that are ever under way at once."""
SETTLE_SECONDS = 10.0
"""So long calls of clients that have gone may take to end."""


class Reading(NamedTuple):
    """What a process held at a time."""

    at: float
    state: dict[str, int]


class Watched:
    """One process and its readings."""

    def __init__(self, name: str, ask: Any, *, growth_bytes: int = GROWTH_BYTES) -> None:
        self.name = name
        self.allowed = {"resident_bytes": growth_bytes, "objects": GROWTH_OBJECTS}
        self.ask = ask
        self.readings: list[Reading] = []
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}

    async def read(self) -> None:
        """Take a reading."""
        self.readings.append(Reading(time.monotonic(), await self.ask()))

    def growth(self, what: str, since: float) -> float:
        """Tell what something has grown since then: the median of all slopes between two readings, times the time."""
        late = [reading for reading in self.readings if reading.at >= since]
        if len(late) < 3:
            return 0.0
        slopes = [
            (two.state[what] - one.state[what]) / (two.at - one.at) for one, two in itertools.combinations(late, 2)
        ]
        return statistics.median(slopes) * (late[-1].at - late[0].at)


async def own_state() -> dict[str, int]:
    """Tell what this process holds, which runs the clients."""
    return count_holdings()


async def soak(seconds: float, seed: int, account: Account, log: Any) -> tuple[list[Watched], float]:
    """Run the load; gives what was watched, and since when growth counts."""
    rngs = (random.Random(seed + n) for n in itertools.count())  # noqa: S311 - a load that can be repeated
    async with AsyncExitStack() as stack:
        lines = await stack.enter_async_context(LinePeer(account, log))
        slow = await stack.enter_async_context(LinePeer(account, log))
        http = await stack.enter_async_context(HttpServer(account, log))
        watcher = await stack.enter_async_context(Client(http.url))

        async def http_state() -> dict[str, int]:
            found: dict[str, int] = (await watcher.call_tool("state", {})).structured_content
            return found

        watched = [
            Watched("stdio", lines.state), Watched("stdio, slow reader", slow.state),
            Watched("http", http_state), Watched("clients", own_state, growth_bytes=CLIENT_GROWTH_BYTES),
        ]  # fmt: skip
        for each in watched:
            await each.ask()  # the first answer opens connections and fills caches
            each.before = await each.ask()
        end = time.monotonic() + seconds
        since = end - seconds * (1 - WARM_UP)
        is_over = partial(_is_past, end)
        loads = [speak_in_lines(lines, is_over, next(rngs)) for _ in range(12)]
        loads += [read_slowly(slow, is_over, next(rngs)), come_and_go(account, is_over, next(rngs))]
        loads += [use_client(http, "2026-07-28", is_over, next(rngs)) for _ in range(3)]
        loads += [use_client(http, "2025-11-25", is_over, next(rngs)) for _ in range(2)]
        loads += [vanish(http, is_over, next(rngs)) for _ in range(3)]
        loads += [each(http, is_over, next(rngs)) for each in (be_slow, be_slow, pipeline, abandon_sessions)]
        async with asyncio.TaskGroup() as group:
            for load in loads:
                group.create_task(load)
            group.create_task(watch(watched, is_over, seconds / 80))
        for each in watched:
            await settle(each)
    return watched, since


def _is_past(end: float) -> bool:
    return time.monotonic() >= end


async def watch(watched: list[Watched], is_over: Any, interval_seconds: float) -> None:
    """Take a reading of each now and then."""
    while not is_over():
        for each in watched:
            await each.read()
        await asyncio.sleep(interval_seconds)


async def settle(each: Watched) -> None:
    """Wait until a process is as it was before the load, as far as it will be."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        each.after = await each.ask()
        is_settled = all(each.after[what] <= each.before[what] for what in ("tasks", "descriptors", "children"))
        if is_settled or time.monotonic() > end:
            return
        await asyncio.sleep(0.1)


def judge(watched: list[Watched], since: float, account: Account) -> None:
    """Note every promise that was not kept."""
    account.close()
    for each in watched:
        for what in ("tasks", "descriptors", "children"):
            if each.after[what] > each.before[what]:
                account.fault(
                    f"{each.name}: {each.after[what]} {what} are left, before the load there were {each.before[what]}"
                )
        most = max(reading.state["threads"] for reading in each.readings)
        if most > MAX_THREADS:
            account.fault(f"{each.name}: {most} threads, at most {MAX_THREADS} were expected")
        for what, allowed in each.allowed.items():
            growth = each.growth(what, since)
            if growth > allowed:
                account.fault(f"{each.name}: {what} grew by {growth:.0f} after the warm-up, {allowed} are allowed")


def print_table(watched: list[Watched], since: float, account: Account, seconds: float) -> None:
    """Print what was asked, and what each process held."""
    print(f"{account.asked} requests in {seconds:.0f} s, each answered exactly once, or its client had gone:")
    for kind, count in sorted(account.kinds.items()):
        print(f"  {kind:34}{count:9}")
    print("\nprocess              MiB before     end  growth  objects  growth     tasks  threads  descriptors")
    for each in watched:
        last = each.readings[-1].state
        print(
            f"{each.name:20}{each.before['resident_bytes'] / 2**20:11.1f}{last['resident_bytes'] / 2**20:8.1f}"
            f"{each.growth('resident_bytes', since) / 2**20:8.2f}"
            f"{last['objects']:9}{each.growth('objects', since):8.0f}"
            f"{each.before['tasks']:6}→{each.after['tasks']:3}{max(one.state['threads'] for one in each.readings):9}"
            f"{each.before['descriptors']:9}→{each.after['descriptors']:3}"
        )
    print(
        "growth: after the warm-up, by the median slope; threads: the most at once; tasks, descriptors: before → after"
    )


def main() -> int:
    """Soak and judge; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    seconds = given.seconds or given.minutes * 60
    account = Account()
    with tempfile.TemporaryFile() as log:
        watched, since = asyncio.run(soak(seconds, given.seed, account, log))
        log.seek(0)
        for line in log:
            if b"server's own" in line or b"never retrieved" in line or b"was never awaited" in line:
                account.fault(f"logged: {line.decode(errors='replace').rstrip()}")
    judge(watched, since, account)
    print_table(watched, since, account, seconds)
    for fault in account.faults:
        print("BROKEN", fault, file=sys.stderr)
    return 1 if account.faults else 0


if __name__ == "__main__":
    sys.exit(main())
