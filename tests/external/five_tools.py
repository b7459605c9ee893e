"""Five tools for programs nobody here wrote: a scalar, a model, a list, an error, progress."""

from pydantic import BaseModel

from twofold import Context, MCPServer, ToolAnnotations, ToolError

mcp = MCPServer("five tools", version="1.2.3")


class Weather(BaseModel):
    """A reading."""

    temperature: float
    conditions: str


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool(title="Weather now")
def weather(city: str) -> Weather:
    """Read the weather of a city."""
    return Weather(temperature=16.5, conditions=f"Rain in {city}")


@mcp.tool()
async def forecast(days: int) -> list[Weather]:
    """Forecast some days."""
    return [Weather(temperature=float(day), conditions="Fog") for day in range(days)]


@mcp.tool()
def refuse(reason: str) -> str:
    """Refuse with a reason."""
    raise ToolError(f"refused: {reason}")


@mcp.tool()
async def count(ctx: Context, upto: int) -> str:
    """Count with progress."""
    for step in range(1, upto + 1):
        await ctx.report_progress(step, upto, f"step {step}")
    return f"counted to {upto}"


if __name__ == "__main__":
    mcp.run()
