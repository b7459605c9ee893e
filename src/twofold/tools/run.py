"""Running a tool's function: threads, deadline, limits. No argument or result is looked at here."""

import asyncio
import inspect
import re
import time
from collections.abc import Callable, Coroutine
from functools import partial
from types import AsyncGeneratorType, CoroutineType
from typing import Any

import msgspec

from twofold.errors import InvalidDefinition, ToolError
from twofold.tools.workers import Workers

_PERIOD_SECONDS = {"s": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_SETTLED = frozenset({str, int, float, bool, bytes, list, dict, tuple, set, type(None)})
"""Types of which nothing is to be awaited or streamed: the slow question is asked of strange ones only."""
_RATE = r"\s*(\d+)\s*/\s*([a-z]+)\s*\Z"


class RateLimit(msgspec.Struct, frozen=True, gc=False):
    """At most `calls` in any stretch of `per_seconds`, spread evenly after a first burst of that many."""

    calls: int
    per_seconds: float

    def __post_init__(self) -> None:
        """Refuse a rate that allows nothing."""
        if self.calls < 1 or not self.per_seconds > 0:
            raise InvalidDefinition(f"a rate limit allows at least one call in a positive time, got {self!r}")

    @classmethod
    def parse(cls, given: "RateLimit | str") -> "RateLimit":
        """Read `"5/s"`, `"100/min"` or `"1000/hour"`.

        Raises:
            InvalidDefinition: Anything else.
        """
        if isinstance(given, RateLimit):
            return given
        found = re.match(_RATE, given) if isinstance(given, str) else None
        if found is None or found[2] not in _PERIOD_SECONDS:
            raise InvalidDefinition(
                f"rate_limit: expected '5/s', '100/min', '1000/hour' or RateLimit(…), got {given!r}"
            )
        return cls(int(found[1]), _PERIOD_SECONDS[found[2]])


class Gate:
    """Counts a tool's running calls and spends its rate; used on the event loop only."""

    def __init__(
        self,
        tool_name: str,
        *,
        max_concurrency: int | None,
        rate_limit: RateLimit | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tool_name = tool_name
        self._max_concurrency = max_concurrency
        self._rate_limit = rate_limit
        self._clock = clock
        self._running = 0
        self._tokens = float(rate_limit.calls) if rate_limit else 0.0
        self._counted_at = clock()

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._running

    def enter(self) -> None:
        """Take a slot.

        Raises:
            ToolError: None is free, or the rate is spent; the text says when to try again.
        """
        if self._max_concurrency is not None and self._running >= self._max_concurrency:
            raise ToolError(
                f"tool {self._tool_name!r} is busy: {self._running} of {self._max_concurrency} calls allowed at once "
                "are running; try again when one has ended"
            )
        if self._rate_limit is not None:
            self._spend(self._rate_limit)
        self._running += 1

    def resume(self) -> None:
        """Take the slot of a call back that was given back too early."""
        self._running += 1

    def leave(self) -> None:
        """Give the slot back."""
        self._running -= 1

    def _spend(self, limit: RateLimit) -> None:
        now = self._clock()
        per_second = limit.calls / limit.per_seconds
        self._tokens = min(limit.calls, self._tokens + (now - self._counted_at) * per_second)
        self._counted_at = now
        if self._tokens < 1:
            wait_seconds = (1 - self._tokens) / per_second
            raise ToolError(
                f"tool {self._tool_name!r} was called too often: {limit.calls} calls in {limit.per_seconds:g} seconds "
                f"are allowed; try again in {wait_seconds:.3g} seconds"
            )
        self._tokens -= 1


class Runner(msgspec.Struct, frozen=True):
    """How one function is run.

    Attributes:
        is_async: Its call gives a coroutine or an async generator, run wholly in the caller's task.
        timeout_seconds: After it the call is given up.
        finish: Applied in the same thread to the value of a sync function, so that rendering a large
            result does not hold up the event loop.
    """

    function: Callable[..., Any]
    tool_name: str
    is_async: bool
    timeout_seconds: float | None
    finish: Callable[[Any], Any]
    gate: Gate
    workers: Workers

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, tuple[Any, bool]]:
        """Call the function within its limits.

        Args:
            args: What it takes by position.
            kwargs: What it takes by name.

        Returns:
            To be awaited: the value, and whether it is finished.

        Raises:
            ToolError: When it is awaited: a limit was reached, or the deadline passed.
        """
        work = self._run_async(args, kwargs) if self.is_async else self._run_sync(args, kwargs)
        return work if self.timeout_seconds is None else self._within_deadline(work, self.timeout_seconds)

    async def _within_deadline(
        self, work: Coroutine[Any, Any, tuple[Any, bool]], timeout_seconds: float
    ) -> tuple[Any, bool]:
        """Wait for work, in a task of its own, no longer than its deadline, whether it heeds cancellation or not."""
        task = asyncio.ensure_future(_capture(work))
        _LEFT.add(task)
        task.add_done_callback(_LEFT.discard)
        try:
            await asyncio.wait({task}, timeout=timeout_seconds)
        except asyncio.CancelledError:  # from outside: it may clean up as if it ran in this task
            task.cancel()
            await asyncio.wait({task})
            raise
        if not task.done():
            task.cancel()
            left = "was stopped" if self.is_async else "may still be running; its answer is dropped"
            raise ToolError(
                f"tool {self.tool_name!r} did not finish within {timeout_seconds:g} seconds and {left}; "
                "ask for less, or try again later"
            )
        outcome, failure = task.result()
        if failure is not None:
            raise failure
        return outcome

    async def _run_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool]:
        self.gate.enter()
        try:
            value = self.function(*args, **kwargs)
            if type(value) is CoroutineType:
                value = await value
            if type(value) not in _SETTLED and _is_pending(value):
                value = await _settle(value)
            return value, False
        finally:
            self.gate.leave()

    async def _run_sync(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool]:
        self.gate.enter()
        # The slot stays taken until the thread has ended, even if nobody waits for it any more.
        work, held = partial(self._work, args, kwargs), self.gate.running - 1
        value, is_finished = await self.workers.submit(work, on_end=self.gate.leave, held=held)
        if is_finished:
            return value, True
        self.gate.resume()  # a sync wrapper round an async function: what it gave still has to run
        try:
            return await _settle(value), False
        finally:
            self.gate.leave()

    def _work(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool]:
        value = self.function(*args, **kwargs)
        is_settled = type(value) in _SETTLED or not _is_pending(value)
        return (self.finish(value), True) if is_settled else (value, False)


_LEFT: set[asyncio.Future[Any]] = set()
"""Tasks past their deadline that are still unwinding; the event loop itself holds tasks only weakly."""


async def _capture(
    work: Coroutine[Any, Any, tuple[Any, bool]],
) -> tuple[tuple[Any, bool], BaseException | None]:
    """Hand back what is raised instead of raising it: a task that raises SystemExit takes the event loop with it."""
    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as failure:  # noqa: BLE001 - raised again where it is waited for
        return (None, False), failure


async def wait_for_left(timeout_seconds: float) -> None:
    """Give calls past their deadline a last time to clean up, while what they use is still open."""
    if _LEFT:
        await asyncio.wait(_LEFT, timeout=timeout_seconds)


def _is_pending(value: Any) -> bool:
    """Tell whether a value is still to be awaited or streamed."""
    kind = type(value)
    return kind in (CoroutineType, AsyncGeneratorType) or inspect.isawaitable(value)


async def _settle(value: Any) -> Any:
    """Await what can be awaited and collect what is streamed."""
    if type(value) is not AsyncGeneratorType:
        value = await value
    if type(value) is AsyncGeneratorType:
        return [item async for item in value]
    return value


def calls_asynchronously(function: Callable[..., Any]) -> bool:
    """Tell whether calling gives a coroutine or an async generator, without calling."""
    while hasattr(function, "func") and not inspect.isroutine(function):  # functools.partial
        function = function.func
    candidates = [function]
    if not inspect.isroutine(function):
        candidates.append(type(function).__call__)
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in candidates)
