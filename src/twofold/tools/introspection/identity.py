"""Types whose description is the same each time, told apart from all others.

Many tools of one server return the same model or take the same few parameters. What such a type becomes can be
remembered, if nothing of an author's own code has a say in it and none of it can change: the types of JSON, pydantic
models of them, and lists, dicts and unions of all these.
"""

import functools
import sys
import types
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

_PLAIN: tuple[Any, ...] = (Any, str, int, float, bool, type(None), list, dict)
_NO_SCHEMAS = frozenset({"cls", "default", "expected", "function", "members", "metadata", "custom_error_context"})
"""Keys of a core schema under which an author's own things stand."""
_VALUES_BY_NAME = ("fields", "choices")
"""Keys under which schemas stand by names of the author's, who may call a field `metadata`."""

_WRITTEN_BY_AUTHORS = ("json_schema_extra", "model_title_generator", "field_title_generator", "schema_generator")
"""Words of a model's configuration by which an author's code writes a part of the schema."""
_ADDED_BY_AUTHORS = ("pydantic_js_annotation_functions", "pydantic_js_extra")
"""The same in a core schema's metadata."""


Thing = TypeVar("Thing")


class Identified(Generic[Thing]):
    """Something to be described, equal to another one if both are described alike.

    Args:
        thing: A type, or what has one.
        key: What its description depends on.
    """

    __slots__ = ("_key", "thing")

    def __init__(self, thing: Thing, key: Hashable) -> None:
        self.thing = thing
        self._key = key

    def __eq__(self, other: object) -> bool:
        """Compare the keys."""
        return isinstance(other, Identified) and self._key == other._key

    def __hash__(self) -> int:
        """Agree with `__eq__`."""
        return hash(self._key)


def identify(annotation: Any) -> Identified[Any] | None:
    """Make an annotation comparable.

    Args:
        annotation: An evaluated annotation. A model counts as another one once pydantic has built it anew.

    Returns:
        None where it may be described differently another time, and where that cannot be told.
    """
    key = _key_of(annotation)
    return None if key is None else Identified(annotation, key)


def _key_of(annotation: Any) -> Hashable | None:
    """Give a key in which the order of a union counts, which Python's own equality leaves out."""
    for one in _PLAIN:
        if annotation is one:  # an annotation may be anything, even what cannot be hashed
            return one  # type: ignore[no-any-return]  # types can be hashed
    origin = get_origin(annotation)
    if origin is None:
        return _key_of_model(annotation) if isinstance(annotation, type) else None
    if origin is types.UnionType:
        origin = Union
    if not (origin is list or origin is dict or origin is Union):
        return None
    parts = tuple(map(_key_of, get_args(annotation)))
    return None if any(part is None for part in parts) else (origin, parts)


def _key_of_model(cls: type) -> Hashable | None:
    from pydantic import BaseModel  # noqa: PLC0415 - loaded for types of its own alone, see `json_types`

    if not issubclass(cls, BaseModel):
        return None
    core = vars(cls).get("__pydantic_core_schema__")
    if not isinstance(core, dict):  # not complete, or a base class of pydantic's
        return None
    held = _Held(core)
    return held if _is_described_alike(held) else None


class _Held:
    """A core schema, compared by identity; while this lives, no other object has its identity."""

    __slots__ = ("core",)

    def __init__(self, core: Mapping[str, Any]) -> None:
        self.core = core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.core is other.core

    def __hash__(self) -> int:
        return id(self.core)


@functools.lru_cache(maxsize=512)
def _is_described_alike(held: _Held) -> bool:
    """Look for anything of an author's in a core schema that could write its JSON Schema differently each time."""
    stack: list[Any] = [held.core]
    while stack:
        part = stack.pop()
        if isinstance(part, list | tuple):
            stack.extend(part)
        elif isinstance(part, dict):
            if not _is_written_by_pydantic(part):
                return False
            for key, value in part.items():
                if key in _VALUES_BY_NAME and isinstance(value, dict):
                    stack.extend(value.values())
                elif key not in _NO_SCHEMAS:
                    stack.append(value)
    return True


def _is_written_by_pydantic(node: Mapping[str, Any]) -> bool:
    config = getattr(node.get("cls"), "model_config", {})
    if node.get("root_model") or any(word in config for word in _WRITTEN_BY_AUTHORS):
        return False
    metadata = node.get("metadata")
    if not isinstance(metadata, dict):
        return True
    functions = metadata.get("pydantic_js_functions", ())
    return all(map(_is_pydantics_own, functions)) and not any(metadata.get(word) for word in _ADDED_BY_AUTHORS)


def _is_pydantics_own(function: Any) -> bool:
    """Tell `BaseModel.__get_pydantic_json_schema__`, as every model has it, from an author's."""
    return str(getattr(getattr(function, "__func__", None), "__module__", "")) == "pydantic.main"


def is_encoded_bytes(owner: Any) -> bool:
    """Tell pydantic's `EncodedBytes` (`Base64Bytes` and its like), which encode and decode by themselves."""
    module = sys.modules.get("pydantic.types")  # what is not loaded has made nothing
    return module is not None and isinstance(owner, module.EncodedBytes)
