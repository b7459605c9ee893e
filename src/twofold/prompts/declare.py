"""From a function and its options to a `Prompt`, checking all that can be checked before it is asked for."""

import difflib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from typing_extensions import TypedDict

from twofold.errors import InvalidDefinition, InvalidSignature
from twofold.prompts.prompt import Prompt, make_messages
from twofold.protocol.prompt import PromptArgument, PromptDefinition
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.tool import Icon
from twofold.tools.arguments.parameters import build_parameters
from twofold.tools.checks.complaints import warn_author
from twofold.tools.checks.icons import check_icons
from twofold.tools.checks.names import check_name
from twofold.tools.context import Context
from twofold.tools.introspection.docstrings import read_docstring
from twofold.tools.introspection.signatures import find_docstring, name_callable, resolve_signature
from twofold.tools.run import Gate, Runner, calls_asynchronously
from twofold.tools.workers import Workers

_STARS: Mapping[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class PromptOptions(TypedDict, total=False):
    """Every option of a prompt, listed once: `@mcp.prompt(…)` and `mcp.add_prompt(fn, …)` take these.

    Attributes:
        name: What clients ask for it by; the function's name if not given.
        title: What people read.
        description: What it is for; the docstring if not given.
        icons: Pictures, `https:` or `data:`.
        meta: Its definition's `_meta`.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Json] | None


def declare_prompt(
    function: Callable[..., Any], options: PromptOptions, *, workers: Workers, expose_errors: bool
) -> Prompt:
    """Make a prompt of a function.

    Args:
        function: Any callable whose parameters are texts.
        options: See `PromptOptions`.
        workers: The threads a sync function runs in.
        expose_errors: Whether a crash's own text is sent to the client.

    Raises:
        InvalidSignature: The function cannot be a prompt.
        InvalidDefinition: An option cannot be published.
        TypeError: An option that does not exist.
    """
    _check_option_names(options)
    if not callable(function):
        raise TypeError(f"a prompt is made of a function, got a value of type {type(function).__name__}")
    if inspect.isclass(function):
        raise InvalidSignature(f"{function!r} is a class; give a function, a method or an object with __call__")
    name = _name_of(function, options)
    texts = _find_texts(function)
    parameters = build_parameters(function, tool_name=name, context_type=Context)
    published: dict[str, dict[str, Any]] = parameters.schema["properties"]
    needed = set(parameters.schema.get("required", ()))
    named = dict(zip(published, texts, strict=True))
    implied = frozenset(key for key in needed if type(None) in _members_of(named[key].annotation))
    arguments = [
        PromptArgument(
            name=key,
            title=_title_of(parameter),
            description=published[key].get("description"),
            required=key in needed - implied,
        )
        for key, parameter in named.items()
    ]
    runner = Runner(
        function=function,
        tool_name=name,
        is_async=calls_asynchronously(function),
        timeout_seconds=None,
        finish=make_messages,
        gate=Gate(name, max_concurrency=None, rate_limit=None),
        workers=workers,
    )
    definition = _define(name, function, options, arguments=arguments)
    return Prompt(definition, parameters, implied, runner, expose_errors)


def _check_option_names(options: PromptOptions) -> None:
    for key in options:
        if key not in PromptOptions.__annotations__:
            near = difflib.get_close_matches(key, PromptOptions.__annotations__, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"a prompt has no option {key!r}{hint}")


def _name_of(function: Callable[..., Any], options: PromptOptions) -> str:
    given = options.get("name")
    name = name_callable(function) if given is None else given
    if name == "<lambda>":
        raise InvalidDefinition("a lambda has no name of its own; give the prompt one with name=")
    complaint = check_name(name, kind="prompt")
    if complaint is not None:
        warn_author(complaint)
    return name


def _find_texts(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Give the parameters that a client fills, refusing those that no text can."""
    texts = []
    for parameter in resolve_signature(function).parameters.values():
        kinds = [each for each in _members_of(parameter.annotation) if each is not type(None)]
        if kinds and all(isinstance(each, type) and issubclass(each, Context) for each in kinds):
            continue
        stars = _STARS.get(parameter.kind, "")
        if stars or kinds != [str]:
            written = inspect.formatannotation(parameter.annotation)
            got = "no annotation" if parameter.annotation is parameter.empty else f"{written:.80}"
            raise InvalidSignature(
                f"function {name_callable(function)!r}, parameter '{stars}{parameter.name}': the arguments of a prompt "
                f"are texts; expected str or str | None, got {got}; take each as text by its own name"
            )
        texts.append(parameter)
    return texts


def _members_of(annotation: Any) -> list[Any]:
    """Give the types of a union, or the one type, without what `Annotated` adds."""
    if get_origin(annotation) is Annotated:
        return _members_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [member for each in get_args(annotation) for member in _members_of(each)]
    return [annotation]


def _title_of(parameter: inspect.Parameter) -> str | None:
    """Give the title that a `Field` says; pydantic's own, made from the name, tells nobody anything."""
    metadata = get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()
    if not metadata and (parameter.default is parameter.empty or isinstance(parameter.default, str | None)):
        return None
    from pydantic.fields import FieldInfo  # noqa: PLC0415 - half of a server's start, where nobody uses it

    fields = [each for each in (parameter.default, *metadata) if isinstance(each, FieldInfo)]
    return next((field.title for field in fields if field.title), None)


def _define(
    name: str, function: Callable[..., Any], options: PromptOptions, *, arguments: list[PromptArgument]
) -> PromptDefinition:
    description, meta = options.get("description"), options.get("meta")
    if description is None:
        description = read_docstring(find_docstring(function)).description or None
    if not (meta is None or isinstance(meta, Mapping)):
        raise InvalidDefinition(f"prompt {name!r}, meta: expected a mapping, got {type(meta).__name__}")
    icons = check_icons(options.get("icons") or (), owner=f"prompt {name!r}")
    try:
        definition = PromptDefinition(
            name=name,
            title=options.get("title"),
            description=description,
            arguments=arguments or None,
            icons=list(icons) or None,
            meta=dict(meta) if meta else None,
        )
        encode_json(definition, what="its definition")  # what cannot be written is told now, not when somebody lists
    except (TypeError, ValueError) as error:
        raise InvalidDefinition(f"prompt {name!r} cannot be published: {error}") from None
    return definition
