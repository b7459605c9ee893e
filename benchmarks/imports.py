"""Milliseconds that importing a package takes in a fresh process, and how many modules are loaded then."""

import os
import subprocess

from figures import Figures, add_turn
from peers import python_of

LAYER = "import"
PAYLOADS = {
    "package": {"twofold": "import twofold", "mcp": "import mcp", "fastmcp": "import fastmcp"},
    "server": {
        "twofold": "from twofold import MCPServer",
        "mcp": "from mcp.server.mcpserver import MCPServer",
        "fastmcp": "from fastmcp import FastMCP",
    },
}
"""Some packages load little until something of theirs is asked for; so the class that a server begins with, too."""
PROGRAM = (
    "import sys, time; began = time.perf_counter(); {}; print((time.perf_counter() - began) * 1e3, len(sys.modules))"
)


def measure(figures: Figures, *, rounds: int) -> None:
    """Import each in turns; the first turn of each fills the disk's cache."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    for turn in range(rounds + 1):
        for payload, statements in PAYLOADS.items():
            for peer, statement in statements.items():
                command = [python_of(peer), "-c", PROGRAM.format(statement)]
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
                if done.returncode:
                    raise SystemExit(f"{statement!r} failed:\n{done.stderr}")
                if turn:
                    milliseconds, modules = map(float, done.stdout.split())
                    measured = {"ms": milliseconds, "modules": modules}
                    add_turn(figures, layer=LAYER, payload=payload, peer=peer, measured=measured)
