"""The official conformance harness against `examples/conformance_client.py`, judged by counted checks.

What it needs of the environment is what `test_conformance.py` needs. The harness starts the client of every
scenario it knows, some forty processes at once; those that are played here are counted.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "examples" / "conformance_client.py"
SCENARIOS = [
    "tools_call",
    "initialize",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
]


def judge(command: list[str], *, out: Path) -> subprocess.CompletedProcess[str]:
    """Run the harness in both revisions; what it records goes to `out`, the verdict to standard output."""
    harness = Path(os.environ["TWOFOLD_CONFORMANCE"]) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    gate = [sys.executable, os.environ["TWOFOLD_CONFORMANCE_GATE"], "client", "--command", shlex.join(command)]
    return subprocess.run(
        [*gate, "--only", ",".join(SCENARIOS), "--out", str(out)],
        env={**os.environ, "CONFORMANCE": shlex.join([os.environ["TWOFOLD_NODE"], str(harness)])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_every_scenario_of_a_tools_client_is_met_in_both_revisions(tmp_path):
    """C1 to C4: 6 scenarios of revision 2026-07-28 and 3 of 2025-11-25, no check failed, no warning."""
    verdict = judge([sys.executable, str(CLIENT)], out=tmp_path)
    assert verdict.stdout.splitlines() == [
        "client 2026-07-28 set=all: 6/6 scenarios, 45 checks passed",
        "client 2025-11-25 set=all: 3/3 scenarios, 12 checks passed",
    ], verdict.stdout
    assert verdict.returncode == 0, verdict.stderr


def test_a_client_that_does_nothing_meets_nothing(tmp_path):
    """What judges can also condemn."""
    verdict = judge([sys.executable, "-c", "pass"], out=tmp_path)
    counted = re.findall(r"^client (\S+) set=all: (\d+)/(\d+) scenarios", verdict.stdout, re.MULTILINE)
    assert counted == [("2026-07-28", "0", "6"), ("2025-11-25", "0", "3")], verdict.stdout
    assert verdict.returncode == 1, verdict.stderr
