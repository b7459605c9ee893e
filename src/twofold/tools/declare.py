"""From a function and its options to a `Tool`, the record that every later stage takes."""

import difflib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from typing_extensions import TypedDict

from twofold.errors import InvalidDefinition, InvalidSignature
from twofold.protocol.headers import HeaderParameter
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.tool import Icon, ToolAnnotations
from twofold.tools.arguments.parameters import Parameters, UnknownArguments, build_parameters
from twofold.tools.checks.complaints import warn_author
from twofold.tools.checks.headers import check_headers
from twofold.tools.checks.hints import check_hints
from twofold.tools.checks.icons import check_icons
from twofold.tools.checks.names import check_name
from twofold.tools.context import Context
from twofold.tools.introspection.docstrings import read_docstring
from twofold.tools.introspection.signatures import find_docstring, resolve_signature
from twofold.tools.results.returns import Returns, Text, build_returns
from twofold.tools.run import RateLimit, calls_asynchronously


class ToolOptions(TypedDict, total=False):
    """Every option of a tool, listed once: `@mcp.tool(…)` and `mcp.add_tool(fn, …)` take these.

    Attributes:
        name: What the model calls it by; the function's name if not given.
        title: What people read.
        description: What it does, for the model; the docstring if not given.
        annotations: Hints about what it does.
        icons: Pictures, `https:` or `data:`.
        meta: Its definition's `_meta`.
        structured_output: True insists on an output schema, False does without, None (default) decides by the type.
        wrap: False publishes a root that is no object bare to clients of 2026-07-28.
        text: The model's face: `"pretty"`, `"compact"`, a template (`"{name}: {price}"`), or a function of the value.
        timeout_seconds: After it a call is given up and answered with an error.
        max_concurrency: So many calls at once; one more is answered with an error.
        rate_limit: `"5/s"`, `"100/min"`, `"1000/hour"` or a `RateLimit`.
        unknown_arguments: `"refuse"` (default) or `"ignore"`.
        expose_errors: True sends a crash's own text to the client.
        input_schema: A JSON Schema by hand; the function then takes the arguments as one dict.
        output_schema: A JSON Schema by hand for what the function returns.
    """

    name: str | None
    title: str | None
    description: str | None
    annotations: ToolAnnotations | Mapping[str, Any] | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Json] | None
    structured_output: bool | None
    wrap: bool
    text: Text | None
    timeout_seconds: float | None
    max_concurrency: int | None
    rate_limit: RateLimit | str | None
    unknown_arguments: UnknownArguments | None
    expose_errors: bool | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None


class ToolDefaults(msgspec.Struct, frozen=True):
    """What a server decides for its tools where they do not decide for themselves."""

    strict: bool = False
    expose_errors: bool = False
    unknown_arguments: UnknownArguments = "refuse"
    text: Text = "pretty"


class Tool(msgspec.Struct, frozen=True):
    """A declared tool: everything a listing and a call need, checked, never changed.

    Attributes:
        function: What is called.
        parameters: Its input schema, and how arguments are bound.
        returns: Its output schema, and how a value becomes the two faces.
        headers: Parameters that HTTP clients mirror into `Mcp-Param-*`.
        is_async: Whether it runs on the event loop; a sync function runs in a thread.
    """

    name: str
    function: Callable[..., Any]
    parameters: Parameters
    returns: Returns
    title: str | None
    description: str | None
    annotations: ToolAnnotations | None
    icons: tuple[Icon, ...]
    meta: Mapping[str, Json] | None
    headers: tuple[HeaderParameter, ...]
    is_async: bool
    timeout_seconds: float | None
    max_concurrency: int | None
    rate_limit: RateLimit | None
    expose_errors: bool


def declare_tool(function: Callable[..., Any], options: ToolOptions, *, defaults: ToolDefaults) -> Tool:
    """Make a tool of a function, checking everything that can be checked before the first call.

    Raises:
        InvalidSignature: The function cannot be a tool.
        InvalidDefinition: An option cannot be published.
        TypeError: An option that does not exist.
    """
    _check_option_names(options)
    if not callable(function):
        raise TypeError(f"a tool is made of a function, got a value of type {type(function).__name__}")
    if inspect.isclass(function):
        raise InvalidSignature(f"{function!r} is a class; give a function, a method or an object with __call__")
    name = _name_of(function, options)
    annotations = options.get("annotations")
    hints = check_hints(annotations, tool_name=name, strict=defaults.strict) if annotations is not None else None
    meta = options.get("meta")
    if meta is not None:
        _check_meta(name, meta)
    unknown_arguments = _choice(options, defaults)
    signature, documented = resolve_signature(function), read_docstring(find_docstring(function))
    parameters = build_parameters(
        function,
        tool_name=name,
        context_type=Context,
        unknown_arguments=unknown_arguments,
        input_schema=options.get("input_schema"),
        signature=signature,
        documented=documented,
    )
    if options.get("input_schema") is not None and options.get("unknown_arguments") is not None:
        raise InvalidDefinition(
            f"tool {name!r}: input_schema= decides about unknown arguments; drop unknown_arguments="
        )
    description, expose_errors = options.get("description"), options.get("expose_errors")
    rate_limit = options.get("rate_limit")
    return Tool(
        name=name,
        function=function,
        parameters=parameters,
        returns=_build_returns(function, signature.return_annotation, name=name, options=options, defaults=defaults),
        title=options.get("title"),
        description=documented.description or None if description is None else description,
        annotations=hints,
        icons=check_icons(options.get("icons") or (), owner=f"tool {name!r}"),
        meta=meta,
        headers=check_headers(parameters.schema, tool_name=name),
        is_async=calls_asynchronously(function),
        timeout_seconds=_positive(name, "timeout_seconds", options.get("timeout_seconds")),
        max_concurrency=_positive_whole(name, "max_concurrency", options.get("max_concurrency")),
        rate_limit=None if rate_limit is None else RateLimit.parse(rate_limit),
        expose_errors=defaults.expose_errors if expose_errors is None else expose_errors,
    )


def _check_option_names(options: ToolOptions) -> None:
    for key in options:
        if key not in ToolOptions.__annotations__:
            near = difflib.get_close_matches(key, ToolOptions.__annotations__, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"a tool has no option {key!r}{hint}")


def _name_of(function: Callable[..., Any], options: ToolOptions) -> str:
    name = options.get("name")
    if name is None:
        unwrapped: Any = function
        while not hasattr(unwrapped, "__name__") and hasattr(unwrapped, "func"):  # functools.partial
            unwrapped = unwrapped.func
        name = getattr(unwrapped, "__name__", None) or type(unwrapped).__name__
        if name == "<lambda>":
            raise InvalidDefinition("a lambda has no name of its own; give the tool one with name=")
    complaint = check_name(name)
    if complaint is not None:
        warn_author(complaint)
    return name


def _build_returns(
    function: Callable[..., Any], annotation: Any, *, name: str, options: ToolOptions, defaults: ToolDefaults
) -> Returns:
    text = options.get("text")
    return build_returns(
        annotation,
        tool_name=name,
        function_name=getattr(function, "__name__", name),
        structured_output=options.get("structured_output"),
        wrap=options.get("wrap", True),
        text=defaults.text if text is None else text,
        output_schema=options.get("output_schema"),
    )


def _choice(options: ToolOptions, defaults: ToolDefaults) -> UnknownArguments:
    choice = options.get("unknown_arguments") or defaults.unknown_arguments
    return check_unknown_arguments(choice)


def check_server_text(text: Text) -> Text:
    """Refuse a server-wide text that is none of the two modes: a template or function fits one tool's result only.

    Raises:
        InvalidDefinition: Neither "pretty" nor "compact".
    """
    if text not in ("pretty", "compact"):
        raise InvalidDefinition(f"text: a server takes 'pretty' or 'compact', got {text!r:.80}; a template is a tool's")
    return text


def check_unknown_arguments(choice: UnknownArguments) -> UnknownArguments:
    """Refuse a choice that is none of the two.

    Raises:
        InvalidDefinition: Neither "refuse" nor "ignore".
    """
    if choice not in ("refuse", "ignore"):
        raise InvalidDefinition(f"unknown_arguments: expected 'refuse' or 'ignore', got {choice!r}")
    return choice


def _check_meta(name: str, meta: Mapping[str, Json]) -> None:
    if not isinstance(meta, Mapping):
        raise InvalidDefinition(f"tool {name!r}, meta: expected a mapping, got {type(meta).__name__}")
    try:
        encode_json(dict(meta), what=f"tool {name!r}, meta")
    except ValueError as error:
        raise InvalidDefinition(str(error)) from None


def _positive(name: str, option: str, value: float | None) -> float | None:
    if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise InvalidDefinition(f"tool {name!r}, {option}: expected a positive number, got {value!r}")
    return value


def _positive_whole(name: str, option: str, value: int | None) -> int | None:
    if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        raise InvalidDefinition(f"tool {name!r}, {option}: expected a positive whole number, got {value!r}")
    return value
