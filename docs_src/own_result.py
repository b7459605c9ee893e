from typing import Annotated

from pydantic import BaseModel

from twofold import CallToolResult, Image, MCPServer, TextContent

mcp = MCPServer("plots")


class Plot(BaseModel):
    points: int


@mcp.tool()
def plot(points: int) -> Annotated[CallToolResult, Plot]:
    """Plot some points; the view gets what the model need not read."""
    return CallToolResult(
        content=[TextContent(text=f"Plotted {points} points.")],
        structured_content={"points": points},
        meta={"colour": "green"},
    )


@mcp.tool()
def dot() -> list[str | Image]:
    """Draw a dot."""
    return ["A dot:", Image(data=b"\x89PNG\r\n\x1a\n", format="png")]
