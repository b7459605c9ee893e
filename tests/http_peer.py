"""An HTTP client's end for tests: asks an ASGI application in this process, and has each message judged."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.oracle import judge_message
from twofold import MCPServer
from twofold.protocol.eventstream import Event, EventStreamDecoder

Json = Any

PER_REQUEST = "2026-07-28"
BOTH = "application/json, text/event-stream"


def per_request_params(params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
    """Add what each request of the newest revision carries."""
    own = {
        "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**(params or {}), "_meta": own | meta}


class Response:
    """One request that was sent, and its answer as far as it has come."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.events: list[Event] = []
        self.chunks: list[bytes] = []
        self.is_complete = False
        self._decoder = EventStreamDecoder(1 << 26)
        self._arrived = asyncio.Condition()
        self._to_app: asyncio.Queue[Json] = asyncio.Queue()
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.task: asyncio.Task[None]

    @property
    def json(self) -> Json:
        """The body, which is one JSON object."""
        assert self.headers["content-type"] == "application/json", (self.status, self.headers, self.body)
        assert int(self.headers["content-length"]) == len(self.body)
        return json.loads(self.body)

    @property
    def messages(self) -> list[Json]:
        """The messages of the stream so far."""
        assert self.headers["content-type"] == "text/event-stream", (self.status, self.headers, self.body)
        return [json.loads(event.data) for event in self.events if event.data]

    async def whole(self) -> "Response":
        """Wait until it is complete."""
        await self.until(lambda: self.is_complete)
        return self

    async def until(self, is_so: Any) -> None:
        """Wait until something can be said of it."""
        async with asyncio.timeout(20):
            async with self._arrived:
                await self._arrived.wait_for(lambda: is_so() or self.task.done())
        if self.task.done():
            await self.task
        assert is_so(), (self.status, self.body, self.events)

    def disconnect(self) -> None:
        """Close the connection."""
        self._to_app.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> Json:
        return await self._to_app.get()

    async def send(self, event: Json) -> None:
        await self.may_send.wait()
        async with self._arrived:
            if event["type"] == "http.response.start":
                assert not self.status, "started twice"
                self.status = event["status"]
                self.headers = {name.decode(): value.decode() for name, value in event["headers"]}
                assert len(self.headers) == len(event["headers"]), event["headers"]
            else:
                assert self.status and not self.is_complete
                self.body += event["body"]
                self.chunks.append(event["body"])
                if self.headers.get("content-type") == "text/event-stream":
                    self.events += self._decoder.feed(event["body"])
                self.is_complete = not event.get("more_body")
            self._arrived.notify_all()


class HttpPeer:
    """Use as `async with HttpPeer(mcp) as http`; options are those of the application."""

    prefix = ""
    """Where the application is mounted."""

    def __init__(self, server: MCPServer, **options: Any) -> None:
        self.app: Any = server.streamable_http_app(**options)
        self.open_responses: list[Response] = []

    async def __aenter__(self) -> "HttpPeer":
        return self

    async def __aexit__(self, *_: object) -> None:
        for response in self.open_responses:
            response.disconnect()
        tasks = [response.task for response in self.open_responses]
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        events: list[Json] = [{"type": "lifespan.shutdown"}]
        answered: list[Json] = []

        async def receive() -> Json:
            return events.pop(0)

        async def send(event: Json) -> None:
            answered.append(event)

        await self.app({"type": "lifespan"}, receive, send)
        assert answered == [{"type": "lifespan.shutdown.complete"}]

    def ask(
        self,
        method: str = "POST",
        body: bytes | list[bytes] = b"",
        headers: Mapping[str, str] | list[tuple[str, str]] = (),  # type: ignore[assignment]  # no header, for either type
        *,
        path: str = "/mcp",
    ) -> Response:
        """Send a request as it is; an empty last part leaves the body open."""
        given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        if not any(name.lower() == "host" for name, _ in given):
            given.append(("Host", "127.0.0.1:8000"))
        response = Response()
        parts = body if isinstance(body, list) else [body]
        for place, part in enumerate(parts):
            if part or len(parts) == 1:
                response._to_app.put_nowait({"type": "http.request", "body": part, "more_body": place < len(parts) - 1})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "path": self.prefix + path,
            "root_path": "",
            "query_string": b"",
            "scheme": "http",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 50000),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given if value is not None
            ],
        }
        response.task = asyncio.create_task(self.app(scope, response.receive, response.send))
        self.open_responses.append(response)
        return response

    def post(self, message: Json, headers: Mapping[str, Any] | None = None) -> Response:
        """POST a message, as a client of a handshake revision does."""
        given = {"Content-Type": "application/json", "Accept": BOTH} | dict(headers or {})
        return self.ask("POST", json.dumps(message).encode(), given)

    def send(
        self, method: str, params: Json = None, headers: Mapping[str, Any] | None = None, *, id: Any = 1, **meta: Any
    ) -> Response:
        """Send a request of the newest revision, with the headers it needs."""
        params = per_request_params(params, **meta)
        standard = {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": method}
        if "name" in params:
            standard["Mcp-Name"] = params["name"]
        return self.post(
            {"jsonrpc": "2.0", "id": id, "method": method, "params": params}, standard | dict(headers or {})
        )

    async def request(
        self, method: str, params: Json = None, headers: Mapping[str, Any] | None = None, *, id: Any = 1, **meta: Any
    ) -> Json:
        """Send a request and give the one JSON object it is answered with."""
        response = await self.send(method, params, headers, id=id, **meta).whole()
        answer = response.json
        judge_message(answer, revision=PER_REQUEST, method=method)
        if "error" in answer:
            raise Refused(response.status, answer)
        assert response.status == 200
        return answer["result"]

    async def call(
        self, name: str, arguments: Json = None, headers: Mapping[str, Any] | None = None, **meta: Any
    ) -> Json:
        params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
        return await self.request("tools/call", params, headers, **meta)


class Refused(Exception):
    """An answer that is an error, with its status."""

    def __init__(self, status: int, answer: Json) -> None:
        super().__init__(f"{status} {answer}")
        self.status = status
        self.id = answer.get("id")
        self.code = answer["error"]["code"]
        self.message = answer["error"]["message"]
        self.data = answer["error"].get("data")


class HttpSession:
    """A client of a handshake revision: `async with HttpSession(http, "2025-11-25") as session`."""

    def __init__(self, http: HttpPeer, revision: str = "2025-11-25", headers: Mapping[str, str] | None = None) -> None:
        self.http = http
        self.revision = revision
        self.headers: dict[str, str] = dict(headers or {})
        self._next_id = 0

    async def __aenter__(self) -> "HttpSession":
        params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        response = await self.post("initialize", params).whole()
        assert response.status == 200, response.body
        judge_message(response.json, revision=self.revision, method="initialize")
        assert response.json["result"]["protocolVersion"] == self.revision
        if "mcp-session-id" in response.headers:
            self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        if self.revision >= "2025-06-18":
            self.headers["MCP-Protocol-Version"] = self.revision
        accepted = await self.notify("notifications/initialized").whole()
        assert (accepted.status, accepted.body) == (202, b"")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave it open: the server ends it."""

    def post(
        self, method: str, params: Json = None, headers: Mapping[str, Any] | None = None, *, id: Any = None
    ) -> Response:
        """Send a request."""
        if id is None:
            self._next_id += 1
            id = self._next_id
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return self.http.post(message, self.headers | dict(headers or {}))

    def notify(self, method: str, params: Json = None) -> Response:
        return self.http.post({"jsonrpc": "2.0", "method": method, "params": params or {}}, self.headers)

    def call(
        self, name: str, arguments: Json = None, headers: Mapping[str, Any] | None = None, **meta: Any
    ) -> Response:
        params = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        return self.post("tools/call", params, headers)

    def get(self, headers: Mapping[str, Any] | None = None) -> Response:
        """Listen."""
        return self.http.ask("GET", b"", {"Accept": "text/event-stream"} | self.headers | dict(headers or {}))
