"""Parameters that HTTP clients mirror into `Mcp-Param-*` headers.

A client must drop a tool whose `x-mcp-header` breaks a rule, so the author is told at registration.

Source: MCP 2026-07-28, Tools, "x-mcp-header", and Streamable HTTP, "Custom Headers from Tool Parameters".
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from twofold.contract.plain import cut, format_pointer
from twofold.contract.sensitive import secret_word
from twofold.errors import InvalidDefinition
from twofold.protocol.headers import HeaderParameter

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

ANNOTATION = "x-mcp-header"
_SECRET_ALLOWED = "x-twofold-secret-allowed"  # noqa: S105 - a keyword, set by Header, taken out by check_headers
_MAX_SAFE_INTEGER = 2**53 - 1
_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z"
"""RFC 9110, section 5.6.2: `1*tchar`."""

# Keywords whose value is data, in which an annotation's name means nothing.
_DATA = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})
# Keywords whose value maps names to schemas: a name in it is no keyword.
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})

_Place: TypeAlias = tuple[str | int, ...]


class Header(msgspec.Struct, frozen=True):
    """Marks a parameter whose value HTTP clients mirror: `region: Annotated[str, Header("Region")]`.

    Args:
        name: The last part of the header's name: `Region` becomes `Mcp-Param-Region`.
        allow_secret: Lets a parameter through whose name announces a secret. Header values can be read and
            logged by everything between client and server.
    """

    name: str
    allow_secret: bool = False

    def __post_init__(self) -> None:
        """Refuse what would go out with the prefix twice."""
        if isinstance(self.name, str) and self.name.lower().startswith("mcp-param-"):
            raise InvalidDefinition(f"Header({self.name!r:.80}): give the part after 'Mcp-Param-' alone")

    def __get_pydantic_json_schema__(
        self, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        """Put the annotation into the parameter's schema."""
        schema = handler(core_schema)
        schema[ANNOTATION] = self.name
        if self.allow_secret:
            schema[_SECRET_ALLOWED] = True
        return schema


def check_headers(schema: dict[str, Any], *, tool_name: str, is_foreign: bool = False) -> tuple[HeaderParameter, ...]:
    """Check every `x-mcp-header` in an input schema, however it came there.

    Args:
        schema: The input schema. The mark that `Header(…, allow_secret=True)` leaves is taken out of it;
            nothing else is changed.
        tool_name: For messages.
        is_foreign: It is another server's, as its client sees it: secrets are that server's affair, and nothing
            is changed.

    Returns:
        The mirrored parameters, in the schema's order.

    Raises:
        InvalidDefinition: An annotation that breaks a rule of the specification, or on a parameter whose
            name announces a secret.
    """
    found: dict[str, HeaderParameter] = {}
    for place, node in list(_annotated(schema)):
        allow_secret = is_foreign or node.pop(_SECRET_ALLOWED, False)
        where = f"tool {tool_name!r}, {ANNOTATION} at {cut(format_pointer(place))}"
        path = _path(place, where=where)
        is_secret = any(secret_word(name) for name in path)
        parameter = HeaderParameter(path, _token(node[ANNOTATION], where), _type(node, where), is_secret=is_secret)
        if not allow_secret:
            _refuse_secret(parameter, where=where)
        taken = found.setdefault(parameter.header.lower(), parameter)
        if taken is not parameter:
            raise InvalidDefinition(
                f"{where}: the header {parameter.header!r} is taken by {'.'.join(taken.path)!r} "
                "(capitals do not count); give each its own"
            )
    return tuple(found.values())


def _annotated(schema: dict[str, Any]) -> Iterator[tuple[_Place, dict[str, Any]]]:
    """Find every schema with the annotation, anywhere, without recursion."""
    stack: list[tuple[_Place, Any, bool]] = [((), schema, False)]
    while stack:
        place, node, is_map = stack.pop()
        if isinstance(node, dict):
            if not is_map and ANNOTATION in node:
                yield place, node
            stack.extend(
                ((*place, key), child, not is_map and key in _MAPS)
                for key, child in reversed(node.items())
                if is_map or key not in _DATA
            )
        elif isinstance(node, list):
            stack.extend(((*place, index), node[index], False) for index in range(len(node) - 1, -1, -1))


def _path(place: _Place, *, where: str) -> tuple[str, ...]:
    """Read the chain of properties that leads to a parameter; only `properties` may be on the way."""
    keywords, names = place[0::2], place[1::2]
    stray = next((keyword for keyword in keywords if keyword != "properties"), None)
    if stray is None and len(names) == len(keywords) > 0:
        return tuple(str(name) for name in names)
    through = f"it stands under {stray!r}" if stray is not None else "it stands on no parameter"
    mend = "make it a plain parameter of the tool"
    if stray in ("anyOf", "oneOf"):
        mend = "give it one plain type: an optional one has a default that is not None"
    raise InvalidDefinition(
        f"{where}: only a parameter reached through 'properties' alone can be mirrored, and {through}; {mend}"
    )


def _token(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidDefinition(f"{where}: a header's name is text that is not empty, got {cut(repr(name))}")
    if not re.match(_TCHARS, name):
        raise InvalidDefinition(
            f"{where}: {cut(repr(name))} is no header name; allowed are letters, digits and !#$%&'*+-.^_`|~ "
            "(RFC 9110), so no spaces, colons or line breaks"
        )
    return name


def _type(node: dict[str, Any], where: str) -> str:
    kind = node.get("type")
    if kind == "integer":
        _check_range(node, where)
    if kind in ("string", "integer", "boolean"):
        return str(kind)
    if kind is None:
        what = "one without a plain type: a union, an optional, or a $ref (for an Enum, use Literal)"
    else:
        what = f"one of type {cut(repr(kind))}"
    raise InvalidDefinition(f"{where}: only a string, integer or boolean parameter can be mirrored, this is {what}")


def _check_range(node: dict[str, Any], where: str) -> None:
    """Refuse integers that a JavaScript client or proxy cannot hold exactly."""
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const", "default", "enum"):
        slack = 1 if keyword.startswith("exclusive") else 0
        values = node.get(keyword)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, int | float) and abs(value) > _MAX_SAFE_INTEGER + slack:
                raise InvalidDefinition(
                    f"{where}: {keyword} {cut(repr(value))} is beyond what a header may carry, "
                    f"-(2^53-1) to 2^53-1 ({_MAX_SAFE_INTEGER})"
                )


def _refuse_secret(parameter: HeaderParameter, *, where: str) -> None:
    for name in parameter.path:
        word = secret_word(name)
        if word is not None:
            raise InvalidDefinition(
                f"{where}: the parameter {cut(repr(name))} is named like a secret ({word!r}), and everything on the "
                "way can read headers; do not mirror it, or write "
                f"Header({parameter.header!r}, allow_secret=True)"
            )
