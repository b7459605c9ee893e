"""The aims: what, against whom, how many times. They stand here and nowhere else."""

from collections.abc import Iterator

import msgspec
from figures import Figures, median, ratios


class Aim(msgspec.Struct, frozen=True):
    """One aim.

    Attributes:
        layer: Where it is measured.
        payload: What is asked for.
        against: Who is measured beside Twofold; `None` for a number of Twofold's alone.
        number: Without `at_most`, the peer takes at least so many times what Twofold takes; with it, Twofold takes at
            most so many times what the peer takes, or so much by itself.
        at_most: Which of the two it is.
        quantity: What is compared.
    """

    layer: str
    payload: str
    against: str | None
    number: float
    at_most: bool = False
    quantity: str = "cpu_us"


def _at_least(layer: str, against: str, quantity: str = "cpu_us", **numbers: float) -> list[Aim]:
    return [Aim(layer, payload, against, number, quantity=quantity) for payload, number in numbers.items()]


AIMS = [
    *_at_least("in_process", "mcp", integer=25, model=18, models=8, large=6, sync=5, models_checked=4, large_checked=3),
    *_at_least("stdio_32", "mcp", integer=40, model=40, models=8, sync=12),
    *_at_least("stdio_32", "typescript", integer=1, model=1, models=1, sync=1),
    Aim("stdio_1", "integer", "floor", 1.5, at_most=True),
    *_at_least("http_32", "mcp", integer=12, model=12, models=12),
    *_at_least("http_32", "mcp fastest", integer=6, model=6),
    Aim("http_32", "integer", "floor", 1.8, at_most=True),
    *_at_least("client", "mcp", integer=4, models=30, large=25),
    *_at_least("cold_start", "mcp", quantity="ms", one_tool=4),
    *_at_least("cold_start", "typescript", quantity="ms", one_tool=1),
    *_at_least("listing", "mcp", tools=40),
    Aim("starting", "tools", None, 1000, at_most=True, quantity="ms"),
    Aim("memory", "mixed", "mcp", 0.6, at_most=True, quantity="peak_mb"),
]


class Judged(msgspec.Struct, frozen=True):
    """An aim and what was measured: the median of the rounds' ratios (or numbers), the lowest and the highest."""

    aim: Aim
    measured: float
    lowest: float
    highest: float

    @property
    def is_reached(self) -> bool:
        """Whether the median reaches the aim."""
        return self.measured <= self.aim.number if self.aim.at_most else self.measured >= self.aim.number


def judge(figures: Figures) -> Iterator[Judged]:
    """Compare figures with the aims, those of the layers that were measured.

    Raises:
        KeyError: A layer was measured without what an aim is about.
    """
    for aim in AIMS:
        if aim.layer in figures:
            numbers = compare(figures, aim)
            yield Judged(aim, median(numbers), min(numbers), max(numbers))


def compare(figures: Figures, aim: Aim) -> list[float]:
    """Give what an aim is about, round by round."""
    rows = figures[aim.layer][aim.payload]
    ours = rows["twofold"][aim.quantity]
    if aim.against is None:
        return ours
    theirs = rows[aim.against][aim.quantity]
    return ratios(ours, theirs) if aim.at_most else ratios(theirs, ours)
