"""JSON of a server's, read strictly: whatever is wrong with the text is one kind of error."""

from typing import TypeVar

import msgspec

from twofold.contract.plain import cut

Decoded = TypeVar("Decoded")


class UnreadableAnswer(ValueError):
    """An answer that is no JSON, or not of the shape that anything can be read from; the server's fault."""


def decode(decoder: msgspec.json.Decoder[Decoded], raw: bytes | msgspec.Raw, *, what: str) -> Decoded:
    """Read JSON text.

    Args:
        decoder: Of the type that is wanted.
        raw: The text.
        what: What it is, to open the message with.

    Raises:
        UnreadableAnswer: It is no JSON (NaN is none), wrong UTF-8, nested too deeply, holds a number that Python's
            numbers cannot, or is of another type.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise UnreadableAnswer(f"{what} is not what it has to be: {cut(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableAnswer(f"{what} is no JSON: {cut(str(error))}") from None
    except RecursionError:
        raise UnreadableAnswer(f"{what} is nested too deeply to be read") from None


_ANYTHING: msgspec.json.Decoder[object] = msgspec.json.Decoder()


def decode_any(raw: bytes | msgspec.Raw, *, what: str) -> object:
    """Read JSON text of any type: integers are exact, of a name given twice the last value counts.

    Raises:
        UnreadableAnswer: As `decode`.
    """
    return decode(_ANYTHING, raw, what=what)
