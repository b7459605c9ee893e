"""`twofold serve --workers`: the parent's side, and `python -m twofold.cli.worker`, the program of each worker."""

import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from twofold.cli import run_command
from twofold.cli.failures import BadUsage, Exit, NotLoaded
from twofold.cli.running import run_server
from twofold.cli.target import load_target
from twofold.errors import TransportError
from twofold.server.http import choose_shown_host
from twofold.server.mcpserver import MCPServer
from twofold.server.serve_http import bind, url_of
from twofold.server.worker import Parent, serve_as_worker
from twofold.server.worker_processes import WorkerFailed, run_workers
from twofold.transports.http_server.bounds import HttpLimits


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is given, as JSON on its command line.

    Attributes:
        target: What it serves.
        options: As `AppOptions` has them.
        listeners: File descriptors of the sockets it accepts from.
        control: File descriptor of its end of the socket pair.
    """

    target: str
    options: dict[str, Any]
    listeners: list[int]
    control: int


def serve_with_workers(target: str, address: tuple[str, int], *, count: int, path: str, options: dict[str, Any]) -> int:
    """Serve an address from several processes, until a signal ends them.

    Args:
        target: What each of them loads.
        address: Host and port.
        count: How many.
        path: Where the endpoint is; only to be shown.
        options: As `AppOptions` has them.

    Returns:
        The exit code; that of a worker which said why it cannot start.

    Raises:
        NotLoaded: The address cannot be had, or workers do not start.
    """
    host, port = address
    try:
        listeners = bind(host, port, stall_seconds=HttpLimits().stall_seconds)
        url = url_of(listeners[0], choose_shown_host(host, options.get("allowed_hosts", ())), path)
        told = f"Serving at {url} with {count} worker{'s' if count > 1 else ''} (Ctrl-C ends them)"

        def make_command(descriptors: Sequence[int], control: int) -> list[str]:
            task = Task(target=target, options=options, listeners=[*descriptors], control=control)
            # -P: what lies in the current folder is no module of ours. Loading the target adds the target's own folder.
            return [sys.executable, "-P", "-m", "twofold.cli.worker", msgspec.json.encode(task).decode()]

        run_workers(make_command, listeners, count=count, on_serving=lambda: print(told, file=sys.stderr, flush=True))
    except WorkerFailed as failure:
        if failure.exit_code in (Exit.BAD_USAGE, Exit.NOT_LOADED):
            return failure.exit_code  # its line stands on stderr already
        raise NotLoaded(str(failure)) from failure
    except TransportError as error:
        raise NotLoaded(str(error)) from error
    return Exit.RESULT


def work(text: str) -> int:
    """Serve as one of several workers.

    Args:
        text: A `Task`.

    Raises:
        BadUsage: It is none.
        NotLoaded: The target does not lead to a server, or that cannot be served.
    """
    try:
        task = msgspec.json.decode(text, type=Task)
    except msgspec.DecodeError as error:
        raise BadUsage(f"this program is for twofold serve --workers to start; it was given {text!r:.80}") from error
    for each in (*task.listeners, task.control):
        os.set_inheritable(each, False)  # what a tool starts would keep the port, and hide this process's end
    parent = Parent(socket.socket(fileno=task.control))
    listeners = [socket.socket(fileno=each) for each in task.listeners]
    server = load_target(task.target)
    return run_server(server, partial(_serve, server, listeners, parent, task.options))


def _serve(server: MCPServer, listeners: Sequence[socket.socket], parent: Parent, options: dict[str, Any]) -> None:
    serve_as_worker(server.streamable_http_app(**options), listeners, parent)


if __name__ == "__main__":
    sys.exit(run_command(lambda: work(" ".join(sys.argv[1:]))))
