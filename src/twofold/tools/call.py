"""One call: bind → run → render, in this order; the one place that decides what becomes which error."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from functools import partial
from types import TracebackType

import msgspec

from twofold.errors import ProtocolError, ResultRefused, ToolError
from twofold.protocol.messages import Faces
from twofold.tools.checks.complaints import PACKAGE
from twofold.tools.context import Context
from twofold.tools.declare import Tool
from twofold.tools.run import Runner

logger = logging.getLogger("twofold")

LARGE_BYTES = 64 * 1024
"""Larger arguments are bound, and larger results fully checked, in a thread, off the event loop.

Both take milliseconds a megabyte; saying what is wrong with a large list of misfits takes longer.
"""


async def call(tool: Tool, runner: Runner, raw_arguments: bytes, *, make_context: Callable[[], Context]) -> Faces:
    """Call a tool with the bytes of its arguments.

    Args:
        tool: Its record.
        runner: How its function is run.
        raw_arguments: JSON of the arguments' object, as it came.
        make_context: Makes what the tool asks for by annotation; called only if it does.

    Returns:
        The result, `is_error` included: everything the model can act on is one.

    Raises:
        ProtocolError: The request itself is at fault, or the tool raised one.
        asyncio.CancelledError: The call was cancelled from outside.
    """
    context: Context | None = None
    try:
        bind = tool.parameters.bind
        is_large = len(raw_arguments) > LARGE_BYTES
        args, kwargs = await runner.workers.submit(partial(bind, raw_arguments)) if is_large else bind(raw_arguments)
        if tool.parameters.context_name is not None:
            context = make_context()
            kwargs[tool.parameters.context_name] = context
        value, is_finished = await runner.run(args, kwargs)
        if is_finished:
            finished: Faces = value
            return finished
        faces = tool.returns.render(value)
        if not tool.returns.is_proven:
            await _check(tool, runner, faces)
        return faces
    except ProtocolError:
        raise
    except ResultRefused as error:
        return error_faces(f"Error executing tool {tool.name}: {error}")
    except ToolError as error:
        return error_faces(str(error))
    except (Exception, SystemExit, asyncio.CancelledError) as crash:  # noqa: BLE001 - the tool boundary
        return _answer_crash(tool, crash)
    finally:
        if context is not None:
            context.close()


async def _check(tool: Tool, runner: Runner, faces: Faces) -> None:
    if faces.structured is not None and len(faces.structured) > LARGE_BYTES:
        await runner.workers.submit(partial(tool.returns.check, faces))
    else:
        tool.returns.check(faces)


def _answer_crash(tool: Tool, crash: BaseException) -> Faces:
    """Say that a tool failed without saying what of; a cancellation from outside goes on."""
    task = asyncio.current_task()
    if isinstance(crash, asyncio.CancelledError) and task is not None and task.cancelling():
        raise crash
    if isinstance(crash, ExceptionGroup):
        told, rest = crash.split(ToolError)
        if told is not None and rest is None:
            return error_faces("\n".join(str(error) for error in told.exceptions))
    reference = secrets.token_hex(4)
    trace = (type(crash), crash, _from_author(crash.__traceback__))
    logger.error("tool %r crashed, reference %s", tool.name, reference, exc_info=trace)
    told_text = f": {type(crash).__name__}: {crash}" if tool.expose_errors else ""
    return error_faces(f"Error executing tool {tool.name}{told_text} (reference {reference})")


def _from_author(trace: TracebackType | None) -> TracebackType | None:
    """Leave out our own steps that led to the author's code; a fault of ours keeps them all."""
    step = trace
    while step is not None and step.tb_frame.f_code.co_filename.startswith(PACKAGE):
        step = step.tb_next
    return step or trace


def error_faces(text: str) -> Faces:
    """Make a failed result of one text."""
    shown = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair is no text
    return Faces(b'[{"type":"text","text":%b}]' % msgspec.json.encode(shown), is_error=True)
