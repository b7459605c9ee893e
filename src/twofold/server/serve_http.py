"""From an ASGI app to a process that serves HTTP: its sockets, its connections, the signals, the end.

Only who serves HTTP imports it.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec

from twofold.errors import TransportError
from twofold.server.lifecycle import END_SECONDS, TEARDOWN_SECONDS, end_hard, run_to_end
from twofold.transports.http.asgi import AsgiApp, Event
from twofold.transports.http_server.bounds import HttpLimits
from twofold.transports.http_server.protocol import HttpProtocol, Service

try:
    import resource
except ModuleNotFoundError:  # Windows, where file descriptors have no such limit
    resource = None  # type: ignore[assignment]


logger = logging.getLogger("twofold")

BACKLOG = 512
"""Connections the system holds until they are accepted."""
LOOK_SECONDS = 0.05
"""How often it is looked, when the server stops, whether all have gone."""
ROUND_SECONDS = 1.0
"""How often deadlines are looked at; the `date` header is as exact as that."""
PROBE_SECONDS = 30
"""So long a connection is silent before the system probes whether the peer is still there."""
PROBES = 3

Connect: TypeAlias = Callable[[], HttpProtocol]


class Accepting(Protocol):
    """What accepts connections of one listening socket."""

    def close(self) -> None:
        """Accept no more, and close the socket."""


Listen: TypeAlias = Callable[[Connect, socket.socket], Awaitable[Accepting]]


def serve_http(
    app: AsgiApp,
    *,
    host: str,
    port: int,
    path: str = "/",
    shown_host: str | None = None,
    limits: HttpLimits | None = None,
    on_stopping: Callable[[], None] | None = None,
) -> None:
    """Serve an app over HTTP until SIGINT or SIGTERM, and say on stderr where.

    The first signal lets running requests finish for a few seconds; the second ends the process at once. What heeds no
    cancellation does not keep the process: then it ends hard.

    Args:
        app: An app that takes lifespan events.
        host: A name or address of this machine: `127.0.0.1`, `::1`, `localhost`, `0.0.0.0`.
        port: 0 picks a free one.
        path: Where the app has its endpoint; only to be shown.
        shown_host: The name by which the app lets itself be asked, if it is not the address; only to be shown.
        limits: What connections may take.
        on_stopping: Called on the event loop at the first signal; it ends streams that would have no end of their own.

    Raises:
        TransportError: The address cannot be had, or the app would not start.
        ValueError: The port is none.
        RuntimeError: Called where an event loop is running.
    """

    async def serve_until(stop: asyncio.Event) -> None:
        listeners = bind(host, port, stall_seconds=(limits or HttpLimits()).stall_seconds)
        url = url_of(listeners[0], shown_host or host, path)

        def tell_address() -> None:
            print(f"Serving at {url} (Ctrl-C ends it)", file=sys.stderr, flush=True)

        await serve(app, listeners, stop=stop, limits=limits, on_serving=tell_address, on_stopping=on_stopping)

    run_server(serve_until)


def run_server(serve_until: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run what serves on the fastest event loop that is installed; end the process hard if something in it would not.

    Args:
        serve_until: Given an event that the first SIGINT or SIGTERM sets.

    Raises:
        RuntimeError: Called where an event loop is running.
    """
    if run_to_end(serve_until, make_loop=_choose_loop()):
        end_hard()


def _choose_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 - of the extra `fast`
    except ModuleNotFoundError:
        return asyncio.new_event_loop
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


async def serve(
    app: AsgiApp,
    listeners: Sequence[socket.socket],
    *,
    stop: asyncio.Event,
    limits: HttpLimits | None = None,
    on_serving: Callable[[], None] | None = None,
    on_stopping: Callable[[], None] | None = None,
    listen: Listen | None = None,
) -> None:
    """Serve an app on listening sockets, until `stop` is set.

    Args:
        app: An app that takes lifespan events.
        listeners: From `bind`; closed at the end.
        stop: Ends the serving; running requests get `grace_seconds`, then they are cancelled.
        limits: What connections may take.
        on_serving: Called when connections are accepted.
        on_stopping: Called when none is accepted any more.
        listen: What accepts connections, if it is not the event loop's own server.

    Raises:
        TransportError: The app said that it cannot start.
        BaseException: What the app's lifespan raised.
    """
    lifespan = _Lifespan(app)
    try:
        if await lifespan.start(stop):
            within = _within_descriptors(limits or HttpLimits())
            await _serve_connections(
                Service(app, within, lifespan.state),
                listeners,
                stop=stop,
                on_serving=on_serving,
                on_stopping=on_stopping,
                listen=listen or _listen,
            )
    finally:
        for each in listeners:
            each.close()
        await lifespan.end()


def bind(host: str, port: int, *, stall_seconds: float) -> list[socket.socket]:
    """Listen at each address of a host; who connects waits until the socket is served.

    Connections inherit what is set here: the system probes silent peers, and gives up those that acknowledge nothing.

    Args:
        host: A name or address of this machine.
        port: 0 picks a free one, the same for each address.
        stall_seconds: After so long without an acknowledgement a connection is broken.

    Raises:
        TransportError: There is no such host, or the address cannot be had.
        ValueError: The port is none.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"a port is a number from 0 to 65535, got {port}")
    listeners: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE) if host else []
        for family, kind, number, _, address in dict.fromkeys(found):
            chosen = listeners[0].getsockname()[1] if listeners else port
            listener = socket.socket(family, kind, number)
            listeners.append(listener)
            _set_options(listener, stall_seconds)
            listener.bind((address[0], chosen, *address[2:]))
            listener.listen(BACKLOG)  # two sockets may be bound to one port until one listens
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be one
        for each in listeners:
            each.close()
        shown = f"[{host}]" if ":" in host else host
        raise TransportError(f"cannot serve at {shown:.80}:{port}: {_advise(error)}") from error
    if not listeners:
        raise TransportError(f"cannot serve at {host!r}: no address; name one, such as 127.0.0.1")
    return listeners


def _set_options(listener: socket.socket, stall_seconds: float) -> None:
    if os.name == "posix":  # elsewhere this would let two processes have one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": PROBE_SECONDS,
        "TCP_KEEPINTVL": PROBE_SECONDS // PROBES,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": int(stall_seconds * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has every one
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _advise(error: OSError | UnicodeError) -> str:
    """Say what failed and what to do about it."""
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, socket.gaierror | UnicodeError):
        return f"{reason}; name this machine or one of its addresses, such as 127.0.0.1"
    if error.errno == errno.EADDRINUSE:
        return f"{reason}; stop what listens there, or choose another port (0 picks a free one)"
    if error.errno == errno.EACCES:
        return f"{reason}; choose a port above 1023"
    return f"{reason}; choose an address of this machine, such as 127.0.0.1"


def url_of(listener: socket.socket, host: str, path: str) -> str:
    """Give the URL of an endpoint, under a name of the host that the app lets itself be asked by."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}{path}"


def _within_descriptors(limits: HttpLimits) -> HttpLimits:
    """Lower the number of connections to what the system lets this process have, and leave some for the tools."""
    if resource is None:
        return limits
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits
    return msgspec.structs.replace(limits, max_connections=min(limits.max_connections, allowed * 3 // 4))


async def _listen(connect: Connect, listener: socket.socket) -> Accepting:
    return await asyncio.get_running_loop().create_server(connect, sock=listener, backlog=BACKLOG)


async def _serve_connections(
    service: Service,
    listeners: Sequence[socket.socket],
    *,
    stop: asyncio.Event,
    on_serving: Callable[[], None] | None,
    on_stopping: Callable[[], None] | None,
    listen: Listen,
) -> None:
    """Accept connections until `stop` is set, then let their requests finish."""
    rounds = asyncio.create_task(_make_rounds(service))
    stopping = asyncio.create_task(stop.wait())
    servers: list[Accepting] = []
    try:
        servers.extend([await listen(partial(HttpProtocol, service), each) for each in listeners])
        if on_serving is not None:
            on_serving()
        await asyncio.wait((rounds, stopping), return_when=asyncio.FIRST_COMPLETED)
        if rounds.done():
            rounds.result()  # it has no end but a fault
    finally:
        stopping.cancel()
        # Every answer is the last one on its connection from now on, so that none is closed just as its client asks.
        service.is_ending = True
        await asyncio.sleep(LOOK_SECONDS)  # who is connected already is answered, or the system would reset it
        accepting = [each for listener in listeners for each in _accept_waiting(listener, service)]
        for server in servers:
            server.close()
        await asyncio.gather(*accepting, return_exceptions=True)
        if on_stopping is not None:
            on_stopping()
        await _finish(service)
        rounds.cancel()


def _accept_waiting(listener: socket.socket, service: Service) -> Iterator[asyncio.Future[object]]:
    """Accept whoever waits at a socket that is about to be closed."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    with contextlib.suppress(OSError):  # nobody waits any more, or nobody more can be taken
        while True:
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            yield loop.create_task(loop.connect_accepted_socket(partial(HttpProtocol, service), accepted))


async def _make_rounds(service: Service) -> None:
    """Keep the time: deadlines of connections, and the `date` header."""
    loop = asyncio.get_running_loop()
    interval = min(ROUND_SECONDS, service.limits.shortest_seconds / 4)
    while True:
        service.update_date()
        now = loop.time()
        _for_each(service, lambda connection: connection.check_deadlines(now))  # noqa: B023 - called at once
        await asyncio.sleep(interval)


async def _finish(service: Service) -> None:
    """Close connections as their requests end; after the grace, close and cancel."""
    loop = asyncio.get_running_loop()
    grace_seconds = service.limits.grace_seconds
    end = loop.time() + grace_seconds
    is_told = False
    while (service.connections or service.tasks) and loop.time() < end:
        await asyncio.sleep(LOOK_SECONDS)  # before the first are closed, too: what has come in time is read
        _for_each(service, _shut_down)
        if service.tasks and not is_told:
            is_told = True
            logger.warning(
                "ending: %d requests are running and have %g seconds; a second signal ends at once",
                len(service.tasks), grace_seconds,
            )  # fmt: skip
    for connection in list(service.connections):
        connection.leave()
    tasks = list(service.tasks)
    for task in tasks:
        task.cancel()  # whoever still waits for an answer is told
    if tasks:
        await asyncio.wait(tasks, timeout=END_SECONDS)
    _for_each(service, _drop)


def _shut_down(connection: HttpProtocol) -> None:
    if not connection.is_closing:
        connection.shutdown()


def _drop(connection: HttpProtocol) -> None:
    connection.tell_end()
    connection.drop()


def _for_each(service: Service, act: Callable[[HttpProtocol], None]) -> None:
    """Do something with every connection, which may go while they are looked at; the fault of one is no other's."""
    for connection in list(service.connections):
        try:
            act(connection)
        except Exception:  # what the system says of a socket that its peer has closed: it must not end the server
            logger.exception("a connection failed and is dropped")
            connection.abort()


class _Lifespan:
    """The lifespan of an app: one task from start to end, so that what is opened is closed where it was opened.

    Attributes:
        state: What the app shares with its requests.

    Source: ASGI 3, "Lifespan Protocol".
    """

    def __init__(self, app: AsgiApp) -> None:
        self.state: dict[str, Any] = {}
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._answered = asyncio.Event()
        self._refusal: str | None = None
        self._failure: BaseException | None = None
        self._task = asyncio.create_task(self._run(app))

    async def start(self, stop: asyncio.Event) -> bool:
        """Start the app; tell whether it has started, or `stop` was set before.

        Raises:
            TransportError: The app said that it cannot start.
            BaseException: What it raised.
        """
        self._events.put_nowait({"type": "lifespan.startup"})
        waiting = [asyncio.create_task(each.wait()) for each in (self._answered, stop)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if not self._answered.is_set():
            self._task.cancel()
            return False
        if self._failure is not None:
            raise self._failure
        if self._refusal is not None:
            raise TransportError(f"the server could not start: {self._refusal:.800}")
        return True

    async def end(self) -> None:
        """End the app, within a bound.

        Raises:
            BaseException: What it raised.
        """
        self._events.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.wait({self._task}, timeout=TEARDOWN_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=END_SECONDS)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def _run(self, app: AsgiApp) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await app(scope, self._events.get, self._send)
        except asyncio.CancelledError:
            raise
        except BaseException as failure:  # noqa: BLE001 - raised again by who waits; SystemExit would end the loop
            self._failure = failure
        finally:
            self._answered.set()

    async def _send(self, message: Event) -> None:
        if message["type"] == "lifespan.startup.failed":
            self._refusal = str(message.get("message") or "it gave no reason")
        elif message["type"] == "lifespan.shutdown.failed":
            self._failure = TransportError(f"the server could not end: {message.get('message', ''):.800}")
        self._answered.set()
