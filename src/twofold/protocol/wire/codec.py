"""What every era's codec can do. Adding an era adds a file beside this one and a line in `__init__`."""

from collections.abc import Sequence
from typing import Protocol

from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.messages import Faces, LogLevel
from twofold.protocol.structs import Json
from twofold.protocol.tool import ToolDefinition


class Codec(Protocol):
    """Writes neutral values as one revision spells them. Results are the JSON of an object.

    Attributes:
        revision: The date that names it.
        methods: The requests that exist in it; any other is answered with -32601.
        allows_any_root: Whether a structured result may be an array, a scalar or null.
    """

    @property
    def revision(self) -> str: ...  # noqa: D102 - the attributes stand in the class docstring

    @property
    def methods(self) -> frozenset[str]: ...  # noqa: D102 - see above

    @property
    def allows_any_root(self) -> bool: ...  # noqa: D102 - see above

    def opening_result(self) -> bytes:
        """Answer the request a client opens with: `server/discover`, or `initialize`."""
        ...

    def definition(self, definition: ToolDefinition) -> bytes:
        """Write one tool as a listing shows it."""
        ...

    def tools_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `tools/list`."""
        ...

    def call_result(self, faces: Faces) -> list[bytes]:
        """Answer `tools/call`, in parts: together they are the JSON, which may be large.

        Raises:
            ValueError: A block or `_meta` of the author's own holds what JSON cannot.
        """
        ...

    def empty_result(self) -> bytes:
        """Answer a request whose success says it all."""
        ...

    def progress(self, token: RequestId, *, progress: float, total: float | None, message: str | None) -> bytes:
        """Write the params of `notifications/progress`."""
        ...

    def log(self, level: LogLevel, data: Json, *, logger: str | None) -> bytes:
        """Write the params of `notifications/message`.

        Raises:
            ValueError: `data` cannot be written as JSON.
        """
        ...
