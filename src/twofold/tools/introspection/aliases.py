"""Type aliases: `type Row = dict[str, int]`."""

import typing
from typing import Any, get_origin

import typing_extensions

from twofold.errors import InvalidSignature
from twofold.tools.introspection.signatures import UNREADABLE

ALIASES: tuple[type, ...] = (
    typing_extensions.TypeAliasType,
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),  # from Python 3.12 on
)
"""The class of aliases, by both of its names."""


def is_alias(annotation: Any) -> bool:
    """Say whether this is a type alias itself (`type Row = dict[str, int]`), not one with arguments."""
    return isinstance(annotation, ALIASES) and get_origin(annotation) is None


def value_of_alias(alias: Any) -> Any:
    """Give what a type alias stands for; from Python 3.12 on it is evaluated only now.

    Raises:
        InvalidSignature: It cannot be evaluated.
    """
    try:
        return alias.__value__
    except (NameError, *UNREADABLE) as error:
        raise InvalidSignature(
            f"type alias {alias.__name__!r} cannot be evaluated: {error}; define what it names before"
        ) from error
