"""Runs a server's command, and breaks the structure of its results on the way: `tampering.py null|drop COMMAND…`.

`null` puts a null in place of each text in it; `drop` leaves the structure out.
"""

import json
import subprocess
import sys
from typing import Any


def without_texts(value: Any) -> Any:
    """Put a null in place of each text."""
    if isinstance(value, dict):
        return {name: without_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    return None if isinstance(value, str) else value


def tamper(line: bytes, how: str) -> bytes:
    """Break the structure of a result; anything else stays as it is."""
    message = json.loads(line)
    result = message.get("result") or {}
    if "structuredContent" not in result:
        return line
    structure = result.pop("structuredContent")
    if how == "null":
        result["structuredContent"] = without_texts(structure)
    return json.dumps(message).encode() + b"\n"


def main(how: str, command: list[str]) -> int:
    """Hand on what the server says; what it is told goes straight to it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        for line in server.stdout:
            sys.stdout.buffer.write(tamper(line, how))
            sys.stdout.buffer.flush()
    return server.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
