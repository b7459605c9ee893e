"""A value → JSON bytes, or a refusal that names the place; never a silent `null`, never a memory address.

pydantic writes the bytes. Where it gives up, or wrote what is no JSON, the value is looked at once more,
slowly, to say where the fault lies and whose it is.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec
from pydantic import TypeAdapter
from pydantic_core import CoreSchema, PydanticSerializationError, SchemaSerializer, core_schema

from twofold.contract.plain import Path, cut, find_foreign, format_path
from twofold.errors import ResultRefused
from twofold.tools.results.rewrite import STRICT_JSON, encode_base64, rewrite

_MAX_DEPTH = 10_000
"""Levels looked through for a fault; pydantic itself writes some 250."""
_MAX_STEPS = 64
"""Levels followed towards a fault that only trying can find; a longer path is of no use to a reader."""
_TOO_DEEP = "nested deeper than JSON can be written (some 250 levels)"
_PLAIN_WORDS = {
    "Circular reference detected": "it holds itself, so it has no end; return a part of it, or name parts by id",
    "Maximum serialization depth exceeded": _TOO_DEEP,
}
_OPAQUE = "\udcff"
"""Begins what stands for an object without a JSON form in the search for faults: half a pair, so it is found."""


class Dumper(msgspec.Struct, frozen=True):
    """Writes values of one type.

    Attributes:
        serializer: Its compiled form.
        is_open: Some values inside may be written by their own classes, which turn NaN into `null` on their own.
        by_alias: True forces aliases on classes that write themselves; None leaves each field as it is.
        tells_objects: Text for a reader is all that is wanted: an object without a JSON form is written as
            its own class's `__str__`.
    """

    serializer: SchemaSerializer
    is_open: bool
    by_alias: bool | None = None
    tells_objects: bool = False

    @classmethod
    def of(cls, schema: CoreSchema, *, is_open: bool) -> "Dumper":
        """Compile a rewritten core schema."""
        # without _use_prebuilt=False the classes inside would use the serialisers they were born with
        return cls(SchemaSerializer(schema, STRICT_JSON, _use_prebuilt=False), is_open)

    def dump(self, value: Any, *, at: Path = ()) -> bytes:
        """Write a value; a NaN token may be in the bytes, for `refuse_non_finite` or a decoder to find.

        Args:
            value: What to write.
            at: Where the value stands in the result, for the message.

        Raises:
            ResultRefused: JSON cannot hold the value.
        """
        fallback = _tell if self.tells_objects else None
        try:
            raw = self.serializer.to_json(value, warnings=False, by_alias=self.by_alias, fallback=fallback)
        except PydanticSerializationError as error:
            self._explain(value, error, at)
        if self.is_open and b"null" in raw:
            _refuse_hidden_non_finite(value, at)
        return raw

    def _explain(self, value: Any, error: PydanticSerializationError, at: Path) -> NoReturn:
        """Raise a refusal that names the place, or the author's own exception where that was the cause."""
        fault = _clean(error)
        mark = _Mark(tells_objects=self.tells_objects)
        try:
            tree = self.serializer.to_python(value, mode="json", warnings=False, by_alias=self.by_alias, fallback=mark)
        except (AttributeError, TypeError, ValueError) as second:
            if second.__cause__ is not None:
                raise second.__cause__ from None
            if _comes_from_author(second):
                raise
            fault = _clean(second)
        else:
            for path, clause in find_foreign(tree, max_depth=_MAX_DEPTH):
                raise _refusal((*at, *path), mark.name(tree, path) or clause) from None
        raise _refusal(at if fault == _TOO_DEEP else (*at, *_locate(value)), fault) from None


_ANYTHING = Dumper(SchemaSerializer(core_schema.any_schema(), STRICT_JSON), is_open=True, by_alias=True)
_ANY_TEXT = Dumper(_ANYTHING.serializer, is_open=True, by_alias=True, tells_objects=True)


def dump_any(value: Any, *, at: Path = (), is_text: bool = False) -> bytes:
    """Write a value of which only the value is known.

    Args:
        value: Plain JSON values, and whatever pydantic can write by itself.
        at: Where the value stands in the result, for the message.
        is_text: The bytes are for reading only, so an object may be told by its own class's `__str__`.

    Returns:
        JSON without NaN or infinities.

    Raises:
        ResultRefused: JSON cannot hold the value.
    """
    if isinstance(value, bytes | bytearray):
        return b'"%b"' % encode_base64(value).encode()
    cls: Any = type(value)
    dumper = dumper_of(cls) or (_ANY_TEXT if is_text else _ANYTHING)
    raw = dumper.dump(value, at=at)
    refuse_non_finite(raw, at=at)
    return raw


@functools.lru_cache(maxsize=1024)
def dumper_of(cls: type) -> Dumper | None:
    """Give the dumper of a class that writes itself (a model, a pydantic dataclass), or None."""
    if not hasattr(cls, "__pydantic_serializer__"):
        return None
    adapter: TypeAdapter[Any] = TypeAdapter(cls)
    adapter.rebuild()
    rewritten = rewrite(adapter.core_schema)
    return Dumper.of(rewritten.schema, is_open=rewritten.is_open)


def refuse_non_finite(raw: bytes, *, at: Path = ()) -> None:
    """Refuse bytes in which a number is NaN or infinite.

    Raises:
        ResultRefused: Naming the first place.
    """
    if b"NaN" not in raw and b"Infinity" not in raw:  # a text may hold these letters too: only then look closely
        return
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except msgspec.DecodeError:
        explain_no_json(raw, at=at)


def explain_no_json(raw: bytes, *, at: Path = ()) -> NoReturn:
    """Say what makes bytes of a dump no JSON.

    Raises:
        ResultRefused: Always.
    """
    try:
        tree = json.loads(raw)
    except ValueError:
        raise _refusal(at, "an integer of more digits than a reader takes; send it as text") from None
    for path, clause in find_foreign(tree, max_depth=_MAX_DEPTH):
        raise _refusal((*at, *path), f"{clause}; send null or text instead, and annotate it so")
    raise _refusal(at, "the value cannot be written as JSON")


class _Mark:
    """Called by pydantic with each object that has no JSON form; what it gives is found again in the tree."""

    def __init__(self, *, tells_objects: bool) -> None:
        self._tells_objects = tells_objects
        self._names: list[str] = []

    def __call__(self, value: Any) -> str:
        if self._tells_objects and has_own_text(value):
            return str(value)
        self._names.append(_describe_opaque(value))
        return f"{_OPAQUE}{len(self._names) - 1}"

    def name(self, tree: Any, path: Path) -> str | None:
        """Say which object a place in the tree stands for, or None where it is a value of its own."""
        for step in path:
            tree = tree[step]
        is_mark = isinstance(tree, str) and tree.startswith(_OPAQUE) and tree[1:].isdecimal()
        return self._names[int(tree[1:])] if is_mark else None


def has_own_text(value: Any) -> bool:
    """Say whether a class defines a `__str__` of its own whose text is no memory address."""
    defines_text: Any = type(value).__str__
    return defines_text is not object.__str__ and f"0x{id(value):x}" not in str(value)


def _tell(value: Any) -> str:
    if not has_own_text(value):
        raise PydanticSerializationError(_describe_opaque(value))
    return str(value)


def _describe_opaque(value: Any) -> str:
    name = type(value).__name__
    if type(value).__module__.startswith("twofold."):
        return f"{name} is content, not data: return it by itself or in a list, or annotate the function with it"
    return (
        f"an object of type {name} has no JSON form; return plain values, annotate its attributes on the class "
        "body (`name: str`), or give the class a __str__ and pass structured_output=False"
    )


def _comes_from_author(error: Exception) -> bool:
    """Say whether code of the author's was running: pydantic's core leaves no frame below ours, its classes do."""
    frame = error.__traceback__.tb_next if error.__traceback__ is not None else None
    while frame is not None:
        if not frame.tb_frame.f_globals.get("__name__", "").startswith("pydantic."):
            return True
        frame = frame.tb_next
    return False


def _clean(error: Exception) -> str:
    text = str(error).removeprefix("Error serializing to JSON: ").removeprefix("ValueError: ")
    return next((ours for theirs, ours in _PLAIN_WORDS.items() if text.startswith(theirs)), cut(text))


def _refusal(path: Path, fault: str) -> ResultRefused:
    return ResultRefused(f"{format_path(path) or 'the result'}: {fault}")


def _locate(value: Any) -> Path:
    """Follow a fault that only trying can find (a cycle, bytes that are no text) down to where it stands."""
    path: Path = ()
    seen: set[int] = set()
    while id(value) not in seen and len(path) < _MAX_STEPS:
        seen.add(id(value))
        found = next(((step, child) for step, child in _children(value) if _fails(child)), None)
        if found is None:
            break
        path, value = (*path, found[0]), found[1]
    return path


def _fails(value: Any) -> bool:
    try:
        _ANYTHING.serializer.to_json(value, warnings=False)
    except PydanticSerializationError:
        return True
    return False


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from enumerate(value)
    elif hasattr(type(value), "__pydantic_serializer__") or hasattr(type(value), "__dataclass_fields__"):
        slots = {name: getattr(value, name, None) for name in getattr(type(value), "__dataclass_fields__", ())}
        extra = getattr(value, "__pydantic_extra__", None) or {}
        yield from {**slots, **getattr(value, "__dict__", {}), **extra}.items()


def _refuse_hidden_non_finite(value: Any, at: Path) -> None:
    """Look for NaN in what writes itself: pydantic writes it there as `null`, whatever it was told outside."""
    stack: list[tuple[Path, Any]] = [(at, value)]
    seen: set[int] = set()  # a part that is not written (a parent, say) may lead back
    while stack:
        path, item = stack.pop()
        if item is None or isinstance(item, str | int | float) or id(item) in seen:
            continue
        seen.add(id(item))
        cls: Any = type(item)
        dumper = dumper_of(cls)
        if dumper is not None:
            raw = dumper.serializer.to_json(item, warnings=False)
            refuse_non_finite(raw, at=path)
        stack.extend(((*path, step), child) for step, child in _children(item))
