"""How a command fails: one clear line, and an exit code that says whose affair it is."""

from enum import IntEnum

from twofold.errors import TwofoldError


class Exit(IntEnum):
    """Exit codes of `twofold`."""

    RESULT = 0
    TOOL_ERROR = 1
    """The tool was called and reported an error."""
    BAD_USAGE = 2
    """The command line: an unknown option or tool, arguments that are no JSON object."""
    NOT_LOADED = 3
    """The server could not be loaded or started."""
    NOT_WRITTEN = 74
    """The output could not be written: stdout is closed, the disk is full (`EX_IOERR` of sysexits.h)."""
    PIPE_CLOSED = 128 + 13
    """Whoever read the output has gone, as a shell reports SIGPIPE."""
    INTERRUPTED = 128 + 2
    """Ctrl-C, as a shell reports SIGINT."""


class CommandFailure(TwofoldError):
    """A command cannot go on; its message is the line shown.

    Attributes:
        exit_code: What the process ends with.
    """

    exit_code = Exit.BAD_USAGE


class BadUsage(CommandFailure):
    """What the command line says cannot be done."""


class NotLoaded(CommandFailure):
    """TARGET does not lead to a server, or the server cannot start."""

    exit_code = Exit.NOT_LOADED


def one_line(error: BaseException) -> str:
    """Write an error as the last line of a traceback would, whatever its own `__str__` does."""
    try:
        said = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # noqa: BLE001 - the author's own method
        said = "(its text cannot be read: its __str__ fails)"
    text = " ".join(said.split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
