"""The official conformance harness against `examples/everything.py` over HTTP, judged by counted checks.

`TWOFOLD_CONFORMANCE` is the folder where npm put the harness, `TWOFOLD_NODE` the Node it runs on, and
`TWOFOLD_CONFORMANCE_GATE` the program that counts: a scenario is met by a number of checks passed, with no
failure and no warning. The harness's own exit status would let a server pass that is not there.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from tests.external.serving import served_over_http

EVERYTHING = Path(__file__).parents[2] / "examples" / "everything.py"
SCENARIOS = [
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "ping",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-with-logging",
    "json-schema-2020-12",
    "http-header-validation",
    "http-custom-header-server-validation",
]


def judge(url: str, *, scenarios: list[str], out: Path) -> subprocess.CompletedProcess[str]:
    """Run the harness in both revisions; what it records goes to `out`, the verdict to standard output."""
    harness = Path(os.environ["TWOFOLD_CONFORMANCE"]) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return subprocess.run(
        [
            sys.executable,
            os.environ["TWOFOLD_CONFORMANCE_GATE"],
            "server",
            "--url",
            url,
            "--only",
            ",".join(scenarios),
            "--out",
            str(out),
        ],
        env={**os.environ, "CONFORMANCE": shlex.join([os.environ["TWOFOLD_NODE"], str(harness)])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_every_scenario_of_a_tools_server_is_met_in_both_revisions(tmp_path):
    """B1 to B5: 14 scenarios of revision 2026-07-28 and 16 of 2025-11-25, no check failed, no warning."""
    with served_over_http(EVERYTHING, log=tmp_path / "log") as url:
        verdict = judge(url, scenarios=SCENARIOS, out=tmp_path)
    assert verdict.stdout.splitlines() == [
        "server 2026-07-28 set=all: 14/14 scenarios, 83 checks passed",
        "server 2025-11-25 set=all: 16/16 scenarios, 42 checks passed",
    ], verdict.stdout
    assert verdict.returncode == 0, verdict.stderr


def test_a_server_that_is_not_there_meets_nothing(tmp_path):
    """What judges can also condemn."""
    with socket.socket() as bound:  # bound, but nobody listens: every connection is refused
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        verdict = judge(url, scenarios=SCENARIOS, out=tmp_path)
    counted = re.findall(r"^server (\S+) set=all: (\d+)/(\d+) scenarios", verdict.stdout, re.MULTILINE)
    assert counted == [("2026-07-28", "0", "14"), ("2025-11-25", "0", "16")], verdict.stdout
    assert verdict.returncode == 1, verdict.stderr
