from twofold import MCPServer

mcp = MCPServer("gateway")


async def forward(arguments: dict) -> dict:
    return {"id": arguments["id"], "found": True}


mcp.add_tool(
    forward,
    name="find",
    description="Find a record.",
    input_schema={"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    output_schema={
        "type": "object",
        "properties": {"id": {"type": "string"}, "found": {"type": "boolean"}},
        "required": ["id", "found"],
    },
)
