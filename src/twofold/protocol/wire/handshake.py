"""Revisions 2024-11-05 to 2025-11-25: `initialize`, then a session. Their differences stand in `REVISIONS`."""

from collections.abc import Sequence
from types import MappingProxyType

import msgspec

from twofold.protocol.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.messages import Faces, LogLevel, ServerIdentity, Wrapping
from twofold.protocol.prompt import PROMPT_METHODS, PromptDefinition, PromptMessage
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.tool import ToolDefinition
from twofold.protocol.wire.codec import declare_capabilities
from twofold.protocol.wire.per_request import encode_log, encode_progress


class Revision(msgspec.Struct, frozen=True, gc=False):
    """What one handshake revision lacks of the neutral shape, by wire name, and the batches it accepts.

    Source: `schema.json` of each revision.
    """

    lacks_in_tool: frozenset[str]
    lacks_in_prompt: frozenset[str]
    lacks_in_server: frozenset[str]
    lacks_in_block: frozenset[str]
    lacks_blocks: tuple[type, ...] = ()
    has_structured_content: bool = True
    has_progress_message: bool = True
    has_error_without_id: bool = False
    has_batches: bool = False


REVISIONS = MappingProxyType(
    {
        "2025-11-25": Revision(frozenset(), frozenset(), frozenset(), frozenset(), has_error_without_id=True),
        "2025-06-18": Revision(
            lacks_in_tool=frozenset({"icons"}),
            lacks_in_prompt=frozenset({"icons"}),
            lacks_in_server=frozenset({"icons", "websiteUrl"}),
            lacks_in_block=frozenset({"icons"}),
        ),
        "2025-03-26": Revision(
            lacks_in_tool=frozenset({"icons", "title", "outputSchema", "_meta"}),
            lacks_in_prompt=frozenset({"icons", "title", "_meta"}),
            lacks_in_server=frozenset({"icons", "websiteUrl", "title"}),
            lacks_in_block=frozenset({"icons", "_meta", "lastModified"}),
            lacks_blocks=(ResourceLink,),
            has_structured_content=False,
            has_batches=True,
        ),
        "2024-11-05": Revision(
            lacks_in_tool=frozenset({"icons", "title", "outputSchema", "_meta", "annotations"}),
            lacks_in_prompt=frozenset({"icons", "title", "_meta"}),
            lacks_in_server=frozenset({"icons", "websiteUrl", "title"}),
            lacks_in_block=frozenset({"icons", "_meta", "lastModified"}),
            lacks_blocks=(ResourceLink, AudioContent),
            has_structured_content=False,
            has_progress_message=False,
        ),
    }
)


class HandshakeCodec(msgspec.Struct, frozen=True, gc=False):
    """Writes one handshake revision, leaving out or restating what it cannot carry."""

    revision: str
    identity: ServerIdentity
    carries: Revision

    methods = PROMPT_METHODS | {"initialize", "ping", "tools/list", "tools/call", "logging/setLevel"}
    allows_any_root = False

    @classmethod
    def of(cls, identity: ServerIdentity, *, revision: str) -> "HandshakeCodec":
        """Prepare the codec of one server."""
        return cls(revision, identity, REVISIONS[revision])

    def opening_result(self, *, offers_prompts: bool) -> bytes:
        """Answer `initialize`."""
        implementation = msgspec.to_builtins(self.identity.implementation)
        body = {
            "protocolVersion": self.revision,
            "capabilities": declare_capabilities(offers_prompts=offers_prompts),
            "serverInfo": _without(implementation, self.carries.lacks_in_server),
        }
        if self.identity.instructions is not None:
            body["instructions"] = self.identity.instructions
        return msgspec.json.encode(body)

    def definition(self, definition: ToolDefinition) -> bytes:
        """Write one tool without what this revision lacks."""
        tool = _without(msgspec.to_builtins(definition), self.carries.lacks_in_tool)
        for key in ("inputSchema", "outputSchema"):
            if key in tool:
                tool[key] = _with_object_properties(tool[key])
        return encode_json(tool, what=f"tool {definition.name!r}")

    def tools_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `tools/list`."""
        return _page(b"tools", definitions, next_cursor)

    def prompt_definition(self, definition: PromptDefinition) -> bytes:
        """Write one prompt without what this revision lacks, in the prompt and in its arguments."""
        prompt = _without(msgspec.to_builtins(definition), self.carries.lacks_in_prompt)
        if "arguments" in prompt:
            prompt["arguments"] = [_without(each, self.carries.lacks_in_prompt) for each in prompt["arguments"]]
        return encode_json(prompt, what=f"prompt {definition.name!r}")

    def prompts_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `prompts/list`."""
        return _page(b"prompts", definitions, next_cursor)

    def prompt_result(self, description: str | None, messages: Sequence[PromptMessage]) -> bytes:
        """Answer `prompts/get`, restating the blocks this revision has no place for."""
        body: dict[str, Json] = {} if description is None else {"description": description}
        body["messages"] = [{"role": each.role, "content": self._block(each.content)} for each in messages]
        return msgspec.json.encode(body)

    def call_result(self, faces: Faces) -> list[bytes]:
        """Answer `tools/call`, in parts; structure is always an object here, and absent before 2025-06-18."""
        content = faces.content
        if not isinstance(content, bytes):
            content = encode_json([self._block(block) for block in content], what="content")
        parts = [b'{"content":', content]
        if faces.structured is not None and self.carries.has_structured_content:
            if faces.wrapping is Wrapping.NEVER:
                parts += (b',"structuredContent":', faces.structured)
            else:
                parts += (b',"structuredContent":{"result":', faces.structured, b"}")
        parts.append(b',"isError":true' if faces.is_error else b',"isError":false')
        if faces.meta is not None:
            parts += (b',"_meta":', encode_json(faces.meta, what="meta"))
        parts.append(b"}")
        return parts

    def empty_result(self) -> bytes:
        """Answer with nothing but success."""
        return b"{}"

    def progress(self, token: RequestId, *, progress: float, total: float | None, message: str | None) -> bytes:
        """Write the params of `notifications/progress`; 2024-11-05 has no message in it."""
        shown = message if self.carries.has_progress_message else None
        return encode_progress(token, progress=progress, total=total, message=shown)

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> bytes:
        """Write the params of `notifications/message`."""
        return encode_log(level, data, logger=logger)

    def _block(self, block: ContentBlock) -> Json:
        if isinstance(block, self.carries.lacks_blocks):
            block = _restate(block)
        tree = msgspec.to_builtins(block)
        tree = _without(tree, self.carries.lacks_in_block)
        for key in ("annotations", "resource"):
            if key in tree:
                tree[key] = _without(tree[key], self.carries.lacks_in_block)
        return tree


def _page(key: bytes, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
    cursor = b"" if next_cursor is None else b',"nextCursor":' + msgspec.json.encode(next_cursor)
    return b"".join((b'{"%b":[' % key, b",".join(definitions), b"]", cursor, b"}"))


def _restate(block: ContentBlock) -> ContentBlock:
    """Say with older blocks what a revision has no block for, so that nothing of it is lost."""
    if isinstance(block, ResourceLink):
        about = f": {block.description}" if block.description else ""
        return TextContent(text=f"[{block.title or block.name}]({block.uri}){about}", annotations=block.annotations)
    if isinstance(block, AudioContent):
        sound = ResourceContents(uri="data:,audio", blob=block.data, mime_type=block.mime_type)
        return EmbeddedResource(resource=sound, annotations=block.annotations)
    raise TypeError(f"no older form is known for {type(block).__name__}")


def _without(tree: dict[str, Json], names: frozenset[str]) -> dict[str, Json]:
    return {key: value for key, value in tree.items() if key not in names}


def _with_object_properties(schema: dict[str, Json]) -> dict[str, Json]:
    """Restate boolean property schemas as objects, which these revisions' schema of a tool asks for."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(isinstance(value, bool) for value in properties.values()):
        return schema
    said: dict[bool, Json] = {True: {}, False: {"not": {}}}
    restated = {key: said[value] if isinstance(value, bool) else value for key, value in properties.items()}
    return {**schema, "properties": restated}
