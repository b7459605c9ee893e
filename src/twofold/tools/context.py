"""What a tool can ask for beside its arguments: progress, log messages, who calls."""

import math
from collections.abc import Generator, Mapping
from typing import Protocol

from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.messages import LOG_LEVELS, LogLevel
from twofold.protocol.structs import Json


class Channel(Protocol):
    """The call's own way back to its client; every method may be called from any thread."""

    def progress(self, *, progress: float, total: float | None, message: str | None) -> None:
        """Send progress, if the client asked for it."""
        ...

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> None:
        """Send a log message, if the client asked for its level.

        Raises:
            ValueError: `data` cannot be written as JSON.
        """
        ...

    async def drain(self) -> None:
        """Wait until the peer has room for more."""
        ...

    def close_sse_stream(self) -> None:
        """Let go of an HTTP connection until the client asks for the rest."""
        ...


class Sent:
    """A message that is on its way: awaiting it waits for room; a sync function just leaves it."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel | None) -> None:
        self._channel = channel

    def __await__(self) -> Generator[None, None, None]:
        """Wait until the message is out and the peer has room for more."""
        if self._channel is not None:
            yield  # a turn of the event loop, in which it is written
            yield from self._channel.drain().__await__()


class Context:
    """One call, as its tool sees it. Ask for it with a parameter annotated `Context`, of any name.

    Its messages are sent at once: `await ctx.info(…)` in an async tool also waits for a slow reader, a sync
    tool calls `ctx.info(…)` without `await`. After the call has ended nothing more is sent.

    Attributes:
        request_id: The JSON-RPC id of the call.
        tool_name: The name the tool was called by.
        protocol_version: The revision the client speaks.
        client_info: What the client says of itself, unverified; None where it says nothing.
        client_capabilities: What the client declares it can do, by name; empty where it declares nothing.
        principal: Who calls, as the server's `authorize` said; None where nothing was to be said.
        meta: The request's `_meta`, with the trace context (`traceparent`, `tracestate`, `baggage`) if sent.
        lifespan: What the server's `lifespan` yielded, else None.
    """

    __slots__ = (
        "_channel",
        "_last_progress",
        "client_capabilities",
        "client_info",
        "lifespan",
        "meta",
        "principal",
        "protocol_version",
        "request_id",
        "tool_name",
    )

    def __init__(
        self,
        channel: Channel,
        *,
        request_id: RequestId,
        tool_name: str,
        protocol_version: str,
        client_info: Mapping[str, Json] | None,
        client_capabilities: Mapping[str, Json],
        meta: Mapping[str, Json],
        lifespan: object,
        principal: object,
    ) -> None:
        self._channel: Channel | None = channel
        self._last_progress = -math.inf
        self.request_id = request_id
        self.tool_name = tool_name
        self.protocol_version = protocol_version
        self.client_info = client_info
        self.client_capabilities = client_capabilities
        self.meta = meta
        self.lifespan = lifespan
        self.principal = principal

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> Sent:
        """Tell the client how far the call has come; sent only if it asked for progress.

        Args:
            progress: Done so far, in any unit; greater than what was reported before.
            total: The whole, in the same unit, if known.
            message: What is being done, for a person.

        Raises:
            ValueError: A number is no int or float, or not finite, or progress does not grow (the protocol
                asks that it does).
            TypeError: The message is no text.
        """
        if not _is_number(progress) or not (total is None or _is_number(total)):
            raise ValueError(f"progress and total are finite numbers, got {progress!r} of {total!r}")
        if not (message is None or isinstance(message, str)):
            raise TypeError(f"a progress message is text, got {type(message).__name__}")
        if progress <= self._last_progress:
            raise ValueError(f"progress grows with each report: {progress!r} came after {self._last_progress!r}")
        self._last_progress = progress
        channel = self._channel  # the call may end meanwhile, in another thread
        if channel is not None:
            channel.progress(progress=progress, total=total, message=message)
        return Sent(channel)

    def log(self, level: LogLevel, data: Json, *, logger: str | None = None) -> Sent:
        """Send a log message to the client; sent only if it asked for this level or a lesser one.

        Args:
            level: One of the eight severities of RFC 5424.
            data: Any JSON value. Never a secret: the client may store it.
            logger: Who speaks; the tool's name if not given.

        Raises:
            ValueError: An unknown level, or data that JSON cannot hold.
        """
        if not (logger is None or isinstance(logger, str)):
            raise TypeError(f"a logger's name is text, got {type(logger).__name__}")
        if level not in LOG_LEVELS:
            raise ValueError(f"unknown log level {level!r}; the levels are {', '.join(LOG_LEVELS)}")
        channel = self._channel
        if channel is not None:
            channel.log(level, data, logger=logger or self.tool_name)
        return Sent(channel)

    def debug(self, data: Json, *, logger: str | None = None) -> Sent:
        """Send a log message of level `debug`; see `log`."""
        return self.log("debug", data, logger=logger)

    def info(self, data: Json, *, logger: str | None = None) -> Sent:
        """Send a log message of level `info`; see `log`."""
        return self.log("info", data, logger=logger)

    def warning(self, data: Json, *, logger: str | None = None) -> Sent:
        """Send a log message of level `warning`; see `log`."""
        return self.log("warning", data, logger=logger)

    def error(self, data: Json, *, logger: str | None = None) -> Sent:
        """Send a log message of level `error`; see `log`."""
        return self.log("error", data, logger=logger)

    def close_sse_stream(self) -> Sent:
        """Close the HTTP connection of a long call for now: its client asks for the rest when it is there.

        What is sent later is kept until the client resumes the stream with `Last-Event-ID`. It does nothing
        where no client could resume: in revision 2026-07-28, over stdio, in process, and on a server without
        sessions.
        """
        channel = self._channel
        if channel is not None:
            channel.close_sse_stream()
        return Sent(channel)

    def close(self) -> None:
        """End the way back: the call has its answer, nothing may follow it."""
        self._channel = None


def _is_number(value: object) -> bool:
    """Tell what JSON writes as a number; a Decimal would go out as text."""
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]  # one of the two
