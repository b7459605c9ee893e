"""Every kind of tool there is, one of each, and a prompt: what the official conformance harness looks for in a server.

The harness finds tools by name, so the names are its own. Run it with `python examples/everything.py`, or over
HTTP with `twofold serve examples/everything.py --http 127.0.0.1:8000`.
"""

import asyncio
import base64
from typing import Annotated

from twofold import (
    Audio,
    Context,
    EmbeddedResource,
    Header,
    Image,
    MCPServer,
    MissingRequiredClientCapability,
    TextContent,
    TextResourceContents,
    ToolError,
)

mcp = MCPServer("everything", title="One of each", version="1.0.0")

# A picture of one red dot, and sound of one silent sample.
RED_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==")
PAUSE_SECONDS = 0.05

# The first tool of the list is the one the harness calls with no arguments.


@mcp.tool()
def test_simple_text() -> str:
    """Answer with one sentence."""
    return "This is a simple text response for testing."


# Content blocks: what is not data goes into the result as it is.


@mcp.tool()
def test_image_content() -> Image:
    """Answer with a picture."""
    return Image(RED_DOT)


@mcp.tool()
def test_audio_content() -> Audio:
    """Answer with sound."""
    return Audio(SILENCE)


@mcp.tool()
def test_embedded_resource() -> EmbeddedResource:
    """Answer with a resource and what it holds."""
    return embed("test://embedded-resource", "This is an embedded resource content.")


@mcp.tool()
def test_multiple_content_types() -> list[TextContent | Image | EmbeddedResource]:
    """Answer with text, a picture and a resource in one result."""
    resource = embed("test://mixed-content-resource", "Text beside a picture.")
    return [TextContent("Multiple content types test:"), Image(RED_DOT), resource]


def embed(uri: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type="text/plain", text=text))


# What happens during a call.


@mcp.tool()
def test_error_handling() -> str:
    """Fail, with a message for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


@mcp.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress on the way: 0, 50 and 100 of 100."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE_SECONDS)
    return "All steps are done."


@mcp.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages on the way, to a client that asked for them."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(PAUSE_SECONDS)
    return "Three messages were logged."


@mcp.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Log one message; a client of revision 2026-07-28 gets it only if the call says a log level."""
    await ctx.info("One message, for whoever asked for it")
    return "One message was logged."


@mcp.tool()
async def test_reconnection(ctx: Context) -> str:
    """Let go of the HTTP connection in the middle; the client comes back for the result."""
    await ctx.close_sse_stream()
    await asyncio.sleep(4 * PAUSE_SECONDS)  # the result comes when the connection has gone
    return "The connection was closed and resumed."


# What a client has to be able to do.


@mcp.tool()
def test_missing_capability(ctx: Context) -> str:
    """Refuse a client that has no model to ask."""
    require("sampling", ctx)
    return "The client has a model that can be asked."


@mcp.tool()
async def test_streaming_elicitation(ctx: Context) -> str:
    """Work for a client that can ask its user; nothing but notifications comes before the result."""
    require("elicitation", ctx)
    await ctx.report_progress(1, 1, "Nothing had to be asked")
    return "The client can ask its user."


def require(capability: str, ctx: Context) -> None:
    if capability not in ctx.client_capabilities:
        raise MissingRequiredClientCapability({capability: {}})


# What a server publishes.


@mcp.tool()
def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Take an argument that HTTP clients also send as the header `Mcp-Param-Region`.

    Args:
        region: Where to work; proxies route by it without reading the body.
    """
    return f"Working in {region}."


@mcp.prompt()
def test_simple_prompt() -> str:
    """Ask for nothing in particular."""
    return "This is a simple prompt for testing."


@mcp.tool()
async def test_trigger_tool_change() -> str:
    """Add a tool and take it away again; clients that listen are told."""
    mcp.add_tool(come_and_go)
    mcp.remove_tool("come_and_go")
    return "The list of tools has changed, and is as it was."


@mcp.tool()
async def test_trigger_prompt_change() -> str:
    """Add a prompt and take it away again; clients that listen are told."""
    mcp.add_prompt(come_and_go)
    mcp.remove_prompt("come_and_go")
    return "The list of prompts has changed, and is as it was."


def come_and_go() -> str:
    """Be there for a moment."""
    return "Still here."


# A schema written by hand is published to the letter and enforced: whoever is to be phoned gives a phone number.
CONTACT_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def save_contact(contact: dict[str, object]) -> str:
    """Take a contact described by a JSON Schema that no type hints could say."""
    return f"Saved {contact.get('name', 'somebody')}."


mcp.add_tool(save_contact, name="json_schema_2020_12_tool", input_schema=CONTACT_SCHEMA)


if __name__ == "__main__":
    mcp.run()
