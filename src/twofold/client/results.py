"""Results of calls: read leniently, judged by what the tool's listing promised, rebuilt as the type asked for.

Source: MCP 2026-07-28, tools, "Tool Result", "Structured Content" and "Output Schema".
"""

import time
from collections.abc import Hashable
from typing import Any, Literal, TypeAlias

import msgspec
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.types import EncodedBytes
from pydantic_core import CoreConfig, SchemaValidator, core_schema

from twofold.client.decoding import UnreadableAnswer, decode, decode_any
from twofold.client.listing import ListedTool
from twofold.contract.patterns import Clock
from twofold.contract.plain import Path, cut, describe, format_path
from twofold.contract.verdict import Verdict
from twofold.errors import ContractError, ResultTypeMismatch
from twofold.protocol.content import CONTENT_BLOCKS, ContentBlock
from twofold.protocol.messages import ABSENT
from twofold.protocol.structs import Json
from twofold.tools.introspection.rebuild import rebuild

Check: TypeAlias = Literal["raise", "mark", "off"]

MAX_MISFITS = 20
"""Places named where a result is not of the type asked for."""


class UnknownContent(msgspec.Struct, frozen=True):
    """A content block of a kind that is not known here, or one that is malformed: kept as it came.

    Attributes:
        type: What it says it is; empty where it does not say.
        raw: The whole block.
    """

    type: str
    raw: Json


Block: TypeAlias = ContentBlock | UnknownContent


class RawResult(msgspec.Struct, frozen=True):
    """A result of `tools/call` as it came, not yet judged.

    Attributes:
        content: What the model reads.
        structure: The JSON of `structuredContent`; `ABSENT` where there is none (null is one).
        is_error: The tool failed.
        meta: Its `_meta`.
        result_type: `complete`, or what else the server says it is.
        notes: What was wrong with it and did no harm.
    """

    content: list[Block]
    structure: msgspec.Raw = ABSENT
    is_error: bool = False
    meta: dict[str, Json] | None = None
    result_type: str = "complete"
    notes: tuple[str, ...] = ()


class CheckedResult(msgspec.Struct, frozen=True):
    """What a call gave, and whether it keeps what the tool promised.

    Attributes:
        content: Blocks for the model; those of unknown kinds too.
        structured_content: The value for programs: any JSON value, None where there is none. Taken out of
            `{"result": …}` where that is there for no reason of the author's.
        has_structured_content: Whether there is a value for programs; null is one.
        is_error: The tool failed, and `content` says why. Such a result is never judged.
        meta: Its `_meta`.
        verdict: What was found; its places are those of the value as it was sent.
        value: The value for programs, rebuilt as the type asked for; None where none was asked for, or of an error.
        notes: What was wrong with the result and did no harm.
        structured_json: The JSON of `structured_content`; empty where there is none.
    """

    content: list[Block]
    structured_content: Json = None
    has_structured_content: bool = False
    is_error: bool = False
    meta: dict[str, Json] | None = None
    verdict: Verdict = Verdict("unchecked", reason="it was not judged")
    value: Any = None
    notes: tuple[str, ...] = ()
    structured_json: bytes = b""


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    """A result as it should be."""

    content: list[ContentBlock]
    structured_content: msgspec.Raw = ABSENT
    is_error: bool = False
    meta: dict[str, Json] | None = msgspec.field(default=None, name="_meta")
    result_type: str = "complete"


class _Questions(msgspec.Struct, frozen=True, rename="camel"):
    """A result that asks something."""

    input_requests: dict[str, Json] = msgspec.field(default_factory=dict)


class _Envelope(msgspec.Struct, frozen=True):
    """What a structure of a wrapped tool stands in."""

    result: msgspec.Raw


_results = msgspec.json.Decoder(_Result)
_questions = msgspec.json.Decoder(_Questions)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_blocks = msgspec.json.Decoder(ContentBlock)
_envelopes = msgspec.json.Decoder(_Envelope)

_KNOWN_TYPES = frozenset(str(block.__struct_config__.tag) for block in CONTENT_BLOCKS)


def read_result(raw: bytes | msgspec.Raw) -> RawResult:
    """Read one result of `tools/call`, of any revision.

    Args:
        raw: The JSON of the result.

    Returns:
        The result. Fields that are not known are passed over; what is malformed is left out or kept as it came,
        with a note.

    Raises:
        UnreadableAnswer: It is no JSON, or no object.
    """
    try:
        result = _results.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_leniently(raw)
    return RawResult(list(result.content), result.structured_content, result.is_error, result.meta, result.result_type)


def read_questions(raw: bytes | msgspec.Raw) -> dict[str, Json]:
    """Read what a result of type `input_required` asks; nothing where it cannot be read."""
    try:
        return _questions.decode(raw).input_requests
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def check_result(
    raw: RawResult,
    listed: ListedTool | None,
    *,
    tool_name: str,
    is_judged: bool = True,
    clock: Clock = time.monotonic,
) -> CheckedResult:
    """Judge a result by its tool's output schema. Nothing is raised for what is found: the verdict tells it.

    Args:
        raw: The result.
        listed: What the server lists of the tool; None where it lists no such tool.
        tool_name: The tool's name, for messages.
        is_judged: False leaves the verdict at `unchecked`.
        clock: Gives seconds; ends what takes too long.

    Raises:
        UnreadableAnswer: The structure is nested too deeply, or holds a number too large for Python's.
    """
    where = f"tool {cut(repr(tool_name))}, structuredContent"
    try:
        value = None if raw.structure is ABSENT else decode_any(raw.structure, what=where)
    except UnreadableAnswer as error:  # the rest of the result is there
        note = f"structuredContent is left out: {error}"
        raw = msgspec.structs.replace(raw, structure=ABSENT, notes=(*raw.notes, note))
        verdict = Verdict("unchecked" if raw.is_error or not is_judged else "uncheckable", reason=str(error))
        return CheckedResult(raw.content, is_error=raw.is_error, meta=raw.meta, verdict=verdict, notes=raw.notes)
    verdict = _judge(raw, value, listed, is_judged=is_judged, clock=clock)
    structure = raw.structure
    if (
        listed is not None
        and listed.is_wrapped
        and not raw.is_error
        and isinstance(value, dict)
        and set(value) == {"result"}
    ):
        value = value["result"]
        structure = decode(_envelopes, raw.structure, what=where).result
    return CheckedResult(
        content=raw.content,
        structured_content=value,
        has_structured_content=raw.structure is not ABSENT,
        is_error=raw.is_error,
        meta=raw.meta,
        verdict=verdict,
        notes=tuple(f"tool {cut(repr(tool_name))}: {note}" for note in raw.notes),
        structured_json=bytes(structure),
    )


def _judge(raw: RawResult, value: Json, listed: ListedTool | None, *, is_judged: bool, clock: Clock) -> Verdict:
    if not is_judged:
        return Verdict("unchecked", reason="not asked for")
    if raw.is_error:
        return Verdict("unchecked", reason="an error is not judged")
    if listed is None:
        return Verdict("unchecked", reason="the server lists no such tool")
    if listed.output is None:
        return Verdict("unchecked", reason="the tool publishes no output schema")
    if raw.structure is ABSENT:
        return Verdict("absent", reason="the tool publishes an output schema, and the result has no structuredContent")
    return listed.output.judge(value, size_bytes=len(raw.structure), clock=clock)


def raise_unless_kept(result: CheckedResult, *, tool_name: str, check: Check) -> CheckedResult:
    """Raise if a result breaks its tool's contract or cannot be judged by it.

    Args:
        result: The result.
        tool_name: The tool's name.
        check: Only `"raise"` raises.

    Returns:
        The very result.

    Raises:
        ContractError: It does; the error names the tool and the reason, and carries the whole result.
    """
    verdict = result.verdict
    if check != "raise" or verdict.is_kept:
        return result
    opening = {
        "invalid": "its result does not keep its output schema",
        "absent": "its result lacks what its output schema promises",
    }.get(verdict.status, "its result cannot be judged by its output schema")
    reasons = [problem.message for problem in verdict.problems] or [verdict.reason]
    clause = f": {reasons[0]}" if len(reasons) == 1 else "\n- ".join((":", *reasons))
    raise ContractError(
        f"tool {cut(repr(tool_name))}: {opening}{clause}", tool=tool_name, verdict=verdict, result=result
    )


# --- results that are not quite what they should be ----------------------------------------------------


def _read_leniently(raw: bytes | msgspec.Raw) -> RawResult:
    """Read a result field by field."""
    fields = decode(_members, raw, what="the result")
    notes: list[str] = []
    content = _read_content(fields.get("content"), notes)
    is_error = _read_field(fields, "isError", False)
    if not isinstance(is_error, bool):
        notes.append(f"isError is a boolean, got {describe(is_error)}; it counts as {str(bool(is_error)).lower()}")
    meta = _read_field(fields, "_meta", None)
    if meta is not None and not isinstance(meta, dict):
        notes.append(f"_meta is left out, as it cannot be {describe(meta)}")
        meta = None
    kind = _read_field(fields, "resultType", "complete")
    if not isinstance(kind, str):
        notes.append(f"resultType counts as 'complete', as it cannot be {describe(kind)}")
        kind = "complete"
    structure = fields.get("structuredContent", ABSENT)
    return RawResult(content, structure, bool(is_error), meta, kind, tuple(notes))


def _read_field(fields: dict[str, msgspec.Raw], key: str, default: Any) -> Any:
    return decode_any(fields[key], what=f"the result's {key}") if key in fields else default


def _read_content(raw: msgspec.Raw | None, notes: list[str]) -> list[Block]:
    if raw is None or bytes(raw).strip() == b"null":
        notes.append("the result has no content, which is read as an empty list")
        return []
    if bytes(raw).lstrip()[:1] != b"[":
        notes.append("content is a list of blocks; what came instead is kept as an unknown block")
        return [_read_block(raw, notes)]
    elements = decode(_elements, raw, what="the result's content")
    return [_read_block(element, notes) for element in elements]


def _read_block(raw: msgspec.Raw, notes: list[str]) -> Block:
    """Read a block; of a malformed one, first without what it can do without."""
    try:
        return _blocks.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = cut(str(error))
    fields = decode_any(raw, what="a content block")
    kind = fields.get("type") if isinstance(fields, dict) else None
    if isinstance(fields, dict) and isinstance(kind, str) and kind in _KNOWN_TYPES:
        needed = {key: value for key, value in fields.items() if key not in ("annotations", "icons", "_meta", "size")}
        try:
            block: ContentBlock = msgspec.convert(needed, ContentBlock)
        except msgspec.ValidationError:
            pass
        else:
            notes.append(f"what a block of type {kind} can do without is left out of it: {reason}")
            return block
    notes.append(f"a block is kept as it came: {reason}")
    return UnknownContent(kind if isinstance(kind, str) else "", fields)


# --- results as the type asked for ---------------------------------------------------------------------


def read_as(result: CheckedResult, as_type: Any, *, tool_name: str) -> CheckedResult:
    """Rebuild a result's value as a type: dates, durations, UUIDs, bytes, enums, dataclasses, unions.

    Args:
        result: The result. An error comes back as it is.
        as_type: Any type pydantic knows. Bytes are read from base64, as JSON carries them, unless the type's author
            chose otherwise.
        tool_name: The tool's name.

    Returns:
        The result with its `value`.

    Raises:
        ResultTypeMismatch: It has no structure, or one that is not of the type; the error carries the result.
        TypeError: pydantic knows no such type; the caller's fault.
    """
    if result.is_error:
        return result
    name = getattr(as_type, "__name__", None) or str(as_type)
    where = f"tool {cut(repr(tool_name))}"
    if not result.has_structured_content:
        raise ResultTypeMismatch(
            f"{where}: its result has no structuredContent that could be read as {cut(name)}; the server has "
            "none for it, or speaks a revision before 2025-06-18, which knows none",
            tool=tool_name,
            verdict=result.verdict,
            result=result,
        )
    validator = find_validator(as_type)
    try:
        value = validator.validate_json(result.structured_json)
    except ValidationError as error:
        raise ResultTypeMismatch(
            f"{where}: its result is not a {cut(name)}: {_list_misfits(error)}",
            tool=tool_name,
            verdict=result.verdict,
            result=result,
        ) from None
    return msgspec.structs.replace(result, value=value)


def _list_misfits(error: ValidationError) -> str:
    """Name every place, without values under names that announce a secret."""
    misfits = []
    for problem in error.errors(include_url=False, include_context=False)[:MAX_MISFITS]:
        path: Path = problem["loc"]
        got = "" if problem["type"] == "missing" else f", got {describe(problem['input'], path=path)}"
        misfits.append(f"{format_path(path) or 'the value'}: {problem['msg'][:1].lower()}{problem['msg'][1:]}{got}")
    more = error.error_count() - len(misfits)
    return "; ".join(misfits) + (f"; and {more} more" if more > 0 else "")


_BASE64: CoreConfig = {"val_json_bytes": "base64"}
_RECORDS = frozenset(("model", "dataclass", "typed-dict"))
_NO_SCHEMAS = frozenset(("cls", "config", "default", "expected", "function", "members", "metadata", "serialization"))
"""Entries of a core schema that hold an author's data."""
_VALUES_BY_NAME = ("fields", "choices")
"""Schemas by a name of the author's, who may call a field `metadata`."""
_TEXT_AS_BYTES = core_schema.no_info_after_validator_function(str.encode, core_schema.str_schema())
_MAX_KEPT = 256
"""Validators kept; a program asks for some dozens of types."""

_validators: dict[Hashable, SchemaValidator] = {}


def find_validator(as_type: Any) -> SchemaValidator:
    """Make a validator, or take the one made before."""
    key = (as_type, repr(as_type))  # `int | str` equals `str | int`, and is tried in another order
    try:
        kept = _validators.get(key)
    except TypeError:  # not hashable: `Annotated` with a list, say
        return _make_validator(as_type)
    if kept is None:
        while len(_validators) >= _MAX_KEPT:
            _validators.pop(next(iter(_validators)))
        kept = _validators[key] = _make_validator(as_type)
    return kept


def _make_validator(as_type: Any) -> SchemaValidator:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(rebuild(as_type, for_parameter=True))
        adapter.rebuild()
        # without prebuilt parts: the classes inside would use the validators they were born with
        return SchemaValidator(_read_base64(adapter.core_schema), _BASE64, _use_prebuilt=False)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(f"as_type: no value can be made as {as_type!r:.80}: {error.message}") from error


def _read_base64(node: Any) -> Any:
    """Say in each record of a core schema that bytes come as base64: settings from outside do not reach it."""
    if isinstance(node, list | tuple):
        return type(node)(map(_read_base64, node))
    if not isinstance(node, dict):
        return node
    visited = {key: _read_entry(key, value) for key, value in node.items()}
    decoding = node.get("function")
    if isinstance(decoding, dict) and isinstance(getattr(decoding.get("function"), "__self__", None), EncodedBytes):
        visited["schema"] = _TEXT_AS_BYTES  # `Base64Bytes` decodes by itself
    if node.get("type") in _RECORDS:
        visited["config"] = {**_BASE64, **(node.get("config") or {})}
    return visited


def _read_entry(key: str, value: Any) -> Any:
    if key in _VALUES_BY_NAME and isinstance(value, dict):
        return {name: _read_base64(item) for name, item in value.items()}
    return value if key in _NO_SCHEMAS else _read_base64(value)
