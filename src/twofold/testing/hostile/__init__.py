"""A server that misbehaves as it is told: to find out what a client does about it.

It is honest but for its script. An entry `NAME` adds a tool of that name, whose calls are answered by the
misbehaviour of that name; some (`cursor_loop`, `unknown_revision`) answer another request than a call by themselves.
`NAME@METHOD` answers every request of a method so, `NAME@METHOD:once` the first: `silence@server/discover`,
`truncated@tools/list:once`. There are three more moments: `start` and `end` over stdio (before anything was asked,
after stdin was closed), `GET` over HTTP (a session's own stream). Two tools are always there: `echo` answers with its
arguments, `heard` with the methods of everything that has come so far, and with the ids that were taken back.

`python -m twofold.testing.hostile SCRIPT…` serves over stdio, `--help` lists all misbehaviours; `HostileServer` serves
over HTTP in this process. Both speak revisions 2026-07-28 and 2025-11-25. Neither needs an HTTP library.
"""

import asyncio
import sys
from types import TracebackType

from twofold.testing.hostile.over_http import HttpConversation, Request
from twofold.testing.hostile.script import MISBEHAVIOURS, Script

__all__ = ["MISBEHAVIOURS", "HostileServer", "Request", "hostile_command"]


def hostile_command(*script: str) -> list[str]:
    """Give the command that serves a script over stdio, with this interpreter.

    ```python
    command, *args = hostile_command("nan")
    Client(StdioServer(command, args))
    ```

    Args:
        script: What it does wrong, as this module says.

    Raises:
        ValueError: There is no such misbehaviour, or not over stdio.
    """
    Script(script, transport="stdio")
    return [sys.executable, "-m", "twofold.testing.hostile", *script]


class HostileServer:
    """A hostile server over HTTP, on a free port of 127.0.0.1, as long as its `async with` lasts.

    ```python
    async with HostileServer("nan", "cursor_loop") as server:
        client = Client(server.url)
    ```

    Args:
        script: What it does wrong, as this module says.

    Attributes:
        requests: Every HTTP request that came, of other paths than the endpoint's too: a client that follows a
            reference out of a schema asks for `/schema.json`.

    Raises:
        ValueError: There is no such misbehaviour, or not over HTTP.
    """

    def __init__(self, *script: str) -> None:
        self._script = Script(script, transport="http")
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []

    async def __aenter__(self) -> "HostileServer":
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self._script.origin = self.origin
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all connections, and wait until that is done."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:PORT`.

        Raises:
            RuntimeError: It does not listen.
        """
        if self._server is None:
            raise RuntimeError("the hostile server does not listen; use it in 'async with HostileServer(…) as server:'")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self.origin}/mcp"

    @property
    def open_connections(self) -> int:
        """How many connections are open: none, once every client was closed."""
        return len(self._serving)

    @property
    def heard(self) -> list[str]:
        """The method of each message that came; `answer` for an answer."""
        return list(self._script.heard)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(HttpConversation(self._script, reader, writer, self.requests).serve())
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
