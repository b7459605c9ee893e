"""`twofold serve TARGET`: a server on this process's stdin and stdout."""

from twofold.cli.failures import Exit
from twofold.cli.target import load_target


def serve(target: str, /) -> int:
    """Serve a server's tools over stdio, until the client has gone.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
    """
    load_target(target).run()
    return Exit.RESULT
