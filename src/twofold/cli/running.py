"""A server's whole run, in this process, and what its end is to a shell."""

from collections.abc import Callable

from twofold.cli.failures import BadUsage, Exit, NotLoaded, one_line
from twofold.errors import TransportError
from twofold.server.mcpserver import MCPServer


def run_server(server: MCPServer, run: Callable[[], None]) -> int:
    """Run a server to its end.

    Raises:
        BadUsage: An option that cannot hold.
        NotLoaded: It cannot be served, or its lifespan failed.
    """
    try:
        run()
    except (KeyboardInterrupt, BrokenPipeError, BadUsage):
        raise
    except TransportError as error:
        raise NotLoaded(str(error)) from error
    except BaseException as error:  # a tool's own faults are in its result: this is the lifespan's
        raise NotLoaded(f"server {server.name!r} failed: {one_line(error)}") from error
    return Exit.RESULT
