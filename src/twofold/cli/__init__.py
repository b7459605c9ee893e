"""The `twofold` command: serve, list and call tools from a shell. One file a command."""

import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

from twofold.cli.failures import CommandFailure, Exit, one_line

_STDERR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `twofold` command.

    Args:
        arguments: As on the command line, without the program's name; None reads the command line.

    Returns:
        The exit code: see `Exit`.
    """
    given = [*(sys.argv[1:] if arguments is None else arguments)]  # `list` is a command here, once it is loaded
    return run_command(lambda: _run(given))


def run_command(work: Callable[[], int]) -> int:
    """Do what a command does, with the streams, warnings and failures of the command line.

    Args:
        work: Gives the exit code.

    Returns:
        The exit code: what `work` gave, or that of its failure, which is told on stderr.
    """
    _settle_streams()
    if sys.stdout is None:
        _complain("stdout is closed, so there is nowhere to write to")
        return Exit.NOT_WRITTEN
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = work()
        sys.stdout.flush()
    except CommandFailure as failure:
        _complain(str(failure))
        return failure.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return Exit.PIPE_CLOSED
    except OSError as error:
        _drop_output()
        _complain(f"the output could not be written: {one_line(error)}")
        return Exit.NOT_WRITTEN
    return code


def _settle_streams() -> None:
    """See to it that there is a stderr, and that text which stdout's encoding lacks is escaped, not a crash."""
    if sys.stderr is None:  # closed by whoever started us; a file that is opened later would take its number
        opened = os.open(os.devnull, os.O_WRONLY)
        if opened != _STDERR:
            os.dup2(opened, _STDERR)
        sys.stderr = open(_STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter complains while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "serve" and not arguments[1].startswith("-"):
        # What hosts run at every start: without the 0.1 s that the command line's libraries take to load.
        from twofold.cli.serve import serve  # noqa: PLC0415

        return serve(arguments[1])
    from cyclopts import CycloptsError, UnusedCliTokensError  # noqa: PLC0415 - see above

    from twofold.cli.commands import app  # noqa: PLC0415

    if "--" in arguments:  # what follows is a command of its own, whatever its words look like
        place = arguments.index("--")
        arguments = [*arguments[:place], "--server-command", json.dumps(arguments[place + 1 :])]
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        unused = (error.unused_tokens or [""])[0]
        _complain(f"{arguments[0]}: too many words, from {unused!r:.80} on; {_hint(arguments[0])}")
        return Exit.BAD_USAGE
    except CycloptsError as error:
        said = str(error).rstrip(".")
        _complain(said + (" See twofold --help" if said.endswith("?") else "; see twofold --help"))
        return Exit.BAD_USAGE
    return int(code or Exit.RESULT)


def _hint(command: str) -> str:
    """Say what was likely meant by words too many: a command without `--`, or JSON without quotes."""
    if command == "serve":
        return "see twofold serve --help"
    from twofold.cli.target import COMMAND_FORM  # noqa: PLC0415 - see `_run`

    return COMMAND_FORM + ("; JSON stands in quotes, as one word" if command == "call" else "")


def _complain(text: str) -> None:
    """Write one line to stderr, with nothing in it that a terminal would obey."""
    line = " ".join(text.split())
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    sys.stderr.write(f"twofold: {shown}\n")


def _show_warning(  # noqa: PLR0917 - as the interpreter calls it
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - the interpreter gives it
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    _complain(f"warning: {message} ({filename}, line {lineno})")
