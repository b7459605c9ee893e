"""Targets that are reached instead of loaded: a URL, or a command after `--`."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from twofold.cli.failures import BadUsage, NotLoaded
from twofold.client.client import Client
from twofold.errors import HttpStatusError, ProtocolError, TransportError
from twofold.transports.child_process import StdioServer

T = TypeVar("T")

TIMEOUT_SECONDS = 300.0
"""So long an answer is waited for; Ctrl-C ends the waiting earlier."""
_URL = re.compile(r"https?://", re.IGNORECASE)


def find_remote(target: str, command: str) -> str | StdioServer | None:
    """Tell whether a target is reached over a wire.

    Args:
        target: As on the command line.
        command: JSON of the words after `--`; empty if there is no `--`.

    Returns:
        A URL, a command, or None for a target that is loaded.

    Raises:
        BadUsage: There is no word after `--`.
    """
    if command:
        words = msgspec.json.decode(command, type=list[str])
        if not words:
            raise BadUsage("after -- stands the command that starts the server, and there is none")
        return StdioServer(command=words[0], args=words[1:])
    return target if _URL.match(target) else None


def run_with_client(target: str | StdioServer, work: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """Connect, do something with the client, and close.

    Args:
        target: A URL or a command.
        work: Given the open client.
        options: Of the client.

    Raises:
        NotLoaded: The server cannot be reached, or does not answer as it should.
    """

    async def main() -> T:
        async with Client(target, timeout_seconds=TIMEOUT_SECONDS, **options) as client:
            opened.append(True)
            return await work(client)

    opened: list[bool] = []
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


def describe_server(client: Client) -> str:
    """Say in one line who answered, and in which revision."""
    server = client.server
    if server is None:
        return "no server"
    return f"{server.name or 'a server without a name'} {server.version} (revision {server.revision})"
