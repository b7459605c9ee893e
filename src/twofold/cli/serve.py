"""`twofold serve TARGET`: a server on this process's stdin and stdout, or over HTTP."""

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
    given = {"path": path, "allowed_hosts": [*allow_host], "allowed_origins": [*allow_origin], "stateless": stateless}
    options = {name: value for name, value in given.items() if value}
    if http is None and options:
        raise BadUsage("--path, --allow-host, --allow-origin and --stateless are for serving over HTTP; add --http")
    address = None if http is None else _read_address(http, is_named=bool(allow_host))
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
    try:
        server.streamable_http_app(**options)  # its options are looked at before anything is begun
    except ValueError as error:
        raise BadUsage(one_line(error)) from error
    server.run("streamable-http", host=address[0], port=address[1], **options)


def _read_address(text: str, *, is_named: bool) -> tuple[str, int]:
    """Read HOST:PORT; an IPv6 address stands in brackets. A wide one needs names that requests may be sent to."""
    from twofold.transports.http.guard import is_loopback_host  # noqa: PLC0415 - 4 ms that serving over stdio saves

    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port[:6]) < 65536):
        raise BadUsage(f"--http: expected HOST:PORT such as 127.0.0.1:8000, got {text!r:.80}")
    if not is_named and not is_loopback_host(host):
        raise BadUsage(f"{host!r:.80} can be reached from other machines: say under which names, --allow-host NAME")
    return host, int(port)
