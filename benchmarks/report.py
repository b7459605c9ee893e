"""Writes the figures of a full run into the documents: `report.py [FILE]`, the tables of the page and the chart.

Without a file it takes `results/reference.json`, the run that the documents quote; with one, that becomes it.
"""

import json
import sys
from pathlib import Path

from chart import draw_chart
from page import write_tables
from tables import LAYERS

REFERENCE = Path(__file__).parent / "results" / "reference.json"
ROUNDS = 7
DOCUMENTS = Path(__file__).parents[1] / "docs" / "explanation"


def main() -> None:
    """Read the run, write page and chart, and keep the run."""
    text = Path(sys.argv[1] if len(sys.argv) > 1 else REFERENCE).read_text()
    run = json.loads(text)
    if missing := ", ".join(layer for layer in LAYERS if layer not in run["figures"]):
        sys.exit(f"the documents quote full runs, and this one has not measured {missing}; run `make bench`")
    about = run["about"]
    if about["commit"].endswith("changes") or about["rounds"] < ROUNDS:
        sys.exit(
            f"the documents quote runs of committed source and {ROUNDS} rounds or more; commit, and run `make bench`"
        )
    page = DOCUMENTS / "performance.md"
    page.write_text(write_tables(page.read_text(), run))
    draw_chart(run["figures"], DOCUMENTS / "performance")
    REFERENCE.write_text(text)


if __name__ == "__main__":
    main()
