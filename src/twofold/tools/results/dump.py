"""A value → JSON bytes, or a refusal that names the place; never a silent `null`, never a memory address.

pydantic writes the bytes, but for values that are JSON as they are. Where it gives up, or wrote what is no
JSON, the value is looked at once more, slowly, to say where the fault lies and whose it is.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec
from pydantic_core import PydanticSerializationError, SchemaSerializer, core_schema

from twofold.contract.plain import Path, cut, find_foreign, format_path
from twofold.errors import ResultRefused
from twofold.tools.results.binary import replace_bytes
from twofold.tools.results.rewrite import STRICT_JSON, Rewritten, rewrite
from twofold.tools.results.verbatim import check_names, explain_no_json, step_into, write_verbatim

_MAX_DEPTH = 10_000
"""Levels looked through for a fault; pydantic itself writes some 250."""
_MAX_STEPS = 64
"""Levels followed towards a fault that only trying can find; a longer path is of no use to a reader."""
_TOO_DEEP = "nested deeper than JSON can be written (some 250 levels)"
_HALF_PAIR = "text with half of a surrogate pair"
_REPLACED = "\N{REPLACEMENT CHARACTER}".encode()
"""What pydantic writes for half a surrogate pair in a key, without a word."""
_ADDRESS = r" at 0x[0-9A-Fa-f]+"
_PLAIN_WORDS = {
    "Circular reference detected": "it holds itself, so it has no end; return a part of it, or name parts by id",
    "Maximum serialization depth exceeded": _TOO_DEEP,
    "UnicodeEncodeError:": _HALF_PAIR,
    "'utf-8' codec can't encode": _HALF_PAIR,
}
_OPAQUE = "\udcff"
"""Begins what stands for an object without a JSON form in the search for faults: half a pair, so it is found."""


class Dumper(msgspec.Struct, frozen=True):
    """Writes values of one type.

    Attributes:
        serializer: Its compiled form.
        is_open: Some values inside may be written by their own classes, which turn NaN into `null` on their own.
        is_verbatim: What is JSON as it is may be written as it is.
        has_keys: Dicts may be inside, with keys that cannot be written.
        repeats_names: Two keys of a dict may be written alike.
        writes_bytes: Bytes may be inside.
        by_alias: True forces aliases on classes that write themselves; None leaves each field as it is.
        tells_objects: Text for a reader is all that is wanted: an object without a JSON form is written as
            its own class's `__str__`.
        is_simple: pydantic's bytes are all there is to it.
    """

    serializer: SchemaSerializer
    is_open: bool
    is_verbatim: bool = False
    has_keys: bool = True
    repeats_names: bool = True
    writes_bytes: bool = True
    by_alias: bool | None = None
    tells_objects: bool = False
    is_simple: bool = False

    @classmethod
    def of(cls, rewritten: Rewritten) -> "Dumper":
        """Compile a rewritten core schema."""
        return cls(
            # without _use_prebuilt=False the classes inside would use the serialisers they were born with
            SchemaSerializer(rewritten.schema, STRICT_JSON, _use_prebuilt=False),
            is_open=rewritten.is_open,
            is_verbatim=rewritten.is_verbatim,
            has_keys=rewritten.has_keys,
            repeats_names=rewritten.repeats_names,
            writes_bytes=rewritten.writes_bytes,
            is_simple=not (rewritten.is_verbatim or rewritten.is_open or rewritten.has_keys),
        )

    def dump(self, value: Any, *, at: Path = ()) -> bytes:
        """Write a value; a NaN token may be in the bytes, for `refuse_non_finite` or a decoder to find.

        Args:
            value: What to write.
            at: Where the value stands in the result, for the message.

        Raises:
            ResultRefused: JSON cannot hold the value.
        """
        if self.is_simple:
            try:
                return self.serializer.to_json(value, warnings=False)
            except PydanticSerializationError as error:
                self._explain(value, error, at)
        written = value
        if self.is_verbatim:
            verbatim = write_verbatim(value)
            if verbatim is not None:
                return verbatim
            written = replace_bytes(value, stand=stand_in, at=at)
        fallback = _tell if self.tells_objects else None
        try:
            raw = self.serializer.to_json(written, warnings=False, by_alias=self.by_alias, fallback=fallback)
        except PydanticSerializationError as error:
            self._explain(value, error, at)
        if self.is_open and b"null" in raw:
            _refuse_hidden_non_finite(value, at)
        if self.has_keys:
            if not raw.isascii() and _REPLACED in raw:
                _refuse_broken_keys(value, at)
            if self.repeats_names:
                check_names(raw, at=at)
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
        _refuse_broken_keys(value, at)
        raise _refusal(at if fault == _TOO_DEEP else (*at, *_locate(value)), fault) from None


_ANYTHING = Dumper(
    SchemaSerializer(core_schema.any_schema(), STRICT_JSON), is_open=True, is_verbatim=True, by_alias=True
)
_ANY_TEXT = Dumper(_ANYTHING.serializer, is_open=True, is_verbatim=True, by_alias=True, tells_objects=True)


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
    cls: Any = type(value)
    dumper = dumper_of(cls) or (_ANY_TEXT if is_text else _ANYTHING)
    raw = dumper.dump(value, at=at)
    refuse_non_finite(raw, at=at)
    return raw


@functools.lru_cache(maxsize=1024)
def dumper_of(cls: type) -> Dumper | None:
    """Give the dumper of a class that writes itself (a model, a pydantic dataclass), or None."""
    if not hasattr(cls, "__pydantic_serializer__") or cls is _StandIn:
        return None
    return Dumper.of(rewrite(_read_core_schema(cls), stand=stand_in))


def _read_core_schema(cls: type) -> core_schema.CoreSchema:
    from pydantic import TypeAdapter  # noqa: PLC0415 - loaded for classes of its own alone, see `json_types`

    adapter: TypeAdapter[Any] = TypeAdapter(cls)
    adapter.rebuild()
    return adapter.core_schema


class _StandIn:
    """Written in the place of an object that writes itself, by the dumper of its class.

    pydantic asks every object under `Any` for its serialiser, under this name.
    """

    __slots__ = ("__pydantic_serializer__", "value")

    def __init__(self, value: Any, serializer: SchemaSerializer) -> None:
        self.value = value
        self.__pydantic_serializer__ = serializer


def stand_in(value: Any) -> Any:
    """Give what is to be written for an object under `Any`: one that holds bytes writes them as text by itself."""
    cls: Any = type(value)
    dumper = dumper_of(cls)
    if dumper is None or not dumper.writes_bytes:
        return value
    return _StandIn(value, _serializer_of_stand_in(cls))


@functools.lru_cache(maxsize=1024)
def _serializer_of_stand_in(cls: type) -> SchemaSerializer:
    serialization = core_schema.plain_serializer_function_ser_schema(
        lambda standing: standing.value, return_schema=rewrite(_read_core_schema(cls), stand=stand_in).schema
    )
    return SchemaSerializer(core_schema.any_schema(serialization=serialization), STRICT_JSON, _use_prebuilt=False)


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


class _Mark:
    """Called by pydantic with each object that has no JSON form; what it gives is found again in the tree."""

    def __init__(self, *, tells_objects: bool) -> None:
        self._tells_objects = tells_objects
        self._names: list[str] = []

    def __call__(self, value: Any) -> str:
        text = _own_text(value) if self._tells_objects else None
        if text is not None:
            return text
        self._names.append(_describe_opaque(value))
        return f"{_OPAQUE}{len(self._names) - 1}"

    def name(self, tree: Any, path: Path) -> str | None:
        """Say which object a place in the tree stands for, or None where it is a value of its own."""
        found = step_into(tree, path)
        is_mark = isinstance(found, str) and found.startswith(_OPAQUE) and found[1:].isdecimal()
        return self._names[int(found[1:])] if is_mark else None


def _own_text(value: Any) -> str | None:
    """Give the text that an object's class makes of it; None where it is Python's own, a memory address.

    Raises:
        ResultRefused: There is an address in the text; of something inside it, as a rule.
    """
    defines_text: Any = type(value).__str__
    if defines_text is object.__str__:
        return None
    text = str(value)
    if f"0x{id(value):x}" in text:
        return None
    if re.search(_ADDRESS, text):
        name = type(value).__name__
        raise ResultRefused(
            f"the text of an object of type {name} holds a memory address, which is never sent; "
            f"let {name}.__str__ write attributes, or give what it writes a __repr__ of its own"
        )
    return text


def _tell(value: Any) -> str:
    text = _own_text(value)
    if text is None:
        raise PydanticSerializationError(_describe_opaque(value))
    return text


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


def _refuse_broken_keys(value: Any, at: Path) -> None:
    """Look for half a surrogate pair in a key: pydantic writes question marks there, the same for every half."""
    stack: list[tuple[Path, Any]] = [(at, value)]
    seen: set[int] = set()
    while stack:
        path, item = stack.pop()
        if item is None or isinstance(item, str | int | float) or id(item) in seen:
            continue
        seen.add(id(item))
        for key in item if isinstance(item, dict) else ():
            text = getattr(key, "value", key)  # an enum's member
            if isinstance(text, str) and not text.isascii() and _is_broken(text):
                raise _refusal(path, f"the key {cut(repr(text))} holds half of a surrogate pair")
        stack.extend(((*path, step), child) for step, child in _children(item))


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


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
