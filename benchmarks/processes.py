"""Processes of servers: started on a core of their own, ended, and what the kernel says they took. Linux only.

CPU is the time that the threads of a process and of its children were on a CPU (`/proc/…/schedstat`, in nanoseconds);
what the load costs does not count, nor what else the machine does. That is told beside it, as cores used by others.
"""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PATIENCE_SECONDS = 60.0
"""So long a server may take to start or to answer: the slowest takes two seconds on a quiet machine."""
CORES = os.sched_getaffinity(0)
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def load_on_first_core() -> Iterator[None]:
    """Keep this process to the first core; servers have the last."""
    os.sched_setaffinity(0, {min(CORES)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, CORES)


@contextlib.contextmanager
def started(
    command: Sequence[str | Path], *, log: Path, pipes: bool = False, folder: Path | None = None
) -> Iterator[subprocess.Popen]:
    """Start a server on the last core, and end it. Its stderr goes to a file.

    Args:
        command: The program and its arguments.
        log: The file.
        pipes: Whether its stdin and stdout are pipes to us, without buffers.
        folder: Where it runs.
    """
    here = os.sched_getaffinity(0)
    pipe = subprocess.PIPE if pipes else subprocess.DEVNULL
    with log.open("ab") as errors:
        os.sched_setaffinity(0, {max(CORES)})  # a child has what its parent has
        try:
            process = subprocess.Popen(
                list(map(str, command)),
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
                bufsize=0,
                cwd=folder,
                env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
            )
        finally:
            os.sched_setaffinity(0, here)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen) -> None:
    """End a server, kindly at first."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    else:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Meter:
    """What a process takes from now on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._own = time.process_time()
        self._busy = read_busy_seconds()
        self._began = time.perf_counter()
        self._cpu = read_cpu(pid)

    def read(self, count: int) -> dict[str, float]:
        """Say what each of `count` requests took, their number a second, and how many cores others used meanwhile."""
        cpu = sum(spent - self._cpu.get(thread, 0) for thread, spent in read_cpu(self._pid).items())
        elapsed = time.perf_counter() - self._began
        others = read_busy_seconds() - self._busy - cpu / 1e9 - (time.process_time() - self._own)
        return {
            "cpu_us": cpu / count / 1e3,
            "per_second": count / elapsed,
            "foreign_cores": max(0.0, others / elapsed),
        }


def read_cpu(pid: int) -> dict[int, int]:
    """Nanoseconds on a CPU of each thread of a process and of those it started."""
    spent: dict[int, int] = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            spent[int(thread.name)] = int((thread / "schedstat").read_text().split()[0])
            for child in (thread / "children").read_text().split():
                spent |= read_cpu(int(child))
    return spent


def read_busy_seconds() -> float:
    """Seconds that all cores together have worked since the machine began, to the hundredth."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks) - idle - waiting) / TICKS_PER_SECOND


def read_peak_mb(pid: int) -> float:
    """Most memory that a process and those it started had at any one time, in MB (10⁶ bytes), added up."""
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024 / 1e6
    for thread in Path(f"/proc/{pid}/task").iterdir():
        peak += sum(read_peak_mb(int(child)) for child in (thread / "children").read_text().split())
    return peak


def percentiles(latencies_seconds: list[float]) -> dict[str, float]:
    """The middle and the slowest hundredth, in microseconds."""
    ordered = sorted(latencies_seconds)
    return {
        "p50_us": ordered[len(ordered) // 2] * 1e6,
        "p99_us": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1e6,
    }
