"""Calls as bytes, and what their answers say, for the peers that speak without a client."""

import json
from typing import Any

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ENDINGS = {
    "refuse": "refused {}", "crash": "Error executing tool crash: ValueError: crashed {}",
    "leave": "Error executing tool leave: SystemExit: left {}",
    "recurse": "Error executing tool recurse: RecursionError: maximum recursion depth exceeded",
}  # fmt: skip


def make_call(value: int, tool: str, *, token: str | None = None, **arguments: Any) -> bytes:
    """Call a tool with a value of its own, which is the request's id too."""
    meta = META if token is None else META | {"progressToken": token}
    params = {"name": tool, "arguments": {"value": value, **arguments}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": value, "method": "tools/call", "params": params}).encode()


def read_outcome(message: dict[str, Any]) -> Any:
    """Give what an answer says: the text of its first block, without the reference of a crash; or its error."""
    if "error" in message:
        return message["error"]
    return plain_text(message["result"]["content"][0]["text"])


def plain_text(text: str) -> str:
    """Leave out the reference to the log, which no two answers share."""
    return text.partition(" (reference ")[0].partition(" while calling")[0]


def expected_outcome(tool: str, value: int) -> str:
    """Give what a call has to be answered with."""
    return ENDINGS[tool].format(value) if tool in ENDINGS else str(value)
