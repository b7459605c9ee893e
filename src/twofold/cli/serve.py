"""`twofold serve TARGET`: a server on this process's stdin and stdout."""

from twofold.cli.failures import Exit, NotLoaded, one_line
from twofold.cli.target import load_target


def serve(target: str, /) -> int:
    """Serve a server's tools over stdio, until the client has gone.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
    """
    server = load_target(target)
    try:
        server.run()
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:  # a tool's own faults are in its result: this is the lifespan's
        raise NotLoaded(f"server {server.name!r} failed: {one_line(error)}") from error
    return Exit.RESULT
