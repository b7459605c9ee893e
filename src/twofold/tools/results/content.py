"""A value → content blocks, the model's face.

The text is made from the JSON bytes that programs get, so the two faces cannot differ. A string stays as
it is, an object or array is indented JSON, and a list or tuple is one block an element.
"""

import collections.abc
import types
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from twofold.contract.plain import Path, format_path, name_type
from twofold.errors import ResultRefused
from twofold.protocol.content import CONTENT_BLOCKS, ContentBlock, TextContent
from twofold.protocol.messages import EncodedBlocks
from twofold.protocol.structs import encode_json
from twofold.tools.introspection.aliases import is_alias, value_of_alias
from twofold.tools.results.dump import dump_any
from twofold.tools.results.media import Audio, Image

CONTENT_TYPES: tuple[type, ...] = (*CONTENT_BLOCKS, Image, Audio)
"""What is content and never data."""

_MAX_DEPTH = 250
"""Lists inside one another that are looked through for content."""
_QUOTE, _BRACE, _BRACKET = _TOLD_APART = b'"{['
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_format = msgspec.json.format
_LARGE_BYTES = 4096
"""From here on parts are joined: `%` copies a megabyte twenty times as slowly."""


def promises_content(annotation: Any) -> bool:
    """Say whether a return annotation speaks of content: a block or helper, bare, in a list or in a union."""
    return _promises_content(annotation, ())


def _promises_content(annotation: Any, around: tuple[Any, ...]) -> bool:
    if is_alias(annotation):
        if any(annotation is alias for alias in around):  # it names itself
            return False
        return _promises_content(value_of_alias(annotation), (*around, annotation))
    origin = get_origin(annotation)
    if origin is Annotated:
        return _promises_content(get_args(annotation)[0], around)
    if origin in (Union, types.UnionType) or _is_sequence(origin):
        return any(_promises_content(argument, around) for argument in get_args(annotation))
    return isinstance(annotation, type) and origin is None and issubclass(annotation, CONTENT_TYPES)


def _is_sequence(origin: Any) -> bool:
    streams = (collections.abc.Iterable, collections.abc.AsyncIterable)
    return isinstance(origin, type) and issubclass(origin, streams) and not issubclass(origin, collections.abc.Mapping)


def write_blocks(raw: bytes, *, is_indented: bool, lists_objects: bool = False) -> EncodedBlocks:
    """Write the text blocks of a JSON value.

    Args:
        raw: The value, compact as programs get it.
        is_indented: Whether objects and arrays are indented by two, or stay compact.
        lists_objects: The value is an array of objects alone, or will not leave.

    Returns:
        JSON of the blocks; never an empty array: of an empty list it is one block, `[]`.
    """
    kind = raw[0]
    if kind not in _TOLD_APART:  # a number, a boolean, null
        return b'[{"type":"text","text":"%b"}]' % raw
    if kind == _BRACE and len(raw) < _LARGE_BYTES:
        text = raw.decode()
        return b'[{"type":"text","text":%b}]' % _encode(_format(text, indent=2) if is_indented else text)
    if kind == _BRACKET and raw != b"[]":
        if lists_objects:
            return _enclose(_write_objects(raw, is_indented=is_indented))
        texts = [_write_text(bytes(element), is_indented=is_indented) for element in _split(raw)]
        return _enclose(b'},{"type":"text","text":'.join(texts))
    return _enclose(_write_text(raw, is_indented=is_indented))


def _write_objects(raw: bytes, *, is_indented: bool) -> bytes:
    r"""Write the texts of an array of objects, all at once: one by one takes four times as long.

    The array is laid out as a whole, taken back by one level, written as one JSON string, and cut where an element
    begins: there, and nowhere else, a line begins with a brace (inside text a backslash stands before every `\n`).
    """
    if is_indented:
        text = _format(raw.decode(), indent=2)[4:-2].replace("\n  ", "\n")
    else:
        text = b",\n".join(_split(raw)).decode()
    return b'"},{"type":"text","text":"{'.join(_encode(text).split(b",\\n{"))


def _enclose(texts: bytes) -> EncodedBlocks:
    """Make blocks of their texts."""
    return b"".join((b'[{"type":"text","text":', texts, b"}]"))


def write_text(text: str) -> EncodedBlocks:
    """Write one text block.

    Raises:
        ResultRefused: The text holds half of a surrogate pair.
    """
    try:
        return _enclose(_encode(text))
    except UnicodeEncodeError:
        raise ResultRefused("the text holds half of a surrogate pair, which no encoding can write") from None


def _write_text(raw: bytes, *, is_indented: bool) -> bytes:
    """Write the text of one JSON value as a JSON string."""
    kind = raw[0]
    if kind == _QUOTE:
        return raw
    if kind in (_BRACE, _BRACKET):  # nothing is kept that is not needed any more: it may be megabytes
        return _encode(_format(raw.decode(), indent=2) if is_indented else raw.decode())
    return b'"%b"' % raw


def holds_content(value: Any) -> bool:
    """Say whether a value is content, or a list or tuple with content in it, however deep."""
    if not isinstance(value, list | tuple):
        return isinstance(value, CONTENT_TYPES)
    stack: list[Any] = [value]
    seen: set[int] = set()  # a list may hold itself
    while stack:
        items = stack.pop()
        if id(items) in seen:
            continue
        seen.add(id(items))
        for item in items:
            if isinstance(item, CONTENT_TYPES):
                return True
            if isinstance(item, list | tuple):
                stack.append(item)
    return False


def encode_content(value: Any, *, is_indented: bool) -> EncodedBlocks | tuple[ContentBlock, ...]:
    """Write a value that is content, or may be.

    Args:
        value: Blocks, helpers, text and other JSON values; in lists and tuples one block an element.
        is_indented: How other JSON values are written.

    Returns:
        The blocks.

    Raises:
        ResultRefused: Something in it has no form on the wire.
        OSError: A helper's file cannot be read.
    """
    items = list(_flatten(value, (), around=())) if isinstance(value, list | tuple) else [value]
    if not items:
        return write_text("[]")
    blocks = tuple(_make_block(item, is_indented=is_indented) for item in items)
    return check_blocks(blocks)


def check_blocks(blocks: tuple[ContentBlock, ...]) -> EncodedBlocks | tuple[ContentBlock, ...]:
    """Refuse blocks that cannot be written, now that it is known which tool made them.

    Raises:
        ResultRefused: Naming the place.
    """
    encoded = [_encode_block(block, index) for index, block in enumerate(blocks)]
    is_plain = all(type(block) is TextContent and block.annotations is None and block.meta is None for block in blocks)
    return b"[" + b",".join(encoded) + b"]" if is_plain else blocks


def _encode_block(block: Any, index: int) -> bytes:
    if not isinstance(block, CONTENT_BLOCKS):  # a list can be changed after it was checked
        raise ResultRefused(f"content[{index}]: expected a content block, got {name_type(block)}")
    try:
        return encode_json(block, what=f"content[{index}]")
    except ValueError as error:
        raise ResultRefused(str(error)) from None


def _flatten(items: list[Any] | tuple[Any, ...], at: Path, *, around: tuple[int, ...]) -> collections.abc.Iterator[Any]:
    around = (*around, id(items))
    for index, item in enumerate(items):
        if not isinstance(item, list | tuple) or not holds_content(item):
            yield item
            continue
        place = (*at, index)
        if id(item) in around:
            raise ResultRefused(f"{format_path(place)}: it holds itself, so it has no end; return a part of it")
        if len(place) > _MAX_DEPTH:
            raise ResultRefused(f"{format_path(place)}: content inside more than {_MAX_DEPTH} lists; return one list")
        yield from _flatten(item, place, around=around)


def _make_block(item: Any, *, is_indented: bool) -> ContentBlock:
    if isinstance(item, CONTENT_BLOCKS):
        return item
    if isinstance(item, Image | Audio):
        return item.to_content()
    text = _write_text(dump_any(item, is_text=True), is_indented=is_indented)
    return TextContent(msgspec.json.decode(text))
