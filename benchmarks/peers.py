"""What is measured: each peer with the same functions, how it is started, and what takes bytes in process."""

import json
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pydantic_core
from payloads import CALLS

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv" / "peers"
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
VERSIONS = {"mcp": "2.3.0", "fastmcp": "4.2.3", "typescript": "2.4.0"}
"""Of the peers; `requirements/` pins them."""
Answer = Callable[[bytes], Awaitable[bytes]]


def request_bytes(name: str, arguments: dict, id: int = 1) -> bytes:
    """Write a call as a client does."""
    return message_bytes("tools/call", {"name": name, "arguments": arguments}, id)


def message_bytes(method: str, params: dict, id: int = 1) -> bytes:
    """Write a request as a client of the newest revision does."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(message, separators=(",", ":")).encode()


def arguments_of(name: str) -> dict:
    """What a payload's function is called with."""
    return next(arguments for each, arguments in CALLS.items() if each.__name__ == name)


def expected_value(name: str) -> object:
    """What a tool gives, as JSON, an object."""
    function = next(each for each in CALLS if each.__name__ == name)
    value = function(**CALLS[function])
    if hasattr(value, "send"):
        try:
            value.send(None)
        except StopIteration as done:
            value = done.value
    plain = pydantic_core.to_jsonable_python(value)
    return plain if isinstance(plain, dict) else {"result": plain}


def check_value(name: str, peer: str, message: bytes) -> None:
    """Peers that answer differently cannot be compared.

    Raises:
        SystemExit: The answer's value is another than the function's, or it is an error.
    """
    check_result(name, peer, message, expected=expected_value(name))


def check_result(name: str, peer: str, message: bytes, *, expected: object) -> None:
    """Compare the structured content of an answer with a value.

    Raises:
        SystemExit: It is another, or the answer is an error.
    """
    result = json.loads(message).get("result", {})
    if result.get("structuredContent") != expected or result.get("isError"):
        raise SystemExit(f"{name}: {peer} gives a wrong answer: {message[:500]!r}")


def python_of(peer: str) -> Path:
    """Find the interpreter of an environment that has what the peer's own installer installs, and nothing else."""
    python = PEERS / {"mcp": "mcp-2", "floor": "twofold"}.get(peer, peer) / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{peer} is not installed: {python} is missing; run `make peers`")
    return python


def serve_command(peer: str, *arguments: str, python: Path | None = None) -> list[str | Path]:
    """Give the command that runs a peer's server, `serve.py` or its like on Node.

    Args:
        peer: `twofold`, `mcp`, `fastmcp`, `typescript` or `floor`.
        arguments: What `serve.py` takes after the peer.
        python: Another interpreter than the peer's own.

    Raises:
        SystemExit: The peer is not installed.
    """
    if peer == "typescript":
        program = shutil.copy(HERE / "typescript_server.mjs", node_folder())  # modules are found from where it lies
        return [node(), program, *arguments]
    return [python or python_of(peer), HERE / "serve.py", peer, *arguments]


def node() -> Path:
    """Find the Node that the TypeScript server runs on."""
    found = PEERS / "node" / "runtime" / "node_modules" / "node" / "bin" / "node"
    if not found.exists():
        raise SystemExit(f"Node is not installed: {found} is missing; run `make peers`")
    return found


def node_folder() -> Path:
    """Find the folder that the TypeScript server is installed in."""
    folder = PEERS / "node" / "server-2"
    if not (folder / "node_modules" / "@modelcontextprotocol" / "server").exists():
        raise SystemExit(f"the TypeScript server is not installed in {folder}; run `make peers`")
    return folder


def make_twofold(functions: Sequence[Callable[..., Any]] = tuple(CALLS)) -> Any:
    """Twofold's server."""
    from twofold import MCPServer

    server = MCPServer("bench")
    for function in functions:
        server.add_tool(function)
    return server


def make_mcp(functions: Sequence[Callable[..., Any]] = tuple(CALLS)) -> Any:
    """The official SDK's server. It logs no requests, since the others do not either."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench", log_level="WARNING")
    for function in functions:
        server.add_tool(function)
    return server


def make_fastmcp(functions: Sequence[Callable[..., Any]] = tuple(CALLS)) -> Any:
    """FastMCP's server."""
    from fastmcp import FastMCP

    server = FastMCP("bench")
    for function in functions:
        server.tool(function)
    return server


async def open_twofold(stack: AsyncExitStack) -> Answer:
    """Twofold: a connection without a transport."""

    class Nowhere:
        def write(self, message: bytes) -> None: ...

        async def drain(self) -> None: ...

    server = make_twofold()
    for name in ("models_checked", "large_checked"):  # these are to show what the full check costs
        if server._registry.get(name).tool.returns.is_proven:
            sys.exit(f"{name}: its type is proven while it is written, so no full check would be measured")
    connection = server.connect(Nowhere(), await stack.enter_async_context(server.live()))

    async def answer(line: bytes) -> bytes:
        answered = await connection.answer(line)
        assert answered is not None
        return answered.body

    return answer


async def open_mcp(stack: AsyncExitStack) -> Answer:
    """The official SDK."""
    return await open_official(stack, make_mcp()._lowlevel_server)


async def open_fastmcp(stack: AsyncExitStack) -> Answer:
    """FastMCP, which stands on the official SDK's server."""
    return await open_official(stack, make_fastmcp()._mcp_server)


async def open_official(stack: AsyncExitStack, server: Any) -> Answer:
    """The official SDK's server: the same steps as its own transports take, without their streams and tasks."""
    import mcp_types as types
    from mcp.server._streamable_http_modern import _SingleExchangeDispatchContext
    from mcp.server.connection import Connection
    from mcp.server.runner import serve_one
    from mcp.shared.inbound import classify_inbound_request
    from mcp.shared.message import ServerMessageMetadata
    from mcp.shared.transport_context import TransportContext

    state = await stack.enter_async_context(server.lifespan(server))

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
            server, context, message.method, message.params, connection=connection, lifespan_state=state
        )
        response = types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
        return response.model_dump_json(by_alias=True, exclude_unset=True).encode()

    return answer


def open_floor(answers: dict[bytes, bytes]) -> Answer:
    """Canned bytes: what awaiting a function costs at all."""

    async def answer(line: bytes) -> bytes:
        return answers[line]

    return answer
