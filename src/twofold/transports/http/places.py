"""How much may go on at once; who comes beyond is asked to come again."""

from collections.abc import Callable

from twofold.errors import InternalError
from twofold.transports.http.reply import Refusal


class Places:
    """How many may be inside at once."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self.taken = 0

    def take(self) -> "Place":
        """Take a place.

        Raises:
            Refusal: None is free.
        """
        if self.taken >= self._limit:
            error = InternalError(f"busy: {self.taken} {self._what}; send this one again later")
            raise Refusal(503, error, headers=[(b"retry-after", b"1")])
        self.taken += 1
        return Place(self)


class Place:
    """A place that was taken; free again when everybody has left who shares it."""

    __slots__ = ("_inside", "_places")

    def __init__(self, places: Places) -> None:
        self._places = places
        self._inside = 1

    def share(self) -> Callable[[], None]:
        """Let somebody else in, who may stay longer; gives what that one calls to leave."""
        self._inside += 1
        return self.leave

    def leave(self) -> None:
        """Leave."""
        self._inside -= 1
        if self._inside == 0:
            self._places.taken -= 1
