"""The guard of CI: it lets the reference pass, and stops what became slow."""

import copy
import json
import subprocess
import sys

import pytest
from guard import find_regressions

from tests.benchmarks.reference import BENCHMARKS, read_reference


def slowed(*, times: float, names: set[str] | None = None) -> dict:
    """The reference with Twofold so many times slower in process, for some payloads or all."""
    run = copy.deepcopy(read_reference())
    for name, rows in run["figures"]["in_process"].items():
        if names is None or name in names:
            rows["twofold"]["cpu_us"] = [number * times for number in rows["twofold"]["cpu_us"]]
    return run


def judge_run(run: dict, folder) -> subprocess.CompletedProcess[str]:
    """Run the guard on figures, as CI runs it on measured ones."""
    figures = folder / "figures.json"
    figures.write_text(json.dumps(run))
    command = [sys.executable, str(BENCHMARKS / "guard.py"), str(figures)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_reference_itself_passes(tmp_path):
    """Every ratio is told; Makefile, `guard`."""
    done = judge_run(read_reference(), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(read_reference()["figures"]["in_process"]) == 7


def test_a_regression_fails_and_is_named_with_what_to_do(tmp_path):
    """A call of twice and a half the CPU is below half of any ratio; docs/explanation/performance.md, "The guard"."""
    done = judge_run(slowed(times=2.5, names={"model"}), tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("in process, model: mcp takes ")
    assert "expected at least" in line
    assert "make bench" in line


@pytest.mark.parametrize(("times", "count"), [(1.9, 0), (2.1, 7)])
def test_half_of_the_reference_is_the_bound(times, count):
    """A machine that is slower for one of them moves a ratio by a third; only more than half is a regression."""
    reference = read_reference()["figures"]
    assert len(list(find_regressions(slowed(times=times)["figures"], reference))) == count


def test_a_slower_machine_is_no_regression():
    """Times are ten times what they were, ratios are the same."""
    reference = read_reference()["figures"]
    slow = copy.deepcopy(reference)
    for rows in slow["in_process"].values():
        for row in rows.values():
            row["cpu_us"] = [number * 10 for number in row["cpu_us"]]
    assert list(find_regressions(slow, reference)) == []


def test_what_was_not_measured_does_not_pass():
    """A payload that is missing in the figures is an error, not a silent gap."""
    reference = read_reference()["figures"]
    partial = copy.deepcopy(reference)
    del partial["in_process"]["sync"]
    with pytest.raises(KeyError, match="sync"):
        list(find_regressions(partial, reference))
