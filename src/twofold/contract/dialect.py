"""The JSON Schema dialects a schema may be written in."""

from typing import Any

import msgspec

from twofold.contract.plain import cut
from twofold.errors import InvalidDefinition


class Dialect(msgspec.Struct, frozen=True):
    """A dialect, as far as finding references needs to know it.

    Attributes:
        name: As in the specification's own URI.
        id_keyword: What names a subschema.
        ref_stands_alone: `$ref` makes everything beside it void.
    """

    name: str
    id_keyword: str = "$id"
    ref_stands_alone: bool = False


DRAFT_2020_12 = Dialect("2020-12")
_DIALECTS = {
    "json-schema.org/draft/2020-12/schema": DRAFT_2020_12,
    "json-schema.org/draft/2019-09/schema": Dialect("2019-09"),
    "json-schema.org/draft-07/schema": Dialect("draft-07", ref_stands_alone=True),
    "json-schema.org/draft-06/schema": Dialect("draft-06", ref_stands_alone=True),
    "json-schema.org/draft-04/schema": Dialect("draft-04", id_keyword="id", ref_stands_alone=True),
}


def read_dialect(schema: dict[str, Any] | bool, *, what: str) -> Dialect:
    """Tell a schema's dialect from its `$schema`; 2020-12 where it names none.

    Raises:
        InvalidDefinition: A dialect that is not known here; the message lists those that are.

    Source: MCP 2026-07-28, "JSON Schema usage".
    """
    if isinstance(schema, bool) or "$schema" not in schema:
        return DRAFT_2020_12
    named = schema["$schema"]
    if isinstance(named, str) and named.startswith(("https://", "http://")):
        dialect = _DIALECTS.get(named.removesuffix("#").partition("://")[2])
        if dialect is not None:
            return dialect
    raise InvalidDefinition(
        f"{what}: unknown dialect, $schema is {cut(repr(named))}; known are "
        f"{', '.join(known.name for known in _DIALECTS.values())} (2020-12 where $schema is absent)"
    )
