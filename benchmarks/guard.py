"""Tells a large regression: measures the in-process part briefly and compares its ratios with the committed ones.

`guard.py [FILE]`, where FILE holds figures of `run.py` to be judged instead. A ratio of CPU holds on any machine, a
time does not; so no time is compared. The ratio is that of the quickest turns, since what else the machine does only
adds to them; half of it is then no accident.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import in_process
from figures import Figures

REFERENCE = Path(__file__).parent / "results" / "reference.json"
PEER = "mcp"
LEAST_SHARE = 0.5
"""A ratio below this share of its reference is a regression."""
ROUNDS = 7
SECONDS_A_TURN = 0.08


def main() -> None:
    """Measure or read, print each ratio, and exit with 1 where there is a regression."""
    reference = json.loads(REFERENCE.read_text())["figures"]
    figures = json.loads(Path(sys.argv[1]).read_text())["figures"] if len(sys.argv) > 1 else measure()
    for name, expected in ratios_of(reference).items():
        print(f"in process, {name}: {ratios_of(figures)[name]:.1f}× against {PEER}, {expected:.1f}× in the reference")
    if regressions := list(find_regressions(figures, reference)):
        sys.exit("\n".join(regressions))


def measure() -> Figures:
    """Measure the in-process part, briefly."""
    figures = Figures()
    in_process.measure(figures, rounds=ROUNDS, peers=("twofold", PEER), seconds=SECONDS_A_TURN)
    return figures


def find_regressions(figures: Figures, reference: Figures) -> Iterator[str]:
    """Name each ratio that is far below its reference, and what to do.

    Raises:
        KeyError: Something that the reference has was not measured.
    """
    measured = ratios_of(figures)
    for name, expected in ratios_of(reference).items():
        if measured[name] < LEAST_SHARE * expected:
            yield (
                f"in process, {name}: {PEER} takes {measured[name]:.1f} times the CPU of Twofold, expected at least "
                f"{LEAST_SHARE * expected:.1f} (half of the {expected:.1f} in {REFERENCE.name}): find what became "
                "slow, or, if that has to be, measure anew with `make bench` and `make report`"
            )


def ratios_of(figures: Figures) -> dict[str, float]:
    """Give the ratio of each payload in process, of the quickest turn of each."""
    return {
        name: min(rows[PEER]["cpu_us"]) / min(rows["twofold"]["cpu_us"])
        for name, rows in figures[in_process.LAYER].items()
    }


if __name__ == "__main__":
    main()
