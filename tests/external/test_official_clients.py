"""Clients nobody here wrote list and call five tools, over stdio and over HTTP, in both eras; all see the same.

What they need is named by the environment, and installed by `.ci/run`: `TWOFOLD_MCP1` and `TWOFOLD_MCP2`,
interpreters with the official Python client; `TWOFOLD_NODE`, and the folders `TWOFOLD_TS1`, `TWOFOLD_TS2` and
`TWOFOLD_INSPECTOR`, where npm put the TypeScript clients and the Inspector.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tests.external.serving import served_over_http

HERE = Path(__file__).parent
FIVE_TOOLS = HERE / "five_tools.py"
LISTING = json.loads((HERE / "five_tools.json").read_text())
CALLS = {
    "add": {"a": 2, "b": 40},
    "weather": {"city": "London"},
    "forecast": {"days": 2},
    "refuse": {"reason": "full"},
    "count": {"upto": 2},
}
SEEN = {
    "add": {"text": ["42"], "structured": {"result": 42}, "is_error": False},
    "weather": {
        "text": ['{\n  "temperature": 16.5,\n  "conditions": "Rain in London"\n}'],
        "structured": {"temperature": 16.5, "conditions": "Rain in London"},
        "is_error": False,
    },
    "forecast": {
        "text": [
            '{\n  "temperature": 0.0,\n  "conditions": "Fog"\n}',
            '{\n  "temperature": 1.0,\n  "conditions": "Fog"\n}',
        ],
        "structured": {
            "result": [{"temperature": 0.0, "conditions": "Fog"}, {"temperature": 1.0, "conditions": "Fog"}]
        },
        "is_error": False,
    },
    "refuse": {"text": ["refused: full"], "structured": None, "is_error": True},
    "count": {"text": ["counted to 2"], "structured": {"result": "counted to 2"}, "is_error": False},
}
SERVER = ["five tools", "1.2.3"]
PROGRESS = [[1, 2, "step 1"], [2, 2, "step 2"]]


@dataclass(frozen=True)
class Peer:
    """A client in one of its modes, and what it can show: which revision it agrees to, who serves, progress."""

    program: Literal["mcp1", "mcp2", "ts1", "ts2", "inspector"]
    mode: str
    version: str
    server: list[str] | None = None
    progress: list[list[object]] | None = None

    def __str__(self) -> str:
        return f"{self.program}-{self.mode}"

    def run(self, target: dict[str, object]) -> dict[str, object]:
        """Let it list and call, and give what it saw."""
        command, folder = start_of(self.program)
        task = json.dumps({**target, "mode": self.mode, "calls": CALLS})
        done = subprocess.run(command, cwd=folder, input=task, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def start_of(program: str) -> tuple[list[str], Path]:
    """Give the command that starts a client's program, and the folder it starts in."""
    if program in ("mcp1", "mcp2"):
        return [os.environ[f"TWOFOLD_{program.upper()}"], str(HERE / f"{program}_client.py")], HERE
    node, folder = os.environ["TWOFOLD_NODE"], Path(os.environ[f"TWOFOLD_{program.upper()}"])
    if program == "inspector":
        launcher = folder / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        return [sys.executable, str(HERE / "inspector_client.py"), node, str(launcher)], folder
    # Evaluated rather than run: imports are then looked for in the working folder, not beside the file.
    return [node, "--input-type=module", "--eval", (HERE / f"{program}_client.mjs").read_text()], folder


PEERS = [
    # A client that insists on a revision without a handshake asks nobody who the server is.
    Peer("mcp2", "2026-07-28", version="2026-07-28", server=None, progress=PROGRESS),
    Peer("mcp2", "auto", version="2026-07-28", server=SERVER, progress=PROGRESS),
    Peer("mcp2", "legacy", version="2025-11-25", server=SERVER, progress=PROGRESS),
    Peer("mcp1", "legacy", version="2025-11-25", server=SERVER, progress=PROGRESS),
    Peer("ts2", "2026-07-28", version="2026-07-28", server=SERVER, progress=PROGRESS),
    Peer("ts2", "auto", version="2026-07-28", server=SERVER, progress=PROGRESS),
    Peer("ts2", "legacy", version="2025-11-25", server=SERVER, progress=PROGRESS),
    Peer("ts1", "legacy", version="2025-11-25", server=SERVER, progress=PROGRESS),
    # The Inspector's command line has no way to show progress: it is sent some all the same, and has to bear it.
    Peer("inspector", "legacy", version="2025-11-25", server=SERVER, progress=None),
    Peer("inspector", "modern", version="2026-07-28", server=SERVER, progress=None),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_over_http(FIVE_TOOLS, log=tmp_path_factory.mktemp("served") / "log") as url:
        yield url


@pytest.fixture
def target(transport: str, request: pytest.FixtureRequest) -> dict[str, object]:
    if transport == "http":
        return {"url": request.getfixturevalue("url")}
    return {"command": [sys.executable, str(FIVE_TOOLS)]}


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_a_client_nobody_here_wrote_sees_both_faces(peer, transport, target):
    """B1, B2, B4: every client that exists is served the same definitions, faces, errors and progress."""
    assert peer.run(target) == {
        "version": peer.version,
        "server": peer.server,
        "tools": LISTING,
        "calls": SEEN,
        "progress": peer.progress,
    }
