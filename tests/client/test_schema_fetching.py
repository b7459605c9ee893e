"""What a schema refers to is fetched for who asks for it, from listed hosts, within limits, and every fetch is told."""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.client.schema_host import HOST, PUBLIC, SchemaHost, document, response, trust
from twofold import Client, ContractError
from twofold.client.pinned_request import MAX_HEAD_BYTES, Place, TlsConnector
from twofold.client.schema_fetching import MAX_KEPT, RETRY_SECONDS, SchemaFetcher, SchemaFetching
from twofold.contract.verdict import OutputSchema, Verdict

BASE = f"https://{HOST}"
A, B = f"{BASE}/a.json", f"{BASE}/b.json"
USES_A = {"type": "object", "properties": {"x": {"$ref": A}}}
INTEGER = {"/a.json": document({"type": "integer"})}
WHAT = "tool 't', output schema"


class Told(SchemaFetching, frozen=True, kw_only=True):
    """Fetches from a host on loopback, under addresses that a test tells."""

    host: SchemaHost
    addresses: Sequence[str] = (PUBLIC,)
    resolved: list[str]
    times: list[float]

    def open_fetcher(self) -> SchemaFetcher:
        async def resolve(place: Place) -> Sequence[str]:
            self.resolved.append(place.host)
            return self.addresses

        return SchemaFetcher(self, resolve=resolve, connect=self.host.connect, clock=lambda: self.times[-1])


def told(host: SchemaHost, **options: Any) -> Told:
    return Told(**{"hosts": [HOST], "host": host, "resolved": [], "times": [0.0], **options})


class Shop:
    """A server in this process with one tool, `t`, whose output schema and results are what a test says."""

    name = "shop"

    def __init__(self, schema: Any, *structures: Any, is_error: bool = False) -> None:
        self.tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
        self.results = [{"content": [], "structuredContent": each, "isError": is_error} for each in structures]

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        yield

    def connect(self, writer: Any, offer: Any) -> Any:
        self.writer = writer
        return self

    def disconnect(self, connection: Any) -> None:
        pass

    async def close(self, *, grace_seconds: float) -> None:
        pass

    def receive(self, line: bytes) -> None:
        message = json.loads(line)
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            },
            "tools/list": {"tools": [self.tool]},
        }
        if "id" in message:
            result = results.get(message["method"]) or self.results.pop(0)
            self.writer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


async def call(shop: Shop, fetching: SchemaFetching | None, **options: Any) -> list[Verdict]:
    """Give the verdicts on all results of a shop."""
    async with Client(shop, revision="2025-11-25", check="mark", schema_fetching=fetching) as client:
        return [(await client.call_tool("t", **options)).verdict for _ in list(shop.results)]


async def fault_of(schema: Any, fetching: SchemaFetching, *, timeout_seconds: float = 60.0) -> str:
    """Say what is wrong with a schema once all has been fetched; empty if it can be used."""
    output = OutputSchema(schema, what=WHAT)
    assert await fetching.open_fetcher().complete(output, timeout_seconds=timeout_seconds)
    return output.fault


async def test_by_default_nothing_is_fetched():
    """C5: references that leave the document make it uncheckable, whatever they lead to."""
    [verdict] = await call(Shop(USES_A, {"x": 1}), None)
    assert verdict == Verdict(
        "uncheckable",
        reason=f"{WHAT}, at #/properties/x: the reference {A!r} leads out of the schema; network and file references "
        "are never opened, so put what it names under $defs and refer to that",
    )


async def test_what_a_schema_refers_to_is_fetched_once_and_judged_by(caplog: pytest.LogCaptureFixture):
    """Issue 4: opt-in fetching, logged; a document is kept for the client's life."""
    caplog.set_level(logging.INFO, "twofold")
    async with SchemaHost({"/a.json?k=secret": document({"type": "integer"})}) as host:
        schema = {"properties": {"x": {"$ref": A + "?k=secret"}}}
        fetching = told(host)
        first, second, third = await call(Shop(schema, {"x": 1}, {"x": "a"}, {"x": 2}), fetching)
    assert (first, third) == (Verdict("valid"), Verdict("valid"))
    assert [problem.message for problem in second.problems] == ["x: expected an integer, got a string ('a')"]
    assert (host.targets, host.addresses, fetching.resolved) == (["/a.json?k=secret"], [PUBLIC], [HOST])
    [record] = [each for each in caplog.records if each.name == "twofold"]
    assert record.levelname == "INFO"
    assert record.getMessage().startswith(f"schema fetched: {A}, 19 bytes in ")


async def test_the_request_says_nothing_of_who_asks():
    """No credentials, no compression, no connection kept."""
    async with SchemaHost(INTEGER) as host:
        assert await fault_of(USES_A, told(host)) == ""
    assert host.requests == [
        f"GET /a.json HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: twofold\r\n"
        "Accept: application/schema+json, application/json\r\nAccept-Encoding: identity\r\n"
        "Connection: close\r\n\r\n".encode()
    ]


async def test_a_missing_document_is_told_in_the_contract_error():
    """The verdict's reason says what was refused, and the error carries the whole result."""
    async with SchemaHost({}) as host:
        async with Client(Shop(USES_A, {"x": 1}), revision="2025-11-25", schema_fetching=told(host)) as client:
            with pytest.raises(ContractError) as refused:
                await client.call_tool("t")
    assert refused.value.verdict == Verdict(
        "uncheckable", reason=f"{WHAT}: it needs {A}, which was not fetched: the status is 404, expected 200"
    )
    assert refused.value.result.structured_content == {"x": 1}


@pytest.mark.parametrize(
    ("shop", "options"),
    [
        (Shop(USES_A, {"x": 1}, is_error=True), {}),
        (Shop(USES_A, {"x": 1}), {"check": "off"}),
        (Shop({"properties": {"x": {"type": "integer"}}}, {"x": 1}, {"x": "a"}), {}),
        (Shop({**USES_A, "pattern": "("}, {"x": 1}, {"x": 1}), {}),
        (Shop({**USES_A, "$schema": "https://example.com/own"}, {"x": 1}), {}),
        (Shop({**USES_A, "not": {"$ref": "#/nowhere"}}, {"x": 1}), {}),
    ],
)
async def test_nothing_is_fetched_that_no_verdict_needs(shop: Shop, options: Any):
    """Only what a schema cannot be judged without, and only if that is all it lacks."""
    async with SchemaHost(INTEGER) as host:
        fetching = told(host)
        await call(shop, fetching, **options)
    assert (fetching.resolved, host.targets) == ([], [])


async def test_references_are_followed_through_documents_and_cycles():
    """Relative ones by the nearest identifier; each document is asked for once."""
    answers = {
        "/s/a.json": document({"properties": {"b": {"$ref": "b.json"}, "n": {"$ref": "../n.json#/$defs/n"}}}),
        "/s/b.json": document({"$id": f"{BASE}/s/", "required": ["k"], "properties": {"a": {"$ref": "a.json"}}}),
        "/n.json": document({"$defs": {"n": {"type": "integer"}}}),
    }
    values = [{"b": {"k": 1, "a": {"n": 1}}}, {"b": {"k": 1, "a": {"n": "a"}}}, {"b": {"a": {}}}]
    async with SchemaHost(answers) as host:
        verdicts = await call(Shop({"$id": f"{BASE}/s/tool", "$ref": "a.json"}, *values), told(host))
    assert [verdict.status for verdict in verdicts] == ["valid", "invalid", "invalid"]
    assert host.targets == ["/s/a.json", "/n.json", "/s/b.json"]


async def test_documents_are_shared_by_the_schemas_of_a_client():
    """Cached by URL, also for calls at the same time."""
    async with SchemaHost(INTEGER) as host:
        fetcher = told(host).open_fetcher()
        schemas = [OutputSchema({**USES_A, "title": f"{n}"}, what=f"{n}") for n in range(5)]
        done = await asyncio.gather(*(fetcher.complete(each, timeout_seconds=60) for each in schemas))
        again = await fetcher.complete(schemas[0], timeout_seconds=60)
    assert (done, again, host.targets) == ([True] * 5, False, ["/a.json"])
    assert [each.fault for each in schemas] == [""] * 5


async def test_a_document_that_refers_on_for_ever_ends_at_the_limit():
    """`max_documents`: a server cannot make a client fetch without end."""
    answers = {f"/{n}.json": document({"properties": {"x": {"$ref": f"{n + 1}.json"}}}) for n in range(9)}
    async with SchemaHost(answers) as host:
        fault = await fault_of({"$ref": f"{BASE}/0.json"}, told(host, max_documents=3))
    assert host.targets == ["/0.json", "/1.json", "/2.json"]
    clause = "a schema may need 3 other documents at most (max_documents)"
    assert fault == f"{WHAT}: it needs {BASE}/3.json, which was not fetched: {clause}"


async def test_all_documents_together_are_bounded():
    """`max_bytes`, whether they are fetched or at hand; nothing is read beyond it."""
    answers = {"/a.json": document({"title": "x" * 60}), "/b.json": document({"title": "y" * 60})}
    async with SchemaHost(answers) as host:
        fetcher = told(host, max_bytes=100).open_fetcher()
        alone, both, again = (
            OutputSchema({"anyOf": refs}, what=WHAT)
            for refs in ([{"$ref": B}], [{"$ref": A}, {"$ref": B}], [{"$ref": A}, {"$ref": f"{BASE}/c.json"}])
        )
        host.answers["/c.json"] = answers["/b.json"]
        for each in (alone, both, again):
            await fetcher.complete(each, timeout_seconds=60)
    assert alone.fault == ""
    assert both.fault.endswith("with it the documents of this schema have more than 100 bytes (max_bytes)")
    assert again.fault.endswith("c.json, which was not fetched: it has more than the 27 bytes that are left for it")


async def pour(writer: asyncio.StreamWriter) -> None:
    """Send chunks without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        await writer.drain()


async def pour_headers(writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X: " + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def hang(writer: asyncio.StreamWriter) -> None:
    """Send half an answer."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(b"{}", status="302 Found", location="https://127.0.0.1/"), "the status is 302, a redirect to 'https://127.0.0.1/', and redirects are not followed"),
        (response(b"{}", content_type="text/html"), "the content type is 'text/html', expected application/json or application/…+json"),
        (response(b"{", ), "the document is no JSON: Input data was truncated"),
        (response(b'{"a": NaN}'), "the document is no JSON: JSON is malformed: invalid character (byte 6)"),
        (response(b"[" * 5000), "the document is nested too deeply to be read"),
        (pour, "it has more than the 1000000 bytes that are left for it"),
        (pour_headers, f"a line of the answer, or all of its headers, are longer than {MAX_HEAD_BYTES} bytes"),
    ],
)  # fmt: skip
async def test_a_hostile_answer_is_refused_and_told(answer: Any, reason: str, caplog: pytest.LogCaptureFixture):
    """Each refusal is a warning in the log and the reason of the verdict."""
    async with SchemaHost({"/a.json": answer}) as host:
        fault = await fault_of(USES_A, told(host))
    assert fault == f"{WHAT}: it needs {A}, which was not fetched: {reason}"
    assert [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "twofold"] == [
        ("WARNING", f"schema not fetched: {A}: {reason}")
    ]


async def test_a_document_that_is_no_schema_is_refused():
    async with SchemaHost({"/a.json": document([1]), "/b.json": document({"$id": A, "$ref": "#/x", "x": {}})}) as host:
        assert await fault_of(USES_A, told(host)) == (
            f"{WHAT}, document {A}: a JSON Schema is an object or a boolean, got an array of 1"
        )
        schema = {"$defs": {"a": {"$id": A}}, "$ref": B}
        assert await fault_of(schema, told(host)) == (
            f"{WHAT}, document {B}: it calls itself or a part of it {A!r}, as another does"
        )


async def test_documents_that_are_too_much_together_are_refused():
    """The bundle is held to the bounds of any schema: each may be within them, and all be not."""
    answers = {f"/{n}.json": document({"allOf": [{}] * 4000}) for n in range(3)}
    async with SchemaHost(answers) as host:
        fault = await fault_of({"anyOf": [{"$ref": f"{BASE}/{n}.json"} for n in range(3)]}, told(host))
    assert fault.startswith(f"{WHAT}: more than 10000 subschemas")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("https://evil.example/a.json", "the host 'evil.example' is not among those listed in schema_fetching"),
        (f"http://{HOST}/a.json", "only https is fetched"),
        ("file:///etc/passwd", "only https is fetched"),
        (f"https://{HOST}:8443/a.json", f"the host '{HOST}:8443' is not among those listed in schema_fetching"),
        ("https://10.0.0.1/a.json", "'10.0.0.1' is an IP address and no host name"),
        ("a.json", "it is no absolute URL with a host, and the schema has no $id that would complete it to one"),
    ],
)
async def test_other_places_are_not_even_resolved(reference: str, reason: str):
    """An explicit list of hosts, and nothing but HTTPS."""
    async with SchemaHost(INTEGER) as host:
        fetching = told(host)
        fault = await fault_of({"$ref": reference}, fetching)
    assert fault == f"{WHAT}: it needs {reference}, which was not fetched: {reason}"
    assert (fetching.resolved, host.targets) == ([], [])


async def test_secrets_of_a_url_are_not_told(caplog: pytest.LogCaptureFixture):
    """STYLE: secrets never. Neither the log nor the verdict shows user, password or query."""
    async with SchemaHost({}) as host:
        fault = await fault_of({"$ref": f"https://user:hush@{HOST}/a?token=hush"}, told(host))
    assert fault == f"{WHAT}: it needs {BASE}/a, which was not fetched: it carries a user name or a password"
    assert "hush" not in caplog.text and caplog.records


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1"])
async def test_private_addresses_are_not_connected_to(address: str):
    """A listed name that leads inside is refused, even if it leads outside too."""
    async with SchemaHost(INTEGER) as host:
        fault = await fault_of(USES_A, told(host, addresses=[PUBLIC, address]))
    assert fault.endswith(f"the host {HOST!r} has the address {address}, which is not public")
    assert (host.addresses, host.targets) == ([], [])


async def test_the_systems_own_names_and_proxies_lead_nowhere(monkeypatch: pytest.MonkeyPatch):
    """Nothing is replaced here: `localhost` is resolved, found private, and a listening socket hears nothing."""
    heard: list[object] = []
    trap = await asyncio.start_server(lambda *streams: heard.append(streams), "127.0.0.1", 0)
    async with trap:
        port = trap.sockets[0].getsockname()[1]
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        fetching = SchemaFetching(hosts=[f"localhost:{port}"])
        fault = await fault_of({"$ref": f"https://localhost:{port}/a"}, fetching)
    assert "the host 'localhost' has the address" in fault and fault.endswith("which is not public")
    assert heard == []


async def test_the_next_address_is_tried_where_one_cannot_be_reached():
    """All of them were looked at; the first that answers is taken."""
    async with SchemaHost(INTEGER) as host:

        async def connect(place: Place, address: str) -> Any:
            if address == "8.8.8.8":
                raise ConnectionRefusedError("refused")
            return await host.connect(place, address)

        async def resolve(place: Place) -> list[str]:
            return ["8.8.8.8", PUBLIC] if len(host.requests) == 0 else ["8.8.8.8"]

        fetcher = SchemaFetcher(SchemaFetching(hosts=[HOST]), resolve=resolve, connect=connect)
        reached, lost = OutputSchema(USES_A, what=WHAT), OutputSchema({"$ref": B}, what=WHAT)
        await fetcher.complete(reached, timeout_seconds=60)
        await fetcher.complete(lost, timeout_seconds=60)
    assert reached.fault == ""
    assert lost.fault == f"{WHAT}: it needs {B}, which was not fetched: the host {HOST!r} cannot be reached: refused"


async def test_a_host_with_another_certificate_is_refused():
    async with SchemaHost(INTEGER) as host:

        async def connect(place: Place, address: str) -> Any:
            return await TlsConnector(trust())(Place("other.example", host.port, "/"), "127.0.0.1")

        async def resolve(place: Place) -> list[str]:
            return [PUBLIC]

        fetcher = SchemaFetcher(SchemaFetching(hosts=[HOST]), resolve=resolve, connect=connect)
        output = OutputSchema(USES_A, what=WHAT)
        await fetcher.complete(output, timeout_seconds=60)
    assert "cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED]" in output.fault
    assert host.requests == []


async def test_a_name_without_an_address_is_told():
    async def resolve(place: Place) -> list[str]:
        raise OSError("Name or service not known")

    fetcher = SchemaFetcher(SchemaFetching(hosts=[HOST]), resolve=resolve)
    output = OutputSchema(USES_A, what=WHAT)
    assert await fetcher.complete(output, timeout_seconds=60)
    assert output.fault == f"{WHAT}: it needs {A}, which was not fetched: Name or service not known"


async def test_a_failure_is_remembered_for_a_while_and_then_tried_again():
    """A dead host does not cost every call its time, nor is a tool lost for good."""
    async with SchemaHost({}) as host:
        fetching = told(host)
        fetcher = fetching.open_fetcher()
        schema, other = OutputSchema(USES_A, what=WHAT), OutputSchema({"$ref": A}, what=WHAT)
        tried = [await fetcher.complete(each, timeout_seconds=60) for each in (schema, schema, other)]
        assert (tried, host.targets) == ([True, False, True], ["/a.json"])
        host.answers |= INTEGER
        fetching.times.append(RETRY_SECONDS)
        tried = [await fetcher.complete(each, timeout_seconds=60) for each in (schema, other)]
    assert (tried, host.targets) == ([True, True], ["/a.json"] * 2)
    assert (schema.fault, other.fault) == ("", "")


async def test_a_slow_host_costs_the_document_and_not_the_result():
    """The call's timeout covers fetching: half of it at most, so that what the server said can still be told."""
    async with SchemaHost({"/a.json": hang}) as host:
        shop = Shop(USES_A, {"x": 1}, {"x": 1})
        async with Client(shop, revision="2025-11-25", check="mark", schema_fetching=told(host)) as client:
            late = await client.call_tool("t", timeout_seconds=2.0)
            host.answers |= INTEGER  # what had too little time is tried again at once
            kept = await client.call_tool("t", timeout_seconds=60.0)
    assert late.structured_content == {"x": 1}
    assert late.verdict.reason.startswith(
        f"{WHAT}: it needs {A}, which was not fetched: there was no whole answer within 0."
    )
    assert kept.verdict == Verdict("valid")


async def test_the_limit_of_time_is_for_all_documents(caplog: pytest.LogCaptureFixture):
    """`timeout_seconds`; a failure of that is remembered like any other."""
    async with SchemaHost({"/a.json": hang}) as host:
        fetching = told(host, timeout_seconds=0.2)
        fetcher = fetching.open_fetcher()
        output = OutputSchema(USES_A, what=WHAT)
        tried = [await fetcher.complete(output, timeout_seconds=60) for _ in range(2)]
    reason = "there was no whole answer within 0.2 seconds"
    assert (tried, host.targets) == ([True, False], ["/a.json"])
    assert output.fault == f"{WHAT}: it needs {A}, which was not fetched: {reason}"
    assert [each.getMessage() for each in caplog.records if each.name == "twofold"] == [
        f"schema not fetched: {A}: {reason}"
    ]


async def test_no_more_is_kept_than_a_bound():
    """The oldest go first, so that a server of ever new URLs does not fill the memory."""
    async with SchemaHost({}) as host:
        fetching = told(host, hosts=["never.example"])
        fetcher = fetching.open_fetcher()
        for n in range(MAX_KEPT + 1):
            await fetcher.complete(OutputSchema({"$ref": f"{BASE}/{n}"}, what=WHAT), timeout_seconds=60)
    assert (len(fetcher.kept_urls), fetcher.kept_urls[0], fetcher.kept_urls[-1]) == (
        MAX_KEPT,
        f"{BASE}/1",
        f"{BASE}/256",
    )


def test_hosts_are_written_one_way_and_cannot_be_added_to():
    hosts = ["Schemas.Example.com:443", "localhost:8443"]
    fetching = SchemaFetching(hosts=hosts)
    hosts.append("evil.example")
    assert fetching.hosts == (HOST, "localhost:8443")
    assert (fetching.max_bytes, fetching.max_documents, fetching.timeout_seconds) == (1_000_000, 20, 10.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": []}, "expected one at least"),
        ({"hosts": ["*.example.com"]}, "'*.example.com' is no host name, with or without a port; give it as 'schemas.example.com'"),
        ({"hosts": ["10.0.0.1"]}, "'10.0.0.1' is an IP address"),
        ({"hosts": [BASE]}, "is no host name"),
        ({"hosts": [HOST], "max_bytes": 0}, "max_bytes: expected a whole number from 1, got 0"),
        ({"hosts": [HOST], "max_bytes": 1.5}, "max_bytes: expected a whole number from 1, got 1.5"),
        ({"hosts": [HOST], "max_documents": True}, "max_documents: expected a whole number from 1, got True"),
        ({"hosts": [HOST], "timeout_seconds": 0}, "timeout_seconds: expected a positive number, got 0"),
        ({"hosts": [HOST], "timeout_seconds": float("inf")}, "timeout_seconds: expected a positive number, got inf"),
        ({"hosts": [HOST], "timeout_seconds": float("nan")}, "timeout_seconds: expected a positive number, got nan"),
    ],
)  # fmt: skip
def test_limits_are_checked_at_once(options: Any, message: str):
    """What cannot be meant is told where it is written."""
    with pytest.raises(ValueError, match=re.escape(message)):
        SchemaFetching(**options)


@pytest.mark.parametrize("hosts", [HOST, [1], None, {HOST: 1}])
def test_hosts_are_a_list_of_names(hosts: Any):
    with pytest.raises(TypeError, match="expected a list of host names"):
        SchemaFetching(hosts=hosts)


def test_a_client_takes_nothing_else():
    with pytest.raises(TypeError, match="schema_fetching: expected a SchemaFetching, got list"):
        Client(Shop({}), schema_fetching=[HOST])  # type: ignore[arg-type]  # refused
