"""One request for a prompt: bind → run → messages. A prompt is a function of texts, for a person to choose.

Source: MCP 2026-07-28, Prompts.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from twofold.contract.plain import name_type
from twofold.errors import ArgumentsRefused, InternalError, InvalidParams, ProtocolError, ResultRefused, ToolError
from twofold.protocol.content import CONTENT_BLOCKS, TextContent
from twofold.protocol.prompt import PromptDefinition, PromptMessage
from twofold.protocol.structs import encode_json
from twofold.tools.arguments.binding import LARGE_BYTES, BoundArguments
from twofold.tools.arguments.parameters import Parameters
from twofold.tools.context import Context
from twofold.tools.results.media import Audio, Image
from twofold.tools.run import Runner

logger = logging.getLogger("twofold")

Messages: TypeAlias = tuple[PromptMessage, ...]

MAX_PROBLEMS = 20
"""Problems named in one error, as for a tool."""

_KINDS = {"{": "an object", "[": "an array", "n": "null", "t": "a boolean", "f": "a boolean"}
"""What a JSON value that is neither text nor number is called, by how it begins."""

_decode_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Prompt(msgspec.Struct, frozen=True):
    """A declared prompt: everything a listing and a request need, checked, never changed.

    Attributes:
        parameters: How arguments are bound.
        implied: Arguments that are None where a client leaves them out, though the function has no default.
        runner: How the function is run; it finishes what that gives as messages.
    """

    definition: PromptDefinition
    parameters: Parameters
    implied: frozenset[str]
    runner: Runner
    expose_errors: bool


async def get_prompt(prompt: Prompt, raw_arguments: bytes, *, make_context: Callable[[], Context]) -> Messages:
    """Answer a request for a prompt, given the bytes of its arguments.

    Args:
        prompt: Its record.
        raw_arguments: JSON of the arguments' object, as it came.
        make_context: Makes what the function asks for by annotation; called only if it does.

    Returns:
        The messages, checked.

    Raises:
        ProtocolError: The arguments do not fit, the function raised one, or it failed: then the error has a
            reference that stands in the log, and the failure's own text only where errors are exposed.
        asyncio.CancelledError: The request was cancelled from outside.
    """
    context: Context | None = None
    try:
        bind = partial(_bind, prompt, raw_arguments)
        is_large = len(raw_arguments) > LARGE_BYTES
        args, kwargs = await prompt.runner.workers.submit(bind) if is_large else bind()
        if prompt.parameters.context_name is not None:
            context = make_context()
            kwargs[prompt.parameters.context_name] = context
        value, is_finished = await prompt.runner.run(args, kwargs)
        messages: Messages = value if is_finished else prompt.runner.finish(value)
        return messages
    except BaseException as failure:  # noqa: BLE001 - the author's code: whatever it raises, the client is answered
        raise _explain(prompt, failure) from None
    finally:
        if context is not None:
            context.close()


def _bind(prompt: Prompt, raw: bytes) -> BoundArguments:
    """Bind the arguments, naming all that is wrong with them."""
    where = f"prompt {prompt.definition.name!r}"
    try:
        given = _decode_arguments(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParams(f"{where}: the arguments are no object of texts: {error}") from None
    non_texts = _find_non_texts(prompt, given)
    absent = {name: msgspec.Raw(b"null") for name in prompt.implied if name not in given}
    problems: list[str] = []
    try:
        bound = prompt.parameters.bind(msgspec.json.encode(given | absent) if absent else raw)
    except ArgumentsRefused as error:
        told = tuple(f"argument {name!r}: " for name in non_texts)
        problems = [each for each in error.problems if not each.startswith(told)]
    problems += non_texts.values()
    if problems:
        raise InvalidParams(_tell(problems, where=where))
    return bound


def _tell(problems: Sequence[str], *, where: str) -> str:
    """Name all problems, in the form that those of a tool's call have."""
    if len(problems) == 1:
        return f"{where}, {problems[0]}"
    lines = [f"- {problem}" for problem in problems[:MAX_PROBLEMS]]
    more = ["- and more"] if len(problems) > MAX_PROBLEMS else []
    return "\n".join((f"{where}: {len(problems)} problems with the arguments", *lines, *more))


def _find_non_texts(prompt: Prompt, given: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    """Name the arguments that are no texts: the protocol has no others, though a function may take None."""
    problems = {}
    for argument in prompt.definition.arguments or ():
        first = bytes(memoryview(given.get(argument.name, b'"'))[:1]).decode()
        if first != '"':
            kind = _KINDS.get(first, "a number")
            remedy = "send text" if argument.required else "send text, or leave it out"
            problems[argument.name] = f"argument {argument.name!r}: expected a string, got {kind}; {remedy}"
    return problems


def make_messages(value: Any) -> Messages:
    """Make messages of what a prompt's function gave.

    Args:
        value: Text, a content block, an `Image` or `Audio`, a message, or a list of these; the user says what is
            no message.

    Raises:
        ResultRefused: It holds anything else, or what JSON cannot.
        OSError: A helper's file cannot be read.
    """
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(_make_message(item, where=f"messages[{index}]") for index, item in enumerate(items))


def _make_message(item: Any, *, where: str) -> PromptMessage:
    if isinstance(item, str):
        item = TextContent(item)
    elif isinstance(item, Image | Audio):
        item = item.to_content()
    if isinstance(item, CONTENT_BLOCKS):
        item = PromptMessage(role="user", content=item)
    if not isinstance(item, PromptMessage):
        raise ResultRefused(f"{where}: expected text, a content block or a PromptMessage, got {name_type(item)}")
    try:
        encode_json(item, what=where)
    except ValueError as error:
        raise ResultRefused(str(error)) from None
    return item


def _explain(prompt: Prompt, failure: BaseException) -> BaseException:
    """Decide what becomes which error; what is the protocol's affair, or a cancellation from outside, goes on."""
    task = asyncio.current_task()
    if isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling():
        return failure
    told = _find_told(failure)
    if isinstance(told, ProtocolError):
        return told
    if told is not None and not isinstance(told, ResultRefused):
        return InternalError(str(told))
    reference = os.urandom(4).hex()
    name = prompt.definition.name
    logger.error("prompt %r crashed, reference %s", name, reference, exc_info=failure)
    crash = f": {type(failure).__name__}: {failure}" if prompt.expose_errors else ""
    shown = crash if told is None else f": {told}"  # ours, and of types only
    return InternalError(f"Error getting prompt {name!r}{shown} (reference {reference})")


def _find_told(failure: BaseException) -> ProtocolError | ToolError | None:
    """Find the error that says itself what to tell, also in a task group's group; the protocol's come first."""
    if not isinstance(failure, BaseExceptionGroup):
        return failure if isinstance(failure, ProtocolError | ToolError) else None
    found = [told for each in failure.exceptions if (told := _find_told(each)) is not None]
    return next((each for each in found if isinstance(each, ProtocolError)), found[0] if found else None)
