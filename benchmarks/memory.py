"""Most memory that a server's processes had at any one time, over HTTP with 32 connections and a fixed mix of calls."""

import contextlib
import selectors
import tempfile
from pathlib import Path

from figures import Figures, add_turn
from over_http import Exchange, Server, connect, is_whole, learn, open_server, receive, wait_for
from processes import load_on_first_core, read_peak_mb

LAYER, PAYLOAD = "memory", "mixed"
SERVERS = ("twofold", "twofold plain", "mcp", "mcp fastest", "fastmcp", "typescript")
CONNECTIONS = 32
MIX = [*["integer", "model", "sync"] * 4, "models", *["integer", "model", "sync"] * 4, "models", "large"]
"""What each connection asks for, each beginning at another place."""
STARTS = 3
"""Fresh servers; a peak is the same within a few per cent, so fewer rounds are enough."""


def measure(figures: Figures, *, rounds: int) -> None:
    """Start each server anew, have it serve the mix, and read its peak."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(load_on_first_core())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for _ in range(min(STARTS, rounds)):
            for name in SERVERS:
                with open_server(name, folder) as server:
                    idle = read_peak_mb(server.process.pid)
                    serve_mix(server)
                    measured = {"peak_mb": read_peak_mb(server.process.pid), "idle_mb": idle}
                add_turn(figures, layer=LAYER, payload=PAYLOAD, peer=name, measured=measured)


def serve_mix(server: Server) -> None:
    """Send the mix on every connection, one request at a time on each; every answer has to be the one learned."""
    exchanges = {payload: learn(server, payload) for payload in dict.fromkeys(MIX)}
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(CONNECTIONS):
            start = number % len(MIX)
            asking = Asking([exchanges[payload] for payload in MIX[start:] + MIX[:start]])
            connection = stack.enter_context(connect(server))
            selector.register(connection, selectors.EVENT_READ, asking)
            connection.sendall(asking.request)
        while selector.get_map():
            for key, _ in wait_for(selector):
                if not key.data.is_answered(receive(key.fileobj)):
                    continue
                if key.data.is_done:
                    selector.unregister(key.fileobj)
                else:
                    key.fileobj.sendall(key.data.request)


class Asking:
    """What one connection still has to ask for, and what it has received."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._left = exchanges
        self._received = bytearray()

    @property
    def request(self) -> bytes:
        """What is asked now."""
        return self._left[0].request

    @property
    def is_done(self) -> bool:
        """Whether all is answered."""
        return not self._left

    def is_answered(self, received: bytes) -> bool:
        """Take what came, and tell whether it was the rest of the answer."""
        self._received += received
        if not is_whole(self._received, self._left[0]):
            return False
        self._received.clear()
        del self._left[0]
        return True
