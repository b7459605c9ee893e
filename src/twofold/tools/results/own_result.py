"""Results of the author's own making: `CallToolResult` passed on, its structure judged where a schema is published."""

from collections.abc import Callable
from typing import Any, TypeAlias

from twofold.errors import ResultRefused
from twofold.protocol.content import ContentBlock
from twofold.protocol.messages import CallToolResult, EncodedBlocks, Faces, Wrapping
from twofold.protocol.structs import encode_json
from twofold.tools.results.content import check_blocks, write_blocks, write_text
from twofold.tools.results.dump import dump_any

_SILENT_ERROR = "the tool reported an error without saying more"

Settle: TypeAlias = Callable[[bytes, Any], bytes]
"""Makes of an author's structure, as JSON and as given, what the published schema allows, or refuses it."""


def render_result(
    result: CallToolResult,
    *,
    is_indented: bool,
    wrapping: Wrapping = Wrapping.NEVER,
    settle: Settle | None = None,
) -> Faces:
    """Pass a `CallToolResult` on.

    Args:
        result: The author's own.
        is_indented: How text is made of its structure where it has no content.
        wrapping: How the published schema wraps.
        settle: Judges its structure; None where no schema is published. An error's is never judged.

    Raises:
        ResultRefused: Its structure, content or `_meta` cannot leave.
    """
    raw = dump_any(result.structured_content, at=("structured_content",)) if result.has_structured_content else None
    if settle is not None and not result.is_error:
        if raw is None:
            raise ResultRefused(
                "the result has no structured_content, which the tool's output schema promises; "
                "give it, or set is_error=True"
            )
        raw = settle(raw, result.structured_content)
    else:  # no schema speaks for it, and earlier revisions take an object only
        wrapping = Wrapping.NEVER if raw is None or raw.startswith(b"{") else Wrapping.EARLIER
    return Faces(
        _result_content(result, raw, is_indented=is_indented),
        raw,
        wrapping,
        is_error=result.is_error,
        meta=_checked_meta(result),
    )


def _result_content(
    result: CallToolResult, raw: bytes | None, *, is_indented: bool
) -> EncodedBlocks | tuple[ContentBlock, ...]:
    if result.content:
        return check_blocks(tuple(result.content))
    if raw is not None:
        return write_blocks(raw, is_indented=is_indented)
    return write_text(_SILENT_ERROR) if result.is_error else ()


def _checked_meta(result: CallToolResult) -> Any:
    if result.meta is not None:
        try:
            encode_json(result.meta, what="_meta")
        except ValueError as error:
            raise ResultRefused(str(error)) from None
    return result.meta
