"""How much may go on at once; who comes beyond is asked to come again."""

from collections.abc import Callable

from twofold.errors import ServerBusy
from twofold.transports.http.reply import RETRY_AFTER, Refusal
from twofold.transports.shares import has_share


class Places:
    """How many may be inside at once."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self.taken = 0
        self.by_name: dict[str, int] = {}

    def take(self) -> "Place":
        """Take a place.

        Raises:
            Refusal: None is free.
        """
        if self.is_full:
            raise self.refusal()
        self.taken += 1
        return Place(self)

    @property
    def is_full(self) -> bool:
        """Whether none is free."""
        return self.taken >= self._limit

    def refusal(self) -> Refusal:
        """Say that none is free, and when to come again."""
        error = ServerBusy(f"busy: {self.taken} {self._what}; send this one again later")
        return Refusal(503, error, headers=RETRY_AFTER)

    def claim(self, name: str) -> None:
        """Count a place that is taken already as one of a tool's.

        Raises:
            ServerBusy: The tool has its share.
        """
        held = self.by_name.get(name, 0)
        if not has_share(held, self._limit - self.taken + 1):
            raise ServerBusy(f"busy: {self.taken} {self._what}, {held} of {name!r:.80}; send this one again later")
        self.by_name[name] = held + 1

    def leave(self, name: str | None) -> None:
        """Free a place."""
        self.taken -= 1
        if name is not None:
            self.by_name[name] -= 1
            if not self.by_name[name]:
                del self.by_name[name]


class Place:
    """A place that was taken; free again when everybody has left who shares it."""

    __slots__ = ("_inside", "_name", "_places")

    def __init__(self, places: Places) -> None:
        self._places = places
        self._inside = 1
        self._name: str | None = None

    def is_of(self, places: Places) -> bool:
        """Tell where it was taken."""
        return self._places is places

    def claim(self, name: str) -> None:
        """Say which tool or prompt it is for; of a batch, the first one counts.

        Raises:
            ServerBusy: It has its share of the places.
        """
        if self._name is None:
            self._places.claim(name)
            self._name = name

    def share(self) -> Callable[[], None]:
        """Let somebody else in, who may stay longer; gives what that one calls to leave."""
        self._inside += 1
        return self.leave

    def leave(self) -> None:
        """Leave."""
        self._inside -= 1
        if self._inside == 0:
            self._places.leave(self._name)
