"""What the chart shows: panels of payloads, with a bar for each peer and the number that stands at its end."""

from collections.abc import Iterator

import msgspec
from aims import Aim, compare
from figures import Figures, median

PEERS = {
    "mcp": "mcp 2.3.0",
    "mcp fastest": "mcp 2.3.0, its fastest set-up",
    "fastmcp": "FastMCP 4.2.3",
    "typescript": "TypeScript SDK 2.4.0",
}
"""Which peers have bars, and their names."""
_CALLS = {"integer": "an int", "model": "a model", "models": "1,000 models", "sync": "sync function", "large": "0.9 MB"}
PANELS = {
    "over stdio, 32 requests in flight": [("stdio_32", payload, text) for payload, text in list(_CALLS.items())[:4]],
    "over HTTP, 32 connections": [("http_32", payload, text) for payload, text in list(_CALLS.items())[:4]],
    "in process, bytes to bytes": [("in_process", payload, text) for payload, text in _CALLS.items()],
    "client, and the server's start": [
        *[("client", payload, f"client: {_CALLS[payload]}") for payload in ("integer", "models", "large")],
        ("listing", "tools", "list 1,000 tools"),
        ("cold_start", "one_tool", "cold start (time)"),
    ],
}
"""Title → layer, payload, and what it is called."""
_QUANTITIES = {"cold_start": "ms"}


class Bar(msgspec.Struct, frozen=True):
    """A peer takes so many times what Twofold takes."""

    peer: str
    times: float

    @property
    def label(self) -> str:
        """The number as it is shown."""
        return f"{self.times:.0f}×" if self.times >= 10 else f"{self.times:.{1 if self.times >= 1 else 2}f}×"


def read_bars(figures: Figures) -> dict[str, dict[str, list[Bar]]]:
    """Make the bars of every panel: title → what is called → bars.

    Raises:
        KeyError: A layer was not measured: the chart is that of a full run.
    """
    return {
        title: {text: list(_bars(figures, layer, payload)) for layer, payload, text in entries}
        for title, entries in PANELS.items()
    }


def _bars(figures: Figures, layer: str, payload: str) -> Iterator[Bar]:
    for peer in PEERS:
        if peer in figures[layer][payload]:
            aim = Aim(layer, payload, peer, 1, quantity=_QUANTITIES.get(layer, "cpu_us"))
            yield Bar(peer, median(compare(figures, aim)))


def labels(figures: Figures) -> list[str]:
    """Give the numbers of all bars, in the order in which they are drawn."""
    return [bar.label for groups in read_bars(figures).values() for bars in groups.values() for bar in bars]
