"""What commands print: tables and panels for people, JSON for programs.

Everything that comes from a server is data here: markup in it is not read, and control characters, which
could move the cursor or retitle the window, are replaced.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from twofold.client.results import CheckedResult, UnknownContent
from twofold.protocol.content import AudioContent, ContentBlock, ImageContent, ResourceLink, TextContent
from twofold.protocol.messages import CallToolResult
from twofold.protocol.tool import ToolAnnotations, ToolDefinition

_MAX_PARTS = 20
"""Of a type, shown on one line."""
_MAX_DEPTH = 6
"""Levels of a schema spelled out in a table; what lies deeper is named only."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_HINTS = (
    ("read_only_hint", "read-only", "changes things"),
    ("destructive_hint", "destructive", "not destructive"),
    ("idempotent_hint", "idempotent", "not idempotent"),
    ("open_world_hint", "open world", "closed world"),
)


def neutralise(text: str) -> str:
    """Replace what a terminal would obey instead of show: control, direction and surrogate characters."""
    if text.isprintable():
        return text
    return "".join(char if char in "\n\t" or _is_shown(char) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _is_shown(char: str) -> bool:
    is_direction = unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return not is_direction and unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"}


def print_json(encoded: bytes) -> None:
    """Print JSON, indented; in a terminal without anything it would obey."""
    text = msgspec.json.format(encoded, indent=2).decode()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # JSON has escapes of its own
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    print_text(text)


def print_text(text: str, *, to_stderr: bool = False) -> None:
    """Print a text as it is; in a terminal without anything it would obey."""
    stream = sys.stderr if to_stderr else sys.stdout
    if stream.isatty():
        text = neutralise(text)
    stream.write(text + "\n")


def block_text(block: ContentBlock | UnknownContent) -> str:
    """Write a content block as text; what is no text is named with its type and size."""
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            kind = "image" if isinstance(block, ImageContent) else "audio"
            return f"[{kind} {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
        case ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case UnknownContent():
            return f"[a block of the unknown type {block.type!r:.80}]"
        case _:
            contents = block.resource
            return contents.text if contents.text is not None else f"[resource {contents.uri}]"


def show_tools(tools: Sequence[ToolDefinition], *, name: str, title: str, console: Console | None = None) -> None:
    """Print a table of tools."""
    console = console or Console(highlight=False)
    if not tools:
        console.print(Text(f"{neutralise(name)} offers no tools"))
        return
    console.print(tools_table(tools, caption=title))


def tools_table(tools: Sequence[ToolDefinition], *, caption: str) -> Table:
    """Lay out tools: name, title, hints, parameters, result."""
    table = Table(title=Text(neutralise(caption), style="bold"), show_lines=True, expand=False)
    for heading in ("tool", "hints", "parameters", "result"):
        table.add_column(heading, overflow="fold")
    for tool in tools:
        title = tool.title or (tool.annotations.title if tool.annotations else None)
        name = Text(neutralise(tool.name), style="bold cyan")
        if title:
            name.append(f"\n{neutralise(title)}", style="not bold default")
        if tool.description:
            name.append(f"\n{neutralise(tool.description)}", style="not bold dim")
        result = "text" if tool.output_schema is None else describe_schema(tool.output_schema, tool.output_schema)
        table.add_row(
            name,
            Text("\n".join(describe_hints(tool.annotations))),
            Text(neutralise("\n".join(describe_parameters(tool.input_schema)))),
            Text(neutralise(result)),
        )
    return table


def describe_hints(annotations: ToolAnnotations | None) -> list[str]:
    """Say each hint that is set."""
    return [
        yes if getattr(annotations, field) else no
        for field, yes, no in _HINTS
        if getattr(annotations, field, None) is not None
    ]


def describe_parameters(schema: dict[str, Any]) -> list[str]:
    """Say each parameter on a line: `limit: integer = 10`, with a `?` where it may be left out."""
    required = _required(schema)
    lines = []
    properties = schema.get("properties")
    for name, node in (properties if isinstance(properties, dict) else {}).items():
        has_default = isinstance(node, dict) and "default" in node
        default = f" = {msgspec.json.encode(node['default']).decode()}" if has_default else ""
        lines.append(f"{name}{'' if name in required else '?'}: {describe_schema(node, schema)}{default}")
    return lines


def describe_schema(node: Any, root: Any, depth: int = 0) -> str:
    """Say a schema's type in one line: `integer`, `[string]`, `{name: string, price?: number}`."""
    if not isinstance(node, dict):
        return "any" if node is True else "nothing"
    reference = node.get("$ref")
    if isinstance(reference, str):
        target = _find_definition(reference, root)
        is_named_only = target is None or depth >= _MAX_DEPTH
        return reference.rpartition("/")[2] if is_named_only else describe_schema(target, root, depth + 1)
    for union in ("anyOf", "oneOf"):
        if isinstance(node.get(union), list) and depth < _MAX_DEPTH:
            return " | ".join(describe_schema(each, root, depth + 1) for each in node[union][:_MAX_PARTS])
    if "const" in node or "enum" in node:
        enum = node.get("enum")
        values = [node["const"]] if "const" in node else enum[:_MAX_PARTS] if isinstance(enum, list) else []
        return " | ".join(msgspec.json.encode(value).decode() for value in values)
    return _describe_type(node, root, depth)


def _required(schema: dict[str, Any]) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _find_definition(reference: str, root: Any) -> Any:
    _, holder, name, *rest = [*reference.split("/"), "", ""]
    definitions = root.get(holder) if holder in {"$defs", "definitions"} and not any(rest) else None
    return definitions.get(name) if isinstance(definitions, dict) else None


def _describe_type(node: dict[str, Any], root: Any, depth: int) -> str:
    kind = node.get("type", "any")
    if depth >= _MAX_DEPTH and kind in ("array", "object"):
        return str(node.get("title", kind))
    if kind == "array":
        return f"[{describe_schema(node.get('items', True), root, depth + 1)}]"
    if kind == "object":
        return _describe_object(node, root, depth)
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _describe_object(node: dict[str, Any], root: Any, depth: int) -> str:
    properties = node.get("properties")
    if not properties or not isinstance(properties, dict):
        values = node.get("additionalProperties")
        return f"{{…: {describe_schema(values, root, depth + 1)}}}" if isinstance(values, dict) else "{}"
    required = _required(node)
    parts = [
        f"{name}{'' if name in required else '?'}: {describe_schema(child, root, depth + 1)}"
        for name, child in islice(properties.items(), _MAX_PARTS)
    ]
    if len(properties) > _MAX_PARTS:
        parts.append("…")
    return f"{{{', '.join(parts)}}}"


def show_faces(result: CallToolResult | CheckedResult, *, console: Console | None = None) -> None:
    """Print both faces of a result."""
    (console or Console(highlight=False)).print(faces_table(result))


def faces_table(result: CallToolResult | CheckedResult) -> Table:
    """Lay out both faces of a result side by side: what the model reads, what programs get."""
    table = Table(expand=True, show_lines=False)
    error_style = "red" if result.is_error else ""
    table.add_column("for the model" + (" (error)" if result.is_error else ""), ratio=1, overflow="fold")
    table.add_column("for programs", ratio=1, overflow="fold")
    text = "\n".join(map(block_text, result.content))
    structured = "nothing"
    if result.has_structured_content:
        structured = msgspec.json.format(msgspec.json.encode(result.structured_content), indent=2).decode()
    table.add_row(
        Text(neutralise(text), style=error_style),
        Text(neutralise(structured), style="" if result.has_structured_content else "dim"),
    )
    return table
