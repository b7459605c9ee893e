"""A server as a child process: messages over its standard streams, its last words in errors, its end within a bound.

Source: MCP 2026-07-28, stdio transport; how it is shut down: "Shutdown" there.
"""

import asyncio
import logging
import os
import re
import signal
import subprocess
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from twofold.contract.sensitive import secret_word
from twofold.errors import NotSent, TransportError
from twofold.protocol.jsonrpc import BEFORE_MESSAGE, RequestId
from twofold.transports.link import Handler

logger = logging.getLogger("twofold")

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is not read, so that a server cannot take all memory with one."""
STEP_SECONDS = 2.0
"""So long a server may take to end after its stdin was closed, and once more after SIGTERM."""
LEFT_SECONDS = 0.5
"""After a server's end, or the end of its stdout, so long is waited for the rest of what it said."""
KEPT_LINES = 20
KEPT_CHARACTERS = 500

INHERITED = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    }
)
"""What a server gets of this process's environment, beside `LC_*`: what running a program needs, and no secrets."""

_KEPT_BYTES = 4 * KEPT_CHARACTERS  # a character of UTF-8 has at most four
_HEAD_BYTES = 4096
_READ_BYTES = 64 * 1024
_LARGE_BYTES = 256 * 1024
_LOOK_SECONDS = 0.02
_SHOWN_CHARACTERS = 80
_MARK = re.compile(r"[=:]")
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class StdioServer(msgspec.Struct, frozen=True):
    """A server that is started as a child process and talked to over its standard streams.

    It is started without a shell, in a session of its own (a Ctrl-C in the terminal reaches it as the end of its
    client), and with little of this process's environment: `PATH`, `HOME`, the locale and the like, see `INHERITED`;
    no secrets. What else it needs is given as `env`.

    Attributes:
        command: One program: a name to be found on `PATH`, or a path.
        args: What follows it, one element each.
        env: Added to the environment, or replacing parts of it; never shown.
        cwd: The folder it starts in; this process's own if None.

    Raises:
        TypeError: A part is of another type.
        ValueError: The command is empty, or a part has a NUL.
    """

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    cwd: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be started, before anything is."""
        if isinstance(self.args, str) or not all(isinstance(each, str) for each in (self.command, *self.args)):
            raise TypeError("StdioServer: command is a text and args a list of texts, as in ('python', ['server.py'])")
        env = self.env or {}
        if not all(isinstance(each, str) for pair in env.items() for each in pair):
            raise TypeError("StdioServer: env maps names to texts; write numbers as texts")
        if not self.command:
            raise ValueError("StdioServer: command is empty; name a program")
        if any("\0" in each for each in (self.command, *self.args, *env, *env.values())) or any(
            "=" in each for each in env
        ):
            raise ValueError("StdioServer: no part of a command has a NUL, and no name in env a '='")
        msgspec.structs.force_setattr(self, "args", tuple(self.args))

    def __repr__(self) -> str:
        """Show it without the values of `env` and without secrets among the arguments."""
        env = "" if self.env is None else f", env={{{', '.join(f'{name!r}: …' for name in self.env)}}}"
        cwd = "" if self.cwd is None else f", cwd={os.fspath(self.cwd)!r}"
        return f"StdioServer({self.command!r}, {_without_secrets(self.args)!r}{env}{cwd})"


def _without_secrets(args: Sequence[str]) -> list[str]:
    """Leave out what stands behind a name that announces a secret, and who logs in to a URL."""
    shown: list[str] = []
    is_secret = False
    for arg in args:
        name, mark = _split_name(arg)
        announces = secret_word(name) is not None
        if is_secret and not arg.startswith("-"):
            shown.append("…")
            is_secret = False
            continue
        shown.append(f"{name}{mark}…" if announces and mark else _USER_IN_URL.sub("…", arg))
        is_secret = announces and not mark and name.startswith("-")
    return shown


def _split_name(arg: str) -> tuple[str, str]:
    """Give what stands before the first `=` or `:`, and that."""
    found = _MARK.search(arg)
    return (arg, "") if found is None else (arg[: found.start()], found[0])


def _describe(server: StdioServer) -> str:
    """Name a server by its command: for people, so that only blanks need quotes."""
    parts = (server.command, *_without_secrets(server.args))
    command = make_visible(" ".join(f'"{part}"' if " " in part or not part else part for part in parts))
    return f"server '{command if len(command) <= _SHOWN_CHARACTERS else command[: _SHOWN_CHARACTERS - 1] + '…'}'"


def make_environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """Give the environment of a child: the harmless part of this process's, and `env`."""
    own = {name: value for name, value in os.environ.items() if name in INHERITED or name.startswith("LC_")}
    return own | dict(env or {})


class ChildProcessLink:
    """One server process, started when the link is opened.

    When the link is closed, the server and every process that it started in its process group have ended. Where an
    event loop ends without that, they are killed once the link is forgotten or the interpreter exits; where this
    process is killed, only the end of its stdin tells the server. A process that left the group is never found.

    Args:
        server: What is started.
        max_line_bytes: A longer line of the server's is not read.
    """

    def __init__(self, server: StdioServer, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._server = server
        self._name = _describe(server)
        self._max_line_bytes = max_line_bytes
        self._child: _Child | None = None
        self._forgotten: weakref.finalize[..., ChildProcessLink]
        self._is_used = False

    @property
    def name(self) -> str:
        """What was started, without secrets."""
        return self._name

    @property
    def has_lost_session(self) -> bool:
        """There are no sessions to lose."""
        return False

    @property
    def has_own_streams(self) -> bool:
        """Everything goes one way."""
        return False

    async def open(self, handler: Handler) -> None:
        """Start the server.

        Raises:
            NotSent: It cannot be started, or the link was opened before.
        """
        if self._is_used:
            raise NotSent(f"{self.name}: the link was opened before; make a new one")
        self._is_used = True
        child = _Child(self.name, handler, max_line_bytes=self._max_line_bytes)
        # Not to be cancelled halfway: then there would be a process that nobody knows.
        starting = asyncio.create_task(self._start(child))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if not starting.cancelled() and starting.exception() is None:
                await child.close()
            raise
        self._child = child
        self._forgotten = weakref.finalize(self, child.group.kill)

    async def _start(self, child: "_Child") -> None:
        server = self._server
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                server.command,
                *server.args,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=make_environment(server.env),
                cwd=server.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a text that the system's encoding does not have
            raise NotSent(f"{self.name} cannot be started: {_advise(error, server)}") from error

    async def send(self, message: bytes, *, request_id: RequestId | None, headers: Mapping[str, str]) -> None:  # noqa: ARG002 - see `Link`
        """Write a message to the server's stdin; lasts until the system has taken all of it.

        Raises:
            NotSent: The link is not open, or the server has gone.
            TransportError: The server went while it was written.
        """
        if self._child is None:
            raise NotSent(f"{self.name}: the link is not open; use the client inside its `async with`")
        await self._child.write(message)

    def settle(self, revision: str) -> None:
        """Nothing here depends on it."""

    async def close(self) -> None:
        """End the server: its stdin is closed, then it is told to end, then killed, and always waited for."""
        child, self._child = self._child, None
        if child is not None:
            await child.close()
            self._forgotten.detach()


def _advise(error: OSError | ValueError, server: StdioServer) -> str:
    """Say why a program cannot be started, and what to do."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__}; a part of the command cannot be given to a program"
    if server.cwd is not None and error.filename == server.cwd:
        return f"its folder {os.fspath(server.cwd)!r:.80} cannot be entered ({error.strerror}); give another cwd"
    if isinstance(error, FileNotFoundError):
        if " " in server.command.strip() and not server.args:
            return "there is no such program; a command is one program, give what follows it as args=[…]"
        where = "at that path" if os.sep in server.command else "on PATH"
        return f"there is no program {server.command!r:.80} {where}; install it, or give its whole path"
    if isinstance(error, PermissionError):
        return f"{server.command!r:.80} is not executable; name a program, or make it one with chmod +x"
    return f"{error.strerror or error}; name a program that this system can run"


class _Group:
    """The process group of a child, which outlives it where it left processes behind."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._owner = os.getpid()
        self._is_gone = False

    def signal(self, number: int) -> bool:
        """Signal every process of the group (0 only looks); tell whether there was one.

        A group that was found empty is left alone for good: its number may be somebody else's.
        """
        if self._is_gone or os.getpid() != self._owner:  # a fork of this process has no say
            return False
        try:
            os.killpg(self._number, number)
        except (ProcessLookupError, PermissionError):  # PermissionError: macOS, of processes that have ended
            self._is_gone = True
        return not self._is_gone

    def kill(self) -> None:
        """Kill what is left."""
        self.signal(signal.SIGKILL)


class _Stdout(asyncio.Protocol):
    """Takes what comes on a server's stdout; all else stays with the protocol that was there before."""

    def __init__(self, on_data: Callable[[bytes], None], before: asyncio.Protocol) -> None:
        self._on_data = on_data
        self._before = before

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._before.connection_lost(exc)


class _Child(asyncio.SubprocessProtocol):
    """A running server: its streams and its end. No task of its own; asyncio calls it."""

    def __init__(self, name: str, handler: Handler, *, max_line_bytes: int) -> None:
        self._name = name
        self._handler: Handler | None = handler
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport
        self._stdin: asyncio.WriteTransport
        self._is_made = False
        self.group: _Group
        self._lines = MessageLines(
            max_line_bytes, on_message=self._take, on_rubbish=self._take_rubbish, on_too_long=self._refuse
        )
        self._rubbish = LastLines()
        self._stderr = LastLines()
        self._fragment: bytes | None = None
        self._is_deaf = False
        self._has_closed_stdout = False
        self._is_unsent = False
        self._is_closing = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._exited = asyncio.Event()
        self._finished = asyncio.Event()
        self._reporting: asyncio.TimerHandle | None = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Told by their places, since not every event loop's are of asyncio's classes.
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        if not self._stdin.is_closing():
            self._stdin.set_write_buffer_limits(high=0)  # whoever writes waits until the system has taken everything
        self.group = _Group(self._transport.get_pid())
        self._is_made = True
        self._hear_stdout(self._transport.get_pipe_transport(1))
        if self._exited.is_set():  # on uvloop, a program that ends at once has ended before it was made
            self.process_exited()

    def _hear_stdout(self, stdout: Any) -> None:
        """Have what the server says come here directly: asyncio hands on each piece on the loop's next turn."""
        if stdout is not None and not stdout.is_closing():
            stdout.set_protocol(_Stdout(self._lines.feed, stdout.get_protocol()))
            if hasattr(stdout, "max_size"):  # of asyncio: for each read it would have the system map so much memory
                stdout.max_size = min(stdout.max_size, _READ_BYTES)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr.feed(data)
        else:
            self._lines.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if fd == 0:
            self._is_deaf = True
            self._has_room.set()
        elif fd == 1:
            self._has_closed_stdout = True
            self._fragment = self._lines.finish()
            self._report_soon()

    def process_exited(self) -> None:
        self._is_deaf = True
        self._has_room.set()
        self._exited.set()
        self._report_soon()
        if self._is_made:
            self.group.signal(signal.SIGTERM)  # what it has left behind, which may hold its streams open

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._finished.set()
        if self._is_made:  # else the report is on its way already
            self._report()

    def pause_writing(self) -> None:
        self._is_unsent = True
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._is_unsent = False
        self._has_room.set()

    # What comes.

    def _take(self, line: bytes) -> None:
        if self._handler is not None:
            self._handler.take(line)

    def _take_rubbish(self, head: bytes) -> None:
        if self._rubbish.is_empty and self._handler is not None:
            logger.warning(
                "%s: what is no message came on its stdout: '%s'; it should write that to its stderr",
                self._name, make_visible(head[:_KEPT_BYTES].decode("utf-8", "replace"))[:_SHOWN_CHARACTERS],
            )  # fmt: skip
        self._rubbish.add(head)

    def _refuse(self, head: bytes) -> None:
        if self._handler is not None:
            limit = self._lines.max_bytes
            error = TransportError(
                f"{self._name}: a line of more than {limit} bytes came, which is the limit; it must send less at once"
            )
            self._handler.take_broken(head, error)

    def _report_soon(self) -> None:
        if self._reporting is None:
            self._reporting = self._loop.call_later(LEFT_SECONDS, self._report)

    def _report(self) -> None:
        """Tell, once, that nothing more will come."""
        if self._reporting is not None:
            self._reporting.cancel()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.lost(TransportError(self._describe_end()))

    def _describe_end(self) -> str:
        """Say what became of the server, in its own last words."""
        if self._is_closing:
            return f"{self._name}: the client was closed"
        code = self._transport.get_returncode()
        if code is not None:
            told = f"ended with exit code {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        elif self._has_closed_stdout:
            told = "closed its stdout, although it goes on running"
        else:
            told = "closed its stdin, although it goes on running"
        if self._fragment is not None:
            start = make_visible(self._fragment[:_KEPT_BYTES].decode("utf-8", "replace"))[:_SHOWN_CHARACTERS]
            told += f" in the middle of a message ({len(self._fragment)} bytes: '{start}')"
        rubbish = "" if self._rubbish.is_empty else f"; what was no message on its stdout: {self._rubbish}"
        words = (
            "; it said nothing on stderr" if self._stderr.is_empty else f"; its last words on stderr: {self._stderr}"
        )
        return f"{self._name} {told}{rubbish}{words}"

    # What goes.

    async def write(self, message: bytes) -> None:
        while not self._has_room.is_set():  # somebody else's message is not written yet
            await self._has_room.wait()
        if self._is_deaf or self._stdin.is_closing():
            raise NotSent(await self._learn_end())
        message = message.replace(b"\n", b" ")  # between the parts of a JSON text only: inside they are escaped
        if len(message) < _LARGE_BYTES:
            self._stdin.write(message + b"\n")
        else:  # rather a second call than a second copy
            self._stdin.write(message)
            self._stdin.write(b"\n")
        if self._has_room.is_set():
            return
        await self._has_room.wait()
        if self._is_deaf and self._is_unsent:
            raise TransportError(await self._learn_end())

    async def _learn_end(self) -> str:
        """Say what became of the server, which is known a moment after its stdin is closed."""
        if not self._is_closing:
            await _wait_for(self._exited, LEFT_SECONDS)
        return self._describe_end()

    async def close(self) -> None:
        """End the process and its group, within a bound, even if this is cancelled."""
        self._handler, self._is_closing = None, True
        if self._reporting is not None:
            self._reporting.cancel()
        try:
            self._stdin.close()
            await _wait_for(self._exited, STEP_SECONDS)
            for number in (signal.SIGTERM, signal.SIGKILL):
                if not self.group.signal(number):
                    break
                await self._wait_for_group()
            await _wait_for(self._exited, STEP_SECONDS)
        finally:
            self.group.kill()
            self._is_deaf = True
            self._has_room.set()
            if self._stdin.get_write_buffer_size():  # what a process outside the group does not read keeps it open
                self._stdin.abort()
            self._transport.close()
        await _wait_for(self._finished, STEP_SECONDS)

    async def _wait_for_group(self) -> None:
        """Wait until no process of the group is left, or the time is over."""
        end = self._loop.time() + STEP_SECONDS
        while self.group.signal(0) and self._loop.time() < end:  # noqa: ASYNC110 - nobody tells when a group is empty
            await asyncio.sleep(_LOOK_SECONDS)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class MessageLines:
    """Bytes → lines that begin like messages; others, and those that are too long, by their heads alone.

    Args:
        max_bytes: What a line may have.
        on_message: Given each line that begins with `{` or `[`.
        on_rubbish: Given the start of each other line.
        on_too_long: Given the start, up to 4 KiB, of a line that begins like a message and is too long.
    """

    def __init__(
        self,
        max_bytes: int,
        *,
        on_message: Callable[[bytes], None],
        on_rubbish: Callable[[bytes], None],
        on_too_long: Callable[[bytes], None],
    ) -> None:
        self.max_bytes = max_bytes
        self._on_message = on_message
        self._on_rubbish = on_rubbish
        self._on_too_long = on_too_long
        self._start_line()

    def _start_line(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._is_kept = True

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._keep(piece)
            self._end_line()
        self._keep(rest)

    def finish(self) -> bytes | None:
        """Take the end of the stream; give a message that was not ended, unless it is whole."""
        line, is_kept = b"".join(self._parts), self._is_kept
        if not is_kept or not _begins_like_message(line) or _is_json(line):
            self._end_line()
            return None
        self._start_line()
        return line

    def _keep(self, piece: bytes) -> None:
        """Keep a piece of a line; only its start, once it is too long or no message."""
        if not self._is_kept or not piece:
            return
        self._parts.append(piece)
        self._size += len(piece)
        is_first = len(self._parts) == 1
        if self._size > self.max_bytes or (is_first and not _may_begin_message(piece)):
            self._parts = [b"".join(self._parts)[:_HEAD_BYTES]]
            self._is_kept = False
            if self._size > self.max_bytes and _may_begin_message(self._parts[0]):
                self._on_too_long(self._parts[0])  # at once: its end may never come
                self._parts = []

    def _end_line(self) -> None:
        line, is_kept = b"".join(self._parts), self._is_kept
        self._start_line()
        if not _begins_like_message(line):
            if line.strip():
                self._on_rubbish(line[:_HEAD_BYTES])
        elif is_kept:
            self._on_message(line)
        else:
            self._on_too_long(line)


def _begins_like_message(line: bytes) -> bool:
    return line.lstrip(BEFORE_MESSAGE)[:1] in (b"{", b"[")


def _may_begin_message(piece: bytes) -> bool:
    """Tell whether a line that begins so may be a message: blanks may stand before it."""
    return piece.lstrip(BEFORE_MESSAGE)[:1] in (b"", b"{", b"[")


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


class LastLines:
    """The last lines of a stream, each cut; a flood costs no more than looking for its last line ends."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._open = b""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return not self._lines and not self._open.strip()

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        first, *others = data.rsplit(b"\n", KEPT_LINES)
        if not others:
            self._open = (self._open + first[:_KEPT_BYTES])[:_KEPT_BYTES]
            return
        _, end, line = first.rpartition(b"\n")
        self.add(line if end else self._open + line[:_KEPT_BYTES])
        for each in others[:-1]:
            self.add(each)
        self._open = others[-1][:_KEPT_BYTES]

    def add(self, line: bytes) -> None:
        """Take a whole line; an empty one says nothing."""
        if line.strip():
            self._lines.append(line.rstrip()[:_KEPT_BYTES])

    def __str__(self) -> str:
        lines = [*self._lines, self._open] if self._open.strip() else list(self._lines)
        shown = [make_visible(line.decode("utf-8", "replace")[:KEPT_CHARACTERS]) for line in lines[-KEPT_LINES:]]
        return shown[0] if len(shown) == 1 else "".join(f"\n  {line}" for line in shown)


def make_visible(text: str) -> str:
    """Write out what a terminal would obey, or not show, rather than print."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
