"""The one kind of Struct behind the wire vocabulary: both spellings of a field, checked when made.

Attributes are snake_case, the wire says camelCase. Thousands of servers write the wire's own spelling
(`ToolAnnotations(readOnlyHint=True)`), so construction takes either and either can be read. Codecs
decode and encode these structs with msgspec, which knows only the wire names.
"""

import difflib
import math
from typing import TYPE_CHECKING, Any

import msgspec

Json = Any
"""Any JSON value: dict with str keys, list, str, int, float (finite), bool or None."""


class WireMeta(msgspec.StructMeta):
    """Lets a Struct be made with either spelling, and checks what it is made of.

    msgspec refuses an `__init__` on a Struct; the call of its metaclass is the one place to stand in.
    """

    if not TYPE_CHECKING:  # a checker reads the fields themselves; at run time both spellings are taken

        def __call__(cls, *args: Any, **given: Any) -> Any:
            """Make the struct, naming every misspelt or wrongly typed field.

            Raises:
                TypeError: A field that does not exist, is missing, or has the wrong type.
            """
            values = dict(zip(cls.__struct_fields__, args, strict=False))
            if len(args) > len(cls.__struct_fields__):
                raise TypeError(f"{cls.__name__} takes {len(cls.__struct_fields__)} values, got {len(args)}")
            python_names = cls.__python_names__
            for key, value in given.items():
                field = python_names.get(key)
                if field is None:
                    if key == cls.__struct_config__.tag_field:
                        if value == cls.__struct_config__.tag:
                            continue
                        raise TypeError(f"{cls.__name__}: {key} is {cls.__struct_config__.tag!r}, got {value!r}")
                    raise TypeError(_unknown_field(cls, key))
                if field in values:
                    raise TypeError(f"{cls.__name__}: {key!r} is given twice")
                values[field] = value
            wire = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
            try:
                return msgspec.convert({wire[field]: value for field, value in values.items()}, cls)
            except msgspec.ValidationError as error:
                raise TypeError(f"{cls.__name__}: {error}") from None

    @property
    def __python_names__(cls) -> dict[str, str]:
        """Every spelling of every field: both the wire's and Python's, to Python's."""
        names = cls.__dict__.get("_python_names")
        if names is None:
            names = dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
            names.update({field: field for field in cls.__struct_fields__})
            names.update(cls.__dict__.get("__also_named__", {}))
            type.__setattr__(cls, "_python_names", names)
        return names


class Wire(msgspec.Struct, metaclass=WireMeta, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value of the protocol: frozen, snake_case in Python, camelCase on the wire."""

    def __getattr__(self, name: str) -> Any:
        """Read a field by its wire name (`.inputSchema`), and a block's `type`."""
        if name == self.__struct_config__.tag_field:
            return self.__struct_config__.tag
        field = type(self).__python_names__.get(name)
        if field is None or field == name:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self, field)


def _unknown_field(cls: WireMeta, key: str) -> str:
    near = difflib.get_close_matches(key, list(cls.__python_names__), 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(cls.__struct_fields__)}"
    return f"{cls.__name__} has no field {key!r}{hint}"


def encode_json(value: Json, *, what: str) -> bytes:
    """Write a value that an author handed over, refusing what JSON cannot say instead of changing it.

    Args:
        value: A JSON value, or what has a form in JSON: what msgspec writes (dataclasses, dates, times, durations,
            UUIDs, decimals, enums, sets; bytes as base64), and models that dump themselves, as pydantic's do.
        what: Where the value stands, for the message (`tool 'x', meta`).

    Raises:
        ValueError: The value holds NaN, an infinity, half a surrogate pair, or a type JSON has no form for.
    """
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(_explain(value, error, what=what)) from error
    if b"null" in encoded:  # msgspec writes a number that is none as null
        place = _find_non_finite(msgspec.to_builtins(value, enc_hook=_read_through), "")
        if place is not None:
            raise ValueError(f"{what}{place}: NaN and infinities are no JSON numbers; send null or text on purpose")
    return encoded


class _NoForm(TypeError):
    """An object of a type that JSON has no form for."""


def _dump_model(value: Any) -> Json:
    """Let an object write itself; pydantic is loaded where there are models of it, and need not be here."""
    if not callable(getattr(type(value), "model_dump", None)):
        raise _NoForm(f"objects of type {type(value).__name__} have no form in it")
    try:
        return value.model_dump(mode="json", by_alias=True)
    except ValueError as error:  # its text may hold values; it stands in the cause
        raise TypeError(f"{type(value).__name__}.model_dump failed with a {type(error).__name__}") from error


def _read_through(value: Any) -> Json:
    return None if type(value) is msgspec.Raw else _dump_model(value)  # the former was looked at when it was made


_encode = msgspec.json.Encoder(enc_hook=_dump_model).encode


def _explain(value: Json, error: Exception, *, what: str) -> str:
    """Say what cannot be written, where it stands, and what to write instead."""
    place, reason = "", str(error)
    if isinstance(error, UnicodeEncodeError):
        half = error.object[error.start]
        reason = f"{half!r} holds half of a surrogate pair, at character {error.start + 1} of a text"
    elif isinstance(error, RecursionError):
        reason = "it is nested too deeply, or holds itself"
    elif not isinstance(error, msgspec.MsgspecError):
        culprit, place = _find_unwritable(value)
        if isinstance(error, _NoForm) and not _list_parts(culprit):  # else it is a key of its own
            reason += "; give JSON values, a dataclass or a pydantic model"
    return f"{what}{place} cannot be written as JSON: {reason}"


def _find_unwritable(value: Any) -> tuple[Any, str]:
    """Follow what cannot be written down to where it stands."""
    place, is_found = "", True
    while is_found:
        is_found = False
        for step, part in _list_parts(value):
            if not _is_writable(part):
                value, place, is_found = part, f"{place}[{step!r}]", True
                break
    return value, place


def _list_parts(value: Any) -> list[tuple[Any, Any]]:
    """List what a value holds, by key, index or name."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return list(enumerate(value))
    kind = type(value)  # an instance may claim to have any attribute
    names: Any = getattr(kind, "__struct_fields__", None) or getattr(kind, "__dataclass_fields__", ())
    return [(name, getattr(value, name, None)) for name in names]


def _is_writable(value: Any) -> bool:
    try:
        _encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return True


def _find_non_finite(value: Json, path: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    )
    for key, item in items:
        place = _find_non_finite(item, f"{path}[{key!r}]")
        if place is not None:
            return place
    return None
