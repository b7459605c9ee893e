"""Each era writes what its revision can carry, and nothing else; the official wire types are the judge."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import validate_server_result

from twofold.protocol.content import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from twofold.protocol.messages import (
    CacheHints,
    CallToolResult,
    Faces,
    Implementation,
    ServerIdentity,
    Wrapping,
)
from twofold.protocol.prompt import PromptArgument, PromptDefinition, PromptMessage
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition
from twofold.protocol.wire import HANDSHAKE_REVISIONS, SUPPORTED_REVISIONS, Codecs

ICON = Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")
IDENTITY = ServerIdentity(
    Implementation(name="s", version="1", title="S", icons=[ICON], website_url="https://example.com"),
    "Use it.",
)
CODECS = Codecs(IDENTITY, CacheHints(5000, "private"))
ALL = {CODECS.per_request.revision: CODECS.per_request, **CODECS.handshake}
SERVER_INFO = {
    "name": "s",
    "version": "1",
    "title": "S",
    "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
    "websiteUrl": "https://example.com",
}
TAIL = {"_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO}}
DEFINITION = ToolDefinition(
    name="t",
    title="T",
    description="Does.",
    input_schema={"type": "object", "properties": {"x": True, "y": {"type": "string"}}},
    output_schema={"type": "object", "properties": {"n": False}},
    annotations=ToolAnnotations(read_only_hint=True),
    icons=[ICON],
    meta={"a": 1},
)


def wire(encoded: bytes) -> dict:
    return json.loads(encoded)


def judged(encoded: bytes, method: str, revision: str) -> dict:
    value = wire(encoded)
    validate_server_result(method, revision, value)
    return value


def test_discover_says_who_and_what():
    """2026-07-28, server/discover."""
    assert judged(CODECS.per_request.opening_result(offers_prompts=False), "server/discover", "2026-07-28") == {
        "resultType": "complete",
        "supportedVersions": list(SUPPORTED_REVISIONS),
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "instructions": "Use it.",
        "ttlMs": 5000,
        "cacheScope": "private",
        **TAIL,
    }


@pytest.mark.parametrize(
    ("revision", "shown"),
    [
        ("2025-11-25", set(SERVER_INFO)),
        ("2025-06-18", {"name", "version", "title"}),
        ("2025-03-26", {"name", "version"}),
        ("2024-11-05", {"name", "version"}),
    ],
)
def test_initialize_says_what_the_revision_has_room_for(revision, shown):
    answer = judged(CODECS.handshake[revision].opening_result(offers_prompts=False), "initialize", revision)
    assert answer["protocolVersion"] == revision
    assert answer["serverInfo"] == {key: value for key, value in SERVER_INFO.items() if key in shown}
    assert answer["instructions"] == "Use it."


def test_an_unknown_revision_is_answered_with_the_newest_that_shakes_hands():
    assert CODECS.for_handshake("1999-01-01").revision == "2025-11-25"
    assert CODECS.for_handshake("2026-07-28").revision == "2025-11-25"
    assert [CODECS.for_handshake(each).revision for each in HANDSHAKE_REVISIONS] == list(HANDSHAKE_REVISIONS)


@pytest.mark.parametrize(
    ("revision", "fields"),
    [
        ("2026-07-28", {"title", "annotations", "outputSchema", "icons", "_meta"}),
        ("2025-11-25", {"title", "annotations", "outputSchema", "icons", "_meta"}),
        ("2025-06-18", {"title", "annotations", "outputSchema", "_meta"}),
        ("2025-03-26", {"annotations"}),
        ("2024-11-05", set()),
    ],
)
def test_a_definition_has_the_fields_of_its_revision(revision, fields):
    codec = ALL[revision]
    page = judged(codec.tools_page([codec.definition(DEFINITION)], "next"), "tools/list", revision)
    (tool,) = page["tools"]
    assert set(tool) == {"name", "description", "inputSchema"} | fields
    assert page["nextCursor"] == "next"


def test_boolean_property_schemas_are_restated_where_only_objects_are_allowed():
    """The schema of `Tool` before 2026-07-28 wants an object for each property."""
    newest, earlier = (wire(ALL[each].definition(DEFINITION)) for each in ("2026-07-28", "2025-11-25"))
    assert newest["inputSchema"] == DEFINITION.input_schema
    assert earlier["inputSchema"] == {"type": "object", "properties": {"x": {}, "y": {"type": "string"}}}
    assert earlier["outputSchema"] == {"type": "object", "properties": {"n": {"not": {}}}}


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
@pytest.mark.parametrize("wrapping", list(Wrapping))
def test_structure_is_wrapped_as_the_era_can_carry_it(revision, wrapping):
    """A20: bare roots are of 2026-07-28; before it structure is an object; before 2025-06-18 there is none."""
    value = b'{"a":1}' if wrapping is Wrapping.NEVER else b"[1]"
    faces = Faces(b'[{"type":"text","text":"1"}]', value, wrapping)
    result = judged(b"".join(ALL[revision].call_result(faces)), "tools/call", revision)
    wrapped = {"result": [1]}
    if revision in ("2025-03-26", "2024-11-05"):
        assert "structuredContent" not in result
    elif wrapping is Wrapping.NEVER:
        assert result["structuredContent"] == {"a": 1}
    elif wrapping is Wrapping.EARLIER and revision == "2026-07-28":
        assert result["structuredContent"] == [1]
    else:
        assert result["structuredContent"] == wrapped


def test_meta_of_a_result_stands_beside_the_servers_own():
    faces = Faces(b"[]", meta={"a": 1})
    assert wire(b"".join(CODECS.per_request.call_result(faces)))["_meta"] == {"a": 1, **TAIL["_meta"]}
    assert wire(b"".join(CODECS.handshake["2025-11-25"].call_result(faces)))["_meta"] == {"a": 1}


NOTE = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
BLOCKS = (
    TextContent("x", annotations=NOTE, meta={"a": 1}),
    ImageContent(data="aGk=", mime_type="image/png"),
    AudioContent(data="aGk=", mime_type="audio/wav"),
    ResourceLink(uri="a:b", name="n", description="d", icons=[ICON]),
    EmbeddedResource(resource=ResourceContents(uri="a:b", text="t", meta={"b": 2})),
)


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_blocks_are_valid_in_every_revision(revision):
    result = judged(b"".join(ALL[revision].call_result(Faces(BLOCKS))), "tools/call", revision)
    assert len(result["content"]) == len(BLOCKS)


def test_what_a_revision_has_no_block_for_is_restated_not_lost():
    """B2: each with what its revision can carry."""
    content = wire(b"".join(CODECS.handshake["2024-11-05"].call_result(Faces(BLOCKS))))["content"]
    assert content == [
        {"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "data:,audio", "blob": "aGk=", "mimeType": "audio/wav"}},
        {"type": "text", "text": "[n](a:b): d"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
    ]


@given(
    st.text().filter(lambda text: text.isprintable()),
    st.booleans(),
    st.none() | st.dictionaries(st.sampled_from("ab"), st.integers()),
)
def test_a_result_is_read_as_it_was_written(text, is_error, meta):
    """decode(encode(m)) = m in each era."""
    faces = Faces((TextContent(text),), is_error=is_error, meta=meta)
    for revision, codec in ALL.items():
        encoded = b"".join(codec.call_result(faces))
        read = CallToolResult(**{key: value for key, value in json.loads(encoded).items() if key != "resultType"})
        assert (read.content, read.is_error, read.has_structured_content) == (
            [TextContent(text)],
            is_error,
            False,
        ), revision


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_a_progress_message_is_sent_where_there_is_a_place_for_it(revision):
    params = wire(ALL[revision].progress("token", progress=0.5, total=None, message="half"))
    message = {} if revision == "2024-11-05" else {"message": "half"}
    assert params == {"progressToken": "token", "progress": 0.5, **message}


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_log_data_that_is_no_json_is_refused(revision):
    with pytest.raises(ValueError, match=r"log message\['data'\]"):
        ALL[revision].log("info", float("nan"), logger=None)


def test_an_era_has_only_its_own_methods():
    assert CODECS.per_request.methods == {
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "subscriptions/listen",
    }
    assert CODECS.handshake["2025-11-25"].methods == {
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "logging/setLevel",
    }


PROMPT = PromptDefinition(
    name="p",
    title="P",
    description="Asks.",
    arguments=[PromptArgument(name="code", title="Code", description="The code.", required=True)],
    icons=[ICON],
    meta={"a": 1},
)


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_prompts_are_declared_only_where_they_are_offered(revision):
    """Prompts, "Capabilities": in `server/discover` and `initialize` alike."""
    method = "server/discover" if revision == "2026-07-28" else "initialize"
    for offers_prompts, more in [(False, {}), (True, {"prompts": {"listChanged": True}})]:
        answer = judged(ALL[revision].opening_result(offers_prompts=offers_prompts), method, revision)
        assert answer["capabilities"] == {"tools": {"listChanged": True}, "logging": {}, **more}


@pytest.mark.parametrize(
    ("revision", "fields", "argument_fields"),
    [
        ("2026-07-28", {"title", "icons", "_meta"}, {"title"}),
        ("2025-11-25", {"title", "icons", "_meta"}, {"title"}),
        ("2025-06-18", {"title", "_meta"}, {"title"}),
        ("2025-03-26", set(), set()),
        ("2024-11-05", set(), set()),
    ],
)
def test_a_prompt_has_the_fields_of_its_revision(revision, fields, argument_fields):
    """Schema `Prompt` and `PromptArgument` of each revision."""
    codec = ALL[revision]
    page = judged(codec.prompts_page([codec.prompt_definition(PROMPT)], "next"), "prompts/list", revision)
    (prompt,) = page["prompts"]
    assert set(prompt) == {"name", "description", "arguments"} | fields
    assert set(prompt["arguments"][0]) == {"name", "description", "required"} | argument_fields
    assert page["nextCursor"] == "next"


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_messages_restate_the_blocks_a_revision_lacks(revision):
    """Schema `PromptMessage` of each revision: sound from 2025-03-26 on, links to resources from 2025-06-18 on."""
    messages = [
        PromptMessage(role="user", content=AudioContent(data="eA==", mime_type="audio/wav")),
        PromptMessage(role="assistant", content=ResourceLink(uri="file:///a", name="a")),
    ]
    result = judged(ALL[revision].prompt_result("Asks.", messages), "prompts/get", revision)
    sound = {"type": "audio", "data": "eA==", "mimeType": "audio/wav"}
    if revision == "2024-11-05":
        sound = {"type": "resource", "resource": {"uri": "data:,audio", "blob": "eA==", "mimeType": "audio/wav"}}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    if revision < "2025-06-18":
        link = {"type": "text", "text": "[a](file:///a)"}
    frame = {"resultType": "complete", **TAIL} if revision == "2026-07-28" else {}
    assert result == {
        **frame,
        "description": "Asks.",
        "messages": [{"role": "user", "content": sound}, {"role": "assistant", "content": link}],
    }


@pytest.mark.parametrize("revision", SUPPORTED_REVISIONS)
def test_a_prompt_without_a_description_or_messages_is_a_result(revision):
    result = judged(ALL[revision].prompt_result(None, []), "prompts/get", revision)
    assert result["messages"] == []
    assert "description" not in result
