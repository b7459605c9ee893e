"""A client for the official conformance harness: lists the tools of the server at URL, and calls them.

The harness starts it with `python examples/conformance_client.py URL`; the environment says which revision to speak,
which scenario is played, and sometimes which calls to make. It ends with a status other than 0 if a call cannot be
made or a result breaks its tool's contract.
"""

import asyncio
import json
import os
import sys
from typing import Any

from twofold import Client, ToolListing

SAMPLES = {"string": "some text", "integer": 7, "number": 2.5, "boolean": True, "array": [], "object": {}, "null": None}
"""An argument of each type, for calls that the harness leaves to the client."""


def choose_calls(tools: ToolListing) -> list[tuple[str, dict[str, Any]]]:
    """Choose which tools are called, with which arguments."""
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "json-schema-2020-12-preservation":
        return [("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
    return [(tool.name, sample_arguments(tool.input_schema)) for tool in tools]


def sample_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Give a value to each argument that is required."""
    properties = schema.get("properties", {})
    return {name: SAMPLES[properties[name]["type"]] for name in schema.get("required", [])}


async def main(url: str) -> None:
    """List, and call."""
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "auto")
    async with Client(url, revision=revision) as client:
        tools = await client.list_tools()
        for name, reason in client.rejected_tools.items():
            print(f"left out: {name}: {reason}")
        for name, arguments in choose_calls(tools):
            result = await client.call_tool(name, arguments)
            print(f"{name}: {result.verdict}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
