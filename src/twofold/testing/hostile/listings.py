"""Misbehaviours of `tools/list`."""

from collections.abc import Callable, Iterator

import msgspec

from twofold.protocol.structs import Json
from twofold.testing.hostile.steps import Asked, Misbehaviour, Play, Say, Step, Wait, notification

LIST = "tools/list"
PAGE_TOOLS = 10_000
PAGES = 100

LISTINGS: dict[str, Misbehaviour] = {}
"""By name."""


def _list(play: Play) -> Play:
    """Put a misbehaviour into the table under its function's name; its docstring says what it is."""
    name = play.__name__
    LISTINGS[name] = Misbehaviour(name, (play.__doc__ or "").strip(), LIST, play)
    return play


@_list
def cursor_loop(asked: Asked) -> Iterator[Step]:
    """Two pages, each of which says that the other comes next."""
    following = "b" if asked.cursor == "a" else "a"
    yield Say(asked.answer(result={**asked.result, "nextCursor": following}))


@_list
def endless_cursors(asked: Asked) -> Iterator[Step]:
    """Empty pages without an end, each with a cursor of its own."""
    page = int(asked.cursor or 0) + 1
    yield Say(asked.answer(result={**asked.result, "tools": [], "nextCursor": str(page)}))


@_list
def slow_pages(asked: Asked) -> Iterator[Step]:
    """Empty pages without an end, one each 0.2 seconds."""
    yield Wait(0.2)
    yield from endless_cursors(asked)


@_list
def endless_cursor(asked: Asked) -> Iterator[Step]:
    """A cursor of a megabyte, longer on each page."""
    cursor = (asked.cursor or "") + "x" * 1_000_000
    yield Say(asked.answer(result={**asked.result, "nextCursor": cursor}))


@_list
def million_tools(asked: Asked) -> Iterator[Step]:
    """A million tools on a hundred pages."""
    page = int(asked.cursor or 0)
    tools = [b'{"name":"t%d","inputSchema":{"type":"object"}}' % (page * PAGE_TOOLS + n) for n in range(PAGE_TOOLS)]
    following = {} if page + 1 == PAGES else {"nextCursor": str(page + 1)}
    yield Say(asked.answer(result={**asked.result, "tools": msgspec.Raw(b"[%b]" % b",".join(tools)), **following}))


@_list
def broken_tools(asked: Asked) -> Iterator[Step]:
    """Definitions that are none, and one name twice, among the honest ones."""
    honest = asked.result["tools"]
    broken: list[Json] = [
        None,
        7,
        {},
        {"name": ""},
        {"name": "no_schema"},
        {"name": "text_schema", "inputSchema": "object"},
        {"name": "list_schema", "inputSchema": {"type": "array"}},
        {"name": "list_output", "inputSchema": {"type": "object"}, "outputSchema": []},
        {"name": "x" * 1_000_000, "inputSchema": {"type": "object"}, "outputSchema": 7},
        {"name": "echo", "inputSchema": {"type": "object"}},
        {"name": "odd_hints", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes", "spy": True}},
    ]
    yield Say(asked.answer(result={**asked.result, "tools": [*broken[:5], *honest, *broken[5:]]}))


@_list
def no_tools(asked: Asked) -> Iterator[Step]:
    """A text where the list of tools should be."""
    yield Say(asked.answer(result={**asked.result, "tools": "none"}))


@_list
def changed_always(asked: Asked) -> Iterator[Step]:
    """A list that is said to have changed before and after it is given, and not to stay fresh at all."""
    changed = Say(notification("notifications/tools/list_changed", {}))
    yield changed
    yield Say(asked.answer(result={**asked.result, "ttlMs": 0}))
    yield changed


@_list
def odd_freshness(asked: Asked) -> Iterator[Step]:
    """A list that stays fresh for 1e300 milliseconds."""
    yield Say(asked.answer(result={**asked.result, "ttlMs": 1e300, "cacheScope": ["public"]}))


def _open(play: Callable[[Asked], Iterator[Step]]) -> Play:
    name = play.__name__
    LISTINGS[name] = Misbehaviour(name, (play.__doc__ or "").strip(), "server/discover", play)
    return play


@_open
def unknown_revision(asked: Asked) -> Iterator[Step]:
    """A server that speaks the revision of another century only."""
    result = {**asked.result, "supportedVersions": ["2126-07-28"], "protocolVersion": "2126-07-28"}
    yield Say(asked.answer(result=result))


@_open
def odd_description(asked: Asked) -> Iterator[Step]:
    """A description whose every part is of another type than it should be."""
    result: Json = {"supportedVersions": {}, "protocolVersion": 7, "capabilities": "all", "serverInfo": [], "_meta": 7}
    yield Say(asked.answer(result=result))


@_open
def odd_name(asked: Asked) -> Iterator[Step]:
    """A server whose name is a number, and whose version is a megabyte."""
    info: Json = {"name": 7, "version": "9" * 1_000_000}
    meta: Json = {"io.modelcontextprotocol/serverInfo": info}
    yield Say(asked.answer(result={**asked.result, "serverInfo": info, "_meta": meta}))
