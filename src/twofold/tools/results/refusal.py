"""What a tool returned, and why pydantic does not take it: for the client without its values, for the log with them.

The head, and the lines on a missing field, have the form that the page on structured output prints (contract A8), whose
readers know it from pydantic; only the link it ends in is left out. All else is told as misfits of arguments are.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic_core import ErrorDetails, ValidationError

from twofold.contract.plain import Path, format_path, name_kind
from twofold.contract.sensitive import secret_word
from twofold.errors import ResultRefused
from twofold.tools.arguments.problems import find_place, tell_misfits

_MAX_PROBLEMS = 20
_MAX_SHOWN = 80
"""Characters of a value shown."""
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_PLAIN = frozenset({str, int, float, bool, type(None)})
_PLAIN_FIELDS = frozenset({"str", "int", "float", "bool", "none"})
_INNER_FIELDS = frozenset({"default", "nullable"})
_RECORDS = frozenset({"model", "dataclass"})


def refuse_value(
    error: ValidationError, *, value: object, title: str, at: Path, hides_input: bool, core: Mapping[str, Any]
) -> ResultRefused:
    """Make the refusal of a value that does not validate.

    Args:
        error: What pydantic found.
        value: What the tool returned.
        title: The name of its type.
        at: Where the value stands in the result (`result` where it is wrapped).
        hides_input: An author asked that values be left out of error messages.
        core: pydantic's core schema of the type.
    """
    count = error.error_count()
    problems = error.errors(include_url=False)[:_MAX_PROBLEMS]
    more = [f"and {count - len(problems)} more"] if count > len(problems) else []
    sendable = () if hides_input else find_sendable(core, problems)
    told = list(_tell(problems, value, at=at, sendable=sendable))
    logged = [_write_problem(problem, at=at, hides_input=hides_input) for problem in problems]
    places = count if more else len(told)  # the alternatives of a union count as one
    return ResultRefused(
        "\n".join((_head(places, title), *told, *more)), details="\n".join((_head(count, title), *logged, *more))
    )


def _head(count: int, title: str) -> str:
    return f"{count} validation error{'' if count == 1 else 's'} for {title}"


def find_sendable(core: Mapping[str, Any], problems: Iterable[ErrorDetails]) -> frozenset[str]:
    """Name the fields of which a record sends the very value it holds, so that showing it gives nothing away.

    They are numbers, texts and booleans that fit, are published, and are written by no code of the author's.

    Args:
        core: pydantic's core schema of the record; of anything else there are none.
        problems: What pydantic found in it.
    """
    while core["type"] in _RECORDS and "serialization" not in core:
        core = core["schema"]
    is_record = core["type"] in ("model-fields", "dataclass-args", "typed-dict") and "serialization" not in core
    fields = core["fields"] if is_record else {}
    named = fields.items() if isinstance(fields, Mapping) else [(field["name"], field) for field in fields]
    broken = {problem["loc"][0] for problem in problems if problem["loc"]}
    return frozenset(name for name, field in named if name not in broken and _is_plain_field(field))


def _is_plain_field(field: Mapping[str, Any]) -> bool:
    if field.get("serialization_exclude"):
        return False
    schema = field["schema"]
    while schema["type"] in _INNER_FIELDS and "serialization" not in schema:
        schema = schema["schema"]
    return schema["type"] in _PLAIN_FIELDS and "serialization" not in schema


def _tell(problems: list[ErrorDetails], value: object, *, at: Path, sendable: Collection[str]) -> Iterator[str]:
    """Tell the client what is wrong: place, what was expected, and of what came the kind alone."""
    missing = [problem for problem in problems if problem["type"] == "missing"]
    for problem in missing:
        path = find_place(problem, value)
        came = problem["input"]
        shown = _cut(_outline(came, sendable if len(path) == 1 else ()))
        details = f"type=missing, input_value={shown}, input_type={type(came).__name__}"
        yield f"{format_path((*at, *path))}\n  {problem['msg']} [{details}]"
    others = [problem for problem in problems if problem["type"] != "missing"]
    for path, sentence in tell_misfits(others, value, describe_value=lambda came, path: name_kind(came)):  # noqa: ARG005 - as `describe` is called
        place = format_path((*at, *path))
        yield f"{place}\n  {sentence}" if place else f"  {sentence}"


def _outline(value: object, sendable: Collection[str]) -> str:
    """Show of an object the values that would have been sent as they are."""
    if not isinstance(value, dict):
        return "..."
    kept = {key: item for key, item in value.items() if _is_sent(key, item, sendable)}
    shown = [f"{key!r}: {item!r}" for key, item in kept.items()]
    return f"{{{', '.join(shown if len(kept) == len(value) else [*shown, '...'])}}}"


def _is_sent(key: object, item: object, sendable: Collection[str]) -> bool:
    return type(key) is str and key in sendable and type(item) in _PLAIN and not secret_word(key)


def _write_problem(problem: ErrorDetails, *, at: Path, hides_input: bool) -> str:
    """Write a problem as pydantic does, values included."""
    place = ".".join(str(step) for step in (*at, *problem["loc"]))
    details = f"type={problem['type']}"
    if not hides_input:
        value = problem["input"]
        is_secret = any(isinstance(step, str) and secret_word(step) for step in (*at, *problem["loc"]))
        if not is_secret:
            details += f", input_value={_show(_mask(value))}"
        details += f", input_type={type(value).__name__}"
    sentence = f"  {problem['msg']} [{details}]"
    return f"{place}\n{sentence}" if place else sentence


def _mask(value: object) -> object:
    """Leave out of a dict what its keys announce as secret."""
    if not isinstance(value, dict):
        return value
    return {key: Ellipsis if isinstance(key, str) and secret_word(key) else _mask(item) for key, item in value.items()}


def _show(value: object) -> str:
    try:
        shown = _ADDRESS.sub("", repr(value))
    except (RecursionError, ValueError):  # the latter: an integer of more than 4300 digits
        shown = f"<{type(value).__name__}, too large to show>"
    return _cut(shown)


def _cut(shown: str) -> str:
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[: _MAX_SHOWN - 30]}...{shown[-27:]}"
    return shown.encode("utf-8", "backslashreplace").decode()
