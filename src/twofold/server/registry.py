"""The tools of one server: added, removed, listed in a fixed order, in pages made once."""

import base64
import binascii
import threading
from collections.abc import Callable, Iterator

import msgspec

from twofold.errors import InvalidDefinition, InvalidParams
from twofold.protocol.headers import HeaderParameter
from twofold.protocol.wire import Codec
from twofold.tools.checks.names import near_names
from twofold.tools.declare import Tool
from twofold.tools.describe import describe
from twofold.tools.run import Gate, Runner
from twofold.tools.workers import Workers

MAX_PAGES = 1000
"""Pages kept as bytes, over all revisions; any other is made anew when it is asked for."""


class Registered(msgspec.Struct, frozen=True):
    """A tool in a server: its record, what runs it, and its place in the order."""

    tool: Tool
    runner: Runner
    place: int


class Registry:
    """Tools by name, in the order they were added.

    Args:
        page_size: Tools in one page of `tools/list`.
        on_change: Called after each addition and removal, from whatever thread made it.
    """

    def __init__(self, *, page_size: int, on_change: Callable[[], None]) -> None:
        self._tools: dict[str, Registered] = {}
        self._next_place = 0
        self._lock = threading.Lock()
        self._page_size = page_size
        self._on_change = on_change
        self._pages: dict[tuple[str, int], bytes] = {}
        self.workers = Workers()

    def __iter__(self) -> Iterator[Tool]:
        """Go through the tools in their order."""
        return (registered.tool for registered in list(self._tools.values()))

    def add(self, tool: Tool) -> None:
        """Take a tool in.

        Raises:
            InvalidDefinition: Its name is taken.
        """
        gate = Gate(tool.name, max_concurrency=tool.max_concurrency, rate_limit=tool.rate_limit)
        runner = Runner(
            function=tool.function,
            tool_name=tool.name,
            is_async=tool.is_async,
            timeout_seconds=tool.timeout_seconds,
            finish=tool.returns.finish,
            gate=gate,
            workers=self.workers,
        )
        with self._lock:
            if tool.name in self._tools:
                raise InvalidDefinition(
                    f"tool {tool.name!r} is there already; give this one another name=, "
                    f"or remove_tool({tool.name!r}) first"
                )
            self._tools[tool.name] = Registered(tool, runner, self._next_place)
            self._next_place += 1
        self._changed()

    def remove(self, name: str) -> None:
        """Take a tool out; calls that are running go on to their end.

        Raises:
            KeyError: There is none of that name.
        """
        with self._lock:
            if self._tools.pop(name, None) is None:
                raise KeyError(f"no tool {name!r}{_hint(name, self._tools)}")
        self._changed()

    def get(self, name: str) -> Registered:
        """Find a tool for a call.

        Raises:
            InvalidParams: There is none of that name; the message has near ones.
        """
        registered = self._tools.get(name)
        if registered is None:
            raise InvalidParams(f"Unknown tool: {name!r:.80}{_hint(name, self._tools)}")
        return registered

    def mirrored(self, name: str) -> tuple[HeaderParameter, ...]:
        """Give the parameters of a tool that HTTP clients mirror; none of a tool there is not."""
        registered = self._tools.get(name)
        return () if registered is None else registered.tool.headers

    def page(self, codec: Codec, cursor: str | None) -> bytes:
        """Answer `tools/list` for one era, from bytes made once until the tools change.

        Raises:
            InvalidParams: A cursor this server never gave.
        """
        after = -1 if cursor is None else _decode_cursor(cursor)
        key = (codec.revision, after)
        pages = self._pages  # a change from another thread replaces it: what is made now goes with the old ones
        page = pages.get(key)
        if page is None:
            page = self._make_page(codec, after)
            if len(pages) < MAX_PAGES:  # a peer can make up cursors, and must not fill the store with them
                pages[key] = page
        return page

    def _make_page(self, codec: Codec, after: int) -> bytes:
        rest = [registered for registered in list(self._tools.values()) if registered.place > after]
        shown = rest[: self._page_size]
        next_cursor = _encode_cursor(shown[-1].place) if len(rest) > len(shown) else None
        definitions = [
            codec.definition(describe(registered.tool, any_root=codec.allows_any_root)) for registered in shown
        ]
        return codec.tools_page(definitions, next_cursor)

    def _changed(self) -> None:
        self._pages = {}
        self._on_change()


def _hint(name: str, names: dict[str, Registered]) -> str:
    near = near_names(name, names)
    return f"; did you mean {' or '.join(repr(each) for each in near)}?" if near else ""


def _encode_cursor(place: int) -> str:
    return base64.urlsafe_b64encode(b"after:%d" % place).decode()


def _decode_cursor(cursor: str) -> int:
    try:
        prefix, _, place = base64.b64decode(cursor, altchars=b"-_", validate=True).partition(b":")
        if prefix == b"after" and place.isdigit() and len(place) < 16:
            return int(place)
    except (binascii.Error, ValueError):
        pass
    raise InvalidParams(f"the cursor {cursor!r:.80} was not given by this server; list again from the start")
