"""`twofold call TARGET TOOL [JSON]`: one call, in this process or over a wire; checked alike."""

import contextlib
import sys
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from twofold.cli.failures import BadUsage, Exit
from twofold.cli.remote import (
    TIMEOUT_SECONDS,
    check_seconds,
    describe_server,
    find_remote,
    run_with_client,
)
from twofold.cli.show import block_text, neutralise, print_json, print_text, show_faces
from twofold.cli.target import load_target, own_output_only
from twofold.client.client import Client
from twofold.client.results import CheckedResult, UnknownContent
from twofold.errors import InputRequired, InvalidParams, OutcomeUnknown, ProtocolError
from twofold.protocol.structs import Json
from twofold.tools.checks.names import near_names

Face: TypeAlias = Literal["model", "program", "both"]


def call_tool(
    target: str = "",
    tool: str = "",
    arguments: Annotated[str, Parameter(name="JSON")] = "",
    /,
    *,
    face: Annotated[Face, Parameter(metavar="model|program|both")] = "both",
    json: bool = False,
    timeout: Annotated[float, Parameter(metavar="SECONDS")] = TIMEOUT_SECONDS,
    server_command: Annotated[str, Parameter(show=False)] = "",
) -> int:
    """Call a tool and show its result: both faces in a terminal, JSON elsewhere.

    Progress and log messages go to stderr. The exit code is 0 for a result, 1 if the tool reported an error, its
    result breaks what it promised, or nobody knows what became of the call.

    Args:
        target: `module:object`, `file.py`, `file.py:name`, or a URL; left out where a command that starts a server
            stands at the end, after `--`.
        tool: The tool's name.
        arguments: Its arguments, a JSON object; {} if left out.
        face: What to show: the text for the model, the structure for programs, or both, as if left out.
        json: JSON in a terminal too: the same for every kind of target, with what was found of the result.
        timeout: How long opening the connection and the call may take together; 300 if left out. Opening has
            some 30 of them at most.
        server_command: JSON of the words after `--`.
    """
    if server_command:
        if arguments:
            raise BadUsage(f"call takes a TARGET or -- command, not both; got {target!r:.80} and a command")
        target, tool, arguments = "", target, tool
    if not tool:
        raise BadUsage("call needs a TOOL: twofold call TARGET TOOL '{…}', or twofold call TOOL '{…}' -- command")
    try:
        tool.encode()
    except UnicodeEncodeError:  # bytes of the command line that are no text
        raise BadUsage(f"the TOOL is no Unicode text, got {tool!r:.80}") from None
    values = _read_arguments(arguments or "{}")
    seconds = check_seconds(timeout)
    remote = find_remote(target, server_command)
    asked = load_target(target) if remote is None else remote
    with contextlib.ExitStack() as stack:
        if remote is None:
            stack.enter_context(own_output_only())
        feedback = stack.enter_context(Feedback(Console(stderr=True, highlight=False)))
        ask = partial(_call, tool=tool, values=values, feedback=feedback, is_remote=remote is not None)
        telling: dict[str, Any] = {"on_wait": feedback.wait, "on_log": feedback.log, "log_level": "debug"}
        try:
            result = run_with_client(asked, ask, timeout_seconds=seconds, **telling)
        except ProtocolError as error:
            feedback.say(f"{tool}: protocol error {error.code}: {error.message}", style="red")
            return Exit.TOOL_ERROR
        except (InputRequired, OutcomeUnknown) as error:
            feedback.say(str(error), style="red")
            return Exit.TOOL_ERROR
    show = _show_json if json or (face == "both" and not sys.stdout.isatty()) else _show_faces
    show(result, face)
    return Exit.RESULT if result.verdict.is_kept and not result.is_error else Exit.TOOL_ERROR


async def _call(
    client: Client, seconds: float, *, tool: str, values: dict[str, Json], feedback: "Feedback", is_remote: bool
) -> CheckedResult:
    """Call a tool; what is found of a result is said, and the result shown all the same."""
    try:
        result = await client.call_tool(
            tool, values, on_progress=feedback.progress, check="mark", timeout_seconds=seconds
        )
    except ProtocolError as error:
        if error.code == InvalidParams.fixed_code:
            await _explain_unknown(client, tool)
        raise
    if is_remote or not result.verdict.is_kept:
        style = "dim" if result.verdict.is_kept else "red"
        feedback.say(f"{describe_server(client)}; result {result.verdict}", style=style)
    return result


async def _explain_unknown(client: Client, tool: str) -> None:
    """Say which tools there are, where a call was refused for a name that is not listed.

    Raises:
        BadUsage: It is not.
    """
    names = [definition.name for definition in (await client.list_tools()).tools]
    if tool not in names:
        near = near_names(tool, names)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names) or 'none'}"
        name = client.server.name if client.server is not None else ""
        raise BadUsage(f"server {name!r:.80} has no tool {tool!r:.80}; {hint}")


def _read_arguments(text: str) -> dict[str, Json]:
    try:
        values: Any = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise BadUsage(f"the arguments are no JSON ({error}), got {text!r:.80}") from None
    if not isinstance(values, dict):
        raise BadUsage(f'the arguments are one JSON object, such as \'{{"name": "mug"}}\', got {text!r:.80}')
    return values


def _show_json(result: CheckedResult, face: Face) -> None:
    if face == "both":
        print_json(msgspec.json.encode(_as_json(result)))
    elif face == "model":
        print_json(msgspec.json.encode(_as_json(result)["content"]))
    elif result.has_structured_content:
        print_json(msgspec.json.encode(result.structured_content))
    else:
        _say_unstructured(result)


def _as_json(result: CheckedResult) -> dict[str, Json]:
    """Give a result as a client has it, and what was found of it: for every kind of target alike."""
    content = [
        block.raw if isinstance(block, UnknownContent) else msgspec.to_builtins(block) for block in result.content
    ]
    tree: dict[str, Json] = {"content": content, "isError": result.is_error}
    if result.has_structured_content:
        tree["structuredContent"] = result.structured_content
    if result.meta is not None:
        tree["_meta"] = result.meta
    return tree | {"verdict": msgspec.to_builtins(result.verdict)}


def _show_faces(result: CheckedResult, face: Face) -> None:
    if result.is_error:
        print_text("\n".join(map(block_text, result.content)), to_stderr=True)
    elif face == "both":
        show_faces(result)
    elif face == "model":
        print_text("\n".join(map(block_text, result.content)))
    else:
        _show_json(result, face)


def _say_unstructured(result: CheckedResult) -> None:
    reason = "the tool reported an error" if result.is_error else "the result has no structure"
    print_text(f"nothing for programs: {reason}", to_stderr=True)


class Feedback:
    """Progress and log messages of one call, on stderr; a bar is drawn once the tool reports progress.

    Args:
        console: Where to; a bar is drawn in a terminal only.
    """

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[shown]}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._console = console
        self._task: TaskID | None = None

    def __enter__(self) -> "Feedback":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Move the bar."""
        if self._task is None:
            self._task = self._bar.add_task("", total=total, shown="")
            self._bar.start()
        shown = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self._bar.update(
            self._task, completed=progress, total=total, description=neutralise(message or ""), shown=shown
        )

    def log(self, level: str, data: Json, logger: str | None) -> None:
        """Write a log message."""
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        self.say(f"{level if logger is None else f'{level} ({logger})'}: {text}", style="dim")

    def wait(self, line: str) -> None:
        """Say what is waited for, to a person who sees no bar."""
        if self._task is None and self._console.is_terminal:
            self.say(line, style="dim")

    def say(self, line: str, *, style: str) -> None:
        """Write a line above the bar."""
        self._console.print(Text(neutralise(line), style=style), soft_wrap=True)
