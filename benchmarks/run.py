"""Measures Twofold beside its peers and the floors, in one run: `run.py [--only PART,…] [--rounds N] [--json FILE]`.

Prints tables and which aims are reached, and writes every figure as JSON. The machines are shared and noisy: peers take
turns within each round, CPU time comes before the clock, and what counts is the median of the ratios of the rounds.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import client_side
import cold_start
import imports
import in_process
import listing
import memory
import over_http
import over_stdio
import tables
from figures import Figures, write_run
from peers import PEERS, VERSIONS, node, node_folder, python_of

PARTS: dict[str, Callable[..., None]] = {
    "in-process": in_process.measure,
    "stdio": over_stdio.measure,
    "http": over_http.measure,
    "client": client_side.measure,
    "cold-start": cold_start.measure,
    "listing": listing.measure,
    "memory": memory.measure,
    "import": imports.measure,
}
ROUNDS = 7
LAST = Path(__file__).parent / "results" / "last.json"
"""Ignored by git; the run that the documents quote is `reference.json` beside it."""


def main() -> None:
    """Measure, print, write."""
    options = read_options()
    check_installed()
    figures, seconds = Figures(), dict[str, int]()
    for part in options.only:
        print(f"measuring: {part} …", file=sys.stderr, flush=True)
        began = time.perf_counter()
        PARTS[part](figures, rounds=options.rounds)
        seconds[part] = round(time.perf_counter() - began)
    print("\n".join(tables.render_run(figures)))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    write_run(options.json, {"about": describe_run(options.rounds, seconds), "figures": figures})
    print(f"\n{sum(seconds.values())} s; every figure is in {options.json}")


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", type=read_parts, default=list(PARTS), help=f"parts: {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each peer, 7 unless told")
    parser.add_argument("--json", type=Path, default=LAST, help="the file of figures")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds: expected 1 or more, got {options.rounds}")
    return options


def read_parts(text: str) -> list[str]:
    """Read the names of parts."""
    parts = text.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return parts


def check_installed() -> None:
    """Stop before anything is measured where it would have a gap.

    Raises:
        SystemExit: A peer is missing, this is not Linux, or this interpreter is not that of the benchmark.
    """
    if not Path("/proc/self/schedstat").exists():
        raise SystemExit("this system has no /proc/self/schedstat; the benchmark needs Linux")
    if Path(sys.prefix).resolve() != (PEERS / "bench").resolve():
        raise SystemExit(
            "this Python has not what is measured: say `make bench`, a part of it `make bench ONLY=client ROUNDS=1`; "
            f"or after `make peers`, which installs it: {PEERS / 'bench' / 'bin' / 'python'} benchmarks/run.py"
        )
    for peer in ("twofold", "mcp", "fastmcp"):
        python_of(peer)
    node(), node_folder()


def describe_run(rounds: int, seconds: dict[str, int]) -> dict[str, object]:
    """Say what the figures were measured with."""
    return {
        "rounds": rounds,
        "seconds": seconds,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "peers": VERSIONS,
        "processor": read_processor(),
        "commit": read_commit(),
    }


def read_processor() -> str:
    """Say what the cores are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


def read_commit() -> str:
    """Name the commit that is measured, and whether the source has changed since."""
    here = Path(__file__).parent

    def ask(*command: str) -> str:
        run = subprocess.run(["git", *command], cwd=here, capture_output=True, text=True, check=True)  # noqa: S607 - whichever git
        return run.stdout.strip()

    return ask("rev-parse", "--short", "HEAD") + (
        " with changes" if ask("status", "--porcelain", "--", "../src") else ""
    )


if __name__ == "__main__":
    main()
