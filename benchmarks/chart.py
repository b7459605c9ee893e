"""Draws the chart of the README, as SVG and as PNG; the same figures give the same bytes."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from bars import PEERS, Bar, labels, read_bars
from figures import Figures
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

INK = "#7d8590"
"""Grey that can be read on white and on black; the ground is left transparent."""
COLOURS = {"mcp": "#3b7fc4", "mcp fastest": "#86b6e8", "fastmcp": "#d9822b", "typescript": "#8f6ad0"}
TWOFOLD: Any = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3))}
TITLE = "CPU that peers take for the same request, in multiples of what Twofold takes"
MPL_STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be read and searched
    "svg.hashsalt": "twofold",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw_chart(figures: Figures, path: Path) -> None:
    """Write the chart beside each other with the endings `.svg` and `.png`.

    Args:
        figures: Those of a full run.
        path: Without an ending.
    """
    with mpl.rc_context(MPL_STYLE):
        figure = Figure(figsize=(9.5, 8.6), layout="constrained")
        figure.suptitle(TITLE, fontsize=12, fontweight="bold")
        panels = read_bars(figures)
        for axes, (title, groups) in zip(figure.subplots(2, 2, sharex=True).flat, panels.items(), strict=True):
            draw_panel(axes, title, groups)
            axes.set_xlim(*find_ends(panels))
        handles = [Patch(color=COLOURS[peer], label=name) for peer, name in PEERS.items()]
        handles.append(Line2D([], [], label="Twofold", **TWOFOLD))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
        figure.savefig(path.with_suffix(".svg"), transparent=True, metadata={"Date": None, "Creator": None})
        numbers = json.dumps(labels(figures), ensure_ascii=True)
        described = {"Software": None, "Description": numbers}  # so that a test can tell what the picture shows
        figure.savefig(path.with_suffix(".png"), transparent=True, dpi=144, metadata=described)


def find_ends(panels: dict[str, dict[str, list[Bar]]]) -> tuple[float, float]:
    """Give the ends of the axis: around one, and around all bars with room for their numbers."""
    times = [bar.times for groups in panels.values() for bars in groups.values() for bar in bars]
    return min(0.6, *times) * 0.8, max(10, *times) * 2


def draw_panel(axes: Any, title: str, groups: dict[str, list[Bar]]) -> None:
    """Draw one panel: a group of bars for each payload, from the top."""
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100], ["1×", "10×", "100×"])
    axes.minorticks_off()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelbottom=True)
    axes.axvline(1, **TWOFOLD)
    place, middles = 0.0, []
    for bars in groups.values():
        for bar in bars:
            axes.barh(place, bar.times - 1, left=1, height=0.86, color=COLOURS[bar.peer])
            axes.annotate(
                bar.label,
                (max(bar.times, 1), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=8,
            )
            place += 1
        middles.append(place - len(bars) / 2 - 0.5)
        place += 0.8
    axes.set_yticks(middles, list(groups))
    axes.invert_yaxis()
