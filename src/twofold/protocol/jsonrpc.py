"""JSON-RPC 2.0: bytes ↔ request, notification, response.

A message is decoded once. Its `params` stay a slice of the bytes, for whoever knows their type.
Source: MCP 2026-07-28, "Messages"; JSON-RPC 2.0.
"""

import json
import re
from typing import Literal, TypeAlias

import msgspec

from twofold.errors import InvalidRequest, ParseError, ProtocolError
from twofold.protocol.structs import Json, encode_json

RequestId: TypeAlias = int | str

_EMPTY = msgspec.Raw(b"")
_NO_PARAMS = msgspec.Raw(b"{}")


class NestedTooDeeply(ParseError):
    """JSON text, perhaps, but with more levels than the parser takes."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message as it came: a request has method and id, a notification only the method, a response only the id.

    Attributes:
        id: UNSET for a notification; null in an error about a request that could not be read.
        method: Empty for a response.
        params: JSON of an object.
    """

    jsonrpc: Literal["2.0"]
    method: str = ""
    id: RequestId | msgspec.UnsetType | None = msgspec.UNSET
    params: msgspec.Raw = _NO_PARAMS
    result: msgspec.Raw = _EMPTY
    error: msgspec.Raw = _EMPTY


_decode = msgspec.json.Decoder(Message).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode

TOO_DEEP = "\ufffdnested too deeply\ufffd"
"""Stands where something was cut out because it is nested too deeply."""
MAX_LEVELS = 200
"""Of what is left; what real messages have is a fraction of it."""
_TOO_DEEP = f'"{TOO_DEEP}"'.encode()
BEFORE_MESSAGE = b" \t\r\n\v\f\0\xef\xbb\xbf\xff\xfe"
"""Blanks, and what encodings other than UTF-8 put where a message should begin."""

_BRACKETS = re.compile(rb'[{\[]+|[}\]]+|"(?:[^"\\]+|\\.)*+"?', re.DOTALL)  # one without an end goes to the end
# An id that stands before anything nested: good enough to tell a peer which of its broken lines was refused.
_LEADING_ID = rb'\A\s*\{[^{\[]*?"id"\s*:\s*(-?\d{1,19}|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*")\s*[,}]'


def decode_message(line: bytes) -> Message:
    """Read one message.

    Raises:
        ParseError: No JSON text, wrong UTF-8, or nested beyond what the parser takes; the peer's fault.
        InvalidRequest: JSON, but no JSON-RPC message; the peer's fault.
    """
    try:
        message = _decode(line)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"not a JSON-RPC message: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explain(line, error) from None
    except RecursionError:
        raise NestedTooDeeply("the line is nested too deeply to be read; flatten it") from None
    if message.method:
        if message.id is None:
            raise InvalidRequest("not a JSON-RPC message: the id of a request is text or a whole number, got null")
    elif message.result == _EMPTY and message.error == _EMPTY:
        raise InvalidRequest("not a JSON-RPC message: it has neither method, result nor error")
    return message


def _explain(line: bytes, error: Exception) -> ProtocolError:
    """Tell text that no parser takes from JSON whose escapes make no text: only the latter has a place to name."""
    try:
        place = _find_surrogate(json.loads(line), "")
    except (ValueError, RecursionError):
        place = None
    if place is None:
        return ParseError(f"the line is not JSON: {error}")
    where, text = place
    return InvalidRequest(
        f"{where} holds half of a surrogate pair ({text!r:.80}), which is no text; send whole characters"
    )


def _find_surrogate(value: Json, path: str) -> tuple[str, str] | None:
    if isinstance(value, str):
        return (path, value) if any("\ud800" <= character <= "\udfff" for character in value) else None
    if isinstance(value, dict):
        inner = [_find_surrogate(key, f"a key of {path or 'the message'}") for key in value]
        inner += [_find_surrogate(item, f"{path}.{key}" if path else key) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [_find_surrogate(item, f"{path}[{index}]") for index, item in enumerate(value)]
    else:
        return None
    return next((found for found in inner if found is not None), None)


def is_request(line: bytes) -> bool:
    """Tell what asks for an answer: a request or a batch. What cannot be read is neither."""
    if line.lstrip()[:1] == b"[":
        return True
    try:
        message = decode_message(line)
    except ProtocolError:
        return False
    return bool(message.method) and message.id is not msgspec.UNSET


def decode_batch(line: bytes) -> list[bytes]:
    """Split a JSON array into its elements' bytes.

    Raises:
        ParseError: No JSON array.
        InvalidRequest: An empty one.
    """
    try:
        elements = _decode_batch(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"the batch is not JSON: {error}") from None
    if not elements:
        raise InvalidRequest("the batch is empty")
    return [bytes(element) for element in elements]


def cut_depth(line: bytes) -> bytes:
    """Put `TOO_DEEP` in place of each object and array that lies below `MAX_LEVELS` levels.

    Args:
        line: JSON text; of what is none, nothing sensible comes.

    Returns:
        JSON text of few levels, if it was JSON text.
    """
    parts: list[bytes] = []
    level = kept_to = 0
    for found in _BRACKETS.finditer(line):
        token = found[0]
        if token[:1] == b'"':
            continue
        if token[:1] in b"{[":
            if level <= MAX_LEVELS < level + len(token):
                parts += (line[kept_to : found.start() + MAX_LEVELS - level], _TOO_DEEP)
            level += len(token)
        else:
            level -= len(token)
            if level <= MAX_LEVELS < level + len(token):
                kept_to = found.end() - (MAX_LEVELS - level)
    if level <= MAX_LEVELS:
        parts.append(line[kept_to:])
    return b"".join(parts)


def recover_id(line: bytes) -> RequestId | None:
    """Find the id of a message that could not be read, or None: it is never guessed from deeper down."""
    found = re.match(_LEADING_ID, line)
    if found is None:
        return None
    try:
        recovered: RequestId = msgspec.json.decode(found[1], type=int | str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return recovered


def encode_id(request_id: RequestId) -> bytes:
    """Write an id as JSON."""
    return b"%d" % request_id if type(request_id) is int else msgspec.json.encode(request_id)


def encode_result(request_id: RequestId, *result: bytes) -> bytes:
    """Answer a request; the parts of `result` together are the JSON of an object, and are copied once."""
    # Joined, because `%` copies a megabyte twenty times as slowly.
    return b"".join((b'{"jsonrpc":"2.0","id":', encode_id(request_id), b',"result":', *result, b"}"))


def encode_error(request_id: RequestId | None, error: ProtocolError) -> bytes:
    """Answer with an error. Without an id (the request's could not be read) none is sent."""
    data = b""
    if error.data is not None:
        try:
            data = b',"data":' + encode_json(error.data, what="data")
        except ValueError as fault:  # the error itself still has to arrive
            data = b',"data":' + msgspec.json.encode(f"left out: {fault}".encode("utf-8", "replace").decode())
    message = msgspec.json.encode(error.message.encode("utf-8", "replace").decode())
    body = b'"error":{"code":%d,"message":%b%b}}' % (error.code, message, data)
    shown = b"" if request_id is None else b'"id":%b,' % encode_id(request_id)
    return b'{"jsonrpc":"2.0",' + shown + body


def encode_notification(method: str, params: bytes) -> bytes:
    """Write a notification; `params` is the JSON of an object."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)
