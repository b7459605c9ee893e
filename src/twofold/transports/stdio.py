"""Messages over this process's standard streams, one a line; everything else is kept off them.

Source: MCP 2026-07-28, stdio transport. The server must write nothing but messages to stdout.
"""

import asyncio
import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from twofold.errors import InvalidRequest, ProtocolError, TransportError

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""A longer line is refused, so that a peer cannot take all memory with one."""
GRACE_SECONDS = 2.0
"""After the peer has closed its end, so long may running calls go on. Clients wait about as long before they kill."""
LAST_LOOK_SECONDS = 0.5
"""So long what a peer has sent meanwhile is still taken, and refused, before the end."""
_READ_BYTES = 64 * 1024
"""At once: more would have the allocator ask the system for memory, and give it back, with every read."""
_LARGE_BYTES = 64 * 1024
"""No more is gathered, or copied, before it is written."""


class Receiver(Protocol):
    """What takes the lines."""

    on_change: Callable[[], None] | None
    """Set by the transport; called whenever `is_full` may have changed."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be taken, so that reading must stop."""
        ...

    def receive(self, line: bytes) -> None:
        """Take one line."""
        ...

    def refuse_line(self, error: ProtocolError) -> None:
        """Answer a line that could not be handed over."""
        ...

    def release(self) -> None:
        """Go on with what waited for the peer to take its answers."""
        ...

    async def close(self, *, grace_seconds: float) -> None:
        """Finish or give up what is running."""
        ...


class Streams(msgspec.Struct, frozen=True, gc=False):
    """The real stdin and stdout, as private file descriptors that no child inherits."""

    input_fd: int
    output_fd: int


@contextlib.contextmanager
def claim_streams() -> Iterator[Streams]:
    """Take the real stdin and stdout for messages.

    Meanwhile file descriptor 0 is empty and 1 leads to stderr, for this process and its children: prints,
    banners of native code and children's output cannot get among the messages, and no child reads them.

    Raises:
        TransportError: One of them is closed.
    """
    if not (_is_open(0) and _is_open(1)):
        raise TransportError("standard input or output is closed; a server over stdio needs both open")
    if not _is_open(2):  # then nobody reads what is said there, but descriptor 1 must lead somewhere
        os.open(os.devnull, os.O_WRONLY)
    saved_in, saved_out = os.dup(0), os.dup(1)
    were_blocking = [(fd, os.get_blocking(fd)) for fd in (saved_in, saved_out)]
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        if sys.stdout is not None:
            sys.stdout.flush()  # what was printed before now goes to stderr too
        if os.isatty(saved_in) and sys.stderr is not None:
            sys.stderr.write("Serving over stdio: a client's messages are awaited on standard input, one a line.\n")
        yield Streams(saved_in, saved_out)
    finally:
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):  # a tool may have closed it
                sys.stdout.flush()
        for fd, was_blocking in were_blocking:
            os.set_blocking(fd, was_blocking)  # others may share the stream, or go on with it after us
        os.dup2(saved_in, 0)
        os.dup2(saved_out, 1)
        os.close(saved_in)
        os.close(saved_out)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class LineBuffer:
    """Bytes → lines, with a bound; what is too long is skipped to its end."""

    def __init__(self, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._is_skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Give each line that ends in `data`, without its end; None for one that was too long."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            if self._is_skipping:
                self._is_skipping = False
                continue
            line = b"".join((*self._parts, piece)) if self._parts else piece
            self._parts, self._size = [], 0
            if len(line) > self._max_bytes:
                yield None
            elif line.strip():
                yield line
        if rest and not self._is_skipping:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._max_bytes:
                self._parts, self._size, self._is_skipping = [], 0, True
                yield None

    def finish(self) -> bytes | None:
        """Give the last line if the stream ended without a line end."""
        line = b"".join(self._parts)
        self._parts = []
        return line if line.strip() else None


class LineWriter:
    """Messages → lines on a file descriptor.

    A pipe or socket never blocks the event loop. A file or terminal, or what stderr shares, is written at once.
    What is said within one turn of the event loop goes out together, since each write is a call of the system.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._is_gathering = False
        self._transport: asyncio.WriteTransport | None = None
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.is_broken = asyncio.Event()
        self.on_room: Callable[[], None] | None = None

    async def open(self, fd: int) -> None:
        """Start writing to a descriptor, which is closed with the writer."""
        loop = asyncio.get_running_loop()
        protocol = _WriterProtocol(self)
        if _can_be_polled(fd) and not _is_stderr(fd):
            self._transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(fd, "wb", 0))
        else:
            self._transport = _BlockingTransport(fd, protocol)

    def write(self, message: bytes) -> None:
        """Send one message; a peer that has gone gets nothing more."""
        if self._transport is None or self.is_broken.is_set():
            return
        if len(message) >= _LARGE_BYTES:  # rather a second call than a second copy
            self.send_gathered()
            self._transport.write(message)
            self._transport.write(b"\n")
            return
        if not self._gathered and not self._is_gathering:
            self._loop.call_soon(self.send_gathered)
        self._gathered += (message, b"\n")
        self._gathered_bytes += len(message)
        if self._gathered_bytes >= _LARGE_BYTES:
            self.send_gathered()

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Send what is said meanwhile at the end, all at once."""
        self._is_gathering = True
        try:
            yield
        finally:
            self._is_gathering = False
            self.send_gathered()

    def send_gathered(self) -> None:
        """Send what was said in this turn now: whoever is called next may take its time."""
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if self._transport is not None and gathered:
            self._transport.write(b"".join(gathered))

    async def drain(self) -> None:
        """Wait until the peer has taken enough that there is room again."""
        await self._has_room.wait()

    @property
    def has_room(self) -> bool:
        """Whether the peer keeps up."""
        return self._has_room.is_set()

    def set_room(self, *, has_room: bool) -> None:
        """Take note of whether the peer keeps up."""
        if has_room:
            self._has_room.set()
            if self.on_room is not None:
                self.on_room()
        else:
            self._has_room.clear()

    async def close(self, *, grace_seconds: float) -> None:
        """Send what is buffered, within a bound, and close."""
        if self._transport is None:
            return
        self.send_gathered()
        if not self.is_broken.is_set():
            self._transport.close()
        try:
            async with asyncio.timeout(grace_seconds):
                await self.is_broken.wait()
        except TimeoutError:  # the peer does not take what is left
            self._transport.abort()


class _WriterProtocol(asyncio.Protocol):
    """Flow control of the write end."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def pause_writing(self) -> None:
        self._writer.set_room(has_room=False)

    def resume_writing(self) -> None:
        self._writer.set_room(has_room=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writer.is_broken.set()
        self._writer.set_room(has_room=True)


class _BlockingTransport(asyncio.WriteTransport):
    """A file or terminal: it cannot be polled, or must not be made non-blocking because others share it."""

    def __init__(self, fd: int, protocol: _WriterProtocol) -> None:
        super().__init__()
        self._file = os.fdopen(fd, "wb")
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:  # the reader has gone
            self._protocol.connection_lost(error)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be flushed has no reader
            self._file.close()
        self._protocol.connection_lost(None)

    def abort(self) -> None:
        self.close()


def _can_be_polled(fd: int) -> bool:
    """Tell a pipe or socket from a file, and from a terminal, which is shared and stays as it is."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def has_input(fd: int) -> bool:
    """Tell whether something waits to be read; not known on Windows."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & select.POLLIN for _, event in poll.poll(0))


def _is_stderr(fd: int) -> bool:
    """Tell whether a stream of messages is stderr too (`2>&1`, one socket for all), which must stay blocking."""
    return os.path.sameopenfile(fd, 2)


async def _read(fd: int, on_data: Callable[[bytes], None], *, may_read: "_Valve") -> None:
    """Hand on what arrives at a descriptor until it ends, reading only while the valve is open."""
    if not _can_be_polled(fd) or _is_stderr(fd):
        await _read_in_thread(fd, on_data, may_read=may_read)
        return
    reader = _PipeReader(os.dup(fd), on_data)
    may_read.attach(reader)
    try:
        await reader.ended.wait()
    finally:
        reader.close()


class _PipeReader:
    """Reads a pipe or socket when there is something to read, in pieces that the allocator has at hand."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        os.set_blocking(fd, False)
        self.resume()

    def resume(self) -> None:
        self._loop.add_reader(self._fd, self._read)

    def pause(self) -> None:
        self._loop.remove_reader(self._fd)

    def close(self) -> None:
        self.ended.set()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the peer has gone
            data = b""
        if data:
            self._on_data(data)
        else:
            self._loop.remove_reader(self._fd)
            self.ended.set()


async def _read_in_thread(fd: int, on_data: Callable[[bytes], None], *, may_read: "_Valve") -> None:
    ended = asyncio.Event()
    args = (fd, asyncio.get_running_loop(), on_data, ended, may_read)
    threading.Thread(target=_read_file, args=args, daemon=True).start()
    await ended.wait()


def _read_file(
    fd: int,
    loop: asyncio.AbstractEventLoop,
    on_data: Callable[[bytes], None],
    ended: asyncio.Event,
    may_read: "_Valve",
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
        with contextlib.suppress(OSError):  # a terminal that has gone ends the stream as a file's end does
            while data := os.read(fd, _READ_BYTES):
                taken = threading.Event()
                loop.call_soon_threadsafe(_hand_on, on_data, data, taken)
                taken.wait()  # else it would read ahead of the event loop without a bound
                may_read.is_open.wait()
        loop.call_soon_threadsafe(ended.set)


def _hand_on(on_data: Callable[[bytes], None], data: bytes, taken: threading.Event) -> None:
    try:
        on_data(data)
    finally:
        taken.set()


class _Valve:
    """Stops the reading while the peer is ahead of the tools, or does not read its answers."""

    def __init__(self) -> None:
        self._reader: _PipeReader | None = None
        self.is_open = threading.Event()
        self.is_open.set()

    def attach(self, reader: _PipeReader) -> None:
        self._reader = reader

    def set(self, *, is_open: bool) -> None:
        if is_open == self.is_open.is_set():
            return
        if is_open:
            self.is_open.set()
        else:
            self.is_open.clear()
        if self._reader is not None and not self._reader.ended.is_set():
            if is_open:
                self._reader.resume()
            else:
                self._reader.pause()


async def serve_lines(streams: Streams, connect: Callable[[LineWriter], Receiver], *, stop: asyncio.Event) -> None:
    """Serve one peer until it closes its end, is gone, or `stop` is set.

    Args:
        streams: Where the messages come from and go to.
        connect: Makes what takes the lines, from what takes the answers.
        stop: Set from outside to end the serving.
    """
    writer = LineWriter()
    await writer.open(os.dup(streams.output_fd))
    receiver = connect(writer)
    buffer = LineBuffer()
    valve = _Valve()

    def take(line: bytes | None) -> None:
        if line is None:
            receiver.refuse_line(InvalidRequest(f"the line is longer than {MAX_MESSAGE_BYTES} bytes; send less"))
        else:
            receiver.receive(line)

    def turn_valve() -> None:
        valve.set(is_open=not receiver.is_full)

    def take_all(data: bytes) -> None:
        with writer.gathering():
            for line in buffer.feed(data):
                take(line)
        turn_valve()

    receiver.on_change, writer.on_room = turn_valve, receiver.release
    reading = asyncio.create_task(_read(streams.input_fd, take_all, may_read=valve))
    others = [asyncio.create_task(each) for each in (writer.is_broken.wait(), stop.wait())]
    try:
        await asyncio.wait((reading, *others), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()  # a fault in reading is not the end of the stream
            last = buffer.finish()
            if last is not None:
                take(last)
    finally:
        for task in others:
            task.cancel()
        await receiver.close(grace_seconds=GRACE_SECONDS)  # what comes meanwhile is still read: it is refused
        await _read_on(streams.input_fd, reading, valve)
        reading.cancel()
        await asyncio.gather(reading, *others, return_exceptions=True)
        await writer.close(grace_seconds=GRACE_SECONDS)


async def _read_on(fd: int, reading: asyncio.Task[None], valve: _Valve) -> None:
    """Read what is there already, within a bound: a request that was sent in time is told that the server ends."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LAST_LOOK_SECONDS
    while not reading.done() and valve.is_open.is_set() and has_input(fd) and loop.time() < end:  # noqa: ASYNC110 - no event tells that nothing is left
        await asyncio.sleep(0)
