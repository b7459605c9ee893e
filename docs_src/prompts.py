from typing import Annotated

from pydantic import Field

from twofold import MCPServer, PromptMessage, TextContent

mcp = MCPServer("reviews")


@mcp.prompt(title="Review some code")
def review(code: Annotated[str, Field(description="What to review.")], style: str = None) -> list:
    """Ask for a code review."""
    wish = f" Heed the style guide of {style}." if style else ""
    return [
        f"Review this code.{wish}\n\n{code}",
        PromptMessage(role="assistant", content=TextContent("First, what it is meant to do:")),
    ]
