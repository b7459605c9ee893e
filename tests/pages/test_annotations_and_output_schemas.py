"""The founding page "Tool Annotations & Output Schemas": its two definitions, as a server of ours publishes them."""

from pydantic import BaseModel
from typing_extensions import NotRequired, TypedDict

from tests.peer import Peer
from twofold import MCPServer, ToolAnnotations


async def test_delete_file_is_published_as_printed():
    """Key concepts: destructive, idempotent, in a closed world."""
    mcp = MCPServer("files")
    input_schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    mcp.add_tool(
        lambda arguments: f"deleted {arguments['path']}",
        name="delete_file",
        description="Permanently delete a file from the filesystem",
        input_schema=input_schema,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    )
    async with Peer(mcp) as peer:
        assert (await peer.list())["delete_file"] == {
            "name": "delete_file",
            "description": "Permanently delete a file from the filesystem",
            "inputSchema": input_schema,
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


async def test_get_user_publishes_what_it_returns_and_what_it_may_leave_out():
    """Deep dive: the server declares the shape of successful responses."""
    mcp = MCPServer("users")

    class User(TypedDict):
        name: str
        email: str
        role: NotRequired[str]

    @mcp.tool(description="Retrieve user profile information")
    def get_user(userId: str) -> User:
        return {"name": "Ada", "email": "ada@example.com"}

    async with Peer(mcp) as peer:
        tool = (await peer.list())["get_user"]
        assert tool["description"] == "Retrieve user profile information"
        assert tool["inputSchema"]["required"] == ["userId"]
        assert {key: value["type"] for key, value in tool["outputSchema"]["properties"].items()} == {
            "name": "string",
            "email": "string",
            "role": "string",
        }
        assert tool["outputSchema"]["required"] == ["name", "email"]
        result = await peer.call("get_user", {"userId": "1"})
        assert result["structuredContent"] == {"name": "Ada", "email": "ada@example.com"}


async def test_get_user_can_be_published_to_the_letter():
    mcp = MCPServer("users")

    class User(BaseModel):
        name: str
        email: str

    output_schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "email": {"type": "string"}, "role": {"type": "string"}},
        "required": ["name", "email"],
    }
    mcp.add_tool(lambda: User(name="Ada", email="a@b"), name="get_user", output_schema=output_schema)
    async with Peer(mcp) as peer:
        assert (await peer.list())["get_user"]["outputSchema"] == output_schema
        assert (await peer.call("get_user"))["structuredContent"] == {"name": "Ada", "email": "a@b"}
