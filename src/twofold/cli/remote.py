"""What `list` and `call` ask through a client: a URL, a command after `--`, a server that was loaded."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from twofold.cli.failures import BadUsage, NotLoaded
from twofold.client.client import Client
from twofold.errors import HttpStatusError, ProtocolError, TransportError
from twofold.server.mcpserver import MCPServer
from twofold.transports.child_process import ChildProcessLink, StdioServer

T = TypeVar("T")
Asked: TypeAlias = str | StdioServer | MCPServer

TIMEOUT_SECONDS = 300.0
"""So long everything may take, where nothing is said; Ctrl-C ends the waiting earlier."""
NOTICE_SECONDS = 2.0
"""After so long a person wants to know what is waited for."""
_LEAST_SECONDS = 0.001
"""For what is asked when the time is over: no answer comes in it."""
_URL = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(?P<path>/\S*)?")


def find_remote(target: str, command: str) -> str | StdioServer | None:
    """Tell whether a target is reached over a wire.

    Args:
        target: As on the command line.
        command: JSON of the words after `--`; empty if there is no `--`.

    Returns:
        A URL, a command, or None for a target that is loaded.

    Raises:
        BadUsage: There is no word after `--`, or an address stands for a URL.
    """
    if command:
        words: list[str] = json.loads(command)  # not by msgspec: names of files need not be Unicode
        if not words:
            raise BadUsage("after -- stands the command that starts the server, and there is none")
        return StdioServer(command=words[0], args=words[1:])
    address = _ADDRESS.fullmatch(target)
    if address is not None:  # a module or a file is followed by a name, and names do not begin with a digit
        raise BadUsage(f"{target!r:.80} is an address; a URL says http:// too: http://{target}{_path_of(address)}")
    if not _URL.match(target):
        return None
    try:
        urlsplit(target)
    except ValueError as error:
        raise BadUsage(f"{target!r:.80} is no URL: {error}") from None
    return target


def _path_of(address: re.Match[str]) -> str:
    """Give the path that is served at unless told otherwise, where an address has none."""
    return "" if (address["path"] or "/") != "/" else "/mcp".removeprefix(address["path"] or "")


def check_seconds(seconds: float) -> float:
    """Check what `--timeout` says.

    Raises:
        BadUsage: It is no number of seconds that a wait can have.
    """
    if not 0 < seconds < float("inf"):
        raise BadUsage(f"--timeout: expected seconds, a number above 0, got {seconds:g}")
    return seconds


def run_with_client(
    target: Asked,
    work: Callable[[Client, float], Awaitable[T]],
    *,
    timeout_seconds: float,
    on_wait: Callable[[str], None],
    **options: Any,
) -> T:
    """Connect, do something with the client, and close.

    Args:
        target: A URL, a command, or a server in this process.
        work: Given the open client and the seconds that are left.
        timeout_seconds: For opening the connection and the work together; closing has bounds of its own.
        on_wait: Given a line that says what is waited for, once, if it takes longer than `NOTICE_SECONDS`.
        options: Of the client.

    Raises:
        NotLoaded: The server cannot be reached, or does not answer as it should.
    """
    opened: list[bool] = []

    async def main() -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        line = f"waiting for {name_target(target)}, {timeout_seconds:g} seconds at most; Ctrl-C ends it"
        notice = loop.call_later(NOTICE_SECONDS, on_wait, line)
        try:
            async with AsyncExitStack() as stack:
                client = Client(target, timeout_seconds=timeout_seconds, **options)
                await _open_in_time(client, stack, target, timeout_seconds)
                opened.append(True)
                return await work(client, max(deadline - loop.time(), _LEAST_SECONDS))
        finally:
            notice.cancel()

    try:
        return asyncio.run(main())
    except HttpStatusError as error:
        hint = f"; it asks for authorization: {error.challenge}" if error.challenge else ""
        raise NotLoaded(f"{error}{hint}") from error
    except TransportError as error:
        raise NotLoaded(str(error)) from error
    except ProtocolError as error:
        if opened:  # then it answers what was asked, and who asked says what that means
            raise
        raise NotLoaded(f"the server does not open a connection: error {error.code}: {error.message}") from error


async def _open_in_time(client: Client, stack: AsyncExitStack, target: Asked, seconds: float) -> None:
    """Open a client until the stack closes it.

    Raises:
        NotLoaded: The time was over.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            await stack.enter_async_context(client)
    except TimeoutError:
        if not limit.expired():
            raise
        said = f"{name_target(target)} did not open a connection within {seconds:g} seconds"
        raise NotLoaded(f"{said}; see whether it is an MCP server, or give it longer with --timeout") from None


def name_target(target: Asked) -> str:
    """Name what is asked, without secrets: a URL has neither user nor query."""
    if isinstance(target, StdioServer):
        return ChildProcessLink(target).name
    if isinstance(target, MCPServer):
        return f"server {target.name!r:.80}"
    parts = urlsplit(target)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200]


def describe_server(client: Client) -> str:
    """Say in one line who answered, and in which revision."""
    server = client.server
    if server is None:
        return "no server"
    return f"{server.name or 'a server without a name'} {server.version} (revision {server.revision})"
