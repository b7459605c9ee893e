"""Types that pydantic refuses, rebuilt as types it takes.

It refuses three kinds that a signature may hold: the standard library's `TypedDict` on Python below 3.12,
plain classes with annotated attributes, and iterators. `rebuild` turns each into its equal, wherever it
stands: same name, same schema, same values.
"""

import collections.abc
import contextlib
import dataclasses
import inspect
import sys
import types
import typing
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, Union, get_args, get_origin

import msgspec
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, PydanticUserError, TypeAdapter, create_model
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import CoreSchema

from twofold.errors import InvalidSignature
from twofold.protocol.structs import Wire
from twofold.tools.introspection.aliases import ALIASES, value_of_alias
from twofold.tools.introspection.signatures import resolve_class

_ASYNC_STREAMS = (
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)
_SYNC_STREAMS = (collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator)
_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
_QUALIFIERS = (
    *_REQUIRED,
    *_NOT_REQUIRED,
    typing_extensions.ReadOnly,
    getattr(typing, "ReadOnly", typing_extensions.ReadOnly),  # from Python 3.13 on
)
_DATA_BASES = (str, bytes, int, float, complex, list, tuple, dict, set, frozenset, BaseException, type)
"""Bases whose subclasses are values of their own kind, not records of attributes."""


def rebuild(annotation: Any, *, for_parameter: bool = False) -> Any:
    """Make of an annotation one that pydantic takes, with the same schema and the same values.

    A standard-library `TypedDict` becomes the one of `typing_extensions`. A plain class with annotated
    attributes becomes a model that reads attributes, and so does a dataclass with such a type among its
    fields. A stream (`Iterator[T]`, `AsyncGenerator[T, …]`) becomes `list[T]`.

    Args:
        annotation: An evaluated annotation; only inside classes may strings be left.
        for_parameter: The function gets instances of its own classes: a dataclass is rebuilt so that it
            still makes the author's; plain classes and streams stay as they are, for pydantic to refuse.

    Returns:
        The very same object when nothing in it needs a change.

    Raises:
        InvalidSignature: A class that must be rebuilt names a type that is not defined.
    """
    rebuilding = _Rebuilding(for_parameter=for_parameter)
    element = None if for_parameter else element_of_stream(annotation)
    if element is not None:
        return list[rebuilding.visit(element)]  # type: ignore[misc]  # made at run time
    return rebuilding.visit(annotation)


def element_of_stream(annotation: Any) -> Any | None:
    """Give the `T` of a stream annotation such as `Iterator[T]` or `AsyncGenerator[T, None]`.

    Returns:
        The element's annotation (`Any` for a bare `Iterator`), or None when it is no stream.
    """
    bare = _strip_annotated(annotation)
    if not _is_one_of(get_origin(bare) or bare, (*_ASYNC_STREAMS, *_SYNC_STREAMS)):
        return None
    return next(iter(get_args(bare)), Any)


def is_async_stream(annotation: Any) -> bool:
    """Say whether the annotation is an `AsyncIterator`, `AsyncIterable` or `AsyncGenerator` of anything."""
    bare = _strip_annotated(annotation)
    return _is_one_of(get_origin(bare) or bare, _ASYNC_STREAMS)


def is_plain_class(annotation: Any) -> bool:
    """Say whether this is a class of the author's with annotated attributes and no schema of its own."""
    return (
        _is_class(annotation)
        and not typing_extensions.is_typeddict(annotation)
        and not dataclasses.is_dataclass(annotation)
        and not issubclass(annotation, (*_DATA_BASES, BaseModel, Enum, Wire))
        and not hasattr(annotation, "__get_pydantic_core_schema__")
        and not hasattr(annotation, "__get_validators__")
        and not getattr(annotation, "_is_protocol", False)
        and any(_has_annotated_attributes(cls) for cls in annotation.__mro__)
    )


def _has_annotated_attributes(cls: type) -> bool:
    """Say whether a class's own body annotates public attributes; Python's own classes do not count."""
    # pydantic knows those of the standard library that it can take: datetime, UUID, Path, Decimal
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    return any(not name.startswith("_") for name in inspect.get_annotations(cls))


def _is_class(annotation: Any) -> bool:
    """Say whether this is a class itself: `list[int]` passes for one with `isinstance`."""
    return isinstance(annotation, type) and get_origin(annotation) is None


def _is_one_of(annotation: Any, kinds: tuple[Any, ...]) -> bool:
    """Compare by identity: an annotation may be anything, even what cannot be hashed."""
    return any(annotation is kind for kind in kinds)


def _strip_annotated(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _has_qualifier(hint: Any, qualifiers: tuple[Any, ...]) -> bool:
    """Say whether a TypedDict key's annotation carries one of these, however many others are around it."""
    while get_origin(hint) is Annotated or _is_one_of(get_origin(hint), _QUALIFIERS):
        if _is_one_of(get_origin(hint), qualifiers):
            return True
        hint = get_args(hint)[0]
    return False


def _is_refused_typed_dict(cls: Any) -> bool:
    """Say whether pydantic refuses this TypedDict: the standard library's, below Python 3.12."""
    return sys.version_info < (3, 12) and typing_extensions.is_typeddict(cls) and type(cls).__module__ == "typing"


class _Later(msgspec.Struct, frozen=True, eq=False):  # hashed by identity, as a member of unions
    """Stands for a class while it is being rebuilt, so that it can name itself; read once it is done."""

    rebuilt: dict[Any, Any]
    original: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Give the schema of what the class became."""
        return handler.generate_schema(self.rebuilt[self.original])


class _Rebuilding:
    """One walk through an annotation. Classes are rebuilt once, however often they occur."""

    def __init__(self, *, for_parameter: bool) -> None:
        self._for_parameter = for_parameter
        self._rebuilt: dict[Any, Any] = {}
        self._begun: set[Any] = set()

    def visit(self, annotation: Any) -> Any:
        """Rebuild an annotation, or give back the same object."""
        if not self._needs_change(annotation, set()):
            return annotation
        if _is_class(annotation):
            return self._visit_class(annotation)
        if isinstance(annotation, NewType):
            return self.visit(annotation.__supertype__)
        if isinstance(annotation, ALIASES):
            return self.visit(value_of_alias(annotation))
        return self._visit_alias(get_origin(annotation), get_args(annotation))

    def _visit_alias(self, origin: Any, arguments: tuple[Any, ...]) -> Any:
        """Rebuild what has arguments: `Annotated`, unions, `NotRequired`, `list[…]`, generic classes."""
        if origin is Annotated:
            return Annotated[(self.visit(arguments[0]), *arguments[1:])]
        if _is_one_of(origin, _SYNC_STREAMS):
            return list[self.visit(next(iter(arguments), Any))]  # type: ignore[misc]  # made at run time
        visited = tuple(self.visit(argument) for argument in arguments)
        if origin in (Union, types.UnionType):
            return Union[visited]  # noqa: UP007  # made at run time
        if _is_one_of(origin, _QUALIFIERS):
            return origin[visited[0]]
        return (self.visit(origin) if _is_class(origin) else origin)[visited]

    def _needs_change(self, annotation: Any, seen: set[int]) -> bool:
        """Say whether a type that pydantic refuses can be reached from an annotation."""
        if _is_class(annotation):
            return self._class_needs_change(annotation, seen)
        origin = get_origin(annotation)
        if origin in (Literal, collections.abc.Callable):
            return False
        if _is_one_of(origin, _SYNC_STREAMS) and not self._for_parameter:
            return True
        reached: list[Any] = list(get_args(annotation)[: 1 if origin is Annotated else None])
        if isinstance(annotation, NewType):
            reached.append(annotation.__supertype__)
        elif isinstance(annotation, ALIASES) and id(annotation) not in seen:
            seen.add(id(annotation))
            reached.append(value_of_alias(annotation))
        elif _is_class(origin):
            reached.append(origin)
        return any(self._needs_change(one, seen) for one in reached)

    def _class_needs_change(self, cls: Any, seen: set[int]) -> bool:
        if id(cls) in seen:
            return False
        seen.add(id(cls))
        if _is_one_of(cls, _SYNC_STREAMS) or is_plain_class(cls):
            return not self._for_parameter
        if _is_refused_typed_dict(cls):
            return True
        is_unfinished = self._for_parameter and issubclass(cls, BaseModel) and not cls.__pydantic_complete__
        if not (is_unfinished or dataclasses.is_dataclass(cls) or typing_extensions.is_typeddict(cls)):
            return False
        needs_change = self._fields_need_change(cls, seen)
        return needs_change and not is_unfinished  # a model is looked through only for names that are not defined

    def _fields_need_change(self, cls: Any, seen: set[int]) -> bool:
        try:
            hints = resolve_class(cls)
        except InvalidSignature:
            if not _is_readable(cls):
                raise
            return False  # pydantic knows better where its names are defined
        return any([self._needs_change(hint, seen) for hint in hints.values()])  # noqa: C419 - all, for their names

    def _visit_class(self, cls: Any) -> Any:
        if _is_one_of(cls, _SYNC_STREAMS):
            return list[Any]
        if cls in self._rebuilt:
            return self._rebuilt[cls]
        if cls in self._begun:
            return Annotated[Any, _Later(self._rebuilt, cls)]
        self._begun.add(cls)
        hints = resolve_class(cls)
        if typing_extensions.is_typeddict(cls):
            self._rebuilt[cls] = self._make_typed_dict(cls, hints)
        elif self._for_parameter:
            self._rebuilt[cls] = self._make_dataclass(cls, hints)
        else:
            self._rebuilt[cls] = self._make_model(cls, hints)
        return self._rebuilt[cls]

    def _make_typed_dict(self, cls: Any, hints: dict[str, Any]) -> Any:
        fields: dict[str, Any] = {}
        for key, hint in hints.items():
            # Below 3.12 a string annotation hides its qualifier from the class's own sets of keys, so what
            # the evaluated annotation says comes first.
            said = _has_qualifier(hint, (*_REQUIRED, *_NOT_REQUIRED))
            is_optional = key in cls.__optional_keys__ and not said
            visited = self.visit(hint)
            fields[key] = typing_extensions.NotRequired[visited] if is_optional else visited
        body = _copy_names(cls) | {"__annotations__": fields}
        generic = getattr(cls, "__parameters__", ())
        bases = (typing_extensions.TypedDict, *_generic_base(generic))
        made: Any = types.new_class(cls.__name__, bases, exec_body=lambda namespace: namespace.update(body))
        if hasattr(cls, "__pydantic_config__"):
            made.__pydantic_config__ = cls.__pydantic_config__
        return made

    def _make_dataclass(self, cls: Any, hints: dict[str, Any]) -> Any:
        """Declare the fields again in a subclass whose schema still makes the author's own instances."""
        fields = {field.name: field for field in dataclasses.fields(cls)}

        def give_schema(_: Any, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
            schema = handler(source)
            described: Any = handler.resolve_ref_schema(schema)
            if described["type"] == "dataclass":
                described["cls"] = cls
            return schema

        body = _copy_names(cls) | {name: _copy_field(field) for name, field in fields.items()}
        body["__annotations__"] = {name: self.visit(hints[name]) for name in fields}
        body["__get_pydantic_core_schema__"] = classmethod(give_schema)
        generic = getattr(cls, "__parameters__", ())
        base = cls[generic] if generic else cls
        made = types.new_class(cls.__name__, (base,), exec_body=lambda namespace: namespace.update(body))
        params = cls.__dataclass_params__
        return dataclasses.dataclass(init=params.init, frozen=params.frozen)(made)

    def _make_model(self, cls: Any, hints: dict[str, Any]) -> type[BaseModel]:
        """Make a model of a class's annotated attributes, which reads them off an instance."""
        fields: dict[str, Any] = {}
        for name, hint in hints.items():
            if name.startswith("_") or get_origin(hint) is ClassVar or hint is ClassVar:
                continue
            options = _read_default(cls, name)
            if hasattr(BaseModel, name):  # `copy`, `schema`, `model_config`: not free as a field's name
                options["alias"] = name
            fields[f"field_{name}" if hasattr(BaseModel, name) else name] = (
                self.visit(hint),
                Field(**options),
            )
        made: Any = create_model(
            cls.__name__,
            __base__=(_ReadsAttributes, *_generic_base(getattr(cls, "__parameters__", ()))),
            __module__=cls.__module__,
            __doc__=cls.__dict__.get("__doc__"),
            **fields,
        )
        made.__qualname__ = cls.__qualname__
        return made  # type: ignore[no-any-return]  # a class made at run time


class _ReadsAttributes(BaseModel):
    # deferred: a class that names itself is complete only once all of them are rebuilt
    model_config = ConfigDict(from_attributes=True, defer_build=True, protected_namespaces=(), serialize_by_alias=True)


def _is_readable(cls: Any) -> bool:
    """Say whether pydantic finds the names in a class's annotations, or refuses it for another reason."""
    adapter: TypeAdapter[Any] | None = None
    try:
        with contextlib.suppress(PydanticUserError):
            adapter = TypeAdapter(cls)
            adapter.rebuild()
    except PydanticUndefinedAnnotation:
        return False
    return adapter is None or bool(adapter.pydantic_complete)


def _copy_names(cls: Any) -> dict[str, Any]:
    return {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__dict__.get("__doc__"),
    }


def _generic_base(parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    return (Generic[parameters],) if parameters else ()  # type: ignore[index]  # made at run time


def _copy_field(field: Any) -> Any:
    """Declare a dataclass's field once more: a field object belongs to one class."""
    names = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
    return dataclasses.field(**{name: getattr(field, name) for name in names})


def _read_default(cls: type, name: str) -> dict[str, Any]:
    """Give the options that carry an attribute's default; descriptors (slots, properties) are none."""
    default = inspect.getattr_static(cls, name, dataclasses.MISSING)
    field = getattr(cls, "__dataclass_fields__", {}).get(name)
    if field is not None:
        if field.default_factory is not dataclasses.MISSING:
            return {"default_factory": field.default_factory}
        default = field.default
    elif hasattr(type(default), "__get__"):
        return {}
    return {} if default is dataclasses.MISSING else {"default": default}
