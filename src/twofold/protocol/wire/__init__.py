"""One codec an era. A method missing from an era's table does not exist in that era."""

from twofold.protocol.messages import CacheHints, ServerIdentity
from twofold.protocol.wire.codec import Codec
from twofold.protocol.wire.handshake import REVISIONS, HandshakeCodec
from twofold.protocol.wire.per_request import PerRequestCodec

HANDSHAKE_REVISIONS = tuple(REVISIONS)
PER_REQUEST_REVISIONS = (PerRequestCodec.revision,)
SUPPORTED_REVISIONS = PER_REQUEST_REVISIONS + HANDSHAKE_REVISIONS
"""From the newest to the oldest."""


class Codecs:
    """The codecs of one server, by revision."""

    def __init__(self, identity: ServerIdentity, cache: CacheHints) -> None:
        self.per_request = PerRequestCodec.of(identity, supported=SUPPORTED_REVISIONS, cache=cache)
        self.handshake = {revision: HandshakeCodec.of(identity, revision=revision) for revision in HANDSHAKE_REVISIONS}

    def for_handshake(self, requested: str) -> HandshakeCodec:
        """Choose what to speak after `initialize`: the revision asked for, else the newest with a handshake."""
        return self.handshake.get(requested, self.handshake[HANDSHAKE_REVISIONS[0]])


__all__ = ["HANDSHAKE_REVISIONS", "PER_REQUEST_REVISIONS", "SUPPORTED_REVISIONS", "Codec", "Codecs"]
