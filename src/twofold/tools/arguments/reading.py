"""The arguments' object of a call, from its bytes: strict JSON, and what exactly is wrong with what is not."""

import json
from typing import Any

import msgspec
from pydantic_core import from_json

from twofold.contract.plain import describe, find_foreign, format_path
from twofold.errors import InvalidParams, ParseError, TwofoldError
from twofold.protocol.structs import Json
from twofold.tools.arguments.problems import ArgumentProblem, refuse

MAX_DEPTH = 200
"""Arrays and objects inside one another in an argument; the JSON reader of pydantic goes no deeper."""

_MAX_DIGITS = 4300
"""Digits of an integer that Python reads; beyond them reading takes quadratic time."""

_TOO_LONG = 1 << 20_000
"""Stands for an integer of too many digits while its place is looked for."""

_SHAPES = bytes(ord("0") if byte in b"0123456789" else ord("e") if byte in b"eE" else ord(" ") for byte in range(256))
_HUGE_SHAPES = (b"e000", b"0" * 309)
"""What any number beyond 1.8e308 looks like when every digit is 0: an exponent of three digits, or 309 digits.

Translating a text takes 2 ns a byte, a regular expression for the same 40.
"""

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_arguments(raw: bytes, *, tool_name: str) -> dict[str, Json]:
    """Read the arguments of a call.

    Args:
        raw: JSON text. The tokens NaN and Infinity are none; integers of any size are exact.
        tool_name: For messages.

    Returns:
        The object; of a name given twice the last value counts.

    Raises:
        ParseError: The bytes are not UTF-8 or not JSON.
        InvalidParams: They are JSON, but no object.
        ArgumentsRefused: A value that no tool can take: half of a surrogate pair, too many levels or digits.
    """
    try:
        arguments = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise _explain(raw, str(error), tool_name=tool_name) from None
    if not isinstance(arguments, dict):
        raise InvalidParams(f"tool {tool_name!r}, arguments: expected an object, got {describe(arguments)}")
    return arguments


def may_hold_infinity(raw: bytes) -> bool:
    """Say whether a JSON text may hold a number too large for 64 bits of floating point; usually it does not."""
    shapes = raw.translate(_SHAPES, b"+")
    return any(huge in shapes for huge in _HUGE_SHAPES)


def find_infinities(arguments: dict[str, Json]) -> list[ArgumentProblem]:
    """Name the numbers too large for 64 bits of floating point, which would arrive as infinite."""
    return [
        ArgumentProblem(
            str(path[0]), f"argument '{format_path(path)}': expected a number up to 1.8e308, got a larger one"
        )
        for path, _ in find_foreign(arguments, max_depth=MAX_DEPTH + 1)
    ]


def read_string(text: str) -> bytes | None:
    """Give the JSON text inside a string, or None if what it holds is no JSON."""
    raw = text.encode()
    try:
        from_json(raw, allow_inf_nan=False)
    except ValueError:
        return None
    return raw


def replace_arguments(raw: bytes, replacements: dict[str, bytes]) -> bytes:
    """Put other JSON texts in the place of some arguments; all others stay as they are, to the byte."""
    parts: dict[str, Any] = _split(raw) | replacements
    encode = msgspec.json.encode
    return b"{" + b",".join(encode(name) + b":" + bytes(part) for name, part in parts.items()) + b"}"


def _explain(raw: bytes, reason: str, *, tool_name: str) -> TwofoldError:
    """Find out what exactly is wrong with bytes that are no JSON for pydantic."""
    place = f"tool {tool_name!r}, arguments"
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return ParseError(f"{place}: not UTF-8 (byte {error.start})")
    if reason.startswith("recursion limit"):
        problem = f"arguments: nested deeper than {MAX_DEPTH} levels; send fewer"
        return refuse(tool_name, [ArgumentProblem(None, problem)])
    try:
        value = json.loads(text, parse_int=_read_integer, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return ParseError(f"{place}: not JSON ({reason})")
    problems = [
        ArgumentProblem(None, f"argument '{format_path(path)}': {fault}")
        for path, fault in find_foreign(value, max_depth=MAX_DEPTH + 1)
    ]
    return refuse(tool_name, problems) if problems else ParseError(f"{place}: not JSON ({reason})")


def _read_integer(digits: str) -> int:
    return int(digits) if len(digits) < _MAX_DIGITS else _TOO_LONG


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
