"""The fleet of `examples/fleet`, for real: nginx in front of processes of two regions, and what a killed one costs.

What it needs is named by the environment, and installed by `.ci/run`: `TWOFOLD_NGINX`, Debian's nginx, and
`TWOFOLD_MCP2`, an interpreter with the official Python client.
"""

import asyncio
import collections
import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.external.test_official_clients import start_of
from twofold import Client, OutcomeUnknown

EXAMPLE = Path(__file__).parents[2] / "examples/fleet"
BOUND_SECONDS = 60
AT_ONCE = 32
REGIONS = ("eu", "us")


def nginx() -> str:
    found = os.environ.get("TWOFOLD_NGINX")
    assert found, "TWOFOLD_NGINX has to name an nginx; .ci/run gets Debian's"
    return found


@dataclass(frozen=True)
class Fleet:
    """The example, running."""

    url: str
    folder: Path
    ports: dict[str, int]
    parents: dict[str, int]

    def workers(self, region: str) -> set[int]:
        """Look up the processes of a region that serve."""
        parent = self.parents[region]
        return {int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}

    def journal(self) -> dict[str, dict[str, list[int]]]:
        """Read what the tools did: by kind of entry and parcel, the processes that noted it."""
        kinds: dict[str, dict[str, list[int]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        for line in (self.folder / "journal").read_text().splitlines():
            kind, process, parcel = line.split()
            kinds[kind][parcel].append(int(process))
        return kinds

    def in_flight(self, process: int) -> set[str]:
        """Tell which parcels a process has begun and not finished."""
        journal = self.journal()
        return {
            parcel for parcel, by in journal["begun"].items() if process in by and parcel not in journal["finished"]
        }

    def routed(self, *, skip: int) -> list[tuple[str, str, str]]:
        """Read from nginx's log the region, port and status of the calls, after so many lines."""
        lines = (self.folder / "access.log").read_text().splitlines()[skip:]
        pattern = r'(\d+) region="(\S+)" method="tools/call" to="127\.0\.0\.1:(\d+)" '
        return [(found[2], found[3], found[1]) for found in (re.match(pattern, line) for line in lines) if found]

    def log_length(self) -> int:
        return len((self.folder / "access.log").read_text().splitlines())


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    process = subprocess.Popen(
        [sys.executable, EXAMPLE / "run.py"],
        env={**os.environ, "TWOFOLD_NGINX": nginx()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        said = "".join(lines)
        url = re.match(r"Serving at (\S+) \(Ctrl-C ends it\)\n", said)
        assert url, said
        machines = {
            found[1]: (int(found[2]), int(found[3])) for found in re.finditer(r"(..): port (\d+), process (\d+)", said)
        }
        folder = Path(lines[3].partition(":")[0])
        ports, parents = ({name: each[place] for name, each in machines.items()} for place in (0, 1))
        running = Fleet(url[1], folder, ports, parents)
        yield running
        begun = {*parents.values(), *running.workers("eu"), *running.workers("us")}
    finally:
        process.terminate()
        status = process.wait(BOUND_SECONDS)
        rest = process.communicate()[0]
    assert (status, rest, folder.exists()) == (0, "", False)
    assert not [each for each in begun if Path(f"/proc/{each}").exists()]


async def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + BOUND_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        await asyncio.sleep(0.02)


async def test_calls_go_to_their_region_and_the_rest_to_any(fleet):
    """Issue 5: nginx routes on `Mcp-Param-Region` alone; what names no region is for all."""
    skipped = fleet.log_length()
    async with Client(fleet.url) as client:
        for region, quote in (("eu", (12.0, "EUR")), ("us", (13.5, "USD"))):
            results = [await client.call_tool("quote", {"region": region, "weight_kg": 2}) for _ in range(6)]
            seen = [result.structured_content for result in results]
            assert [(each["price"], each["currency"], each["served_by"]["region"]) for each in seen] == [
                (*quote, region)
            ] * 6
            assert {each["served_by"]["process_id"] for each in seen} <= fleet.workers(region)
        anywhere = [await client.call_tool("whoami") for _ in range(6)]
        assert {each.structured_content["region"] for each in anywhere} == {"eu", "us"}
    eu, us = (str(fleet.ports[region]) for region in REGIONS)
    routed = collections.Counter(fleet.routed(skip=skipped))
    assert (routed.pop(("eu", eu, "200")), routed.pop(("us", us, "200"))) == (6, 6)
    assert (set(routed), routed.total()) == ({("-", eu, "200"), ("-", us, "200")}, 6)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param("eu", 400, id="another region than the body"),
        pytest.param("mars", 400, id="no region of ours"),
        pytest.param(None, 400, id="no header"),
        pytest.param("us", 200, id="what the body says"),
    ],
)
async def test_a_header_that_lies_is_refused_by_the_process_it_leads_to(fleet, header, status):
    """B3: the balancer may trust the header, because the server compares it with the body."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "quote", "arguments": {"region": "us", "weight_kg": 1}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "quote"} | (
        {} if header is None else {"Mcp-Param-Region": header}
    )
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.post(fleet.url, json=message, headers=headers)
    assert response.status_code == status
    assert response.json().get("error", {}).get("code") == (None if status == 200 else -32020)


async def test_a_stream_passes_as_it_comes(fleet):
    """Issue 5: event streams are not buffered: progress is there before the call has come to its end."""
    waiting: asyncio.Queue[tuple[float, float | None, str | None]] = asyncio.Queue()
    async with Client(fleet.url) as client:
        arguments = {"region": "eu", "parcel": "slow"}
        following = asyncio.create_task(
            client.call_tool("follow", arguments, on_progress=lambda *given: waiting.put_nowait(given))
        )
        assert await waiting.get() == (0, 1, "slow is not on its way yet")
        assert not following.done()
        await client.call_tool("ship", {"region": "us", "parcel": "slow"})  # only now can the first one end
        result = await following
    assert result.structured_content["served_by"]["region"] == "eu"


async def test_a_call_whose_client_goes_is_cancelled_behind_nginx(fleet):
    """2026-07-28, Streamable HTTP: a closed connection cancels the call; nginx hands that on."""
    waiting = asyncio.Event()
    async with Client(fleet.url) as client:
        arguments = {"region": "us", "parcel": "never"}
        following = asyncio.create_task(client.call_tool("follow", arguments, on_progress=lambda *_: waiting.set()))
        await waiting.wait()
        following.cancel()
        await asyncio.wait({following})
        await until(lambda: fleet.journal()["left"]["never"])
    assert len(fleet.journal()["left"]["never"]) == 1


@dataclass
class Load:
    """Calls, each with a parcel of its own, and what came of each."""

    sent: dict[str, str]
    answered: dict[str, dict[str, object]]
    lost: dict[str, OutcomeUnknown]

    @classmethod
    def of(cls, name: str, count: int) -> "Load":
        return cls({f"{name}-{number}": REGIONS[number % 2] for number in range(count)}, {}, {})

    async def put(self, url: str) -> None:
        """Send all of them, so many at once; an error that is not `OutcomeUnknown` is raised."""
        left = iter(self.sent.items())

        async def send(client: Client) -> None:
            for parcel, region in left:
                try:
                    result = await client.call_tool("ship", {"region": region, "parcel": parcel})
                except OutcomeUnknown as error:
                    self.lost[parcel] = error
                else:
                    self.answered[parcel] = result.structured_content

        async with Client(url) as one, Client(url) as other, asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(send(one if number % 2 else other))

    def check_answers(self, fleet: Fleet) -> None:
        """Each answer is that of its own question, given once, by the process that did it."""
        journal = fleet.journal()
        for parcel, answer in self.answered.items():
            by = answer["served_by"]["process_id"]
            region = self.sent[parcel]
            assert answer == {"parcel": parcel, "region": region, "served_by": {"region": region, "process_id": by}}
            assert (journal["begun"][parcel], journal["finished"][parcel]) == ([by], [by])


async def catch_in_flight(fleet: Fleet, region: str) -> tuple[int, set[str]]:
    """Stop a process of a region at a moment in which it has calls in flight; gives it, and them."""
    while True:
        for process in fleet.workers(region):
            os.kill(process, signal.SIGSTOP)
            in_flight = fleet.in_flight(process)
            if in_flight:
                return process, in_flight
            os.kill(process, signal.SIGCONT)
            await asyncio.sleep(0.005)


async def test_a_process_killed_under_load_costs_the_calls_in_flight_on_it_and_no_other(fleet):
    """Issue 5, scale-out: no answer is lost or wrong beyond the calls in flight on the killed process."""
    skipped = fleet.log_length()
    load = Load.of("load", 600)
    loading = asyncio.create_task(load.put(fleet.url))
    await until(lambda: len(load.answered) > 100 or loading.done())
    killed, in_flight = await catch_in_flight(fleet, "eu")
    assert not loading.done()
    os.kill(killed, signal.SIGKILL)
    await loading

    assert load.answered.keys() | load.lost.keys() == load.sent.keys()
    assert not load.answered.keys() & load.lost.keys()
    load.check_answers(fleet)
    # What it had begun is lost, and told as such; so is what it had been handed and not looked at. Nobody repeated any.
    assert in_flight <= load.lost.keys()
    begun = fleet.journal()["begun"]
    assert {process for parcel in load.lost for process in begun[parcel]} == {killed}
    assert {parcel: len(begun[parcel]) for parcel in in_flight} == dict.fromkeys(in_flight, 1)
    assert len(load.lost) <= AT_ONCE
    # Either it had begun to answer, or nginx says for it that there is no answer; nginx asked no other process.
    unanswered = [error for error in load.lost.values() if "the server answered 502 Bad Gateway" in error.reason]
    torn = [error for error in load.lost.values() if "the connection broke before there was an answer" in error.reason]
    assert len(unanswered) + len(torn) == len(load.lost)
    broken = [entry for entry in fleet.routed(skip=skipped) if entry[2] != "200"]
    assert broken == [("eu", str(fleet.ports["eu"]), "502")] * len(unanswered)

    # Then there is another in its place, and everything is served again.
    await until(lambda: len(fleet.workers("eu") - {killed}) == 2)
    after = Load.of("after", 100)
    await after.put(fleet.url)
    assert (after.answered.keys(), after.lost) == (after.sent.keys(), {})
    after.check_answers(fleet)


async def test_a_machine_that_is_down_is_gone_round(tmp_path):
    """A call that found no connection was begun by nobody: another machine takes it. Its own region's is lost."""
    spec = importlib.util.spec_from_file_location("fleet_run", EXAMPLE / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    with contextlib.ExitStack() as stack:
        us = stack.enter_context(run.machine("us", tmp_path))
        ports = {"us": run.port_of(us), "eu": run.free_port(), "front": run.free_port()}
        stack.enter_context(run.balancing(nginx(), tmp_path, ports))
        await until(lambda: run.is_listening(ports["front"]))
        async with Client(f"http://127.0.0.1:{ports['front']}/mcp") as client:
            results = [await client.call_tool("whoami") for _ in range(8)]
            assert {result.structured_content["region"] for result in results} == {"us"}
            with pytest.raises(OutcomeUnknown, match="502 Bad Gateway"):
                await client.call_tool("quote", {"region": "eu", "weight_kg": 1})
            assert (await client.call_tool("quote", {"region": "us", "weight_kg": 1})).structured_content[
                "price"
            ] == 8.25


@pytest.mark.parametrize(("mode", "version"), [("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_official_client_calls_through_nginx(fleet, mode, version):
    """Both eras of a client nobody here wrote; the newer one sends the header that nginx routes by."""
    command, folder = start_of("mcp2")
    task = json.dumps({"url": fleet.url, "mode": mode, "calls": {"quote": {"region": "us", "weight_kg": 2}}})
    done = subprocess.run(command, cwd=folder, input=task, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    quote = seen["calls"]["quote"]["structured"]
    assert (seen["version"], quote["price"], quote["currency"]) == (version, 13.5, "USD")
    regions = {"us"} if mode == "2026-07-28" else {"eu", "us"}
    assert quote["served_by"]["region"] in regions
