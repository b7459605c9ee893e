"""`twofold serve TARGET`: a server on this process's stdin and stdout, or over HTTP."""

import re
from collections.abc import Sequence
from typing import Any

from twofold.cli.failures import BadUsage, Exit, NotLoaded, one_line
from twofold.cli.target import load_target
from twofold.errors import TransportError
from twofold.server.mcpserver import MCPServer


def serve(
    target: str,
    /,
    *,
    http: str | None = None,
    path: str | None = None,
    allow_host: Sequence[str] = (),
    allow_origin: Sequence[str] = (),
    stateless: bool = False,
) -> int:
    """Serve a server's tools over stdio, until the client has gone; or over HTTP, until a signal ends it.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
        http: HOST:PORT to serve over HTTP instead, such as 127.0.0.1:8000; port 0 picks a free one.
        path: Where the HTTP endpoint is; /mcp.
        allow_host: A name that requests may be sent to, such as mcp.example.com; may be given several times. Names of
            this machine's loopback interface if not given, which is all that is reachable on 127.0.0.1.
        allow_origin: A web page that may ask, such as https://app.example.com; may be given several times.
        stateless: Keep no sessions for clients of earlier revisions, as several processes behind one address need it.
    """
    given = {"path": path, "allowed_hosts": [*allow_host] or None, "allowed_origins": [*allow_origin] or None}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if stateless:
        options["stateless"] = True
    if http is None and options:
        raise BadUsage("--path, --allow-host, --allow-origin and --stateless are for serving over HTTP; add --http")
    address = None if http is None else _read_address(http)
    server = load_target(target)
    try:
        if address is None:
            server.run()
        else:
            _serve_http(server, address, options)
    except (KeyboardInterrupt, BrokenPipeError, BadUsage):
        raise
    except TransportError as error:
        raise NotLoaded(one_line(error)) from error
    except BaseException as error:  # a tool's own faults are in its result: this is the lifespan's
        raise NotLoaded(f"server {server.name!r} failed: {one_line(error)}") from error
    return Exit.RESULT


def _serve_http(server: MCPServer, address: tuple[str, int], options: dict[str, Any]) -> None:
    from twofold.server.http import check_address  # noqa: PLC0415 - 10 ms that serving over stdio saves

    try:  # what is said is looked at before anything is begun: later a ValueError is the lifespan's
        check_address(*address, is_named="allowed_hosts" in options)
        server.streamable_http_app(**options)
    except ValueError as error:
        raise BadUsage(str(error)) from error
    server.run("streamable-http", host=address[0], port=address[1], **options)


def _read_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT; an IPv6 address stands in brackets."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+)):([0-9]{1,5})", text)
    if found is None:
        raise BadUsage(f"--http: expected HOST:PORT such as 127.0.0.1:8000 or [::1]:8000, got {text!r:.80}")
    return found[1] or found[2], int(found[3])
