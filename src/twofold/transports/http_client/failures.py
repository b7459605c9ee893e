"""What went wrong between a client and an HTTP server, in words that say what to do."""

import socket
import ssl
from collections.abc import Iterator

import httpx2

from twofold.errors import HttpStatusError, NotSent, SessionGone, TransportError

CONNECT_SECONDS = 10.0
"""For a connection to be made."""
BODY_CHARACTERS = 500
_SHOWN_CHARACTERS = 80

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


def explain_failure(error: httpx2.HTTPError, *, name: str) -> TransportError:
    """Say what a failure means: `NotSent` only where the message certainly stayed here.

    Args:
        error: As httpx2 raised it.
        name: Of the server.
    """
    if isinstance(error, _NEVER_SENT):
        return NotSent(f"{name}: {_explain_connecting(error)}")
    if isinstance(error, httpx2.LocalProtocolError) and str(error).startswith("Illegal header"):
        # Its message would show the header, which may be a credential.
        return NotSent(f"{name}: a header has characters that no header can have; mend `headers`, or what `auth` adds")
    reason = type(error).__name__ + (f": {show(str(error))}" if str(error) else "")
    return TransportError(f"{name}: the connection broke before there was an answer ({reason})")


def _explain_connecting(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} seconds; is the server up, and reachable from here?"
    if isinstance(error, httpx2.ProxyError):
        return f"the proxy does not let it through ({show(str(error))}); see HTTPS_PROXY and NO_PROXY"
    causes = list(_causes(error))
    told = next((text for text in map(_explain_cause, causes) if text is not None), None)
    if told is not None:
        return told
    reason = next((each.strerror for each in causes if isinstance(each, OSError) and each.strerror), str(error))
    return f"no connection ({show(reason)}); is the server up, and reachable from here?"


def _explain_cause(cause: BaseException) -> str | None:
    if isinstance(cause, socket.gaierror):
        return "no such host; check the name in the URL, and the network"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({show(cause.verify_message)}); name its authority in SSL_CERT_FILE, or "
            "give a client of your own that trusts it"
        )
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed ({show(cause.reason or str(cause))}); is it http:// rather than https://?"
    if isinstance(cause, ConnectionRefusedError):
        return "nothing listens there; start the server, or mend host and port in the URL"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Go through what led to an error, depth first."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield cause
        yield from _causes(cause)


def explain_status(response: httpx2.Response, body: bytes, *, name: str, is_session: bool = False) -> HttpStatusError:
    """Say that a server refused a message by its status.

    Args:
        response: Its head.
        body: The start of what it said.
        name: Of the server.
        is_session: It no longer knows the session.
    """
    text = body[: 4 * BODY_CHARACTERS].decode("utf-8", "replace")[:BODY_CHARACTERS]
    status = response.status_code
    reason = response.reason_phrase[:_SHOWN_CHARACTERS]
    said = f" ({show(text)})" if text.strip() else ""
    kind = SessionGone if is_session else HttpStatusError
    return kind(
        f"{name}: the server answered {status} {reason}{said}{_advise(response, is_session)}",
        status=status,
        body=text,
        challenge=response.headers.get("www-authenticate"),
    )


def _advise(response: httpx2.Response, is_session: bool) -> str:
    status = response.status_code
    if is_session:
        return "; the session is over: open a new one"
    if 300 <= status < 400:
        return f"; it leads to {_show_location(response)}: if you trust that, use it as the URL"
    return {
        401: "; it wants to know who asks: give `auth`, or an Authorization header",
        403: "; whoever asks may not: other credentials or scopes are needed",
        404: "; is the path in the URL the one of the MCP endpoint?",
        405: "; is the path in the URL the one of the MCP endpoint?",
    }.get(status, "")


def _show_location(response: httpx2.Response) -> str:
    """Show where a redirection leads, without what may be a secret."""
    try:
        url = response.request.url.join(response.headers.get("location", ""))
        return show(str(url.copy_with(userinfo=b"", query=None, fragment=None)))
    except (httpx2.InvalidURL, ValueError):
        return "nowhere"


def show(text: str) -> str:
    """Quote what a server said, cut, with what a terminal would obey written out."""
    shown = repr(text[:_SHOWN_CHARACTERS])
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
