"""`MCPServer`: where functions become tools, and where they are served from."""

import contextlib
import copy
import difflib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import msgspec
from typing_extensions import Unpack

from twofold.errors import InvalidDefinition
from twofold.prompts.declare import PromptOptions, declare_prompt
from twofold.protocol.messages import CacheHints, CallToolResult, Implementation, ListName, LogLevel, ServerIdentity
from twofold.protocol.structs import Json, encode_json
from twofold.protocol.tool import Icon, ToolDefinition
from twofold.protocol.wire import Codecs
from twofold.protocol.wire.per_request import SERVER_INFO
from twofold.server.connection import Connection, Offer
from twofold.server.dispatch import HANDLERS, encode_call
from twofold.server.registry import Registry
from twofold.tools.arguments.parameters import UnknownArguments
from twofold.tools.call import call
from twofold.tools.checks.icons import check_icons
from twofold.tools.context import Context
from twofold.tools.declare import (
    ToolDefaults,
    ToolOptions,
    check_server_text,
    check_unknown_arguments,
    declare_tool,
)
from twofold.tools.describe import describe
from twofold.transports.exchange import Writer

if TYPE_CHECKING:
    from twofold.server.http import AppOptions, RunOptions
    from twofold.transports.http.app import StreamableHTTP
    from twofold.transports.http.authorization import Authorize, ProtectedResource

TRANSPORTS = ("stdio", "streamable-http")

Function = TypeVar("Function", bound=Callable[..., Any])
Lifespan: TypeAlias = Callable[["MCPServer"], AbstractAsyncContextManager[Any]]
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
OnLog: TypeAlias = Callable[[LogLevel, Json], None]


class MCPServer:
    """A server of typed tools, and of prompts.

    ```python
    mcp = MCPServer("catalogue")

    @mcp.tool()
    def price_of(name: str) -> float:
        "Look up a price in USD."
        return PRICES[name]

    mcp.run()
    ```

    Args:
        name: What the server calls itself.
        title: What people read.
        version: The server's own version.
        instructions: How to use its tools, for the model.
        icons: Pictures, `https:` or `data:`.
        website_url: Where to read more.
        lifespan: Given the server, an async context manager; what it yields is `Context.lifespan`.
        strict: Makes an error of what is otherwise a warning, such as hints that contradict each other.
        expose_errors: Sends a crash's own text to the client. False: a reference that also stands in the log.
        unknown_arguments: `"refuse"` an argument a tool does not have, or `"ignore"` it.
        text: The model's face of a result where a tool does not say: `"pretty"` or `"compact"`.
        page_size: Tools in one page of `tools/list`, prompts in one of `prompts/list`.
        list_ttl_seconds: How long a client may take a listing as fresh.
        list_scope: `"public"`, or `"private"` where listings must not be shared between callers.
        authorize: Over HTTP, given a bearer token and what is known of the request, says who calls
            (`Context.principal`), or refuses by raising `Unauthorized` or `Forbidden`, or by giving None. Verifying
            the token, its audience included, is its part. May be async; a plain function runs in a thread.
        protected_resource: What clients are told of where to get tokens; served beside the endpoint, and named in
            every refusal.

    Raises:
        InvalidDefinition: Something of this cannot be published.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str | None = None,
        version: str = "0.0.0",
        instructions: str | None = None,
        icons: Sequence[Icon] | None = None,
        website_url: str | None = None,
        lifespan: Lifespan | None = None,
        strict: bool = False,
        expose_errors: bool = False,
        unknown_arguments: UnknownArguments = "refuse",
        text: Literal["pretty", "compact"] = "pretty",
        page_size: int = 1000,
        list_ttl_seconds: float = 60,
        list_scope: Literal["public", "private"] = "public",
        authorize: "Authorize | None" = None,
        protected_resource: "ProtectedResource | None" = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidDefinition(f"a server's name is text that is not empty, got {name!r}")
        if not isinstance(page_size, int) or page_size < 1:
            raise InvalidDefinition(f"page_size: expected a positive whole number, got {page_size!r}")
        if not 0 <= list_ttl_seconds < math.inf or list_scope not in ("public", "private"):
            raise InvalidDefinition(f"cache hints: got {list_ttl_seconds!r} seconds, scope {list_scope!r}")
        icons = list(check_icons(icons or (), owner=f"server {name!r}")) or None
        self.identity = _identify(
            {"name": name, "version": version, "title": title, "icons": icons, "website_url": website_url}, instructions
        )
        self.defaults = ToolDefaults(
            strict, expose_errors, check_unknown_arguments(unknown_arguments), check_server_text(text)
        )
        if authorize is not None and not callable(authorize):
            raise InvalidDefinition(f"authorize: expected a function of token and request, got {authorize!r:.80}")
        if protected_resource is not None and not hasattr(protected_resource, "metadata_path"):
            raise InvalidDefinition(
                f"protected_resource: expected ProtectedResource(…), got {protected_resource!r:.80}"
            )
        if protected_resource is not None and authorize is None:
            raise InvalidDefinition("protected_resource: tells where to get tokens, but no authorize= looks at any")
        self._authorize = authorize
        self._protected_resource = protected_resource
        self._lifespan = lifespan
        self._registry = Registry(page_size=page_size, on_change=self._announce)
        self._codecs = Codecs(self.identity, CacheHints(int(list_ttl_seconds * 1000), list_scope))
        self._connections: set[Connection] = set()
        self._live: list[Offer] = []

    @property
    def name(self) -> str:
        """What the server calls itself."""
        return self.identity.implementation.name

    def __repr__(self) -> str:
        return f"MCPServer({self.name!r})"

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...
    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Make a tool of the decorated function, which stays as it is: `@mcp.tool()` or `@mcp.tool`.

        Args:
            function: Given where the decorator has no brackets.
            options: See `ToolOptions`.

        Raises:
            InvalidSignature: The function cannot be a tool.
            InvalidDefinition: An option cannot be published, or the name is taken.
        """
        if isinstance(function, str):
            raise TypeError(f"@mcp.tool({function!r}): give the name as name={function!r}")

        def register(decorated: Function) -> Function:
            self.add_tool(decorated, **options)
            return decorated

        return register if function is None else register(function)

    def add_tool(self, function: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        """Make a tool of a function; also while serving, when clients are told.

        With `input_schema=` the schema is published to the letter and the function takes the arguments as
        one dict; with `output_schema=` the same holds for what it returns. Both are enforced.

        Args:
            function: Any callable: a function, a method, an object with `__call__`, a `functools.partial`.
            options: See `ToolOptions`.

        Raises:
            InvalidSignature: The function cannot be a tool.
            InvalidDefinition: An option cannot be published, or the name is taken.
        """
        tool = declare_tool(function, options, defaults=self.defaults)
        try:  # what cannot be written is told now, not when somebody lists
            self._codecs.per_request.definition(describe(tool, any_root=True))
        except (TypeError, ValueError) as error:
            raise InvalidDefinition(f"tool {tool.name!r} cannot be published: {error}") from None
        self._registry.add(tool)

    def remove_tool(self, name: str) -> None:
        """Take a tool out; also while serving. Its running calls go on to their end.

        Raises:
            KeyError: There is none of that name.
        """
        self._registry.tools.remove(name)

    @overload
    def prompt(self, function: Function, /) -> Function: ...
    @overload
    def prompt(self, function: None = None, /, **options: Unpack[PromptOptions]) -> Callable[[Function], Function]: ...
    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Make a prompt of the decorated function, which stays as it is: `@mcp.prompt()` or `@mcp.prompt`.

        Args:
            function: Given where the decorator has no brackets.
            options: See `PromptOptions`.

        Raises:
            InvalidSignature: The function cannot be a prompt.
            InvalidDefinition: An option cannot be published, or the name is taken.
        """
        if isinstance(function, str):
            raise TypeError(f"@mcp.prompt({function!r}): give the name as name={function!r}")

        def register(decorated: Function) -> Function:
            self.add_prompt(decorated, **options)
            return decorated

        return register if function is None else register(function)

    def add_prompt(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        """Make a prompt of a function; also while serving, when clients are told.

        Its parameters are texts: `str`, or `str | None` where a client may leave one out. It returns text, a
        `PromptMessage`, a content block, or a list of these; what is no `PromptMessage` is said by the user.

        Args:
            function: Any callable; a sync function runs in a thread.
            options: See `PromptOptions`.

        Raises:
            InvalidSignature: The function cannot be a prompt.
            InvalidDefinition: An option cannot be published, or the name is taken.
        """
        prompt = declare_prompt(
            function, options, workers=self._registry.workers, expose_errors=self.defaults.expose_errors
        )
        self._registry.prompts.add(prompt.definition.name, prompt)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt out; also while serving. What is being made of it goes on to its end.

        Raises:
            KeyError: There is none of that name.
        """
        self._registry.prompts.remove(name)

    async def list_tools(self) -> list[ToolDefinition]:
        """List the tools as a client of the newest revision sees them, all pages in one; they are copies."""
        return [copy.deepcopy(describe(registered.tool, any_root=True)) for registered in self._registry.tools]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Json] | None = None,
        *,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
    ) -> CallToolResult:
        """Call a tool in this process; arguments and result are checked exactly as over the wire.

        Outside `live()` each call opens the server's lifespan for itself.

        Args:
            name: The tool's name.
            arguments: JSON values by name.
            on_progress: Called with progress, total and message whenever the tool reports progress.
            on_log: Called with level and data of each log message.

        Raises:
            InvalidParams: There is no such tool.
            ProtocolError: The tool raised one.
            TypeError: The arguments cannot be written as JSON.
        """
        registered = self._registry.get(name)
        try:
            raw = encode_json(dict(arguments or {}), what=f"tool {name!r}, arguments")
        except ValueError as error:
            raise TypeError(str(error)) from None
        channel = CallbackChannel(on_progress, on_log)
        codec = self._codecs.per_request
        live = contextlib.nullcontext(self._live[-1].lifespan) if self._live else self._open_lifespan()
        async with live as lifespan:
            faces = await call(
                registered.tool,
                registered.runner,
                raw,
                make_context=lambda: Context(
                    channel,
                    request_id="in-process",
                    tool_name=name,
                    protocol_version=codec.revision,
                    client_info=None,
                    client_capabilities={},
                    meta={},
                    lifespan=lifespan,
                    principal=None,
                ),
            )
        result = msgspec.json.decode(b"".join(encode_call(codec, faces, tool_name=name)), type=CallToolResult)
        own = {key: value for key, value in (result.meta or {}).items() if key != SERVER_INFO}
        return msgspec.structs.replace(result, meta=own or None)  # in process everyone knows who the server is

    def run(self, transport: Literal["stdio", "streamable-http"] = "stdio", **options: Unpack["RunOptions"]) -> None:
        """Serve until the client has gone or the process is told to end.

        Args:
            transport: `"stdio"`: messages on this process's stdin and stdout, everything else to stderr.
                `"streamable-http"`: an HTTP server on `host` and `port`, until a signal ends it.
            options: For HTTP, see `RunOptions`.

        Raises:
            ValueError: A transport there is none of, or an option that cannot hold.
            TypeError: An option there is none of.
            TransportError: Standard input or output is closed; the address cannot be had.
        """
        if transport == "streamable-http":
            from twofold.server.http import run_http  # noqa: PLC0415 - a server over stdio needs none of it

            run_http(self.streamable_http_app, **options)
            return
        if transport != "stdio":
            near = difflib.get_close_matches(str(transport), TRANSPORTS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {' and '.join(map(repr, TRANSPORTS))}"
            raise ValueError(f"unknown transport {transport!r}{hint}")
        if options:
            raise TypeError(f"run('stdio') has no option {min(options)!r}; did you mean run('streamable-http', …)?")
        from twofold.server.serve_stdio import serve_stdio  # noqa: PLC0415 - a server that is only imported needs none of it

        serve_stdio(self)

    def streamable_http_app(self, **options: Unpack["AppOptions"]) -> "StreamableHTTP":
        """Give an ASGI application that serves this server over Streamable HTTP, in every revision that has it.

        It can be run by any ASGI server, or mounted in a Starlette or FastAPI application; lifespan events are
        used where they come, and not needed.

        Args:
            options: See `AppOptions`.

        Raises:
            ValueError: An option that cannot hold.
            TypeError: An option there is none of.
        """
        from twofold.server.http import make_app  # noqa: PLC0415 - a server over stdio needs none of it

        return make_app(self, hook=self._authorize, resource=self._protected_resource, **options)

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[Offer]:
        """Hold the lifespan open: what serving does, and a test that makes several calls in process.

        A server that is served at two places at once has a lifespan at each.
        """
        async with self._open_lifespan() as value:
            offer = Offer(self._registry, self._codecs, value)
            self._live.append(offer)
            try:
                yield offer
            finally:
                self._live.remove(offer)

    def _open_lifespan(self) -> AbstractAsyncContextManager[Any]:
        return contextlib.nullcontext() if self._lifespan is None else self._lifespan(self)

    def connect(self, writer: Writer, offer: Offer, *, assumed_revision: str | None = None) -> Connection:
        """Open a connection of a transport's: what takes its lines. `disconnect` ends it.

        Args:
            writer: Where its messages go.
            offer: What `live` gave.
            assumed_revision: The handshake revision that holds without `initialize`, where no sessions are kept.
        """
        assumed = None if assumed_revision is None else self._codecs.for_handshake(assumed_revision)
        connection = Connection(offer, writer, HANDLERS, assumed=assumed)
        self._connections.add(connection)
        return connection

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection that its transport has closed."""
        self._connections.discard(connection)

    def _announce(self, changed: ListName) -> None:
        for connection in list(self._connections):
            connection.announce(changed)


def _identify(implementation: dict[str, Any], instructions: str | None) -> ServerIdentity:
    """Make what the server says of itself, refusing what could not be sent."""
    if not (instructions is None or isinstance(instructions, str)):
        raise InvalidDefinition(f"instructions: expected text, got {type(instructions).__name__}")
    try:
        identity = ServerIdentity(Implementation(**implementation), instructions)
        encode_json([identity.implementation, instructions], what="the server's own description")
    except (TypeError, ValueError) as error:
        raise InvalidDefinition(str(error)) from None
    return identity


class CallbackChannel:
    """A call's way back to plain functions in the same process."""

    def __init__(self, on_progress: OnProgress | None, on_log: OnLog | None) -> None:
        self._on_progress = on_progress
        self._on_log = on_log

    def progress(self, *, progress: float, total: float | None, message: str | None) -> None:
        """Hand progress on."""
        if self._on_progress is not None:
            self._on_progress(progress, total, message)

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> None:
        """Hand a log message on, checked as for the wire."""
        encode_json({"data": data, "logger": logger}, what="log message")
        if self._on_log is not None:
            self._on_log(level, data)

    async def drain(self) -> None:
        """There is always room."""

    def close_sse_stream(self) -> None:
        """There is no stream."""
