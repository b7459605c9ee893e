"""What a server's bytes are, as far as a transport has to know: whether they answer a request, or refuse it."""

import msgspec

from twofold.errors import ProtocolError
from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.structs import Json


class _Head(msgspec.Struct, gc=False):
    """A message, without what it says."""

    id: RequestId | msgspec.UnsetType | None = msgspec.UNSET
    method: msgspec.Raw = msgspec.Raw()


class _Error(msgspec.Struct, gc=False):
    code: int
    message: str = ""
    data: Json = None


class _Refusal(msgspec.Struct, gc=False):
    error: _Error
    id: RequestId | msgspec.UnsetType | None = msgspec.UNSET


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_heads = msgspec.json.Decoder(list[_Head]).decode
_decode_refusal = msgspec.json.Decoder(_Refusal).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def is_answer(message: bytes, request_id: RequestId | None) -> bool:
    """Tell whether a message, or one of a batch, is the response to a request."""
    if request_id is None:
        return False
    try:
        heads = _decode_heads(message) if message.lstrip()[:1] == b"[" else [_decode_head(message)]
    except _UNREADABLE:
        return False
    return any(head.id == request_id and type(head.id) is type(request_id) and not head.method for head in heads)


def read_refusal(body: bytes) -> tuple[RequestId | None, ProtocolError] | None:
    """Read a body as a JSON-RPC error, with the id it has; None if it is none."""
    try:
        refusal = _decode_refusal(body)
    except _UNREADABLE:
        return None
    request_id = None if isinstance(refusal.id, msgspec.UnsetType) else refusal.id
    return request_id, ProtocolError(refusal.error.code, refusal.error.message, refusal.error.data)
