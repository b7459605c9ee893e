"""What is measured: each peer with the same functions, and what takes the bytes of a request and gives its answer."""

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from payloads import CALLS

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Answer = Callable[[bytes], Awaitable[bytes]]


def request_bytes(name: str, arguments: dict) -> bytes:
    """Write a call as a client does."""
    params = {"name": name, "arguments": arguments, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def make_twofold() -> Any:
    """Twofold's server."""
    from twofold import MCPServer

    server = MCPServer("bench")
    for function in CALLS:
        server.add_tool(function)
    return server


def make_mcp() -> Any:
    """The official SDK's server. It logs no requests, since the others do not either."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench", log_level="WARNING")
    for function in CALLS:
        server.add_tool(function)
    return server


async def open_twofold(stack: AsyncExitStack) -> Answer:
    """Twofold: a connection without a transport."""

    class Nowhere:
        def write(self, message: bytes) -> None: ...

        async def drain(self) -> None: ...

    server = make_twofold()
    for name in ("models_checked", "large_checked"):  # these are to show what the full check costs
        if server._registry.get(name).tool.returns.is_proven:
            raise SystemExit(f"{name}: its type is proven while it is written, so no full check would be measured")
    connection = server.connect(Nowhere(), await stack.enter_async_context(server.live()))

    async def answer(line: bytes) -> bytes:
        answered = await connection.answer(line)
        assert answered is not None
        return answered.body

    return answer


async def open_mcp(stack: AsyncExitStack) -> Answer:
    """The official SDK: the same steps as its own transports take, without their streams and tasks."""
    import mcp_types as types
    from mcp.server._streamable_http_modern import _SingleExchangeDispatchContext
    from mcp.server.connection import Connection
    from mcp.server.runner import serve_one
    from mcp.shared.inbound import classify_inbound_request
    from mcp.shared.message import ServerMessageMetadata
    from mcp.shared.transport_context import TransportContext

    low = make_mcp()._lowlevel_server
    state = await stack.enter_async_context(low.lifespan(low))

    async def answer(line: bytes) -> bytes:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        verdict = classify_inbound_request({"method": message.method, "params": message.params})
        connection = Connection.from_envelope(
            verdict.protocol_version, verdict.client_info, verdict.client_capabilities
        )
        context = _SingleExchangeDispatchContext(
            transport=TransportContext(kind="stdio", can_send_request=False),
            request_id=message.id,
            message_metadata=ServerMessageMetadata(),
        )
        result = await serve_one(
            low, context, message.method, message.params, connection=connection, lifespan_state=state
        )
        response = types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
        return response.model_dump_json(by_alias=True, exclude_unset=True).encode()

    return answer


def open_floor(answers: dict[bytes, bytes]) -> Answer:
    """Canned bytes: what awaiting a function costs at all."""

    async def answer(line: bytes) -> bytes:
        return answers[line]

    return answer
