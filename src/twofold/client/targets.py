"""What a text that is no URL was probably meant to be."""

import re

from twofold.errors import NotSent

_INTERPRETERS = {"py": "python", "js": "node", "mjs": "node", "cjs": "node"}
_HOST = r"(?P<host>localhost|\[[0-9a-fA-F:]+\]|[\w-]+(?:\.[\w-]+)+|[\w.-]+(?=:\d))(?::\d{1,5})?(?:/[\w./~-]*)?"
"""A host, with a port where it is one word alone; no user, password or query, which may hold secrets."""


def check_target(text: str) -> None:
    """Refuse a text that is no URL, but surely meant to be one, or the file of a server to start.

    Args:
        text: The target; one that names a scheme, or cannot be guessed at, is left to who reads URLs.

    Raises:
        NotSent: It says what to write instead.
    """
    if "://" in text:
        return
    file = re.fullmatch(r"[^?@:]*\.(?P<suffix>py|js|mjs|cjs)", text)
    if file is not None and text.isprintable():
        command = _INTERPRETERS[file["suffix"]]
        raise NotSent(
            f"{text!r:.200} is the name of a file, not a URL; to start it as a server over stdio, give "
            f"StdioServer(command={command!r}, args=[{text!r:.200}])"
        )
    place = re.fullmatch(_HOST, text, re.ASCII)
    if place is not None:
        scheme = "http" if _is_this_machine(place["host"]) else "https"
        raise NotSent(f"{text!r:.200} is no URL, as it names no scheme; did you mean {f'{scheme}://{text}'!r:.200}?")


def _is_this_machine(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host == "[::1]"
