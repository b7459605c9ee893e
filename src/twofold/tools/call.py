"""One call: bind → run → render, in this order; the one place that decides what becomes which error."""

import asyncio
import logging
import os
import re
from collections.abc import Callable
from functools import partial
from types import TracebackType

import msgspec

from twofold.errors import AuthorizationError, HeaderMismatch, InternalError, ProtocolError, ResultRefused, ToolError
from twofold.protocol.messages import Faces
from twofold.tools.checks.complaints import PACKAGE
from twofold.tools.context import Context
from twofold.tools.declare import Tool
from twofold.tools.run import Runner

logger = logging.getLogger("twofold")

_ADDRESS = r" at 0x[0-9a-fA-F]+"
"""Where in memory an object lies, which Python's own `repr` tells, is nobody's affair."""
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
        parameters, returns = tool.parameters, tool.returns
        bind = parameters.bind
        is_large = len(raw_arguments) > LARGE_BYTES
        args, kwargs = await runner.workers.submit(partial(bind, raw_arguments)) if is_large else bind(raw_arguments)
        if parameters.context_name is not None:
            context = make_context()
            kwargs[parameters.context_name] = context
        value, is_finished = await runner.run(args, kwargs)
        if is_finished:
            finished: Faces = value
            return finished
        faces = returns.renderer.render(value)
        if not returns.is_proven:
            await _check(tool, runner, faces)
        return faces
    except BaseException as failure:  # noqa: BLE001 - the tool boundary: whatever it is, the caller is answered
        return _answer_failure(tool, failure)
    finally:
        if context is not None:
            context.close()


async def _check(tool: Tool, runner: Runner, faces: Faces) -> None:
    if faces.structured is not None and len(faces.structured) > LARGE_BYTES:
        await runner.workers.submit(partial(tool.returns.check, faces))
    else:
        tool.returns.check(faces)


def _answer_failure(tool: Tool, failure: BaseException) -> Faces:
    """Decide what becomes which error; what is the program's affair, or a cancellation from outside, goes on."""
    task = asyncio.current_task()
    if isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling():
        raise failure
    failures = _unpack(failure)
    for each in failures:
        if isinstance(each, HeaderMismatch):  # clients repeat a call for it, and this one may have been carried out
            raise InternalError(f"tool {tool.name!r}: {each.message}") from each
        if isinstance(each, ProtocolError):
            raise each
    for each in failures:
        if isinstance(each, ResultRefused):  # a mistake in the tool, as a crash is
            logger.error("tool %r: its result was refused: %s", tool.name, each.details)
    if all(isinstance(each, ToolError | AuthorizationError) for each in failures):
        return error_faces("\n".join(_tell(tool, each) for each in failures))
    reference = os.urandom(4).hex()
    trace = (type(failure), failure, _from_author(failure.__traceback__))
    logger.error("tool %r crashed, reference %s", tool.name, reference, exc_info=trace)
    shown = f": {type(failure).__name__}: {_text_of(failure)}" if tool.expose_errors else ""
    return error_faces(f"Error executing tool {tool.name}{shown} (reference {reference})")


def _unpack(failure: BaseException) -> list[BaseException]:
    """Give the failures in a task group's group, at whatever depth."""
    if isinstance(failure, BaseExceptionGroup):
        return [inner for each in failure.exceptions for inner in _unpack(each)]
    return [failure]


def _tell(tool: Tool, error: BaseException) -> str:
    return f"Error executing tool {tool.name}: {error}" if isinstance(error, ResultRefused) else _text_of(error)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the author's own `__str__`
        return f"{type(error).__name__}, whose text cannot be made"


def _from_author(trace: TracebackType | None) -> TracebackType | None:
    """Leave out our own steps that led to the author's code; a fault of ours keeps them all."""
    step = trace
    while step is not None and step.tb_frame.f_code.co_filename.startswith(PACKAGE):
        step = step.tb_next
    return step or trace


def error_faces(text: str) -> Faces:
    """Make a failed result of one text."""
    shown = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair is no text
    shown = re.sub(_ADDRESS, "", shown)
    return Faces(b'[{"type":"text","text":%b}]' % msgspec.json.encode(shown), is_error=True)
