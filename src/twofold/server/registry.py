"""What one server offers: tools and prompts, added, removed, listed in a fixed order, in pages made once."""

import base64
import binascii
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

import msgspec

from twofold.errors import InvalidDefinition, InvalidParams
from twofold.prompts.prompt import Prompt
from twofold.protocol.headers import HeaderParameter
from twofold.protocol.messages import ListName
from twofold.protocol.wire import Codec
from twofold.tools.checks.names import near_names
from twofold.tools.declare import Tool
from twofold.tools.describe import describe
from twofold.tools.run import Gate, Runner
from twofold.tools.workers import Workers

MAX_PAGES = 1000
"""Pages kept as bytes, over all revisions; any other is made anew when it is asked for."""

Entry = TypeVar("Entry")


class Placed(msgspec.Struct, Generic[Entry], frozen=True):
    """An entry and its place in the order."""

    entry: Entry
    place: int


class Listing(Generic[Entry]):
    """Entries of one kind by name, in the order they were added.

    Args:
        kind: What one of them is called, for messages: `tool`.
        page_size: Entries in one page.
        write_page: Writes a page for one era, given its entries and the cursor that leads on.
        on_change: Called after each addition and removal, from whatever thread made it.
    """

    def __init__(
        self,
        kind: str,
        *,
        page_size: int,
        write_page: Callable[[Codec, Sequence[Entry], str | None], bytes],
        on_change: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._placed: dict[str, Placed[Entry]] = {}
        self._next_place = 0
        self._lock = threading.Lock()
        self._page_size = page_size
        self._write_page = write_page
        self._on_change = on_change
        self._pages: dict[tuple[str, int], bytes] = {}

    def __iter__(self) -> Iterator[Entry]:
        """Go through the entries in their order."""
        return (placed.entry for placed in list(self._placed.values()))

    @property
    def was_used(self) -> bool:
        """Whether there is an entry, or ever was one."""
        return self._next_place > 0

    def add(self, name: str, entry: Entry) -> None:
        """Take an entry in.

        Raises:
            InvalidDefinition: Its name is taken.
        """
        with self._lock:
            if name in self._placed:
                raise InvalidDefinition(
                    f"{self._kind} {name!r} is there already; give this one another name=, "
                    f"or remove_{self._kind}({name!r}) first"
                )
            self._placed[name] = Placed(entry, self._next_place)
            self._next_place += 1
        self._changed()

    def remove(self, name: str) -> None:
        """Take an entry out; calls that are running go on to their end.

        Raises:
            KeyError: There is none of that name.
        """
        with self._lock:
            if self._placed.pop(name, None) is None:
                raise KeyError(f"no {self._kind} {name!r}{_hint(name, self._placed)}")
        self._changed()

    def find(self, name: str) -> Entry | None:
        """Find an entry, or None."""
        placed = self._placed.get(name)
        return None if placed is None else placed.entry

    def get(self, name: str) -> Entry:
        """Find an entry for a call.

        Raises:
            InvalidParams: There is none of that name; the message has near ones.
        """
        placed = self._placed.get(name)
        if placed is None:
            raise InvalidParams(f"Unknown {self._kind}: {name!r:.80}{_hint(name, self._placed)}")
        return placed.entry

    def page(self, codec: Codec, cursor: str | None) -> bytes:
        """Answer a request for the list in one era, from bytes made once until the list changes.

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
        rest = [placed for placed in list(self._placed.values()) if placed.place > after]
        shown = rest[: self._page_size]
        next_cursor = _encode_cursor(shown[-1].place) if len(rest) > len(shown) else None
        return self._write_page(codec, [placed.entry for placed in shown], next_cursor)

    def _changed(self) -> None:
        self._pages = {}
        self._on_change()


class Registered(msgspec.Struct, frozen=True):
    """A tool in a server: its record, and what runs it."""

    tool: Tool
    runner: Runner


class Registry:
    """What one server offers.

    Args:
        page_size: Entries in one page of a list.
        on_change: Called after each change of a list, from whatever thread made it.

    Attributes:
        tools: What `tools/list` shows.
        prompts: What `prompts/list` shows.
        workers: The threads in which sync functions run.
    """

    def __init__(self, *, page_size: int, on_change: Callable[[ListName], None]) -> None:
        self.tools: Listing[Registered] = Listing(
            "tool", page_size=page_size, write_page=_write_tools, on_change=partial(on_change, "tools")
        )
        self.prompts: Listing[Prompt] = Listing(
            "prompt", page_size=page_size, write_page=_write_prompts, on_change=partial(on_change, "prompts")
        )
        self.workers = Workers()

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
        self.tools.add(tool.name, Registered(tool, runner))

    def get(self, name: str) -> Registered:
        """Find a tool for a call.

        Raises:
            InvalidParams: There is none of that name; the message has near ones.
        """
        return self.tools.get(name)

    def mirrored(self, name: str) -> tuple[HeaderParameter, ...]:
        """Give the parameters of a tool that HTTP clients mirror; none of a tool there is not."""
        registered = self.tools.find(name)
        return () if registered is None else registered.tool.headers


def _write_tools(codec: Codec, shown: Sequence[Registered], next_cursor: str | None) -> bytes:
    definitions = [codec.definition(describe(registered.tool, any_root=codec.allows_any_root)) for registered in shown]
    return codec.tools_page(definitions, next_cursor)


def _write_prompts(codec: Codec, shown: Sequence[Prompt], next_cursor: str | None) -> bytes:
    return codec.prompts_page([codec.prompt_definition(prompt.definition) for prompt in shown], next_cursor)


def _hint(name: str, names: Iterable[str]) -> str:
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
