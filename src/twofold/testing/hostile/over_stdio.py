"""A hostile server over its standard streams."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator

from twofold.testing.hostile.script import Script
from twofold.testing.hostile.steps import Close, Complain, HalfClose, Pour, Say, Step, Wait

MAX_LINE_BYTES = 1 << 27


async def serve_stdio(script: Script) -> None:
    """Serve until stdin ends, or the script ends it.

    Args:
        script: What is done when.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    stdout = os.fdopen(sys.stdout.fileno(), "wb", buffering=0)  # closing `sys.stdout` would leave the descriptor open
    pipe, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    player = _Player(asyncio.StreamWriter(pipe, protocol, None, loop))
    if script.has("end"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    player.begin(script.at("start")[1])
    while line := await reader.readline():
        player.begin(script.answer(line)[1])
        await asyncio.sleep(0)  # what misbehaves goes on meanwhile
    await player.play(script.at("end")[1])
    player.stop()


class _Player:
    """Writes the steps of every answer, each in a task of its own."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, steps: Iterator[Step]) -> None:
        task = asyncio.create_task(self.play(steps))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def play(self, steps: Iterator[Step]) -> None:
        with contextlib.suppress(ConnectionError):  # nobody listens any more
            for step in steps:
                await self._take(step)

    async def _take(self, step: Step) -> None:
        if isinstance(step, Say):
            await self._write(step.message + b"\n")
        elif isinstance(step, Pour):
            await self._write(step.data)
        elif isinstance(step, Complain):
            sys.stderr.buffer.write(step.data)
            sys.stderr.buffer.flush()
        elif isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, HalfClose):
            self._writer.close()
        elif isinstance(step, Close):
            await self._writer.drain()
            os._exit(3)  # at once: nothing of it is tidied up

    async def _write(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)  # `drain` does not wait where there is room, and others have a turn too
