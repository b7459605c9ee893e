"""Tool → definition, as an era shows it."""

from twofold.protocol.messages import Wrapping
from twofold.protocol.structs import Json
from twofold.protocol.tool import ToolDefinition
from twofold.tools.declare import Tool

WRAPPED_MARK = "twofold/wrapped"
"""In a definition's `_meta`: its results stand inside `{"result": …}` because of us, not of the author.

A client of ours takes off marked wrappers only, so that a genuine `result` field is never lost.
"""


def describe(tool: Tool, *, any_root: bool) -> ToolDefinition:
    """Write a tool's definition.

    Args:
        tool: Its record.
        any_root: Whether the era takes an output schema whose root is no object.
    """
    returns = tool.returns
    is_wrapped = returns.wrapping is Wrapping.ALWAYS or (returns.wrapping is Wrapping.EARLIER and not any_root)
    meta: dict[str, Json] = dict(tool.meta or {})
    if is_wrapped:
        meta[WRAPPED_MARK] = True
    return ToolDefinition(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.parameters.schema,
        output_schema=returns.output_schema if any_root else returns.object_schema,
        annotations=tool.annotations,
        icons=list(tool.icons) or None,
        meta=meta or None,
    )
