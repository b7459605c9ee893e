"""`twofold list TARGET`: what tools a server offers."""

import asyncio
import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from twofold.cli.failures import BadUsage, Exit, NotLoaded
from twofold.cli.remote import TIMEOUT_SECONDS, check_seconds, describe_server, find_remote, run_with_client
from twofold.cli.show import print_json, print_text, show_tools
from twofold.cli.target import load_target
from twofold.client.client import Client
from twofold.errors import ProtocolError
from twofold.protocol.tool import ToolDefinition


def list_tools(
    target: str = "",
    /,
    *,
    json: bool = False,
    timeout: Annotated[float, Parameter(metavar="SECONDS")] = TIMEOUT_SECONDS,
    server_command: Annotated[str, Parameter(show=False)] = "",
) -> int:
    """Show a server's tools: a table in a terminal, JSON elsewhere.

    Args:
        target: `module:object`, `file.py`, `file.py:name`, or a URL; left out where a command that starts a
            server stands at the end, after `--`.
        json: JSON in a terminal too: the definitions as a client gets them.
        timeout: How long opening the connection and listing may take together; 300 if left out. Opening has some
            30 of them at most.
        server_command: JSON of the words after `--`.
    """
    if target and server_command:
        raise BadUsage(f"list takes a TARGET or -- command, not both; got {target!r:.80} and a command")
    seconds = check_seconds(timeout)
    remote = find_remote(target, server_command)
    if remote is None:
        if not target:
            raise BadUsage("list needs a TARGET: module:object, file.py, a URL, or -- command arguments")
        server = load_target(target)
        tools = asyncio.run(server.list_tools())
        name, title = server.name, server.identity.implementation.title or server.name
    else:
        tools, name, rejected = run_with_client(remote, _list, timeout_seconds=seconds, on_wait=_say_waiting)
        title = name
        for tool, reason in rejected.items():
            said = reason if reason.startswith("tool ") else f"{tool!r:.80}: {reason}"  # it names what has a name
            print_text(f"twofold: left out: {said}", to_stderr=True)
    if json or not sys.stdout.isatty():
        print_json(msgspec.json.encode({"tools": tools}))
    else:
        show_tools(tools, name=name, title=title)
    return Exit.RESULT


async def _list(client: Client, seconds: float) -> tuple[list[ToolDefinition], str, dict[str, str]]:
    try:
        listing = await client.list_tools(timeout_seconds=seconds)
    except ProtocolError as error:
        said = f"error {error.code}: {error.message}"
        raise NotLoaded(f"the server does not list its tools: {said}") from error
    return list(listing.tools), describe_server(client), client.rejected_tools


def _say_waiting(line: str) -> None:
    if sys.stderr.isatty():
        print_text(line, to_stderr=True)
