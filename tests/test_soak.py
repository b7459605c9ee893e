"""The soak test itself, for some seconds: what it asserts in minutes (`make soak`) holds here too."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "soak" / "run.py"


def test_under_mixed_load_and_faults_nothing_is_lost_and_nothing_is_left():
    """Issue 5: memory flat, no leaked tasks, threads, sockets or child processes, every request answered exactly once."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--seconds", "10"], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if line.startswith("BROKEN")]) == (0, []), (
        done.stderr[-3000:]
    )
    answered = int(done.stdout.split(" ", 1)[0])
    assert answered > 500
    for kind in (
        "abandoned session",
        "client 2025-11-25",
        "client over stdio",
        "pipelined",
        "slow reader",
        "vanished client",
    ):
        assert f"  {kind} " in done.stdout
