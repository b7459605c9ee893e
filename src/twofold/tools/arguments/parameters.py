"""From a signature to an input schema, and to what binds the bytes of a call.

Everything that can be known is found out at registration; a call is one pass of pydantic's compiled
validator over the bytes. The law: what binds is valid under the published schema, at once or after reading
JSON inside strings once; what is valid binds, or fails in a named format or an author's own validator.
"""

import copy
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from pydantic_core import SchemaValidator

from twofold.contract.compiling import compile_schema, is_simple
from twofold.contract.plain import format_path, name_type, show
from twofold.errors import InvalidDefinition, InvalidSignature
from twofold.protocol.structs import Json
from twofold.tools.arguments.binding import BoundArguments, Pieces, SchemaBinder, SignatureBinder
from twofold.tools.arguments.description import Description, describe_parameters
from twofold.tools.arguments.growth import measure_growth
from twofold.tools.arguments.strictness import Facts, Node, examine, read_definitions, restrict
from twofold.tools.checks.complaints import warn_author
from twofold.tools.checks.headers import ANNOTATION
from twofold.tools.introspection.docstrings import Docstring, read_docstring
from twofold.tools.introspection.signatures import find_docstring, name_callable, resolve_signature

if TYPE_CHECKING:
    from twofold.contract.schema import CompiledSchema

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
    signature: inspect.Signature | None = None,
    documented: Docstring | None = None,
) -> Parameters:
    """Work out what a function takes.

    Args:
        function: Any callable.
        tool_name: For the schema's title and for messages.
        context_type: A parameter annotated with it, or with a subclass, gets the call's context.
        unknown_arguments: Whether arguments the function does not have are refused, or dropped.
        input_schema: A JSON Schema by hand: published to the letter and enforced. The function then takes
            the arguments as one dict, or as `**kwargs`.
        signature: The function's, where `resolve_signature` has read it already.
        documented: Its docstring, where `read_docstring` has read it already.

    Raises:
        InvalidSignature: The function cannot be called with named JSON values, and why.
        InvalidDefinition: The schema by hand cannot be published.
    """
    label = f"function {name_callable(function)!r}"
    signature = resolve_signature(function) if signature is None else signature
    context_name = _find_context(signature, context_type, label=label)
    given = [one for name, one in signature.parameters.items() if name != context_name]
    if input_schema is not None:
        return _build_by_hand(input_schema, given, tool_name=tool_name, label=label, context_name=context_name)
    documented = read_docstring(find_docstring(function)) if documented is None else documented
    description = describe_parameters(given, title=f"{tool_name}Arguments", label=label)
    schema = description.schema
    _add_descriptions(schema["properties"], given, documented.parameters)
    _check_defaults(schema, label=label)
    if unknown_arguments == "refuse":
        schema["additionalProperties"] = False
    binder = SignatureBinder(
        tool_name,
        maker=_Maker(description, tool_name, "forbid" if unknown_arguments == "refuse" else "ignore"),
        names=tuple(schema["properties"]),
        positional=[(one.name, one.default) for one in given if one.kind is inspect.Parameter.POSITIONAL_ONLY],
        mirrored=_mirrored(schema["properties"]),
        is_certain=description.is_plain and is_simple(schema),
    )
    return Parameters(schema, context_name, binder.bind)


def _add_descriptions(
    properties: dict[str, Any], given: Sequence[inspect.Parameter], descriptions: Mapping[str, str]
) -> None:
    """Say what the docstring says of those parameters that say nothing themselves."""
    for parameter, published in zip(given, properties.values(), strict=True):
        if parameter.name in descriptions:
            published.setdefault("description", descriptions[parameter.name])


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
    compiled = compile_schema(
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
    default = published["default"]
    expected = _PLAIN_TYPES.get(type(default))
    if published.get("type") != expected or expected is None:
        return False
    asked = published.keys() - _ANNOTATIONS
    if asked == {"enum"} and expected == "string":
        return default in published["enum"]
    if asked <= {"minimum", "maximum"} and expected in ("integer", "number"):
        return bool(published.get("minimum", default) <= default <= published.get("maximum", default))
    return not asked


_PLAIN_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_ANNOTATIONS = frozenset({"type", "title", "description", "default", "examples"})


class _Maker(msgspec.Struct, frozen=True):
    """Makes what a signature's arguments are bound with, from pydantic's description of them."""

    description: Description
    tool_name: str
    extra_behavior: Literal["forbid", "ignore"]

    def make_pieces(self) -> Pieces:
        """Make what every call needs."""
        core = self._core()
        definitions = read_definitions(core)
        facts = self._facts().values()
        growths = {name: measure_growth(field, definitions) for name, field in self._fields().items()}
        return Pieces(
            # without prebuilt parts: nested models bring validators of their own, which are not restricted
            SchemaValidator(restrict(core), _use_prebuilt=False).validate_json,
            asks_schema=not all(one.is_proven or one.is_lenient for one in facts),
            looks_for_infinity=any(one.holds_any for one in facts),
            growths={name: growth for name, growth in growths.items() if growth is not None},
        )

    def make_hasty_validate(self) -> Callable[[bytes], dict[str, Any]]:
        """Make what large calls need."""
        return SchemaValidator(restrict(self._core(), fails_fast=True), _use_prebuilt=False).validate_json

    def compile_schema(self) -> "CompiledSchema":
        """Compile what is published."""
        what = f"tool {self.tool_name!r}, input schema"
        return compile_schema(_open_lenient(self.description.schema, self._facts()), what=what)

    def _core(self) -> Node:
        core = self.description.core
        changes = {"extra_behavior": self.extra_behavior}
        return core | {"schema": core["schema"] | changes} if core["type"] == "definitions" else core | changes

    def _fields(self) -> dict[str, Node]:
        """Give the fields of the core schema by the names that are published."""
        core = self.description.core
        root = core["schema"] if core["type"] == "definitions" else core
        return dict(zip(self.description.schema["properties"], root["fields"].values(), strict=True))

    def _facts(self) -> dict[str, Facts]:
        definitions = read_definitions(self.description.core)
        return {name: examine(field, definitions) for name, field in self._fields().items()}


def _mirrored(properties: Mapping[str, Any]) -> frozenset[str]:
    """Name the parameters that HTTP clients repeat in a header."""
    return frozenset(name for name, schema in properties.items() if isinstance(schema, dict) and ANNOTATION in schema)


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
    compiled = compile_schema(schema, what=what)
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
