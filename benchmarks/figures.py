"""What was measured, as plain data: layer → payload → peer → quantity → one number for each round.

Peers take turns within a round. So a ratio is made of the turns of one round, and what counts is the median of those
ratios: the machine is slower at times, for all of them.
"""

import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

Rows = dict[str, dict[str, list[float]]]
"""Peer → quantity → one number for each round."""
Figures = dict[str, dict[str, Rows]]
"""Layer → payload → its rows."""


def add_turn(figures: Figures, *, layer: str, payload: str, peer: str, measured: dict[str, float]) -> None:
    """Add what one turn gave: quantity → number."""
    row = figures.setdefault(layer, {}).setdefault(payload, {}).setdefault(peer, {})
    for quantity, number in measured.items():
        row.setdefault(quantity, []).append(float(f"{number:.5g}"))


def ratios(these: Sequence[float], those: Sequence[float]) -> list[float]:
    """Divide number by number, round by round.

    Raises:
        ValueError: They have not as many rounds, so they were not measured side by side.
    """
    return [this / that for this, that in zip(these, those, strict=True)]


def median(numbers: Sequence[float]) -> float:
    """Give the middle one."""
    return statistics.median(numbers)


def write_run(path: Path, run: dict[str, object]) -> None:
    """Write a run as JSON, the rounds of a quantity on one line."""
    text = json.dumps(run, indent=1, ensure_ascii=False)
    one_line = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
    path.write_text(one_line + "\n")
