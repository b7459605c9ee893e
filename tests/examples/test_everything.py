"""`examples/everything.py` answers as the official conformance harness wants, here without HTTP."""

import base64
import io
import wave

import pytest

from examples import everything
from tests.peer import PER_REQUEST, REVISIONS, Peer, Refused, text_of
from twofold import Image

TOOLS = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_x_mcp_header",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "json_schema_2020_12_tool",
]
BOTH_ERAS = pytest.mark.parametrize("revision", [PER_REQUEST, "2025-11-25"])
PICTURE = {"type": "image", "data": base64.b64encode(everything.RED_DOT).decode(), "mimeType": "image/png"}


async def blocks_of(tool: str, revision: str) -> list:
    async with Peer(everything.mcp, revision) as peer:
        return (await peer.call(tool))["content"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_tools_are_listed_in_the_same_order_every_time(revision):
    """The harness calls the first tool with no arguments, and compares three lists (B1, B2)."""
    async with Peer(everything.mcp, revision) as peer:
        assert [list(await peer.list()) for _ in range(3)] == [TOOLS] * 3
        assert all(tool["description"] for tool in (await peer.list()).values())
        assert text_of(await peer.call(TOOLS[0])) == "This is a simple text response for testing."


@BOTH_ERAS
async def test_pictures_sound_and_resources_are_blocks(revision):
    """A14: content is content, not data."""
    assert await blocks_of("test_image_content", revision) == [PICTURE]
    (sound,) = await blocks_of("test_audio_content", revision)
    assert sound == {"type": "audio", "data": sound["data"], "mimeType": "audio/wav"}
    with wave.open(io.BytesIO(base64.b64decode(sound["data"]))) as played:
        assert (played.getnchannels(), played.getframerate(), played.getnframes()) == (1, 8000, 1)
    assert await blocks_of("test_embedded_resource", revision) == [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ]
    assert await blocks_of("test_multiple_content_types", revision) == [
        {"type": "text", "text": "Multiple content types test:"},
        PICTURE,
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "text/plain",
                "text": "Text beside a picture.",
            },
        },
    ]


def test_the_picture_is_a_png():
    """Its type is told from its own bytes."""
    assert Image(everything.RED_DOT).to_content().mime_type == "image/png"


@BOTH_ERAS
async def test_a_failing_tool_answers_with_its_message(revision):
    """A22: an error a tool means is a result for the model."""
    async with Peer(everything.mcp, revision) as peer:
        result = await peer.call("test_error_handling")
    assert result["isError"] is True
    assert text_of(result) == "This tool intentionally returns an error for testing"


@BOTH_ERAS
async def test_progress_carries_the_calls_token(revision):
    """B4: three reports on the call's own stream."""
    async with Peer(everything.mcp, revision) as peer:
        await peer.call("test_tool_with_progress", progressToken="progress-test-1")
        sent = [(each["method"], each["params"]) for each in peer.notifications]
    assert sent == [
        (
            "notifications/progress",
            {
                "progressToken": "progress-test-1",
                "progress": done,
                "total": 100,
                "message": f"Completed step {done} of 100",
            },
        )
        for done in (0, 50, 100)
    ]


async def test_log_messages_come_once_a_level_is_set():
    """B4: a client of a handshake revision sets the level for its connection."""
    async with Peer(everything.mcp, "2025-11-25") as peer:
        await peer.request("logging/setLevel", {"level": "debug"})
        await peer.call("test_tool_with_logging")
        sent = [each["params"] for each in peer.notifications]
    assert sent == [
        {"level": "info", "logger": "test_tool_with_logging", "data": message}
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed")
    ]


@pytest.mark.parametrize(("meta", "logged"), [({}, 0), ({"logLevel": "info"}, 1), ({"logLevel": "error"}, 0)])
async def test_nothing_is_logged_to_a_call_that_asks_for_nothing(meta, logged):
    """B4, revision 2026-07-28: each call says its own level."""
    async with Peer(everything.mcp) as peer:
        assert text_of(await peer.call("test_logging_tool", **meta)) == "One message was logged."
        assert len(peer.notifications) == logged


@pytest.mark.parametrize(
    ("tool", "capability", "text"),
    [
        ("test_missing_capability", "sampling", "The client has a model that can be asked."),
        ("test_streaming_elicitation", "elicitation", "The client can ask its user."),
    ],
)
async def test_a_client_without_the_capability_is_told_which(tool, capability, text):
    """B1: -32021 names what is missing, as an object."""
    async with Peer(everything.mcp) as peer:
        with pytest.raises(Refused) as refused:
            await peer.call(tool)
        assert (refused.value.code, refused.value.data) == (-32021, {"requiredCapabilities": {capability: {}}})
        assert text_of(await peer.call(tool, clientCapabilities={capability: {}})) == text


@BOTH_ERAS
async def test_a_call_whose_stream_cannot_be_closed_just_ends(revision):
    """Closing a stream does nothing where there is none to resume."""
    async with Peer(everything.mcp, revision) as peer:
        assert text_of(await peer.call("test_reconnection")) == "The connection was closed and resumed."


async def test_the_mirrored_parameter_is_published_and_required():
    """A18: the annotation reaches the schema."""
    async with Peer(everything.mcp) as peer:
        schema = (await peer.list())["test_x_mcp_header"]["inputSchema"]
        assert schema["properties"]["region"] == {
            "type": "string",
            "title": "Region",
            "description": "Where to work; proxies route by it without reading the body.",
            "x-mcp-header": "Region",
        }
        assert schema["required"] == ["region"]
        assert text_of(await peer.call("test_x_mcp_header", {"region": "eu"})) == "Working in eu."


@pytest.mark.parametrize("kind", ["tools", "prompts"])
async def test_a_changed_list_is_told_and_is_as_it_was(kind):
    """A23: whoever listens hears that a list has changed, and of that list only."""
    async with Peer(everything.mcp, "2025-11-25") as peer:
        before = (await peer.request(f"{kind}/list"))[kind]
        await peer.call(f"test_trigger_{kind.removesuffix('s')}_change")
        assert (await peer.request(f"{kind}/list"))[kind] == before
        assert {each["method"] for each in peer.notifications} == {f"notifications/{kind}/list_changed"}


@BOTH_ERAS
async def test_the_prompt_is_one_message_of_the_user(revision):
    """What declares that its prompts change has one."""
    async with Peer(everything.mcp, revision) as peer:
        listed = await peer.request("prompts/list")
        assert [(each["name"], each["description"]) for each in listed["prompts"]] == [
            ("test_simple_prompt", "Ask for nothing in particular.")
        ]
        got = await peer.request("prompts/get", peer.params({"name": "test_simple_prompt"}))
    assert got["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "This is a simple prompt for testing."}}
    ]


@BOTH_ERAS
async def test_the_handwritten_schema_is_published_to_the_letter_and_enforced(revision):
    """A26: nothing of it is lost on the way, and a contact that breaks it is refused."""
    async with Peer(everything.mcp, revision) as peer:
        published = (await peer.list())["json_schema_2020_12_tool"]["inputSchema"]
        assert published == everything.CONTACT_SCHEMA
        kept = await peer.call("json_schema_2020_12_tool", {"name": "Ada", "contactMethod": "phone", "phone": "1"})
        assert text_of(kept) == "Saved Ada."
        refused = await peer.call("json_schema_2020_12_tool", {"contactMethod": "phone", "email": "a@b"})
        assert refused["isError"] is True
        assert "phone" in text_of(refused)
