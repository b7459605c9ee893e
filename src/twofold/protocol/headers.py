"""What HTTP clients mirror from a message into headers: written, read back, compared with the body.

Header names are lower-case bytes, as ASGI hands them over.
Source: MCP 2026-07-28, Streamable HTTP, "Request Metadata".
"""

import binascii
import functools
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import msgspec

from twofold.errors import HeaderMismatch
from twofold.protocol.structs import Json

PROTOCOL_VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM_PREFIX = b"mcp-param-"
SESSION_ID = b"mcp-session-id"
LAST_EVENT_ID = b"last-event-id"

_Said: TypeAlias = tuple[bytes | None, bytes | None, bytes | None]
"""What the three headers say that every request has."""
_PREFIX, _SUFFIX = "=?base64?", "?="
_BLANKS = b" \t"
_SHORT = 128
"""Characters of a text whose form in a header is remembered."""
# Longer than any number a 64-bit float can hold; what is compared stays small whatever is sent.
_NUMBER = r"-?(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?\Z"


class HeaderParameter(msgspec.Struct, frozen=True):
    """A parameter that is mirrored.

    Attributes:
        path: The names of properties that lead to it, from the arguments down.
        header: The header's name without `Mcp-Param-`.
        type: Its JSON type: `string`, `integer` or `boolean`.
        is_secret: Its name announces a secret, so that no message shows its value.
    """

    path: tuple[str, ...]
    header: str
    type: str
    is_secret: bool = False

    @property
    def field(self) -> bytes:
        """The header's whole name, in lower case."""
        return PARAM_PREFIX + self.header.lower().encode()


def encode_value(value: str | int | bool) -> str:
    """Write a value for an `Mcp-Name` or `Mcp-Param-*` header.

    Args:
        value: A text, a whole number or a boolean.

    Returns:
        The value's text where a header carries it unchanged, else its `=?base64?…?=` form: visible ASCII with
        blanks inside only; an empty text stays empty.

    Raises:
        ValueError: The text holds half of a surrogate pair, or the number more digits than Python writes.

    Source: MCP 2026-07-28, Streamable HTTP, "Value Encoding".
    """
    if value is True:
        return "true"
    if value is False:
        return "false"
    text = str(value)
    # Printable ASCII is U+0020 to U+007E, so neither tabs nor line breaks.
    is_plain = text.isascii() and text.isprintable() and text == text.strip(" ")
    if is_plain and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a header value holds half of a surrogate pair at character {error.start}; send text without it"
        ) from None
    return f"{_PREFIX}{binascii.b2a_base64(encoded, newline=False).decode()}{_SUFFIX}"


def decode_value(raw: bytes, *, header: str) -> str:
    """Read an `Mcp-Name` or `Mcp-Param-*` header back into the text it stands for.

    Args:
        raw: The value as received; blanks around it do not count.
        header: The header's name, for the message.

    Returns:
        The text itself, or what its `=?base64?…?=` form encodes.

    Raises:
        HeaderMismatch: Bytes no header value has, base64 that is not exactly what an encoder writes, or not
            UTF-8 once decoded; the peer's fault, answered with 400 and -32020.

    Source: MCP 2026-07-28, Streamable HTTP, "Value Encoding"; RFC 9110, section 5.5.
    """
    text = _read_visible(raw, header=header)
    # The two marks may not share their question mark: `=?base64?=` is a text like any other.
    if len(text) < len(_PREFIX) + len(_SUFFIX) or not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    payload = text[len(_PREFIX) : -len(_SUFFIX)].encode()
    try:
        decoded = binascii.a2b_base64(payload, strict_mode=True)
        if binascii.b2a_base64(decoded, newline=False) != payload:  # bits that are set, yet belong to no byte
            raise ValueError("it is not what encoding its content gives")  # noqa: TRY301 - one refusal for both
        return decoded.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} of its content is not UTF-8"
    except ValueError as error:
        reason = str(error)
    raise HeaderMismatch(
        f"{header}: expected base64 with padding between =?base64? and ?=, got {text!r:.80} ({reason}); "
        "encode the value's UTF-8 bytes"
    )


def _read_visible(raw: bytes, *, header: str) -> str:
    """Decode a field value: visible ASCII, with blanks and tabs inside only."""
    trimmed = raw.strip(_BLANKS)
    text = trimmed.decode("latin-1")
    if text.isascii() and (text.isprintable() or text.replace("\t", " ").isprintable()):
        return text
    raise HeaderMismatch(
        f"{header}: expected visible ASCII, got {text!r:.80}; send any other text as =?base64?…?= of its UTF-8 bytes"
    )


def check_request(headers: Mapping[bytes, bytes], *, protocol_version: str, method: str, name: str | None) -> None:
    """Compare the headers every request of revision 2026-07-28 has with its body.

    Args:
        headers: By lower-case name.
        protocol_version: The body's, from its `_meta`.
        method: The body's.
        name: What `Mcp-Name` mirrors, for the methods that have it; None for all others, where it is ignored.

    Raises:
        HeaderMismatch: One is missing, malformed, or says something else; the peer's fault.

    Source: MCP 2026-07-28, Streamable HTTP, "Standard Request Headers" and "Server Validation".
    """
    said = headers.get(PROTOCOL_VERSION), headers.get(METHOD), None if name is None else headers.get(NAME)
    texts = (protocol_version, method, name, *said)
    is_short = sum([len(text) for text in texts if text is not None]) <= 2 * _SHORT  # blanks around are kept too
    (_check_known if is_short else _check_said)(said, protocol_version, method, name)


def _check_said(said: _Said, protocol_version: str, method: str, name: str | None) -> None:
    raw_version, raw_method, raw_name = said
    _check_literal(raw_version, protocol_version, header="MCP-Protocol-Version")
    _check_literal(raw_method, method, header="Mcp-Method")
    if name is not None:
        if raw_name is None:
            raise _missing("Mcp-Name", f"the body says {_show(name)}")
        if not _says(raw_name, name, header="Mcp-Name"):
            raise _different("Mcp-Name", raw_name, name)


_check_known = functools.lru_cache(maxsize=256)(_check_said)
"""What agreed once agrees again; the calls of one server are few. What is raised is not remembered."""


def _check_literal(raw: bytes | None, expected: str, *, header: str) -> None:
    """Compare a header that has no encoded form; what it cannot carry is never equal."""
    if raw is None:
        raise _missing(header, f"the body says {_show(expected)}")
    if not (expected.isascii() and expected.isprintable() and raw.strip(_BLANKS) == expected.encode()):
        raise _different(header, raw, expected)


def check_parameters(headers: Mapping[bytes, bytes], parameters: Sequence[HeaderParameter], arguments: Json) -> None:
    """Compare the `Mcp-Param-*` headers of a call with its arguments; those of no parameter are ignored.

    A value that no header can carry (an object, an array, a fraction) needs none: the check of the arguments
    refuses it. Arguments that are an object written as a text are looked into, since tools take them too.

    Args:
        headers: By lower-case name.
        parameters: The tool's mirrored parameters.
        arguments: The call's, as decoded JSON of any type.

    Raises:
        HeaderMismatch: A header is missing, malformed, stands for nothing, or says something else than the
            argument; the peer's fault.

    Source: MCP 2026-07-28, Streamable HTTP, "Server Behavior for Custom Headers".
    """
    for parameter in parameters:
        value = _find(arguments, parameter.path, reads_text=True)
        raw = headers.get(parameter.field)
        if raw is None:
            if _mirrored(value) is not None:
                where = f"the argument {_place(parameter)} {_show_value(value, parameter)}"
                raise _missing(f"Mcp-Param-{parameter.header}", where)
        elif value is None:
            raise HeaderMismatch(
                f"Mcp-Param-{parameter.header}: the header is there, but the argument {_place(parameter)} is null or "
                "absent; leave the header out"
            )
        else:
            _check_parameter(raw, value, parameter)


def _check_parameter(raw: bytes, value: Json, parameter: HeaderParameter) -> None:
    header = f"Mcp-Param-{parameter.header}"
    try:
        if _says(raw, value, header=header):
            return
    except HeaderMismatch:
        if not parameter.is_secret:
            raise
        raise HeaderMismatch(f"{header}: the value is malformed; send it as =?base64?…?=") from None
    shown = "something else" if parameter.is_secret else _show(raw.decode("latin-1"))
    where = f"the argument {_place(parameter)}"
    raise HeaderMismatch(f"{header}: the header says {shown}, {where} {_show_value(value, parameter)}; make them agree")


def mirror_parameters(parameters: Sequence[HeaderParameter], arguments: Json) -> dict[str, str]:
    """Write the `Mcp-Param-*` headers of a call.

    Args:
        parameters: The tool's mirrored parameters.
        arguments: The call's, as decoded JSON.

    Returns:
        Values by header name. Arguments that are null, absent, or of a type no header carries have none.

    Raises:
        ValueError: A text that is no Unicode; see `encode_value`.

    Source: MCP 2026-07-28, Streamable HTTP, "Client Behavior".
    """
    found = ((parameter, _mirrored(_find(arguments, parameter.path, reads_text=False))) for parameter in parameters)
    return {f"Mcp-Param-{parameter.header}": encode_value(value) for parameter, value in found if value is not None}


def _find(arguments: Json, path: Sequence[str], *, reads_text: bool) -> Json:
    """Give the value at a path; None where there is none."""
    value = arguments
    for depth, step in enumerate(path):
        if reads_text and depth > 0 and isinstance(value, str):
            value = _read_object(value)
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _read_object(text: str) -> Json:
    """Read an argument that stands in the body as a text; whatever a tool may make of it is seen here too."""
    try:
        return json.loads(text)  # rather than msgspec: it takes all that any reader of arguments takes
    except (ValueError, RecursionError):
        return None


def _mirrored(value: Json) -> str | int | None:
    """Give what a header says of a value, or None where it says nothing."""
    if isinstance(value, str | int):  # booleans too
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _says(raw: bytes, value: Json, *, header: str) -> bool:
    """Say whether a header carries a value."""
    if type(value) is str and len(value) <= _SHORT:
        if raw == _write_short(value):
            return True  # nearly always: what clients send is what we would
    elif isinstance(value, str | int) and raw == _encode_if_possible(value):
        return True
    text = decode_value(raw, header=header)
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if not isinstance(value, int | float) or re.match(_NUMBER, text) is None:
        return False
    # Exact, where floats are not: 2**53 and 2**53 + 1 are two values. A large float stands for its exact value as
    # well as for the digits it is written with.
    number = Decimal(text)
    return number == Decimal(value) or (isinstance(value, float) and number == Decimal(repr(value)))


def _encode_if_possible(value: str | int) -> bytes | None:
    try:
        return encode_value(value).encode()
    except ValueError:  # no header says this
        return None


@functools.lru_cache(maxsize=256)
def _write_short(text: str) -> bytes | None:
    """Write a short text, as most methods and names are; those of one server are few."""
    return _encode_if_possible(text)


def _missing(header: str, where: str) -> HeaderMismatch:
    return HeaderMismatch(f"{header}: the header is missing, {where}; send it with the request")


def _different(header: str, raw: bytes, expected: str) -> HeaderMismatch:
    said = _show(raw.decode("latin-1"))
    return HeaderMismatch(f"{header}: the header says {said}, the body says {_show(expected)}; make them agree")


def _show(text: str) -> str:
    return f"{text[:80]!r:.80}"  # cut before it is written out: it may be as long as a body


def _show_value(value: Json, parameter: HeaderParameter) -> str:
    if parameter.is_secret:
        return "holds a value"
    if isinstance(value, dict | list):
        return "is an object" if isinstance(value, dict) else "is an array"
    return f"is {_show(value) if isinstance(value, str) else f'{value!r:.80}'}"


def _place(parameter: HeaderParameter) -> str:
    return _show(".".join(parameter.path))
