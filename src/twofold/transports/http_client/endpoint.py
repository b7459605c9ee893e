"""Where a server is: a URL that was checked, and what of it may be shown."""

import httpx2
import msgspec

from twofold.errors import NotSent
from twofold.transports.http.guard import is_loopback_host

_SHOWN_CHARACTERS = 200


class Endpoint(msgspec.Struct, frozen=True):
    """The MCP endpoint of a server.

    Attributes:
        url: Without user, password and fragment.
        name: The URL as it may be shown: without a query either.
        credentials: User and password, where the URL had them.
    """

    url: httpx2.URL
    name: str
    credentials: tuple[str, str] | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone can answer there."""
        return is_loopback_host(self.url.host)

    def follow(self, location: str) -> "Endpoint | None":
        """Give where a redirection leads; None if that is another origin, or no place at all."""
        try:
            url = self.url.join(location)
        except (httpx2.InvalidURL, ValueError):
            return None
        is_same = (url.scheme, url.host, url.port, url.userinfo) == (self.url.scheme, self.url.host, self.url.port, b"")
        return _make(url, self.credentials) if is_same else None


def read_endpoint(text: str) -> Endpoint:
    """Check a URL.

    Raises:
        NotSent: It is none that a request can be sent to. The message shows no part of it that may be a secret.
    """
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, TypeError):  # its message may hold a piece of a password
        raise NotSent("this is no URL: expected one such as https://example.com/mcp; write it out") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise NotSent(
            f"this is no URL of an MCP server: expected http or https and a host, got the scheme {url.scheme!r:.80} "
            f"and the host {url.host!r:.80}; write it as https://example.com/mcp, or give "
            "StdioServer(command=…, args=[…]) to start one"
        )
    if url.port is not None and not 0 < url.port < 65536:
        raise NotSent(f"the URL has the port {url.port}; a port is a number from 1 to 65535")
    return _make(url, (url.username, url.password) if url.userinfo else None)


def _make(url: httpx2.URL, credentials: tuple[str, str] | None) -> Endpoint:
    url = url.copy_with(userinfo=b"", fragment=None)
    shown = str(url.copy_with(query=None))
    name = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
    return Endpoint(url, name, credentials)
