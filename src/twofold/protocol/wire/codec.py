"""What every era's codec can do. Adding an era adds a file beside this one and a line in `__init__`."""

from collections.abc import Sequence
from typing import Protocol

from twofold.protocol.jsonrpc import RequestId
from twofold.protocol.messages import Faces, LogLevel
from twofold.protocol.prompt import PromptDefinition, PromptMessage
from twofold.protocol.structs import Json
from twofold.protocol.tool import ToolDefinition


class Codec(Protocol):
    """Writes neutral values as one revision spells them. Results are the JSON of an object.

    Attributes:
        revision: The date that names it.
        methods: The requests that exist in it; any other is answered with -32601. A server without prompts
            answers those about them likewise.
        allows_any_root: Whether a structured result may be an array, a scalar or null.
    """

    @property
    def revision(self) -> str: ...  # noqa: D102 - the attributes stand in the class docstring

    @property
    def methods(self) -> frozenset[str]: ...  # noqa: D102 - see above

    @property
    def allows_any_root(self) -> bool: ...  # noqa: D102 - see above

    def opening_result(self, *, offers_prompts: bool) -> bytes:
        """Answer the request a client opens with: `server/discover`, or `initialize`."""
        ...

    def definition(self, definition: ToolDefinition) -> bytes:
        """Write one tool as a listing shows it."""
        ...

    def tools_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `tools/list`."""
        ...

    def prompt_definition(self, definition: PromptDefinition) -> bytes:
        """Write one prompt as a listing shows it."""
        ...

    def prompts_page(self, definitions: Sequence[bytes], next_cursor: str | None) -> bytes:
        """Answer `prompts/list`."""
        ...

    def prompt_result(self, description: str | None, messages: Sequence[PromptMessage]) -> bytes:
        """Answer `prompts/get`; what the messages hold was checked before."""
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


def declare_capabilities(*, offers_prompts: bool) -> dict[str, Json]:
    """Say what a server can do, which every era spells alike: only what it answers."""
    capabilities: dict[str, Json] = {"tools": {"listChanged": True}, "logging": {}}
    if offers_prompts:
        capabilities["prompts"] = {"listChanged": True}
    return capabilities
