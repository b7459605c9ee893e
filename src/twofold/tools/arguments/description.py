"""What a function's parameters are to pydantic, and to JSON Schema.

All parameters together are described as one TypedDict. Where all are of JSON's own types, that is written down here;
what one of them becomes depends on nothing else in the signature, and is remembered: tools of one server have many
parameters in common (`query: str`, `limit: int = 10`). Everything else is for pydantic to describe.
"""

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Any, Union

import msgspec
from pydantic_core import core_schema

from twofold.tools.arguments.strictness import Node
from twofold.tools.introspection.identity import Identified, identify
from twofold.tools.introspection.json_types import copy_json, describe_json_type

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MAX_INTEGER_BITS = 64


class Description(msgspec.Struct, frozen=True):
    """What a signature's parameters are to pydantic, and to JSON Schema.

    Attributes:
        core: The core schema: a TypedDict, maybe among definitions. What the function itself has as a default is no
            default in it, so that what is absent stays absent.
        schema: The JSON Schema, which belongs to who asked for it.
        is_plain: A validator of the core schema, restricted as it may be, surely can be made.
    """

    core: Node
    schema: dict[str, Any]
    is_plain: bool


def describe_parameters(parameters: Sequence[inspect.Parameter], *, title: str, label: str) -> Description:
    """Describe parameters.

    Args:
        parameters: Those that a call fills.
        title: The schema's title.
        label: Names the function in messages.

    Raises:
        InvalidSignature: One of them cannot come from JSON by its name, and why.
    """
    known = {parameter.name: _recall(parameter) for parameter in parameters}
    plain = {name: one for name, one in known.items() if one is not None}
    if len(plain) == len(parameters):
        return _compose(plain, title=title)
    # half of a server's start, where all other tools take and return JSON's own types
    from twofold.tools.arguments.by_pydantic import describe_by_pydantic  # noqa: PLC0415 - see above

    core, schema, is_plain = describe_by_pydantic(parameters, title=title, label=label)
    return Description(core, schema, is_plain)


class _Plain(msgspec.Struct, frozen=True):
    """What one parameter of JSON's own types becomes.

    Attributes:
        core: Its field in the core schema.
        published: Its property in the JSON Schema; nobody changes it.
        is_required: Whether the JSON Schema requires it.
    """

    core: Node
    published: dict[str, Any]
    is_required: bool


def _recall(parameter: inspect.Parameter) -> _Plain | None:
    """Describe a parameter, or remember it; None where it is for pydantic to describe."""
    default = parameter.default
    if parameter.kind in _VARIADIC or not (default is parameter.empty or _is_plain_default(default)):
        return None
    identified = identify(Any if parameter.annotation is parameter.empty else parameter.annotation)
    if identified is None:
        return None
    key = (parameter.name, identified, type(default), repr(default))  # 1, True and 1.0 are equal to Python
    return _describe_plain(Identified((parameter.name, identified.thing, default), key))


def _is_plain_default(default: Any) -> bool:
    """Tell a default that surely can be written as it is."""
    if type(default) is str:
        return default.isascii()
    if type(default) is float:
        return math.isfinite(default)
    return (
        default is None or type(default) is bool or (type(default) is int and default.bit_length() <= _MAX_INTEGER_BITS)
    )


@functools.lru_cache(maxsize=4096)
def _describe_plain(identified: Identified[tuple[str, Any, Any]]) -> _Plain | None:
    name, annotation, default = identified.thing
    described = describe_json_type(annotation)
    if described is not None and default is None and described.core["type"] not in ("nullable", "none", "any"):
        described = describe_json_type(Union[annotation, None])  # noqa: UP007 - made at run time: `x: str = None`
    if described is None:
        return None
    is_required = default is inspect.Parameter.empty
    published = described.schema if is_required else {**described.schema, "default": default}
    title = name.title().replace("_", " ").strip()  # pydantic's way to make one
    field = core_schema.typed_dict_field(described.core, required=is_required)
    return _Plain(field, dict(sorted({**published, "title": title}.items())), is_required)


def _compose(parameters: dict[str, _Plain], *, title: str) -> Description:
    """Put together what pydantic would make of all of them."""
    core = {"type": "typed-dict", "fields": {name: one.core for name, one in parameters.items()}}
    schema: dict[str, Any] = {"properties": {name: copy_json(one.published) for name, one in parameters.items()}}
    required = [name for name, one in parameters.items() if one.is_required]
    if required:
        schema["required"] = required
    return Description(core, schema | {"title": title, "type": "object"}, is_plain=True)
