"""The tables of the documents: written between markers from the figures of a run, never by hand.

A marker is `<!-- figures: NAME -->`, and what it holds ends at `<!-- end of figures -->`.
"""

import re
from collections.abc import Iterator

from aims import Judged, judge
from figures import Figures, Rows, median, ratios
from tables import LAYERS, short

PAYLOADS = {
    "integer": "an int",
    "model": "a model of three fields",
    "models": "a list of 1,000 models",
    "models_checked": "the list, judged by jsonschema-rs",
    "large": "a model of 0.9 MB",
    "large_checked": "0.9 MB, judged by jsonschema-rs",
    "sync": "an int from a sync function",
    "one_tool": "a server of one tool",
    "tools": "1,000 tools",
    "mixed": "a mix of calls, 32 connections",
    "package": "the package",
    "server": "the class of a server",
}
PEERS = {
    "mcp": "mcp",
    "mcp fastest": "mcp, fastest",
    "fastmcp": "FastMCP",
    "fastmcp fastest": "FastMCP, fastest",
    "typescript": "TypeScript",
    "twofold plain": "Twofold without `fast`",
    "floor": "floor",
    "floor uvicorn": "canned under uvicorn",
}
"""Columns, as far as a table has them."""
_MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def write_tables(page: str, run: dict) -> str:
    """Give a page with what stands between its markers made anew.

    Raises:
        ValueError: A marker names something that is not in the run.
    """

    def fill(found: re.Match[str]) -> str:
        name = found[2]
        lines = list(make_block(name, run))
        return found[1] + "\n".join(["", *lines, "", found[3]])

    return _MARKED.sub(fill, page)


def make_block(name: str, run: dict) -> Iterator[str]:
    """Write what a marker asks for, as Markdown."""
    figures: Figures = run["figures"]
    if name == "about":
        yield from describe(run)
    elif name == "aims":
        yield from make_aims(figures)
    elif name.removeprefix("latency_") in figures:
        layer = name.removeprefix("latency_")
        yield from make_latencies(figures[layer]) if layer != name else make_table(layer, figures[layer])
    else:
        raise ValueError(f"<!-- figures: {name} -->: expected about, aims, or a layer of {', '.join(figures)}")


def describe(run: dict) -> Iterator[str]:
    """Say what the figures are of."""
    about = run["about"]
    minutes = sum(about["seconds"].values()) / 60
    others = [
        median(row["foreign_cores"])
        for payloads in run["figures"].values()
        for rows in payloads.values()
        for row in rows.values()
        if "foreign_cores" in row
    ]
    yield (
        f"One run of {minutes:.0f} minutes on {about['cores']} cores, Python {about['python']}, {about['rounds']} "
        f"rounds; meanwhile other programs used {min(others):.1f} to {max(others):.1f} cores (median "
        f"{median(others):.1f}). {about['processor']}; the source was that of commit {about['commit']}."
    )


def make_table(layer: str, payloads: dict[str, Rows]) -> Iterator[str]:
    """Write a layer: what Twofold takes with its spread, and each peer with how many times that is."""
    _, quantity, unit = LAYERS[layer]
    peers = [peer for peer in PEERS if any(peer in rows for rows in payloads.values())]
    heads = [f"{PEERS[peer]}; Twofold of it" if peer == "floor" else PEERS[peer] for peer in peers]
    yield f"| {unit} | Twofold | " + " | ".join(heads) + " |"
    yield "|---" * (len(peers) + 2) + "|"
    for payload, rows in payloads.items():
        ours = rows["twofold"][quantity]
        cells = [PAYLOADS[payload], f"{short(median(ours))} ({short(min(ours))}–{short(max(ours))})"]
        cells += [make_cell(rows[peer][quantity], ours, inverse=peer == "floor") for peer in peers]
        yield "| " + " | ".join(cells) + " |"


def make_cell(theirs: list[float], ours: list[float], *, inverse: bool) -> str:
    """Write what a peer takes, and the median of the ratios with the lowest and the highest: of theirs or of ours."""
    times = ratios(ours, theirs) if inverse else ratios(theirs, ours)
    return f"{short(median(theirs))}: {times_of(median(times))}× ({times_of(min(times))}–{times_of(max(times))})"


def times_of(number: float) -> str:
    """Write a multiple."""
    return f"{number:,.0f}" if number >= 20 else f"{number:.2g}" if number < 1 else f"{number:.1f}"


def make_latencies(payloads: dict[str, Rows]) -> Iterator[str]:
    """Write the middle and the slowest hundredth of the times of answers, and the answers a second."""
    peers = ["twofold", *[peer for peer in PEERS if any(peer in rows for rows in payloads.values())]]
    names = {"twofold": "Twofold", **PEERS}
    yield "| p50 / p99 in ms; answers a second | " + " | ".join(names[peer] for peer in peers) + " |"
    yield "|---" * (len(peers) + 1) + "|"
    for payload, rows in payloads.items():
        cells = [make_latency(rows[peer]) for peer in peers]
        yield f"| {PAYLOADS[payload]} | " + " | ".join(cells) + " |"


def make_latency(row: dict[str, list[float]]) -> str:
    """Write one of them."""
    p50, p99 = median(row["p50_us"]) / 1e3, median(row["p99_us"]) / 1e3
    return f"{short(p50)} / {short(p99)}; {median(row['per_second']):,.0f}"


def make_aims(figures: Figures) -> Iterator[str]:
    """Write every aim, what was measured, and whether that is enough."""
    yield "| where | what | against | measured (lowest–highest) | aim | |"
    yield "|---|---|---|---|---|---|"
    for judged in judge(figures):
        yield make_aim(judged)


def make_aim(judged: Judged) -> str:
    """Write one aim."""
    aim = judged.aim
    unit = "×" if aim.against else f" {aim.quantity}"
    numbers = [times_of(each) for each in (judged.measured, judged.lowest, judged.highest)]
    cells = [
        LAYERS[aim.layer][0],
        PAYLOADS[aim.payload],
        PEERS[aim.against] if aim.against else "",
        f"{numbers[0]}{unit} ({numbers[1]}–{numbers[2]})",
        f"{'at most' if aim.at_most else 'at least'} {aim.number:g}{unit}",
        "reached" if judged.is_reached else "**missed**",
    ]
    return "| " + " | ".join(cells) + " |"
