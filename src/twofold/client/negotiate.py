"""Which revision client and server speak: found out by asking, or given."""

import logging
from collections.abc import Mapping

import msgspec

from twofold.client.conversation import Conversation
from twofold.errors import HttpStatusError, NotSent, ProtocolError, TransportError, UnsupportedProtocolVersion
from twofold.protocol.messages import Implementation, LogLevel
from twofold.protocol.structs import Json
from twofold.protocol.wire import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS
from twofold.protocol.wire.asking import Asking
from twofold.protocol.wire.per_request import SERVER_INFO

logger = logging.getLogger("twofold")

AUTO = "auto"
REVISION_CHOICES = (AUTO, *PER_REQUEST_REVISIONS, *HANDSHAKE_REVISIONS)
PROBE_SECONDS = 5.0
"""A server that does not answer `server/discover` in so long is taken for one of an earlier revision."""


class ServerDescription(msgspec.Struct, frozen=True):
    """What a server said of itself when the conversation began.

    Attributes:
        revision: The revision that is spoken with it.
        name: What it calls itself; empty where it does not say.
        version: Its own version.
        info: All it said of itself.
        capabilities: What it can do.
        instructions: How to use it, for a model.
    """

    revision: str
    name: str
    version: str
    info: Mapping[str, Json]
    capabilities: Mapping[str, Json]
    instructions: str | None


class _Opening(msgspec.Struct, frozen=True, rename="camel"):
    """What `server/discover` and `initialize` answer, as far as it is used."""

    protocol_version: str = ""
    supported_versions: list[str] = msgspec.field(default_factory=list)
    capabilities: dict[str, Json] = msgspec.field(default_factory=dict)
    server_info: dict[str, Json] | None = None
    instructions: str | None = None
    meta: dict[str, Json] = msgspec.field(default_factory=dict, name="_meta")


class Introduction(msgspec.Struct, frozen=True):
    """What a client says of itself."""

    client_info: Implementation
    capabilities: Mapping[str, Json]
    log_level: LogLevel | None

    def asking(self, revision: str) -> Asking:
        """Prepare the writing of requests in one revision."""
        is_per_request = revision in PER_REQUEST_REVISIONS
        return Asking(revision, is_per_request, self.client_info, self.capabilities, self.log_level)


async def negotiate(
    conversation: Conversation, introduction: Introduction, *, revision: str, timeout_seconds: float
) -> ServerDescription | None:
    """Agree on a revision.

    Args:
        conversation: Over which is asked; what it asks in is set.
        introduction: What the client says of itself.
        revision: `"auto"`, or the one that is wanted.
        timeout_seconds: How long each answer is waited for.

    Returns:
        What the server said of itself; None if the link is lost after a probe, and has to be opened anew for a
        server of an earlier revision.

    Raises:
        UnsupportedProtocolVersion: The server does not speak the wanted revision.
        ProtocolError: The server refused.
        TransportError: There was no answer.
    """
    if revision in PER_REQUEST_REVISIONS:
        return await _discover(conversation, introduction, revision, timeout_seconds)
    if revision == AUTO:
        try:
            return await _discover(
                conversation, introduction, PER_REQUEST_REVISIONS[0], min(PROBE_SECONDS, timeout_seconds)
            )
        except NotSent:
            raise
        except HttpStatusError as error:
            if error.status in (401, 403, 407, 429) or error.status >= 500:
                raise
            logger.debug("%s answered a probe with status %d", conversation.link.name, error.status)
        except (ProtocolError, TransportError) as error:  # an error of any kind: it may come from before this revision
            logger.debug("%s does not speak the newest revision: %s", conversation.link.name, error)
        if conversation.is_lost:
            return None
        revision = HANDSHAKE_REVISIONS[0]
    return await _initialize(conversation, introduction, revision, timeout_seconds)


async def _discover(
    conversation: Conversation, introduction: Introduction, revision: str, timeout_seconds: float
) -> ServerDescription:
    conversation.asking = introduction.asking(revision)
    try:
        raw = await conversation.request("server/discover", {}, timeout_seconds=timeout_seconds)
    except ProtocolError as error:
        if error.code != UnsupportedProtocolVersion.fixed_code:
            raise
        supported = error.data.get("supported") if isinstance(error.data, dict) else None
        spoken = ", ".join(map(str, supported)) if isinstance(supported, list) and supported else "others"
        raise UnsupportedProtocolVersion(
            f"{conversation.link.name} does not speak {revision}, but {spoken:.200}"
        ) from None
    opening = _read(conversation, raw)
    if revision not in opening.supported_versions:
        raise UnsupportedProtocolVersion(
            f"{conversation.link.name} does not speak {revision}, but {', '.join(opening.supported_versions)}"
        )
    info = opening.meta.get(SERVER_INFO)
    return _describe(conversation, opening, revision, info if isinstance(info, dict) else opening.server_info)


async def _initialize(
    conversation: Conversation, introduction: Introduction, revision: str, timeout_seconds: float
) -> ServerDescription:
    conversation.asking = introduction.asking(revision)
    params = conversation.asking.initialize_params()
    raw = await conversation.request("initialize", params, timeout_seconds=timeout_seconds)
    opening = _read(conversation, raw)
    agreed = opening.protocol_version
    if agreed not in HANDSHAKE_REVISIONS:
        raise UnsupportedProtocolVersion(
            f"{conversation.link.name} answers initialize with revision {agreed!r:.80}, which this client does not "
            f"speak; it speaks {', '.join(HANDSHAKE_REVISIONS)}"
        )
    conversation.asking = introduction.asking(agreed)
    conversation.link.settle(agreed)
    await conversation.notify("notifications/initialized")
    return _describe(conversation, opening, agreed, opening.server_info)


def _read(conversation: Conversation, raw: msgspec.Raw) -> _Opening:
    try:
        return msgspec.json.decode(raw, type=_Opening)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TransportError(
            f"{conversation.link.name} sent a description of itself that cannot be read: {error}"
        ) from None


def _describe(
    conversation: Conversation, opening: _Opening, revision: str, info: Mapping[str, Json] | None
) -> ServerDescription:
    if revision in PER_REQUEST_REVISIONS:
        conversation.link.settle(revision)
    info = info or {}
    name, version = info.get("name"), info.get("version")
    return ServerDescription(
        revision,
        name if isinstance(name, str) else "",
        version if isinstance(version, str) else "",
        info,
        opening.capabilities,
        opening.instructions,
    )
