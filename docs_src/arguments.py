from typing import Annotated, Literal

from pydantic import Field

from twofold import MCPServer

mcp = MCPServer("hotel")


@mcp.tool()
def book(
    nights: Annotated[int, Field(ge=1, le=30)],
    room: Literal["single", "double"] = "single",
    note: str = None,
) -> str:
    """Book a room.

    Args:
        nights: How many nights.
        note: Anything the hotel should know.
    """
    return f"{room} for {nights} nights" + (f" ({note})" if note else "")
