"""Keeps account of every request: asked with a value of its own, and answered with that value exactly once."""

import collections
import itertools


class Account:
    """What was asked, and what became of it.

    Attributes:
        kinds: How many requests of each kind were asked.
        faults: Each broken promise, in words; the first hundred.
    """

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []
        self._values = itertools.count(1)
        self._open: dict[int, str] = {}
        self._excused: collections.deque[int] = collections.deque(maxlen=20_000)

    @property
    def asked(self) -> int:
        """How many requests there were."""
        return self.kinds.total()

    def ask(self, kind: str) -> int:
        """Begin a request; gives the value it has to be answered with."""
        value = next(self._values)
        self.kinds[kind] += 1
        self._open[value] = kind
        return value

    def answer(self, value: int, outcome: object, *, expected: object) -> None:
        """Take an answer."""
        kind = self._open.pop(value, None)
        if kind is None:
            if value not in self._excused:
                self.fault(f"request {value} was answered twice, or never asked: {outcome!r:.200}")
        elif outcome != expected:
            self.fault(f"request {value} ({kind}) was answered {outcome!r:.200} instead of {expected!r:.200}")

    def excuse(self, value: int) -> None:
        """Let a request go without an answer: its client has left, or taken it back. One may still come."""
        if self._open.pop(value, None) is not None:
            self._excused.append(value)

    def fault(self, text: str) -> None:
        """Note a broken promise."""
        if len(self.faults) < 100:
            self.faults.append(text)

    def close(self) -> None:
        """Note what was never answered."""
        for value, kind in list(self._open.items()):
            self.fault(f"request {value} ({kind}) was never answered")
