"""`twofold call TARGET TOOL [JSON]`: one call, in this process or over a wire; checked alike."""

import asyncio
import contextlib
import sys
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from twofold.cli.failures import BadUsage, Exit, NotLoaded, one_line
from twofold.cli.remote import describe_server, find_remote, run_with_client
from twofold.cli.show import block_text, neutralise, print_json, print_text, show_faces
from twofold.cli.target import load_target, own_output_only
from twofold.client.client import Client
from twofold.client.results import CheckedResult, UnknownContent
from twofold.errors import InputRequired, OutcomeUnknown, ProtocolError
from twofold.protocol.messages import CallToolResult
from twofold.protocol.structs import Json
from twofold.server.mcpserver import MCPServer
from twofold.tools.checks.names import near_names

Face: TypeAlias = Literal["model", "program", "both"]


def call_tool(
    target: str = "",
    tool: str = "",
    arguments: str = "",
    /,
    *,
    face: Face = "both",
    json: Annotated[bool, Parameter(negative="")] = False,
    server_command: Annotated[str, Parameter(show=False)] = "",
) -> int:
    """Call a tool and show its result: both faces in a terminal, JSON elsewhere.

    Progress and log messages go to stderr. The exit code is 0 for a result, 1 if the tool reported an error, or its
    result breaks what it promised.

    Args:
        target: `module:object`, `file.py`, `file.py:name`, or a URL; left out where `-- command arguments`, which start
            a server, stand at the end.
        tool: The tool's name.
        arguments: Its arguments, a JSON object; {} if left out.
        face: What to show: the text for the model, the structure for programs, or both.
        json: JSON in a terminal too: content and structuredContent as a client gets them.
        server_command: JSON of the words after `--`.
    """
    if server_command:
        if arguments:
            raise BadUsage(f"call takes a TARGET or -- command, not both; got {target!r:.80} and a command")
        target, tool, arguments = "", target, tool
    if not tool:
        raise BadUsage("call needs a TOOL: twofold call TARGET TOOL '{…}', or twofold call TOOL '{…}' -- command")
    values = _read_arguments(arguments or "{}")
    remote = find_remote(target, server_command)
    server = load_target(target) if remote is None else None
    result: CallToolResult | CheckedResult
    with contextlib.ExitStack() as stack:
        if server is not None:
            stack.enter_context(own_output_only())
        feedback = stack.enter_context(Feedback(Console(stderr=True, highlight=False)))
        try:
            if server is not None:
                result = asyncio.run(_call(server, tool, values, feedback))
            if remote is not None:
                ask = partial(_call_remote, tool=tool, values=values, feedback=feedback)
                result = run_with_client(remote, ask, on_log=feedback.log_of, log_level="debug")
        except ProtocolError as error:
            feedback.say(f"{tool}: protocol error {error.code}: {error.message}", style="red")
            return Exit.TOOL_ERROR
        except (InputRequired, OutcomeUnknown) as error:
            feedback.say(str(error), style="red")
            return Exit.TOOL_ERROR
    show = _show_json if json or (face == "both" and not sys.stdout.isatty()) else _show_faces
    show(result, face)
    is_kept = not isinstance(result, CheckedResult) or result.verdict.is_kept
    return Exit.RESULT if is_kept and not result.is_error else Exit.TOOL_ERROR


async def _call_remote(client: Client, *, tool: str, values: dict[str, Json], feedback: "Feedback") -> CheckedResult:
    """Call over a wire; what is found of the result is said, and the result shown all the same."""
    result = await client.call_tool(tool, values, on_progress=feedback.progress, check="mark")
    style = "dim" if result.verdict.is_kept else "red"
    feedback.say(f"{describe_server(client)}; result {result.verdict}", style=style)
    return result


async def _call(server: MCPServer, tool: str, values: dict[str, Json], feedback: "Feedback") -> CallToolResult:
    names = [definition.name for definition in await server.list_tools()]
    if tool not in names:
        near = near_names(tool, names)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names) or 'none'}"
        raise BadUsage(f"server {server.name!r} has no tool {tool!r}; {hint}")
    try:
        return await server.call_tool(tool, values, on_progress=feedback.progress, on_log=feedback.log)
    except (ProtocolError, KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # a tool's own faults are in its result: this is the lifespan's
        raise NotLoaded(f"server {server.name!r} failed: {one_line(error)}") from error


def _read_arguments(text: str) -> dict[str, Json]:
    try:
        values: Any = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise BadUsage(f"the arguments are no JSON ({error}), got {text!r:.80}") from None
    if not isinstance(values, dict):
        raise BadUsage(f'the arguments are one JSON object, such as \'{{"name": "mug"}}\', got {text!r:.80}')
    return values


def _show_json(result: CallToolResult | CheckedResult, face: Face) -> None:
    if face == "both":
        print_json(msgspec.json.encode(_as_on_the_wire(result)))
    elif face == "model":
        print_json(msgspec.json.encode(_as_on_the_wire(result)["content"]))
    elif result.has_structured_content:
        print_json(msgspec.json.encode(result.structured_content))
    else:
        _say_unstructured(result)


def _as_on_the_wire(result: CallToolResult | CheckedResult) -> dict[str, Json]:
    """Give a result as JSON has it; of one that came over a wire, with what was found of it."""
    if isinstance(result, CallToolResult):
        tree: dict[str, Json] = msgspec.to_builtins(result)
        return {"content": [], **tree}
    content = [
        block.raw if isinstance(block, UnknownContent) else msgspec.to_builtins(block) for block in result.content
    ]
    tree = {"content": content, "isError": result.is_error}
    if result.has_structured_content:
        tree["structuredContent"] = result.structured_content
    if result.meta is not None:
        tree["_meta"] = result.meta
    return tree | {"verdict": msgspec.to_builtins(result.verdict)}


def _show_faces(result: CallToolResult | CheckedResult, face: Face) -> None:
    if result.is_error:
        print_text("\n".join(map(block_text, result.content)), to_stderr=True)
    elif face == "both":
        show_faces(result)
    elif face == "model":
        print_text("\n".join(map(block_text, result.content)))
    else:
        _show_json(result, face)


def _say_unstructured(result: CallToolResult | CheckedResult) -> None:
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

    def log(self, level: str, data: Json) -> None:
        """Write a log message."""
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        self.say(f"{level}: {text}", style="dim")

    def log_of(self, level: str, data: Json, logger: str | None) -> None:
        """Write a log message of a server that is reached over a wire."""
        self.log(level if logger is None else f"{level} ({logger})", data)

    def say(self, line: str, *, style: str) -> None:
        """Write a line above the bar."""
        self._console.print(Text(neutralise(line), style=style), soft_wrap=True)
