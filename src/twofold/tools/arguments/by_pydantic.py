"""Parameters as pydantic describes them: every type it knows, `Field`, validators, defaults of any kind."""

import inspect
import types
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import typing_extensions
from pydantic import Field, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError

from twofold.errors import InvalidSignature
from twofold.tools.arguments.input_schema import GenerateInputSchema
from twofold.tools.arguments.strictness import Node, walk_type
from twofold.tools.introspection.rebuild import is_plain_class, rebuild

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_FORMS = "str, int, float, bool, a list or dict of them, a pydantic model, a dataclass or a TypedDict"
_Refusals = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, ValueError, NameError)

_PLAIN_KINDS = frozenset(
    {"any", "bool", "date", "datetime", "decimal", "default", "dict", "float", "int", "list", "none", "nullable", "str"}
    | {"model", "model-field", "model-fields", "time", "timedelta", "typed-dict", "typed-dict-field", "union", "uuid"}
)
"""Kinds of core schemas in which no code of an author's is asked while a validator is made of them."""


def describe_by_pydantic(
    parameters: Sequence[inspect.Parameter], *, title: str, label: str
) -> tuple[Node, dict[str, Any], bool]:
    """Describe parameters; see `describe_parameters`.

    Returns:
        What the attributes of a `Description` are.
    """
    arguments = [_read_argument(parameter, label=label) for parameter in parameters]
    adapter = _make_adapter(arguments, title=title, label=label)
    schema = _publish(adapter, arguments, label=label)
    core = _leave_defaults(adapter.core_schema, arguments)
    return core, schema, _is_plain(core)


def _is_plain(core: Node) -> bool:
    return core["type"] == "typed-dict" and all(_is_plain_node(node) for node in walk_type(core, {}))


def _is_plain_node(node: Node) -> bool:
    kind = node.get("type")
    return kind in _PLAIN_KINDS or (kind == "literal" and all(type(one) is str for one in node["expected"]))


class _Argument(msgspec.Struct, frozen=True):
    """A parameter that a call fills.

    Attributes:
        annotation: As pydantic takes it, with the default for the schema.
        written: As the author wrote it, for messages.
        default: What the function itself uses when the argument is absent.
    """

    name: str
    annotation: Any
    written: Any
    default: Any


def _read_argument(parameter: inspect.Parameter, *, label: str) -> _Argument:
    """Turn a parameter into an annotation that pydantic takes."""
    if parameter.kind in _VARIADIC:
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise InvalidSignature(
            f"{label}: {stars}{parameter.name} does not say which arguments the tool takes; name the parameters,"
            " use functools.wraps if this is a decorator, or give add_tool an input_schema="
        )
    written = Any if parameter.annotation is parameter.empty else parameter.annotation
    default = parameter.default
    annotation = rebuild(written, for_parameter=True)
    if default is None and not _allows_none(annotation):
        annotation = _make_optional(annotation)
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], parameter.empty
    elif default is not parameter.empty:
        annotation = Annotated[annotation, Field(default=default)]
    return _Argument(parameter.name, annotation, written, default)


def _allows_none(annotation: Any) -> bool:
    """Say whether None is a value of the type, as far as the annotation itself tells."""
    if annotation in (Any, object, None, type(None)) or isinstance(annotation, TypeVar):
        return True
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _allows_none(members[0])
    if origin is Literal:
        return None in members
    return origin in (Union, types.UnionType) and any(_allows_none(one) for one in members)


def _make_optional(annotation: Any) -> Any:
    """Read `x: str = None` as `str | None`; what `Field` says goes for the whole, validators for the text."""
    fields: list[Any] = []
    inner = annotation
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        fields = [one for one in metadata if isinstance(one, FieldInfo)]
        rest = tuple(one for one in metadata if not isinstance(one, FieldInfo))
        inner = Annotated[(base, *rest)] if rest else base
    optional: Any = Union[inner, None]  # noqa: UP007  # made at run time
    return Annotated[(optional, *fields)] if fields else optional


def _make_adapter(arguments: list[_Argument], *, title: str, label: str) -> TypeAdapter[Any]:
    """Describe all arguments to pydantic as one TypedDict, whose keys may have any name."""
    fields = {argument.name: argument.annotation for argument in arguments}
    try:
        return TypeAdapter(typing_extensions.TypedDict(title, fields))  # type: ignore[operator]  # made at run time
    except _Refusals as error:
        raise _blame(arguments, error, label=label) from error


def _publish(adapter: TypeAdapter[Any], arguments: list[_Argument], *, label: str) -> dict[str, Any]:
    """Give the schema of the arguments."""
    try:
        schema = adapter.json_schema(schema_generator=GenerateInputSchema, mode="validation")
    except _Refusals as error:
        raise _blame(arguments, error, label=label) from error
    if len(schema["properties"]) < len(arguments):
        raise InvalidSignature(f"{label}: two parameters have the same alias; each needs its own")
    return schema


def _leave_defaults(core: Node, arguments: list[_Argument]) -> Node:
    """Leave defaults to the function itself: the validator then has nothing to do for what is absent."""
    root = core["schema"] if core["type"] == "definitions" else core
    fields = {argument.name: _leave_default(root["fields"][argument.name], argument) for argument in arguments}
    root = root | {"fields": fields}
    return core | {"schema": root} if core["type"] == "definitions" else root


def _leave_default(field: dict[str, Any], argument: _Argument) -> dict[str, Any]:
    inner = field["schema"]
    if argument.default is inspect.Parameter.empty or inner["type"] != "default":
        return field
    return field | {"schema": inner["schema"]}


def _blame(arguments: list[_Argument], error: Exception, *, label: str) -> InvalidSignature:
    """Find the parameter that pydantic refuses, and say what to do about it."""
    for argument in arguments:
        try:
            _publish_alone(argument)
        except _Refusals as refusal:
            parts = (argument.written, *get_args(argument.written))
            is_plain = any(is_plain_class(part) for part in parts)
            remedy = "make it a dataclass or a pydantic model" if is_plain else f"use {_FORMS}"
            return InvalidSignature(
                f"{label}, parameter {argument.name!r}: {_show_type(argument.written)} cannot come from JSON"
                f" ({_shorten(refusal)}); {remedy}"
            )
    return InvalidSignature(f"{label}: the parameters cannot be published ({_shorten(error)})")


def _publish_alone(argument: _Argument) -> None:
    """Publish one parameter: as a type, whose faults pydantic tells shortest, and as a key, where an alias counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        TypeAdapter(argument.annotation).json_schema(schema_generator=GenerateInputSchema)
    key = typing_extensions.TypedDict("key", {argument.name: argument.annotation})  # type: ignore[misc]  # as above
    TypeAdapter(key).json_schema(schema_generator=GenerateInputSchema)


def _show_type(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _shorten(error: Exception) -> str:
    """Give an error on one line, without pydantic's advice and links."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    return text.partition(". Set ")[0].partition("For further information")[0].strip()[:200]
