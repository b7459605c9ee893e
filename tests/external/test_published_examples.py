"""The specification's own example messages decode, and come back the same. `TWOFOLD_SPEC` names their folder."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from twofold.protocol.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from twofold.protocol.jsonrpc import decode_message
from twofold.protocol.messages import CallToolResult, CancelledParams, ListenParams, Params
from twofold.protocol.tool import ToolDefinition

EXAMPLES = Path(os.environ.get("TWOFOLD_SPEC", "")) / "2026-07-28" / "examples"
VALUES = {
    "AudioContent": AudioContent,
    "BlobResourceContents": ResourceContents,
    "CallToolResult": CallToolResult,
    "EmbeddedResource": EmbeddedResource,
    "ImageContent": ImageContent,
    "ResourceLink": ResourceLink,
    "TextContent": TextContent,
    "TextResourceContents": ResourceContents,
    "Tool": ToolDefinition,
}
REQUESTS = ["CallToolRequest", "DiscoverRequest", "ListToolsRequest", "SubscriptionsListenRequest"]
OURS_DOES_NOT_KEEP = {"resultType"}


def examples(folder: str) -> list[Path]:
    found = sorted((EXAMPLES / folder).glob("*.json"))
    assert found, f"no examples in {EXAMPLES / folder}"
    return found


@pytest.mark.parametrize("folder", VALUES)
def test_example_values_come_back_the_same(folder):
    for path in examples(folder):
        given = {key: value for key, value in json.loads(path.read_text()).items() if key not in OURS_DOES_NOT_KEEP}
        decoded = msgspec.json.decode(path.read_bytes(), type=VALUES[folder])
        assert json.loads(msgspec.json.encode(decoded)) == {
            key: value for key, value in given.items() if value is not False
        }, path


@pytest.mark.parametrize("folder", REQUESTS)
def test_example_requests_are_read(folder):
    for path in examples(folder):
        message = decode_message(path.read_bytes())
        assert message.id is not msgspec.UNSET
        params = msgspec.json.decode(message.params, type=Params)
        assert params.meta.protocol_version == "2026-07-28", path
        if message.method == "subscriptions/listen":
            assert msgspec.json.decode(message.params, type=ListenParams).notifications.tools_list_changed is not None
        if message.method == "tools/call":
            assert params.name == json.loads(path.read_text())["params"]["name"]


def test_example_cancellation_is_read():
    for path in examples("CancelledNotification"):
        message = decode_message(path.read_bytes())
        assert message.id is msgspec.UNSET
        given = json.loads(path.read_text())["params"]
        cancelled = msgspec.json.decode(message.params, type=CancelledParams)
        assert (cancelled.request_id, cancelled.reason) == (given["requestId"], given.get("reason"))
