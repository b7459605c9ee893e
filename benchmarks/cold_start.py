"""Milliseconds from spawning a server of one tool over stdio to its first answer: what a host waits for."""

import contextlib
import tempfile
import time
from pathlib import Path

from figures import Figures, add_turn
from over_stdio import open_pipes
from peers import check_result, node, node_folder, python_of, request_bytes
from processes import read_busy_seconds, read_cpu

LAYER, PAYLOAD = "cold_start", "one_tool"
TURNS_A_ROUND = 2
"""The clock is told here, which is noisier than CPU: so there are more turns."""
PYTHON_TOOL = '\nasync def add(x: int, y: int) -> int:\n    "Add two numbers."\n    return x + y\n'
PROGRAMS = {
    "twofold": f"from twofold import MCPServer\nmcp = MCPServer('cold')\n@mcp.tool(){PYTHON_TOOL}mcp.run()\n",
    "mcp": "from mcp.server.mcpserver import MCPServer\nmcp = MCPServer('cold', log_level='WARNING')\n"
    f"@mcp.tool(){PYTHON_TOOL}mcp.run('stdio')\n",
    "fastmcp": "from fastmcp import FastMCP\nmcp = FastMCP('cold')\n"
    f"@mcp.tool{PYTHON_TOOL}mcp.run('stdio', show_banner=False)\n",
    "typescript": """
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';
const integer = z.number().int();
serveStdio(() => {
  const server = new McpServer({ name: 'cold', version: '1' });
  const options = {
    description: 'Add two numbers.',
    inputSchema: z.object({ x: integer, y: integer }), outputSchema: z.object({ result: integer }),
  };
  server.registerTool('add', options, async ({ x, y }) => (
    { content: [{ type: 'text', text: String(x + y) }], structuredContent: { result: x + y } }));
  return server;
});
""",
    # What starting the interpreter takes by itself: it answers one line with a canned one.
    "floor": "import sys\nsys.stdin.buffer.readline()\n"
    """sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"result":42}}}\\n')\n""",
}


def measure(figures: Figures, *, rounds: int) -> None:
    """Start each in turns; the first turn of each fills the disk's cache."""
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS_A_ROUND * rounds + 1):
            for peer, program in PROGRAMS.items():
                measured = start_once(peer, program, Path(folder))
                if turn:
                    add_turn(figures, layer=LAYER, payload=PAYLOAD, peer=peer, measured=measured)


def start_once(peer: str, program: str, folder: Path) -> dict[str, float]:
    """Spawn, call, check, stop."""
    if peer == "typescript":
        command, where = [node(), "--input-type=module", "--eval", program], node_folder()
    else:
        command, where = [python_of(peer), "-c", program], folder
    with contextlib.ExitStack() as stack:
        busy, began = read_busy_seconds(), time.perf_counter()
        server = stack.enter_context(open_pipes(peer, command, folder, where=where))
        server.write(request_bytes("add", {"x": 2, "y": 40}) + b"\n")
        (line,) = server.read_lines()
        elapsed, cpu = time.perf_counter() - began, sum(read_cpu(server.pid).values()) / 1e9
        others = max(0.0, (read_busy_seconds() - busy - cpu) / elapsed)
    check_result("add", peer, line, expected={"result": 42})
    return {"ms": elapsed * 1e3, "cpu_ms": cpu * 1e3, "foreign_cores": others}
