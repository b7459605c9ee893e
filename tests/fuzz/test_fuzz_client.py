"""A client that is answered anything: a typed result or a typed error in time, and the next honest call works."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.material import (
    HANDSHAKE,
    NEWEST,
    damage,
    edits,
    encode,
    fuzzed,
    ids,
    messages,
    no_faults,
    scalars,
    values,
)
from twofold import Client, TwofoldError
from twofold.client.results import CheckedResult
from twofold.protocol.eventstream import encode_event

TIMEOUT_SECONDS = 0.05
ECHO = {
    "name": "echo",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
ALLOWED = (TwofoldError, TimeoutError)


def honest_result(method: str, params: dict[str, Any]) -> Any:
    """Answer as a simple server would, in either era."""
    capabilities = {"tools": {"listChanged": True}}
    extra = {"resultType": "complete"}
    if method == "server/discover":
        return {"supportedVersions": [NEWEST], "capabilities": capabilities, "serverInfo": {"name": "s", "version": "0"},
                "ttlMs": 0, "cacheScope": "private"} | extra  # fmt: skip
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "0"},
        }
    if method == "tools/list":
        return {"tools": [ECHO], "ttlMs": 0, "cacheScope": "private"} | extra
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "7"}], "structuredContent": {"n": 7}} | extra
    return {} | extra


Change = Callable[[bytes], list[bytes]]
"""What becomes of one honest answer on its way."""


@st.composite
def changes(draw: Any) -> Change:  # noqa: PLR0911 - one a kind
    """Draw one: left as it is, lost, doubled, damaged, of another id, in other words, or with much around it."""
    kind = draw(
        st.sampled_from(["same", "lost", "twice", "damaged", "id", "field", "other", "around", "error", "result"])
    )
    if kind == "damaged":
        places = draw(edits)
        return lambda answer: [damage(answer, places)]
    if kind == "id":
        other = draw(ids | scalars)
        return lambda answer: [encode({**json.loads(answer), "id": other})]
    if kind == "field":
        names = ["content", "structuredContent", "isError", "_meta", "tools", "capabilities", "serverInfo", "supportedVersions",
                 "protocolVersion", "resultType", "ttlMs", "nextCursor", "cacheScope", "instructions"]  # fmt: skip
        fields = draw(
            st.dictionaries(
                st.sampled_from(names), values | st.sampled_from([NEWEST, *HANDSHAKE, "input_required"]), max_size=3
            )
        )
        return lambda answer: [encode({**(m := json.loads(answer)), "result": {**m["result"], **fields}})]
    if kind == "result":
        instead = draw(values)
        return lambda answer: [encode({**json.loads(answer), "result": instead})]
    if kind == "error":
        error = draw(
            values
            | st.fixed_dictionaries(
                {
                    "code": st.sampled_from([-32601, -32602, -32020, -32022, -32021, -32603, 0, 2**70]) | scalars,
                    "message": st.text(max_size=5),
                },
                optional={
                    "data": values
                    | st.fixed_dictionaries(
                        {"supported": st.lists(st.sampled_from([NEWEST, *HANDSHAKE, "x"]) | values)}
                    )
                },
            )
        )
        return lambda answer: [encode({"jsonrpc": "2.0", "id": json.loads(answer)["id"], "error": error})]
    if kind in ("other", "around"):
        others = draw(st.lists(messages.map(encode) | st.binary(max_size=20), max_size=3))
        return lambda answer: others if kind == "other" else [*others, answer, *others]
    return {"same": lambda answer: [answer], "lost": lambda answer: [], "twice": lambda answer: [answer, answer]}[kind]


scripts = st.builds(
    lambda honest, changed: [lambda answer: [answer]] * honest + changed,
    st.integers(0, 4),
    st.lists(changes(), max_size=5),
)
"""Honest for a while, so that many get past the opening."""


class Script:
    """Answers honestly, but for the next answers, each of which is changed."""

    name = "fuzzed"

    def __init__(self, next_changes: list[Change]) -> None:
        self.changes = next_changes

    def answer(self, line: bytes) -> list[bytes]:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            return []
        if message["method"] == "subscriptions/listen":
            return []
        result = honest_result(message["method"], message.get("params") or {})
        answer = encode({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return self.changes.pop(0)(answer) if self.changes else [answer]

    # As a server in this process.

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        yield None

    def connect(self, writer: Any, offer: None) -> "Script":
        self.writer = writer
        return self

    def disconnect(self, connection: Any) -> None:
        """There is nothing to forget."""

    def receive(self, line: bytes) -> None:
        for each in self.answer(line):
            self.writer.write(each)

    async def close(self, *, grace_seconds: float) -> None:
        """There is nothing to end."""


async def use(client: Client, script: Script) -> None:
    """Use a client as a program would; whatever comes is typed, and it works again once the answers are honest."""
    try:
        await client.__aenter__()
    except ALLOWED:
        return
    try:
        with contextlib.suppress(*ALLOWED):
            assert all(tool.name for tool in await client.list_tools())
        for check in ("raise", "mark", "off"):
            with contextlib.suppress(*ALLOWED):
                result = await client.call_tool("echo", {}, check=check)
                assert isinstance(result, CheckedResult)
                assert result.verdict.status in ("valid", "invalid", "absent", "unchecked", "uncheckable")
        script.changes.clear()
        client_works = await client.call_tool("echo", {}, check="off", timeout_seconds=20)
        assert client_works.structured_content == {"n": 7}
    finally:
        await client.close()


def run(client: Client, script: Script) -> None:
    with no_faults():

        async def main() -> None:
            async with asyncio.timeout(50):
                await use(client, script)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())


revisions = st.sampled_from(["auto", NEWEST, *HANDSHAKE])


@fuzzed(150)
@given(revisions, scripts)
def test_whatever_a_server_answers_the_client_gives_a_result_or_a_typed_error(revision, next_changes):
    """Issue 4: deep, huge, truncated or hostile answers fail the call with a clear error, and cost no more."""
    script = Script(next_changes)
    run(Client(script, revision=revision, timeout_seconds=TIMEOUT_SECONDS), script)


statuses = st.sampled_from([200, 200, 200, 202, 204, 301, 304, 400, 401, 403, 404, 405, 406, 415, 429, 500, 503, 599])
kinds = st.sampled_from(["application/json", "text/event-stream", "text/html", "application/json; charset=utf-16", ""])
fields = st.dictionaries(
    st.sampled_from(["mcp-session-id", "retry-after", "location", "www-authenticate", "content-encoding", "x"]),
    st.sampled_from(["x", "1", "gzip", "http://127.0.0.1:1/", "é", "", "Bearer"]),
    max_size=2,
)


class HttpScript(Script):
    """The same over HTTP, where status, type and headers can be wrong too, and streams cut."""

    def __init__(self, next_changes: list[Change], heads: list[tuple[int, str, dict[str, str], bool]]) -> None:
        super().__init__(next_changes)
        self.heads = heads

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return httpx2.Response(405)
        answers = self.answer(request.content)
        status, kind, headers, is_cut = 200, "application/json", {}, False
        if self.heads and self.changes and len(self.changes) < 4:
            status, kind, headers, is_cut = self.heads.pop(0)
        if not answers and status == 200:
            return httpx2.Response(202)
        body = b"".join(map(encode_event, answers) if kind == "text/event-stream" else answers)
        headers = {name: value.encode() for name, value in headers.items()} | {"content-type": kind.encode()}
        return httpx2.Response(status, headers=headers, content=body[:-3] if is_cut else body)


@fuzzed(150)
@given(
    revisions,
    scripts,
    st.lists(st.tuples(statuses, kinds, fields, st.booleans()), max_size=6),
)
def test_whatever_a_server_answers_over_http_the_client_gives_a_result_or_a_typed_error(revision, next_changes, heads):
    """The same with status, type and headers of every kind, and streams that end early."""
    script = HttpScript(next_changes, heads)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(script.handle))
    run(Client("http://127.0.0.1:1/mcp", revision=revision, timeout_seconds=TIMEOUT_SECONDS, http_client=http), script)
