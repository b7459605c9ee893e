"""`twofold serve TARGET`: a server on this process's stdin and stdout, or over HTTP."""

import os
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from twofold.cli.failures import BadUsage
from twofold.cli.running import run_server
from twofold.cli.target import load_target
from twofold.server.mcpserver import MCPServer

MAX_WORKERS = 64
"""Each is an interpreter with the whole target in it, and each new connection wakes them all."""


def serve(
    target: str,
    /,
    *,
    http: str | None = None,
    path: str | None = None,
    allow_host: Sequence[str] = (),
    allow_origin: Sequence[str] = (),
    stateless: bool = False,
    workers: str | None = None,
) -> int:
    """Serve a server's tools over stdio, until the client has gone; or over HTTP, until a signal ends it.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
        http: Serve over HTTP instead, at an address such as 127.0.0.1:8000; port 0 picks a free one.
        path: Where the HTTP endpoint is; /mcp if left out.
        allow_host: A name that requests may be sent to, such as mcp.example.com; may be given several times. Names of
            this machine's loopback interface if not given, which is all that is reachable on 127.0.0.1.
        allow_origin: A web page that may ask, such as https://app.example.com; may be given several times.
        stateless: Keep no sessions for clients of earlier revisions, as several processes behind one address need it.
        workers: Serve from so many processes, 1 to 64, and replace one that dies. Nothing is shared between them:
            this implies --stateless, and what the server keeps in memory, each worker keeps for itself.
    """
    given = {"path": path, "allowed_hosts": [*allow_host] or None, "allowed_origins": [*allow_origin] or None}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if stateless or workers is not None:
        options["stateless"] = True
    if http is None and options:
        raise BadUsage(
            "--path, --allow-host, --allow-origin, --stateless and --workers are for serving over HTTP; add --http"
        )
    address = None if http is None else _read_address(http)
    if address is not None and workers is not None:
        return _serve_with_workers(target, address, _read_count(workers), options)
    server = load_target(target)
    if address is None:
        return run_server(server, server.run)
    return run_server(server, partial(_serve_http, server, address, options))


def _serve_http(server: MCPServer, address: tuple[str, int], options: dict[str, Any]) -> None:
    _check_options(server, address, options)
    server.run("streamable-http", host=address[0], port=address[1], **options)


def _check_options(server: MCPServer, address: tuple[str, int], options: dict[str, Any]) -> str:
    """Refuse options that cannot hold, before anything is begun: later a ValueError is the lifespan's.

    Returns:
        The path of the endpoint.
    """
    from twofold.server.http import check_address  # noqa: PLC0415 - 10 ms that serving over stdio saves

    try:
        check_address(*address, is_named="allowed_hosts" in options)
        return server.streamable_http_app(**options).path
    except ValueError as error:
        raise BadUsage(str(error)) from error


def _serve_with_workers(target: str, address: tuple[str, int], count: int, options: dict[str, Any]) -> int:
    """Serve from processes that load the target each for itself; this one never runs any of it."""
    if os.name != "posix":
        raise BadUsage("--workers: this system cannot hand listening sockets to other processes; leave it out")
    path = _check_options(MCPServer("any"), address, options)  # of any server: the workers load the target
    from twofold.cli.worker import serve_with_workers  # noqa: PLC0415 - loads the HTTP server, which stdio needs not

    return serve_with_workers(target, address, count=count, path=path, options=options)


def _read_count(text: str) -> int:
    """Read the number of workers; the parser of the command line would round 1.5."""
    count = int(text) if re.fullmatch("[0-9]{1,3}", text) else 0
    if not 1 <= count <= MAX_WORKERS:
        raise BadUsage(f"--workers: expected a whole number from 1 to {MAX_WORKERS}, got {text!r:.80}")
    return count


def _read_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT; an IPv6 address stands in brackets."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+)):([0-9]{1,5})", text)
    if found is None:
        raise BadUsage(f"--http: expected HOST:PORT such as 127.0.0.1:8000 or [::1]:8000, got {text!r:.80}")
    return found[1] or found[2], int(found[3])
