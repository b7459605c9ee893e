"""What a client writes: requests and notifications, each as its revision wants them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from twofold.protocol.headers import METHOD, NAME, PROTOCOL_VERSION, encode_value
from twofold.protocol.jsonrpc import RequestId, encode_error, encode_id, encode_notification, encode_result
from twofold.protocol.messages import Implementation, LogLevel
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.wire.per_request import CLIENT_CAPABILITIES, CLIENT_INFO, PREFIX

LOG_LEVEL = PREFIX + "logLevel"
VERSION = PREFIX + "protocolVersion"

__all__ = ["Asking", "encode_error", "encode_notification", "encode_result"]


class Asking(msgspec.Struct, frozen=True):
    """Writes a client's messages in one revision.

    Attributes:
        revision: The revision.
        is_per_request: Whether each request carries the version, and who asks.
        client_info: Who asks.
        capabilities: What the client can do for a server that asks back.
        log_level: The least severe log message wanted, where each request says it.
    """

    revision: str
    is_per_request: bool
    client_info: Implementation
    capabilities: Mapping[str, Json]
    log_level: LogLevel | None = None

    def request(
        self,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Json],
        *,
        progress_token: RequestId | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> bytes:
        """Write a request.

        Raises:
            ValueError: The params cannot be written as JSON.
        """
        own: dict[str, Any] = dict(meta or {})
        if progress_token is not None:
            own["progressToken"] = progress_token
        if self.is_per_request:
            own[VERSION] = self.revision
            own[CLIENT_INFO] = self.client_info
            own[CLIENT_CAPABILITIES] = dict(self.capabilities)
            if self.log_level is not None:
                own[LOG_LEVEL] = self.log_level
        whole = {**params, "_meta": own} if own else params
        body = encode_json(whole, what=f"{method}, params")
        head = b'{"jsonrpc":"2.0","id":' + encode_id(request_id) + b',"method":' + msgspec.json.encode(method)
        return head + b',"params":' + body + b"}"

    def headers(self, method: str, *, name: str | None, mirrored: Mapping[str, str]) -> dict[str, str]:
        """Give what HTTP mirrors of a request; nothing in revisions that mirror nothing.

        Args:
            method: The request's.
            name: The tool it calls, or what else it names.
            mirrored: Headers of parameters, encoded.
        """
        if not self.is_per_request:
            return {}
        headers = {PROTOCOL_VERSION.decode(): self.revision, METHOD.decode(): method, **mirrored}
        if name is not None:
            headers[NAME.decode()] = encode_value(name)
        return headers

    def initialize_params(self) -> dict[str, Json]:
        """Give the params of `initialize`."""
        return {
            "protocolVersion": self.revision,
            "capabilities": dict(self.capabilities),
            "clientInfo": msgspec.to_builtins(self.client_info),
        }
