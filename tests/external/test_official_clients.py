"""The official Python client lists and calls five tools over stdio, in both eras; both faces as it sees them.

`TWOFOLD_MCP1` and `TWOFOLD_MCP2` name interpreters with `requirements/mcp-1.txt` and `mcp-2.txt` installed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
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


@pytest.mark.parametrize(
    ("variable", "script", "arguments", "version"),
    [
        ("TWOFOLD_MCP2", "mcp2_client.py", ["2026-07-28"], "2026-07-28"),
        ("TWOFOLD_MCP2", "mcp2_client.py", ["auto"], "2026-07-28"),
        ("TWOFOLD_MCP2", "mcp2_client.py", ["legacy"], "2025-11-25"),
        ("TWOFOLD_MCP1", "mcp1_client.py", [], "2025-11-25"),
    ],
)
def test_the_official_client_sees_both_faces(variable, script, arguments, version):
    """B1, B2: clients that exist are served."""
    command = [
        os.environ[variable],
        str(HERE / script),
        sys.executable,
        str(HERE / "five_tools.py"),
        *arguments,
    ]
    done = subprocess.run(command, input=json.dumps(CALLS), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["version"] == version
    # A client pinned to a revision without a handshake asks nobody who the server is.
    assert seen["server"] == (None if arguments == ["2026-07-28"] else ["five tools", "1.2.3"])
    assert seen["calls"] == SEEN
    assert seen["progress"] == [[1, 2, "step 1"], [2, 2, "step 2"]]
    tools = {tool["name"]: tool for tool in seen["tools"]}
    assert list(tools) == list(CALLS)
    assert tools["add"]["annotations"] == {"readOnlyHint": True}
    assert tools["weather"]["title"] == "Weather now"
    assert tools["add"]["outputSchema"] == {
        "properties": {"result": {"title": "Result", "type": "integer"}},
        "required": ["result"],
        "title": "addOutput",
        "type": "object",
    }
    assert tools["count"]["inputSchema"]["properties"] == {"upto": {"title": "Upto", "type": "integer"}}
