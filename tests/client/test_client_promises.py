"""What a strict reading of the client found, each held by a test: results kept, opening and closing that end."""

import asyncio
import sys

import pytest

from tests.client.test_client import Canned, structured, tool
from twofold import Client, ContractError, MCPServer, NotSent, StdioServer, TransportError
from twofold.errors import HeaderMismatch, ProtocolError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Forgetful(Canned):
    """Lists its tools once; then it answers with an error."""

    def answer(self, method, params):
        if method == "tools/list" and self.methods().count("tools/list") > 1:
            return {"error": {"code": -32000, "message": "try later"}}
        return super().answer(method, params)


async def test_a_result_is_not_lost_to_a_listing_that_fails_after_it():
    """The call was carried out: what was found by the old listing is told, with the whole result."""
    server = Forgetful([tool("a", outputSchema=SCHEMA)], {"a": structured({"m": 1})}, listing={"ttlMs": 0})
    async with asyncio.timeout(20), Client(server) as client:
        with pytest.raises(ContractError) as caught:
            await client.call_tool("a")
    assert (caught.value.verdict.status, caught.value.result.structured_content) == ("invalid", {"m": 1})
    assert server.methods().count("tools/list") == 2


async def test_a_listing_that_fails_for_another_reason_than_that_there_is_none_stops_the_call():
    """Nothing is called that could not be judged; `check` is not switched off behind anybody's back."""

    class Broken(Canned):
        def answer(self, method, params):
            if method == "tools/list":
                return {"error": {"code": -32000, "message": "try later"}}
            return super().answer(method, params)

    server = Broken([], {"a": structured(1)})
    async with asyncio.timeout(20), Client(server) as client:
        with pytest.raises(NotSent, match="does not list its tools"):
            await client.call_tool("a")
    assert "tools/call" not in server.methods()


async def test_a_tool_that_was_left_out_of_the_listing_is_not_called():
    """Its result could not be judged; the reason is said."""
    server = Canned([{"name": "bad", "inputSchema": 5}], {"bad": structured(1)})
    async with asyncio.timeout(20), Client(server) as client:
        with pytest.raises(NotSent, match="left out of the listing"):
            await client.call_tool("bad")
    assert "tools/call" not in server.methods()


async def test_a_call_is_repeated_for_missing_headers_only_where_there_are_any():
    """-32020 means nothing before 2026-07-28, nor without HTTP: repeating would carry the call out twice."""
    calls = []
    server = MCPServer("s")

    @server.tool()
    def act() -> None:
        """Act."""
        calls.append(1)
        raise ProtocolError(HeaderMismatch.fixed_code, "mine")

    for revision in ("2025-11-25", "2026-07-28"):
        calls.clear()
        async with asyncio.timeout(20), Client(server, revision=revision) as client:
            with pytest.raises(ProtocolError, match="mine"):
                await client.call_tool("act")
        assert calls == [1]


async def test_a_callback_may_close_the_client_and_no_process_is_left(tmp_path):
    """Closing ends the child whatever calls it."""
    script = tmp_path / "server.py"
    script.write_text(
        "from twofold import Context, MCPServer\nimport asyncio\nmcp = MCPServer('s')\n"
        "@mcp.tool()\nasync def wait(ctx: Context) -> str:\n    'Wait.'\n"
        "    await ctx.report_progress(1)\n    await asyncio.sleep(60)\n    return 'done'\nmcp.run()\n"
    )
    closed = asyncio.Event()

    async def close(*_):
        await client.close()
        closed.set()

    client = Client(StdioServer(command=sys.executable, args=[str(script)]))
    async with asyncio.timeout(40):
        await client.__aenter__()
        process = client._conversation.link._child
        with pytest.raises(Exception, match="closed"):
            await client.call_tool("wait", on_progress=close)
        await closed.wait()
    assert process._exited.is_set()


async def test_opening_ends_whatever_the_server_does():
    """A server in this process whose lifespan never opens."""

    class Stuck(Canned):
        def live(self):
            import contextlib

            @contextlib.asynccontextmanager
            async def never():
                await asyncio.Event().wait()
                yield

            return never()

    async with asyncio.timeout(20):
        with pytest.raises(TransportError, match="could not be opened within"):
            await Client(Stuck([]), timeout_seconds=0.05).__aenter__()


async def test_logs_on_stdout_fail_no_call(tmp_path):
    """Servers write structured logs where only messages belong; they are told of, and answer nothing."""
    script = tmp_path / "server.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        '    print(\'{"level":30,"msg":"asked"}\', flush=True)\n'
        "    print(str({'debug': 1}), flush=True)\n"
        "    print('[INFO] asked', flush=True)\n"
        "    results = {'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'l', 'version': '1'}},\n"
        "               'tools/list': {'tools': []}, 'tools/call': {'content': [], 'structuredContent': 7}}\n"
        "    if 'id' in message:\n"
        "        result = results.get(message['method'])\n"
        "        said = {'result': result} if result else {'error': {'code': -32601, 'message': 'no'}}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **said}), flush=True)\n"
    )
    async with asyncio.timeout(30), Client(StdioServer(command=sys.executable, args=[str(script)])) as client:
        results = await asyncio.gather(*(client.call_tool("x") for _ in range(3)))
    assert [each.structured_content for each in results] == [7, 7, 7]


async def test_eight_thousand_equal_names_take_no_longer_than_their_number():
    """A listing is read in time that grows with its size alone; how many rejections are told is bounded."""
    server = Canned([tool("same")] * 8000)
    async with asyncio.timeout(5), Client(server) as client:
        assert [each.name for each in await client.list_tools()] == ["same"]
        assert len(client.rejected_tools) == 1000


async def test_a_type_that_cannot_be_read_as_is_the_programs_fault_before_anything_is_done():
    server = Canned([tool("a")], {"a": structured(1)})

    class Strange:
        pass

    async with asyncio.timeout(20), Client(server) as client:
        with pytest.raises(TypeError):
            await client.call_tool("a", as_type=Strange)
    assert "tools/call" not in server.methods()


async def test_a_callback_that_raises_costs_no_answer():
    """`on_tools_changed` is the program's own; its fault is logged, and the call has its answer."""

    class Changing(Canned):
        def answer(self, method, params):
            if method == "tools/call":
                self.notify("notifications/tools/list_changed")
            return super().answer(method, params)

    def fail():
        raise ValueError("mine")

    server = Changing([tool("a")], {"a": structured(1)})
    async with asyncio.timeout(20), Client(server, on_tools_changed=fail) as client:
        assert (await client.call_tool("a")).structured_content == 1
