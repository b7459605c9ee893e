"""A transport without a system behind it."""

import asyncio
from typing import Any


class Wire(asyncio.Transport):
    """A transport and its socket, which keep what is asked of them; of what is written, the peer takes what the test says.

    Args:
        end_fails: Saying that nothing more is sent raises what the system says of a connection that has gone.
        option_fails: So does setting an option of the socket.
    """

    def __init__(self, *, end_fails: bool = False, option_fails: bool = False) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.unsent_bytes = 0
        self.is_reading = True
        self.is_closed = self.is_aborted = self.is_ended = False
        self._end_fails = end_fails
        self._option_fails = option_fails

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def write(self, data: Any) -> None:
        self.writes.append(data)

    def write_eof(self) -> None:
        if self._end_fails:
            raise OSError(107, "Transport endpoint is not connected")
        self.is_ended = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else default

    def fileno(self) -> int:
        return -1  # the system knows nothing of it

    def setsockopt(self, *_: object) -> None:
        if self._option_fails:
            raise OSError(22, "Invalid argument")
