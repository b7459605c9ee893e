"""A server's Streamable HTTP application, and where it may be bound."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, get_type_hints

from typing_extensions import Unpack

from twofold.transports.http.app import StreamableHTTP
from twofold.transports.http.authorization import Authorize, ProtectedResource
from twofold.transports.http.guard import Guard, is_loopback_host
from twofold.transports.http.peer import Server
from twofold.transports.http.request import MAX_BODY_BYTES

DEFAULT_PATH = "/mcp"


class AppOptions(TypedDict, total=False):
    """How a server is offered over HTTP.

    Attributes:
        path: The MCP endpoint, below where the application is mounted; `"/mcp"`.
        allowed_hosts: What `Host` may say: `"example.com"` (any port), `"example.com:8443"`, `"*.example.com"`, or
            `"*"` behind a proxy that checks it. Without it, names of the loopback interface. It replaces them.
        allowed_origins: Web pages that may ask beside those of the server's own origin: `"https://app.example.com"`.
        max_body_bytes: What a request's body may have; 4 MiB.
        stateless: Serves clients of the handshake revisions without sessions, as several processes behind one
            address need it: no `GET` stream, nothing to resume, no log level to set. Revision 2026-07-28 has no
            sessions anyway.
    """

    path: str
    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    max_body_bytes: int
    stateless: bool


class RunOptions(AppOptions, total=False):
    """How a server is run over HTTP.

    Attributes:
        host: The address to bind; `"127.0.0.1"`. Anything but loopback needs `allowed_hosts`.
        port: The port to bind; 8000. 0 takes a free one and says which.
    """

    host: str
    port: int


def make_app(
    server: Server, *, hook: Authorize | None, resource: ProtectedResource | None, **options: Unpack[AppOptions]
) -> StreamableHTTP:
    """Make the ASGI application of a server.

    Raises:
        ValueError: An option that cannot hold.
        TypeError: An option there is none of.
    """
    _check_names(options, AppOptions, "streamable_http_app()")
    path = options.get("path", DEFAULT_PATH)
    if not isinstance(path, str) or not path.startswith("/") or "?" in path or "#" in path:
        raise ValueError(f"path: expected a path such as '/mcp', got {path!r:.80}")
    max_body_bytes = options.get("max_body_bytes", MAX_BODY_BYTES)
    if type(max_body_bytes) is not int or max_body_bytes < 1:
        raise ValueError(f"max_body_bytes: expected a positive whole number, got {max_body_bytes!r:.80}")
    return StreamableHTTP(
        server,
        path="/" + path.strip("/"),
        guard=Guard(options.get("allowed_hosts"), options.get("allowed_origins")),
        max_body_bytes=max_body_bytes,
        stateless=bool(options.get("stateless", False)),
        hook=hook,
        resource=resource,
    )


def run_http(make: Callable[..., StreamableHTTP], **options: Unpack[RunOptions]) -> None:
    """Serve over HTTP until a signal ends it.

    Args:
        make: Makes the application, given its options.
        options: See `RunOptions`.

    Raises:
        TransportError: The address cannot be had, or the package that serves is not installed.
        ValueError: An option that cannot hold, such as a wide address without allowed hosts.
    """
    from twofold.server.serve_http import serve_http  # noqa: PLC0415 - loads the HTTP server, an optional dependency

    _check_names(options, RunOptions, "run('streamable-http')")
    host = options.pop("host", "127.0.0.1")
    port = options.pop("port", 8000)
    if "allowed_hosts" not in options and not is_loopback_host(host):
        raise ValueError(
            f"host {host!r:.80} can be reached from other machines: say under which names, as in "
            "allowed_hosts=['mcp.example.com']; web pages could else reach it under a name of their own"
        )
    app = make(**options)
    serve_http(app, host=host, port=port, path=app.path, on_stopping=app.stop)


def _check_names(options: AppOptions | RunOptions, kind: Any, what: str) -> None:
    unknown = options.keys() - get_type_hints(kind).keys()
    if unknown:
        known = ", ".join(get_type_hints(kind))
        raise TypeError(f"{what} has no option {min(unknown)!r}; it has {known}")
