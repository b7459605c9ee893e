"""From a signature to an input schema, and to what binds the bytes of a call.

Everything that can be known is found out at registration; a call is one pass of pydantic's compiled
validator over the bytes. The law: what binds is valid under the published schema, at once or after reading
JSON inside strings once; what is valid binds, or fails in a named format or an author's own validator.
"""

import copy
import inspect
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
import typing_extensions
from pydantic import Field, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError, SchemaValidator

from twofold.contract.plain import format_path, name_type, show
from twofold.contract.schema import CompiledSchema
from twofold.errors import InvalidDefinition, InvalidSignature
from twofold.protocol.structs import Json
from twofold.tools.arguments.binding import BoundArguments, SchemaBinder, SignatureBinder
from twofold.tools.arguments.growth import measure_growth
from twofold.tools.arguments.input_schema import GenerateInputSchema
from twofold.tools.arguments.strictness import Facts, examine, read_definitions, restrict
from twofold.tools.checks.complaints import warn_author
from twofold.tools.checks.headers import ANNOTATION
from twofold.tools.introspection.docstrings import read_docstring
from twofold.tools.introspection.rebuild import is_plain_class, rebuild
from twofold.tools.introspection.signatures import find_docstring, name_callable, resolve_signature

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_FORMS = "str, int, float, bool, a list or dict of them, a pydantic model, a dataclass or a TypedDict"
_Refusals = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, ValueError, NameError)

UnknownArguments: TypeAlias = Literal["refuse", "ignore"]


class Parameters(msgspec.Struct, frozen=True):
    """What a tool takes.

    Attributes:
        schema: The published input schema (JSON Schema 2020-12).
        context_name: The parameter that asks for the call's context; it is never in the schema.
        bind: Binds the JSON text of the arguments' object: positional and keyword arguments, fresh for each
            call, without the context. Raises ArgumentsRefused with every problem at once, ParseError for
            bytes that are no JSON, InvalidParams for JSON that is no object.
    """

    schema: dict[str, Any]
    context_name: str | None
    bind: Callable[[bytes], BoundArguments]


def build_parameters(
    function: Callable[..., Any],
    *,
    tool_name: str,
    context_type: type,
    unknown_arguments: UnknownArguments = "refuse",
    input_schema: dict[str, Any] | None = None,
) -> Parameters:
    """Work out what a function takes.

    Args:
        function: Any callable.
        tool_name: For the schema's title and for messages.
        context_type: A parameter annotated with it, or with a subclass, gets the call's context.
        unknown_arguments: Whether arguments the function does not have are refused, or dropped.
        input_schema: A JSON Schema by hand: published to the letter and enforced. The function then takes
            the arguments as one dict, or as `**kwargs`.

    Raises:
        InvalidSignature: The function cannot be called with named JSON values, and why.
        InvalidDefinition: The schema by hand cannot be published.
    """
    signature = resolve_signature(function)
    label = f"function {name_callable(function)!r}"
    context_name = _find_context(signature, context_type, label=label)
    given = [one for name, one in signature.parameters.items() if name != context_name]
    if input_schema is not None:
        return _build_by_hand(input_schema, given, tool_name=tool_name, label=label, context_name=context_name)
    arguments = [_read_argument(parameter, label=label) for parameter in given]
    adapter = _make_adapter(arguments, title=f"{tool_name}Arguments", label=label)
    schema = _publish(adapter, arguments, label=label, documented=find_docstring(function))
    _check_defaults(schema, label=label)
    if unknown_arguments == "refuse":
        schema["additionalProperties"] = False
    binder = _make_binder(adapter, arguments, schema=schema, tool_name=tool_name, unknown_arguments=unknown_arguments)
    return Parameters(schema, context_name, binder.bind)


class _Argument(msgspec.Struct, frozen=True):
    """A parameter that a call fills.

    Attributes:
        annotation: As pydantic takes it, with the default for the schema.
        written: As the author wrote it, for messages.
        default: What the function itself uses when the argument is absent.
        is_positional: It can be given by position only.
    """

    name: str
    annotation: Any
    written: Any
    default: Any
    is_positional: bool


def _find_context(signature: inspect.Signature, context_type: type, *, label: str) -> str | None:
    """Find the parameter that asks for the context."""
    asking = [p for p in signature.parameters.values() if _is_context(p.annotation, context_type)]
    if not asking:
        return None
    if len(asking) > 1:
        names = ", ".join(repr(parameter.name) for parameter in asking)
        raise InvalidSignature(
            f"{label}: {names} all ask for the {context_type.__name__}; there is one, keep one of them"
        )
    if asking[0].kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        raise InvalidSignature(
            f"{label}, parameter {asking[0].name!r}: the {context_type.__name__} is given by name;"
            " make it an ordinary parameter"
        )
    return asking[0].name


def _is_context(annotation: Any, context_type: type) -> bool:
    """Say whether an annotation means the context: itself, a subclass, optional, annotated or generic."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_context(get_args(annotation)[0], context_type)
    if origin in (Union, types.UnionType):
        members = [one for one in get_args(annotation) if one is not type(None)]
        return all(_is_context(one, context_type) for one in members)
    kind = origin or annotation
    return isinstance(kind, type) and issubclass(kind, context_type)


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
    is_positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    return _Argument(parameter.name, annotation, written, default, is_positional)


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


def _publish(
    adapter: TypeAdapter[Any], arguments: list[_Argument], *, label: str, documented: str | None
) -> dict[str, Any]:
    """Give the schema of the arguments, with what the docstring says of those that say nothing themselves."""
    try:
        schema = adapter.json_schema(schema_generator=GenerateInputSchema, mode="validation")
    except _Refusals as error:
        raise _blame(arguments, error, label=label) from error
    properties: dict[str, Any] = schema["properties"]
    if len(properties) < len(arguments):
        raise InvalidSignature(f"{label}: two parameters have the same alias; each needs its own")
    descriptions = read_docstring(documented).parameters
    for argument, published in zip(arguments, properties.values(), strict=True):
        if argument.name in descriptions:
            published.setdefault("description", descriptions[argument.name])
    return schema


def _check_defaults(schema: dict[str, Any], *, label: str) -> None:
    """Warn of defaults that the published schema refuses; `= None` is not one of them, it makes the type optional.

    A host may fill in what a schema says is the default, and would be refused. The function's own default
    is not touched: it may well be a value that only the function understands.
    """
    given = {
        name: published["default"]
        for name, published in schema["properties"].items()
        if published.get("default") is not None and not _is_plainly_fit(published)
    }
    if not given:
        return
    compiled = CompiledSchema.compile(
        {"properties": {name: schema["properties"][name] for name in given}, "$defs": schema.get("$defs", {})},
        what=f"{label}, defaults",
    )
    if compiled.is_valid(given):
        return
    told: set[str] = set()
    for path, message in compiled.find_problems(given):
        name = str(path[0])
        if name not in told:
            told.add(name)
            place = f", at {format_path(path)}" if len(path) > 1 else ""
            warn_author(
                f"{label}, parameter {name!r}: its default {show(given[name])} does not fit its own schema{place}:"
                f" {message}; change the default or the annotation"
            )


def _is_plainly_fit(published: Mapping[str, Any]) -> bool:
    """Tell of the most usual defaults, without a validator, that they fit: `limit: int = 5`."""
    expected = _PLAIN_TYPES.get(type(published["default"]))
    return published.get("type") == expected is not None and published.keys() <= _PLAIN_KEYWORDS


_PLAIN_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_PLAIN_KEYWORDS = frozenset({"type", "title", "description", "default", "examples"})


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


def _make_binder(
    adapter: TypeAdapter[Any],
    arguments: list[_Argument],
    *,
    schema: dict[str, Any],
    tool_name: str,
    unknown_arguments: UnknownArguments,
) -> SignatureBinder:
    core: Any = adapter.core_schema
    definitions = read_definitions(core)
    root = core["schema"] if core["type"] == "definitions" else core
    fields = {argument.name: _leave_default(root["fields"][argument.name], argument) for argument in arguments}
    root = root | {"fields": fields, "extra_behavior": "forbid" if unknown_arguments == "refuse" else "ignore"}
    core = core | {"schema": root} if core["type"] == "definitions" else root
    facts = {
        published: examine(field, definitions)
        for published, field in zip(schema["properties"], fields.values(), strict=True)
    }
    growths = {
        published: measure_growth(field, definitions)
        for published, field in zip(schema["properties"], fields.values(), strict=True)
    }
    return SignatureBinder(
        tool_name,
        # without prebuilt parts: nested models bring validators of their own, which are not restricted
        validator=SchemaValidator(restrict(core), _use_prebuilt=False),
        hasty_validator=SchemaValidator(restrict(core, fails_fast=True), _use_prebuilt=False),
        schema=CompiledSchema.compile(_open_lenient(schema, facts), what=f"tool {tool_name!r}, input schema"),
        names=tuple(schema["properties"]),
        positional=[(one.name, one.default) for one in arguments if one.is_positional],
        asks_schema=not all(one.is_proven or one.is_lenient for one in facts.values()),
        looks_for_infinity=any(one.holds_any for one in facts.values()),
        growths={name: growth for name, growth in growths.items() if growth is not None},
        mirrored=_mirrored(schema["properties"]),
    )


def _mirrored(properties: Mapping[str, Any]) -> frozenset[str]:
    """Name the parameters that HTTP clients repeat in a header."""
    return frozenset(name for name, schema in properties.items() if isinstance(schema, dict) and ANNOTATION in schema)


def _leave_default(field: dict[str, Any], argument: _Argument) -> dict[str, Any]:
    """Leave a default to the function itself: the validator then has nothing to do for what is absent."""
    inner = field["schema"]
    if argument.default is inspect.Parameter.empty or inner["type"] != "default":
        return field
    return field | {"schema": inner["schema"]}


def _open_lenient(schema: dict[str, Any], facts: Mapping[str, Facts]) -> dict[str, Any]:
    """Leave open, for the check, what the author reads more leniently than published (`strict=False`)."""
    lenient = {name: True for name, one in facts.items() if one.is_lenient}
    return schema | {"properties": schema["properties"] | lenient} if lenient else schema


def _build_by_hand(
    schema: dict[str, Any],
    given: list[inspect.Parameter],
    *,
    tool_name: str,
    label: str,
    context_name: str | None,
) -> Parameters:
    """Publish a schema as it is, and hand the arguments over as they are."""
    what = f"tool {tool_name!r}, input schema"
    if not isinstance(schema, dict):
        raise InvalidDefinition(f"{what}: expected a JSON Schema as a dict, got {name_type(schema)} ({show(schema)})")
    compiled = CompiledSchema.compile(schema, what=what)
    if schema.get("type") != "object":
        raise InvalidDefinition(f"{what}: its root must be of type 'object', got {schema.get('type')!r:.80}")
    properties = schema.get("properties", {})
    place = _choose_place(given, label=label)
    if context_name in properties and given[0].kind is inspect.Parameter.VAR_KEYWORD:
        raise InvalidSignature(
            f"{label}: {context_name!r} is both an argument and the parameter for the context; rename the latter"
        )
    binder = SchemaBinder(
        tool_name, schema=compiled, names=tuple(properties), place=place, mirrored=_mirrored(properties)
    )
    return Parameters(copy.deepcopy(schema), context_name, binder.bind)


def _choose_place(given: list[inspect.Parameter], *, label: str) -> Callable[[dict[str, Json]], BoundArguments]:
    """Find out where a function that comes with a schema by hand takes its arguments."""
    if len(given) == 1:
        (only,) = given
        if only.kind is inspect.Parameter.VAR_KEYWORD:
            return lambda arguments: ((), arguments)
        if only.kind is inspect.Parameter.KEYWORD_ONLY:
            return lambda arguments: ((), {only.name: arguments})
        if only.kind is not inspect.Parameter.VAR_POSITIONAL:
            return lambda arguments: ((arguments,), {})
    names = ", ".join(str(parameter) for parameter in given) or "none"
    raise InvalidSignature(
        f"{label}: with input_schema= the function takes its arguments as one dict, or as **kwargs alone, besides"
        f" the context; its parameters are: {names}"
    )
