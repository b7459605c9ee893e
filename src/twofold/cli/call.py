"""`twofold call TARGET TOOL [JSON]`: one call in this process, checked as over the wire."""

import asyncio
import sys
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from twofold.cli.failures import BadUsage, Exit, NotLoaded, one_line
from twofold.cli.show import block_text, neutralise, print_json, print_text, show_faces
from twofold.cli.target import load_target, own_output_only
from twofold.errors import ProtocolError
from twofold.protocol.messages import CallToolResult
from twofold.protocol.structs import Json
from twofold.server.mcpserver import MCPServer
from twofold.tools.checks.names import near_names

Face: TypeAlias = Literal["model", "program", "both"]


def call_tool(
    target: str,
    tool: str,
    arguments: str = "{}",
    /,
    *,
    face: Face = "both",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Call a tool and show its result: both faces in a terminal, JSON elsewhere.

    Progress and log messages go to stderr. The exit code is 0 for a result, 1 if the tool reported an error.

    Args:
        target: `module:object`, `file.py`, or `file.py:name`.
        tool: The tool's name.
        arguments: Its arguments, a JSON object.
        face: What to show: the text for the model, the structure for programs, or both.
        json: JSON in a terminal too: content and structuredContent as a client gets them.
    """
    values = _read_arguments(arguments)
    server = load_target(target)
    with own_output_only(), Feedback(Console(stderr=True, highlight=False)) as feedback:
        try:
            result = asyncio.run(_call(server, tool, values, feedback))
        except ProtocolError as error:
            feedback.say(f"{tool}: protocol error {error.code}: {error.message}", style="red")
            return Exit.TOOL_ERROR
    show = _show_json if json or (face == "both" and not sys.stdout.isatty()) else _show_faces
    show(result, face)
    return Exit.TOOL_ERROR if result.is_error else Exit.RESULT


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


def _show_json(result: CallToolResult, face: Face) -> None:
    if face == "both":
        print_json(msgspec.json.encode(result))
    elif face == "model":
        print_json(msgspec.json.encode(result.content))
    elif result.has_structured_content:
        print_json(msgspec.json.encode(result.structured))
    else:
        _say_unstructured(result)


def _show_faces(result: CallToolResult, face: Face) -> None:
    if result.is_error:
        print_text("\n".join(map(block_text, result.content)), to_stderr=True)
    elif face == "both":
        show_faces(result)
    elif face == "model":
        print_text("\n".join(map(block_text, result.content)))
    else:
        _show_json(result, face)


def _say_unstructured(result: CallToolResult) -> None:
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

    def say(self, line: str, *, style: str) -> None:
        """Write a line above the bar."""
        self._console.print(Text(neutralise(line), style=style), soft_wrap=True)
