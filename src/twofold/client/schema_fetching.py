"""Fetching what output schemas refer to, for who asks for it: from listed hosts only, within limits, and logged.

Without `SchemaFetching` nothing is ever fetched, and with it nothing but what a schema cannot be judged without.

Source: MCP 2026-07-28, "JSON Schema usage": references over the network are not followed by default; a client that
offers it lists hosts, refuses private addresses, sets limits, and logs.
"""

import asyncio
import logging
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from twofold.client.decoding import UnreadableAnswer, decode_any
from twofold.client.pinned_request import (
    FetchRefused,
    Place,
    Streams,
    TlsConnector,
    check_addresses,
    locate,
    read_answer,
    read_authority,
    resolve_host,
    write_request,
)
from twofold.contract.bundle import OpenSchema, bundle_schemas, open_schema
from twofold.contract.patterns import Clock
from twofold.contract.plain import cut
from twofold.contract.verdict import OutputSchema
from twofold.errors import InvalidDefinition
from twofold.protocol.structs import Json

logger = logging.getLogger("twofold")

RETRY_SECONDS = 60.0
"""So long a failure is remembered, so that a dead host does not cost every call its time."""

CONNECT_SECONDS = 5.0
"""So long one address of a host is tried before the next one."""

MAX_ADDRESSES = 4
"""Addresses of a host that are tried."""

MAX_KEPT = 256
"""Documents and failures kept by one client; the oldest go first."""

Resolve: TypeAlias = Callable[[Place], Awaitable[Sequence[str]]]
Connect: TypeAlias = Callable[[Place, str], Awaitable[Streams]]


class SchemaFetching(msgspec.Struct, frozen=True, kw_only=True):
    """What may be fetched where an output schema refers to other documents.

    ```python
    client = Client(url, schema_fetching=SchemaFetching(hosts=["schemas.example.com"]))
    ```

    Only HTTPS, to hosts of exactly these names, all of whose addresses are public, and only for a result that could
    not be judged without. No redirects, proxies, or credentials. Each document is fetched once in a client's life; a
    failure is remembered for a minute. Each is logged, and the verdict's reason says why a document is missing.

    Args:
        hosts: Names, each with a port if it is not 443: `"schemas.example.com:8443"`. No wildcards, no IP addresses;
            an international name in its ASCII form (`xn--…`).
        max_bytes: Of all the documents of one schema together. A schema of more than 1,000,000 is not judged by.
        max_documents: Fetched for one schema.
        timeout_seconds: For all the documents of one schema; at most half of what is left of the call's time is
            taken, so that its result can still be judged.

    Raises:
        TypeError: Of the wrong type.
        ValueError: A host that is none, or a limit that is not positive.
    """

    hosts: Sequence[str]
    max_bytes: int = 1_000_000
    max_documents: int = 20
    timeout_seconds: float = 10.0

    def __post_init__(self) -> None:
        # frozen, and the caller's list could still be added to
        msgspec.structs.force_setattr(self, "hosts", _read_hosts(self.hosts))
        for name in ("max_bytes", "max_documents"):
            limit = getattr(self, name)
            if type(limit) is not int or limit < 1:
                raise ValueError(f"schema_fetching, {name}: expected a whole number from 1, got {limit!r:.80}")
        seconds = self.timeout_seconds
        if type(seconds) not in (int, float) or not 0 < seconds < math.inf:
            raise ValueError(f"schema_fetching, timeout_seconds: expected a positive number, got {seconds!r:.80}")

    def open_fetcher(self) -> "SchemaFetcher":
        """Make what fetches, for one client. A subclass may give it another way to resolve and connect."""
        return SchemaFetcher(self)


def _read_hosts(hosts: object) -> tuple[str, ...]:
    if not isinstance(hosts, list | tuple) or not all(isinstance(each, str) for each in hosts):
        raise TypeError(f"schema_fetching, hosts: expected a list of host names, got {hosts!r:.80}")
    if not hosts:
        raise ValueError("schema_fetching, hosts: expected one at least; leave schema_fetching out to fetch nothing")
    try:
        return tuple(map(read_authority, hosts))
    except FetchRefused as error:
        raise ValueError(f"schema_fetching, hosts: {error}; give it as 'schemas.example.com'") from None


class _Kept(msgspec.Struct, frozen=True):
    """A document, fetched before."""

    document: Json
    size_bytes: int


class _Failure(msgspec.Struct, frozen=True):
    """Why a document could not be fetched, and when it may be asked for again."""

    reason: str
    retry_at: float


class _NotFetched(Exception):
    """A document that is missing.

    Attributes:
        url: Its URL.
        reason: A clause that says why.
        retry_at: When it may be asked for again, on the fetcher's clock.
    """

    def __init__(self, url: str, reason: str, *, retry_at: float) -> None:
        super().__init__(reason)
        self.url = url
        self.reason = reason
        self.retry_at = retry_at


class _Budget(msgspec.Struct, frozen=True):
    """What is left for the documents of one schema.

    Attributes:
        max_bytes: Of the next document.
        deadline: On the event loop's clock.
        seconds: How long all of them may take.
    """

    max_bytes: int
    deadline: float
    seconds: float


class SchemaFetcher:
    """Completes output schemas for one client, and keeps what it has fetched.

    Args:
        limits: What may be fetched.
        resolve: Gives a host's addresses; all of them are checked, whoever gives them.
        connect: Opens a connection for a place, to one of those addresses.
        clock: Gives seconds; tells when what has failed may be tried again.
    """

    def __init__(
        self,
        limits: SchemaFetching,
        *,
        resolve: Resolve = resolve_host,
        connect: Connect | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._limits = limits
        self._resolve = resolve
        self._connect = connect or TlsConnector()
        self._clock = clock
        self._kept: dict[str, _Kept | _Failure] = {}
        self._lock = asyncio.Lock()

    @property
    def kept_urls(self) -> tuple[str, ...]:
        """Of which documents it is known what they hold, or why they are missing; the oldest first."""
        return tuple(self._kept)

    async def complete(self, schema: OutputSchema, *, timeout_seconds: float) -> bool:
        """Fetch what an output schema refers to, if that is all that keeps it from being used.

        Args:
            schema: The schema. Afterwards it judges, or its fault says which document is missing, and why.
            timeout_seconds: What is left of the call.

        Returns:
            Whether there is now more to say than before, so that a result is to be judged again.
        """
        if not schema.fault or self._clock() < schema.retry_at:
            return False
        try:
            root = open_schema(schema.schema, what=schema.what)
        except InvalidDefinition:  # it has another fault, which no document would mend
            schema.give_up(schema.fault, retry_at=math.inf)
            return False
        seconds = min(self._limits.timeout_seconds, timeout_seconds / 2)
        try:
            documents = await self._gather(root, what=schema.what, seconds=seconds)
            schema.complete(bundle_schemas(root, documents))
        except _NotFetched as error:
            clause = f"it needs {_show(error.url)}, which was not fetched: {error.reason}"
            schema.give_up(f"{schema.what}: {clause}", retry_at=error.retry_at)
        except InvalidDefinition as error:
            schema.give_up(str(error), retry_at=math.inf)
        return True

    async def _gather(self, root: OpenSchema, *, what: str, seconds: float) -> list[OpenSchema]:
        """Fetch all that a schema refers to, and all that this refers to, nearest first.

        Raises:
            _NotFetched: One of them is missing.
            InvalidDefinition: One of them is nothing that can be judged by.
        """
        deadline = _now() + seconds
        documents: list[OpenSchema] = []
        known = set(root.resources)
        left = self._limits.max_bytes
        waiting = deque(root.outside)
        while waiting:
            url = waiting.popleft()
            if url in known:
                continue
            if len(documents) == self._limits.max_documents:
                clause = f"a schema may need {len(documents)} other documents at most (max_documents)"
                raise _NotFetched(url, clause, retry_at=math.inf)
            kept = await self._get(url, _Budget(left, deadline, seconds))
            left -= kept.size_bytes
            name = f"{what}, document {_show(url)}"
            documents.append(open_schema(kept.document, what=name, url=url, referrer=root))
            taken = documents[-1].resources & known
            if taken:
                raise InvalidDefinition(f"{name}: it calls itself or a part of it {cut(min(taken))!r}, as another does")
            known |= {url, *documents[-1].resources}
            waiting.extend(documents[-1].outside)
        return documents

    async def _get(self, url: str, budget: _Budget) -> _Kept:
        """Give a document that is kept, else fetch it; one at a time, so that none is fetched twice."""
        try:
            async with asyncio.timeout_at(budget.deadline), self._lock:
                kept = self._kept.get(url)
                if kept is None or (isinstance(kept, _Failure) and kept.retry_at <= self._clock()):
                    kept = await self._fetch(url, budget)
                    self._keep(url, kept)
        except TimeoutError:
            kept = self._time_out(url, budget)
        if isinstance(kept, _Failure):
            raise _NotFetched(url, kept.reason, retry_at=kept.retry_at)
        if kept.size_bytes > budget.max_bytes:
            clause = f"with it the documents of this schema have more than {self._limits.max_bytes} bytes (max_bytes)"
            raise _NotFetched(url, clause, retry_at=math.inf)
        return kept

    def _time_out(self, url: str, budget: _Budget) -> _Failure:
        reason = f"there was no whole answer within {budget.seconds:g} seconds"
        logger.warning("schema not fetched: %s: %s", _show(url), reason)
        # where it was the call that had so little time, the next one may have more
        is_full = budget.seconds >= self._limits.timeout_seconds
        failure = _Failure(reason, retry_at=self._clock() + RETRY_SECONDS if is_full else -math.inf)
        self._keep(url, failure)
        return failure

    async def _fetch(self, url: str, budget: _Budget) -> _Kept | _Failure:
        """Fetch a document; what is wrong with it is given back as a failure, so that it can be kept."""
        began = _now()
        try:
            place = locate(url, self._limits.hosts)
            addresses = await self._resolve(place)
            check_addresses(place.host, addresses)
            body = await self._exchange(place, addresses, budget)
            document = decode_any(body, what="the document")
        except TimeoutError:
            raise  # of all that is an OSError, the one that is ours to tell
        except (FetchRefused, UnreadableAnswer, OSError) as error:
            reason = cut(str(error)) if isinstance(error, OSError) else str(error)
            logger.warning("schema not fetched: %s: %s", _show(url), reason)
            return _Failure(reason, self._clock() + RETRY_SECONDS)
        logger.info("schema fetched: %s, %d bytes in %.3f seconds", _show(url), len(body), _now() - began)
        return _Kept(document, len(body))

    async def _exchange(self, place: Place, addresses: Sequence[str], budget: _Budget) -> bytes:
        """Ask the first address that can be reached."""
        reader, writer = await self._reach(place, addresses)
        try:
            writer.write(write_request(place))
            await writer.drain()
            return await read_answer(reader, max_bytes=budget.max_bytes)
        finally:
            writer.transport.abort()  # to close in order would wait for a peer that need not answer

    async def _reach(self, place: Place, addresses: Sequence[str]) -> Streams:
        reason = ""
        for address in addresses[:MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._connect(place, address)
            except TimeoutError:
                reason = f"no connection within {CONNECT_SECONDS:g} seconds"
            except OSError as error:
                reason = str(error)
        raise FetchRefused(f"the host {place.host!r} cannot be reached: {cut(reason)}")

    def _keep(self, url: str, kept: _Kept | _Failure) -> None:
        self._kept.pop(url, None)
        while len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[url] = kept


def _now() -> float:
    return asyncio.get_running_loop().time()


def _show(url: str) -> str:
    """Write a URL for people: without its query and whom it is asked as, where secrets are."""
    return cut(re.sub(r"//[^/?]*@", "//", url.partition("?")[0], count=1))
