"""A server's listing of tools as a client keeps it: read once, as long as it holds, within bounds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from twofold.client.listing import ListedTool, Listing, Page, read_page
from twofold.errors import MethodNotFound, NotSent, ProtocolError, TransportError

logger = logging.getLogger("twofold")

MAX_PAGES = 1000
MAX_TOOLS = 100_000
MAX_LISTING_BYTES = 64 * 1024 * 1024
MAX_CURSOR_CHARACTERS = 64 * 1024
"""What one listing may have; each page costs a request that repeats the cursor."""

AskPage: TypeAlias = Callable[[str | None], Awaitable[msgspec.Raw]]
"""Asks for one page, given the cursor."""


class ToolCache:
    """The listing of one server.

    Args:
        name: The server's, for messages.
        ask: Asks for a page.
    """

    def __init__(self, name: str, ask: AskPage) -> None:
        self._name = name
        self._ask = ask
        self._listing: Listing | None = None
        self._read_at = 0.0
        self._has_changed = False
        self._lists_nothing = False  # the server does not know the method
        self._lock = asyncio.Lock()

    @property
    def rejected(self) -> dict[str, str]:
        """Tools that were left out, each with the reason."""
        return {} if self._listing is None else dict(self._listing.rejected)

    def mark_changed(self) -> None:
        """Have it read anew before it is used again."""
        self._has_changed = True

    def known(self, name: str) -> ListedTool | None:
        """Give what is known of a tool, without asking."""
        return None if self._listing is None else self._listing.find(name)

    def is_stale(self) -> bool:
        """Tell whether the listing has changed, or is older than the server says it holds."""
        listing = self._listing
        if listing is None or self._has_changed:
            return True
        age = asyncio.get_running_loop().time() - self._read_at
        return listing.ttl_milliseconds is not None and age * 1000 >= listing.ttl_milliseconds

    @property
    def is_due(self) -> bool:
        """Whether the listing has to be read before a call.

        One that holds no time at all is read again only when a result seems to break it: a call must not cost a
        listing each time.
        """
        return self._listing is None or self._has_changed or (self.is_stale() and bool(self._listing.ttl_milliseconds))

    async def find(self, name: str, *, drops_bad_headers: bool) -> ListedTool | None:
        """Find what is known of a tool: the listing is read once, and again after it has changed.

        A server that lists nothing costs one request; its tools can be called all the same.

        Raises:
            TransportError: There was no answer, or none that can be read.
        """
        if self.is_due:
            try:
                await self.fresh(drops_bad_headers=drops_bad_headers)
            except ProtocolError as error:
                if error.code != MethodNotFound.fixed_code:
                    raise NotSent(f"{self._name} does not list its tools, so nothing was called: {error}") from error
                logger.info("%s lists no tools: %s", self._name, error)
                self._listing, self._has_changed, self._lists_nothing = Listing.of([]), False, True
                self._read_at = asyncio.get_running_loop().time()
        return self.known(name)

    async def fresh(self, *, drops_bad_headers: bool) -> Listing:
        """Give the listing, read anew if it is stale.

        Raises:
            TransportError: There was no answer, or none that can be read.
            ProtocolError: The server answered with an error.
        """
        async with self._lock:
            if self._listing is None or self._lists_nothing or self.is_stale():
                self._has_changed = self._lists_nothing = False  # what changes from here on makes it stale again
                try:
                    pages = await self._read_pages()
                except BaseException:
                    self._has_changed = True
                    raise
                self._listing = Listing.of(pages, drops_bad_headers=drops_bad_headers)
                self._read_at = asyncio.get_running_loop().time()
            return self._listing

    async def _read_pages(self) -> list[Page]:
        pages: list[Page] = []
        cursor: str | None = None
        seen: set[str] = set()
        size = count = 0
        while len(pages) < MAX_PAGES:
            raw = await self._ask(cursor)
            size += len(raw)
            try:
                page = read_page(raw)
            except ValueError as error:
                raise TransportError(f"{self._name}: its list of tools cannot be read: {error}") from error
            pages.append(page)
            count += len(page.tools) + len(page.rejected)
            if size > MAX_LISTING_BYTES or count > MAX_TOOLS:
                raise TransportError(
                    f"{self._name}: its list of tools is too large: {count} tools, {size} bytes so far"
                )
            cursor = page.next_cursor
            if cursor is None:
                return pages
            if cursor in seen or len(cursor) > MAX_CURSOR_CHARACTERS:
                what = "a cursor came twice" if cursor in seen else f"a cursor has {len(cursor)} characters"
                raise TransportError(f"{self._name}: its list of tools has no end: {what}")
            seen.add(cursor)
        raise TransportError(f"{self._name}: its list of tools has more than {MAX_PAGES} pages")
