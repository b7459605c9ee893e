"""What HTTP clients mirror from the body into headers, compared with the body before anything is done."""

from collections.abc import Mapping

import msgspec

from twofold.protocol.headers import check_parameters, check_request
from twofold.protocol.messages import ABSENT, Params
from twofold.server.registry import Registry

_NAME_BEARING = frozenset({"tools/call", "prompts/get"})
"""Methods whose `params.name` is mirrored; those of resources are not served."""


def check_mirrored(headers: Mapping[bytes, bytes], *, method: str, params: Params, registry: Registry) -> None:
    """Compare a request's headers with its body.

    Args:
        headers: By lower-case name.
        method: The body's.
        params: The body's.
        registry: Tells which arguments of a tool are mirrored.

    Raises:
        HeaderMismatch: One is missing, malformed, or says something else.

    Source: MCP 2026-07-28, Streamable HTTP, "Server Validation".
    """
    check_request(
        headers,
        protocol_version=params.meta.protocol_version,
        method=method,
        name=params.name if method in _NAME_BEARING else None,
    )
    mirrored = registry.mirrored(params.name) if method == "tools/call" else ()
    if mirrored:
        try:
            arguments = None if params.arguments is ABSENT else msgspec.json.decode(params.arguments)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            arguments = None  # refused, with the place, by whoever binds them
        check_parameters(headers, mirrored, arguments)
