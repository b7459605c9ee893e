"""What a server lists: definitions read leniently, so that a malformed one costs no other.

Source: MCP 2026-07-28, tools, "Listing Tools" and "Tool"; basic, "Caching".
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, overload

import msgspec

from twofold.client.decoding import UnreadableAnswer, decode, decode_any
from twofold.contract.plain import cut, describe
from twofold.contract.verdict import OutputSchema
from twofold.errors import InvalidDefinition
from twofold.protocol.headers import HeaderParameter
from twofold.protocol.jsonrpc import TOO_DEEP
from twofold.protocol.structs import Json
from twofold.protocol.tool import Icon, ToolAnnotations, ToolDefinition
from twofold.tools.checks.headers import ANNOTATION, check_headers
from twofold.tools.describe import WRAPPED_MARK

CacheScope: TypeAlias = Literal["public", "private"]


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as its server lists it, and what a client has to know to call it.

    Attributes:
        definition: What the server says of it; what could not be read of it is left out.
        parameters: Arguments that are mirrored into headers over HTTP.
        header_fault: Why a client over HTTP has to leave the tool out; None if it has not.
        output: Its output schema, compiled when it is first needed; None where none is published.
        is_wrapped: Its structure stands in `{"result": …}` for no reason of its author's.
        notes: What was wrong with the definition and did no harm.
    """

    definition: ToolDefinition
    parameters: tuple[HeaderParameter, ...] = ()
    header_fault: str | None = None
    output: OutputSchema | None = None
    is_wrapped: bool = False
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


class Page(msgspec.Struct, frozen=True):
    """One answer to `tools/list`.

    Attributes:
        tools: The tools, in the server's order; no name comes twice.
        rejected: Those that cannot be used, each with the reason, by name (by place where it has no readable one).
        next_cursor: Where the next page begins; None on the last.
        ttl_milliseconds: How long the page stays fresh; None where the server does not say.
        cache_scope: Whether one caller's copy may serve another; None where the server does not say.
    """

    tools: list[ListedTool]
    rejected: dict[str, str]
    next_cursor: str | None = None
    ttl_milliseconds: int | None = None
    cache_scope: CacheScope | None = None


class ToolListing:
    """The tools of a server, in its order. Goes through them, counts them, finds one by its name.

    Attributes:
        tools: The definitions.
    """

    __slots__ = ("_by_name", "tools")

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self.tools = list(tools)
        self._by_name = {tool.name: tool for tool in self.tools}

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name if isinstance(name, str) else name in self.tools

    @overload
    def __getitem__(self, key: int | str) -> ToolDefinition: ...
    @overload
    def __getitem__(self, key: slice) -> list[ToolDefinition]: ...
    def __getitem__(self, key: int | str | slice) -> ToolDefinition | list[ToolDefinition]:
        """Give a tool by its name, or by its place.

        Raises:
            KeyError: No tool has the name.
            IndexError: There are not so many.
        """
        if isinstance(key, str):
            if key not in self._by_name:
                raise KeyError(f"the server lists no tool {key!r:.80}; it lists {cut(', '.join(self._by_name))}")
            return self._by_name[key]
        return self.tools[key]

    def __repr__(self) -> str:
        return f"ToolListing({list(self._by_name)})"


class Listing:
    """The whole of a server's tools over all pages; made by `of`.

    Attributes:
        tools: The definitions, for whoever asks for the list.
        rejected: Tools that were left out, each with the reason, by name (by place where that is not to be had).
        ttl_milliseconds: How long all of it stays fresh, the least that any page says; None where none does.
        cache_scope: `private` if any page is; None where no page says.
    """

    __slots__ = ("_by_name", "cache_scope", "rejected", "tools", "ttl_milliseconds")

    def __init__(
        self,
        tools: Sequence[ListedTool],
        *,
        rejected: dict[str, str],
        ttl_milliseconds: int | None,
        cache_scope: CacheScope | None,
    ) -> None:
        self._by_name = {tool.name: tool for tool in tools}
        self.tools = ToolListing([tool.definition for tool in tools])
        self.rejected = rejected
        self.ttl_milliseconds = ttl_milliseconds
        self.cache_scope = cache_scope

    @classmethod
    def of(cls, pages: Sequence[Page], *, drops_bad_headers: bool = False) -> "Listing":
        """Put pages together.

        Args:
            pages: In the server's order.
            drops_bad_headers: Leave tools out whose `x-mcp-header` breaks a rule, as a client over HTTP must.
        """
        shelf = _Shelf()
        for page in pages:
            for name, reason in page.rejected.items():
                shelf.reject(name, reason)
            for tool in page.tools:
                if drops_bad_headers and tool.header_fault is not None:
                    shelf.reject(tool.name, tool.header_fault)
                else:
                    shelf.add(tool)
        lifetimes = [page.ttl_milliseconds for page in pages if page.ttl_milliseconds is not None]
        scopes = {page.cache_scope for page in pages} - {None}
        return cls(
            list(shelf.tools.values()),
            rejected=shelf.rejected,
            ttl_milliseconds=min(lifetimes, default=None),
            cache_scope="private" if "private" in scopes else "public" if scopes else None,
        )

    def find(self, name: str) -> ListedTool | None:
        """Give what is known of a tool; None where it is not listed."""
        return self._by_name.get(name)


MAX_REJECTED = 1000
"""Rejections that are told of one listing."""


class _Shelf:
    """Tools by name, of which the first to come stays."""

    def __init__(self) -> None:
        self.tools: dict[str, ListedTool] = {}
        self.rejected: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, tool: ListedTool) -> None:
        if self.tools.setdefault(tool.name, tool) is not tool:
            self.reject(tool.name, f"tool {cut(repr(tool.name))} is listed twice; the first is taken")

    def reject(self, name: str, reason: str) -> None:
        """Note a rejection under a name that is neither taken nor that of a tool that can be used."""
        if len(self.rejected) >= MAX_REJECTED:
            return
        key = name
        while key in self.tools or key in self.rejected:
            count = self._counts[name] = self._counts.get(name, 1) + 1
            key = f"{name} ({count})"
        self.rejected[key] = reason


class _RawPage(msgspec.Struct, frozen=True):
    """A page of which only the list is surely what it should be."""

    tools: list[msgspec.Raw]
    next_cursor: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="nextCursor")
    ttl: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="ttlMs")
    scope: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="cacheScope")


_pages = msgspec.json.Decoder(_RawPage)
_definitions = msgspec.json.Decoder(ToolDefinition)


def read_page(raw: bytes | msgspec.Raw) -> Page:
    """Read one result of `tools/list`, of any revision.

    Args:
        raw: The JSON of the result.

    Returns:
        The page. A malformed definition is rejected by itself; an unknown or wrongly typed hint counts as unset.

    Raises:
        UnreadableAnswer: It is no JSON, no object, or has no list of tools.
    """
    page = decode(_pages, raw, what="the list of tools")
    shelf = _Shelf()
    for place, each in enumerate(page.tools, 1):
        try:
            shelf.add(_read_tool(bytes(each)))
        except _Malformed as error:
            shelf.reject(error.name or f"(entry {place})", str(error))
    cursor = decode_any(page.next_cursor, what="the list's cursor")
    if cursor is not None and not isinstance(cursor, str):
        shelf.reject(
            "(next page)", f"the cursor of a next page is text, got {describe(cursor)}; what follows is not read"
        )
    scope = decode_any(page.scope, what="cacheScope")
    return Page(
        list(shelf.tools.values()),
        shelf.rejected,
        next_cursor=cursor if isinstance(cursor, str) else None,
        ttl_milliseconds=_read_lifetime(decode_any(page.ttl, what="ttlMs")),
        cache_scope="public" if scope == "public" else "private" if scope == "private" else None,
    )


def _read_lifetime(value: object) -> int | None:
    """Read `ttlMs`; one that is no number counts as unsaid, one below zero as zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return max(0, int(value))


class _Malformed(Exception):
    """A definition that nothing can be made of."""

    def __init__(self, name: str, clause: str) -> None:
        super().__init__(f"tool {cut(repr(name))}: {clause}" if name else clause)
        self.name = name


def _read_tool(raw: bytes) -> ListedTool:
    notes: list[str] = []
    if _CUT in raw:
        raise _Malformed(_read_name(raw), "its definition is nested too deeply to be read")
    try:
        definition = _definitions.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        definition, notes = _read_leniently(raw)
    name = definition.name
    if not name:
        raise _Malformed("", "a tool's name is text that is not empty, got an empty one")
    _check_input_schema(name, definition.input_schema)
    parameters: tuple[HeaderParameter, ...] = ()
    header_fault = None
    if ANNOTATION.encode() in raw or b"\\u" in raw:  # most tools have none, and to look takes long
        try:
            parameters = check_headers(definition.input_schema, tool_name=name, is_foreign=True)
        except InvalidDefinition as error:
            header_fault = str(error)
    schema = definition.output_schema
    output = None if schema is None else OutputSchema(schema, what=f"tool {cut(repr(name))}, output schema")
    return ListedTool(definition, parameters, header_fault, output, _is_wrapped(definition), tuple(notes))


_CUT = TOO_DEEP.encode()


def _read_name(raw: bytes) -> str:
    fields = decode_any(raw, what="its definition")
    name = fields.get("name") if isinstance(fields, dict) else None
    return name if isinstance(name, str) and name != TOO_DEEP else ""


def _check_input_schema(name: str, schema: dict[str, Json]) -> None:
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise _Malformed(name, f"its input schema has to be of type 'object', got {describe(kind)}")


def _is_wrapped(definition: ToolDefinition) -> bool:
    """Tell whether results stand in `{"result": …}` for no reason of the author's.

    Our servers mark it. Of others it is only believed where the schema is what their frameworks make for a function
    of the tool's very name; an author's class of one field has a name of its own. What is in doubt stays as it is.
    """
    schema = definition.output_schema
    if schema is None or not _has_only_result(schema):
        return False
    is_marked = (definition.meta or {}).get(WRAPPED_MARK) is True
    return is_marked or (schema.get("title") == f"{definition.name}Output" and schema.get("required") == ["result"])


def _has_only_result(schema: dict[str, Json]) -> bool:
    properties = schema.get("properties")
    return isinstance(properties, dict) and set(properties) == {"result"}


# --- definitions that are not quite what they should be ------------------------------------------------


def _read_leniently(raw: bytes) -> tuple[ToolDefinition, list[str]]:
    """Read a definition field by field; what is not needed and cannot be read is left out, with a note.

    Raises:
        _Malformed: What is needed cannot be read.
    """
    try:
        fields = decode_any(raw, what="its definition")
    except UnreadableAnswer as error:
        raise _Malformed("", str(error)) from None
    if not isinstance(fields, dict):
        raise _Malformed("", f"a tool's definition is an object, got {describe(fields)}")
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise _Malformed("", f"a tool's name is text that is not empty, got {describe(name)}")
    schema = fields.get("inputSchema")
    if not isinstance(schema, dict):
        got = describe(schema) if "inputSchema" in fields else "nothing"
        raise _Malformed(name, f"its input schema has to be an object, got {got}")
    notes: list[str] = []
    texts = {key: _keep(fields, key, str, notes) for key in ("title", "description")}
    definition = ToolDefinition(
        name=name,
        input_schema=schema,
        output_schema=_read_output_schema(name, fields.get("outputSchema")),
        annotations=_read_hints(_keep(fields, "annotations", dict, notes), notes),
        icons=_read_icons(_keep(fields, "icons", list, notes), notes),
        meta=_keep(fields, "_meta", dict, notes),
        **texts,
    )
    return definition, [f"tool {cut(repr(name))}: {note}" for note in notes]


def _keep(fields: dict[str, Any], key: str, kind: type, notes: list[str]) -> Any:
    """Give a field that is of its type, else None."""
    value = fields.get(key)
    if value is None or isinstance(value, kind):
        return value
    notes.append(f"{key} is left out, as it cannot be {describe(value)}")
    return None


def _read_output_schema(name: str, schema: Any) -> dict[str, Json] | None:
    """Read a schema; the two boolean ones are restated as objects, which say the same."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if schema is None or isinstance(schema, dict):
        return schema
    raise _Malformed(name, f"its output schema has to be an object or a boolean, got {describe(schema)}")


def _read_hints(hints: dict[str, Any] | None, notes: list[str]) -> ToolAnnotations | None:
    """Read hints one by one: one that is unknown or wrongly typed counts as unset."""
    if hints is None:
        return None
    known: dict[str, Any] = {}
    for field, wire_name in zip(
        ToolAnnotations.__struct_fields__, ToolAnnotations.__struct_encode_fields__, strict=True
    ):
        kind = str if field == "title" else bool
        value = hints.get(wire_name)
        if isinstance(value, kind):
            known[field] = value
        elif value is not None:
            notes.append(f"the hint {wire_name} counts as unset, as it cannot be {describe(value)}")
    notes += [
        f"the hint {cut(repr(key))} is unknown and left out"
        for key in hints
        if key not in ToolAnnotations.__struct_encode_fields__
    ]
    return ToolAnnotations(**known)


def _read_icons(icons: list[Any] | None, notes: list[str]) -> list[Icon] | None:
    """Read icons one by one: a bad one is left out."""
    kept: list[Icon] = []
    for icon in icons or ():
        known = (
            {key: icon[key] for key in Icon.__struct_encode_fields__ if icon.get(key) is not None}
            if isinstance(icon, dict)
            else icon
        )
        try:
            kept.append(msgspec.convert(known, Icon))
        except msgspec.ValidationError as error:
            notes.append(f"an icon is left out: {cut(str(error))}")
    return kept or None
