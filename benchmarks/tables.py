"""Figures as text: a table a layer, and the aims."""

from collections.abc import Iterator

from aims import Judged, judge
from figures import Figures, Rows, median, ratios

LAYERS = {
    "in_process": ("In process, bytes to bytes", "cpu_us", "µs of CPU a call"),
    "stdio_1": ("stdio, one request at a time", "cpu_us", "µs of CPU a request"),
    "stdio_32": ("stdio, 32 requests in flight", "cpu_us", "µs of CPU a request"),
    "http_1": ("Streamable HTTP, 1 connection", "cpu_us", "µs of CPU a request"),
    "http_32": ("Streamable HTTP, 32 connections", "cpu_us", "µs of CPU a request"),
    "client": ("Client, call and check against canned bytes", "cpu_us", "µs of CPU a call"),
    "cold_start": ("Cold start", "ms", "ms from spawning to the first answer"),
    "listing": ("A server of 1,000 tools", "cpu_us", "µs of CPU a list"),
    "starting": ("A server of 1,000 tools", "ms", "ms from spawning to its whole list"),
    "memory": ("Peak memory serving HTTP", "peak_mb", "MB"),
    "import": ("Import in a fresh process", "ms", "ms"),
}
"""Layer → title, what is compared, its unit."""


def render_run(figures: Figures) -> Iterator[str]:
    """Write everything that was measured, as lines of text."""
    for layer, payloads in figures.items():
        title, quantity, unit = LAYERS[layer]
        yield f"\n{title}: {unit}; median (lowest–highest), and how many times what Twofold takes\n"
        for payload, rows in payloads.items():
            yield from render_rows(payload, rows, quantity)
    yield "\nAims\n"
    yield f"{'':34}{'against':18}{'measured':>22}{'aim':>10}"
    yield from map(render_aim, judge(figures))


def render_rows(payload: str, rows: Rows, quantity: str) -> Iterator[str]:
    """Write a payload: a line a peer."""
    ours = rows["twofold"][quantity]
    for peer, row in rows.items():
        numbers = row[quantity]
        spread = f"({short(min(numbers))}–{short(max(numbers))})"
        line = f"{payload:16}{peer:17}{short(median(numbers)):>10} {spread:20}{median(ratios(numbers, ours)):7.2f}×"
        if "p50_us" in row:
            p50, p99 = median(row["p50_us"]), median(row["p99_us"])
            line += f"   p50 {short(p50):>7} µs, p99 {short(p99):>7} µs, {median(row['per_second']):7.0f}/s"
        if "modules" in row:
            line += f"   {median(row['modules']):.0f} modules"
        if "foreign_cores" in row:
            line += f"   others {median(row['foreign_cores']):.1f}"
        yield line
        payload = ""


def render_aim(judged: Judged) -> str:
    """Write an aim: what, against whom, what was measured, whether that is enough."""
    aim = judged.aim
    unit = "×" if aim.against else f" {aim.quantity}"
    measured = f"{judged.measured:.3g}{unit} ({judged.lowest:.3g}–{judged.highest:.3g})"
    wanted = f"{'≤' if aim.at_most else '≥'} {aim.number:g}{unit}"
    verdict = "reached" if judged.is_reached else "MISSED"
    return f"{aim.layer + ' ' + aim.payload:34}{aim.against or '':18}{measured:>22}{wanted:>10}  {verdict}"


def short(number: float) -> str:
    """Write a number with three digits, or whole."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
