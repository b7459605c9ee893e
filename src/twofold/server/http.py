"""A server's Streamable HTTP application, and where it may be bound."""

from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from typing_extensions import TypedDict, Unpack

from twofold.transports.http.app import StreamableHTTP
from twofold.transports.http.authorization import Authorize, ProtectedResource
from twofold.transports.http.guard import Guard, is_loopback_host
from twofold.transports.http.limits import Limits
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
        limits: Times and bounds that hold whatever runs the application.
        stateless: Serves clients of the handshake revisions without sessions, as several processes behind one
            address need it: no `GET` stream, nothing to resume, no log level to set. Revision 2026-07-28 has no
            sessions anyway.
    """

    path: str
    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    max_body_bytes: int
    limits: Limits
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
        TypeError: An option there is none of, or of another type.
    """
    _check_names(options, AppOptions, "streamable_http_app()")
    path = options.get("path", DEFAULT_PATH)
    if not isinstance(path, str) or not path.startswith("/") or "?" in path or "#" in path:
        raise ValueError(f"path: expected a path such as '/mcp', got {path!r:.80}")
    max_body_bytes = options.get("max_body_bytes", MAX_BODY_BYTES)
    if type(max_body_bytes) is not int or max_body_bytes < 1:
        raise ValueError(f"max_body_bytes: expected a positive whole number, got {max_body_bytes!r:.80}")
    limits = options.get("limits", Limits())
    if not isinstance(limits, Limits):
        raise TypeError(f"limits: expected Limits(…), got {limits!r:.80}")
    stateless = options.get("stateless", False)
    if not isinstance(stateless, bool):
        raise TypeError(f"stateless: expected True or False, got {stateless!r:.80}")
    return StreamableHTTP(
        server,
        path="/" + path.strip("/"),
        guard=Guard(options.get("allowed_hosts"), options.get("allowed_origins")),
        max_body_bytes=max_body_bytes,
        limits=limits,
        stateless=stateless,
        hook=hook,
        resource=resource,
    )


def run_http(make: Callable[..., StreamableHTTP], **options: Unpack[RunOptions]) -> None:
    """Serve over HTTP until a signal ends it.

    Args:
        make: Makes the application, given its options.
        options: See `RunOptions`.

    Raises:
        TransportError: The address cannot be had.
        ValueError: An option that cannot hold, such as a wide address without allowed hosts.
    """
    from twofold.server.serve_http import serve_http  # noqa: PLC0415 - loads the HTTP server, which stdio needs not

    _check_names(options, RunOptions, "run('streamable-http')")
    host, port = options.pop("host", "127.0.0.1"), options.pop("port", 8000)
    check_address(host, port, is_named="allowed_hosts" in options)
    app = make(**options)
    shown_host = choose_shown_host(host, options.get("allowed_hosts", ()))
    serve_http(app, host=host, port=port, path=app.path, shown_host=shown_host, on_stopping=app.stop)


def choose_shown_host(host: str, allowed_hosts: Sequence[str]) -> str:
    """Choose the name that people are told: the address, or where it is a wide one a name that may be asked."""
    named = next((each for each in allowed_hosts if "*" not in each), None)
    return host if is_loopback_host(host) or named is None else named.partition(":")[0]


def check_address(host: str, port: int, *, is_named: bool) -> None:
    """Check where a server is to be bound.

    Args:
        host: A name or address of this machine.
        port: 0 takes a free one.
        is_named: It was said which names requests may be sent to.

    Raises:
        ValueError: It is no address, or can be reached from other machines without a name being said.
    """
    if not isinstance(host, str) or not host:
        raise ValueError(f"host: expected a name or address such as '127.0.0.1', got {host!r:.80}")
    if type(port) is not int or not 0 <= port <= 65535:
        raise ValueError(f"port: expected a whole number from 0 to 65535, got {port!r:.80}")
    if not is_named and not is_loopback_host(host):
        raise ValueError(
            f"host {host!r:.80} can be reached from other machines: say under which names, as in "
            "allowed_hosts=['mcp.example.com'] (--allow-host on the command line); web pages could else reach it "
            "under a name of their own"
        )


def _check_names(options: AppOptions | RunOptions, kind: Any, what: str) -> None:
    unknown = options.keys() - get_type_hints(kind).keys()
    if unknown:
        known = ", ".join(get_type_hints(kind))
        raise TypeError(f"{what} has no option {min(unknown)!r}; it has {known}")
