"""What a tool returned, and why pydantic does not take it: for the client without its values, for the log with them.

The head, and the lines on a missing field, have the form that the page on structured output prints (contract A8), whose
readers know it from pydantic; only the link it ends in is left out. All else is told as misfits of arguments are.
"""

import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic_core import ErrorDetails, ValidationError

from twofold.contract.plain import Path, format_path, name_kind
from twofold.contract.sensitive import secret_word
from twofold.errors import ResultRefused
from twofold.tools.arguments.problems import find_place, tell_misfits

_MAX_PROBLEMS = 20
_MAX_SHOWN = 80
"""Characters of a value shown."""
_MAX_SAID = 400
"""Characters of a place or of an author's words in the log."""
_MAX_BITS = 10_000
"""Of an integer that is written out."""
_AUTHORS = frozenset({"value_error", "assertion_error"})
_UNQUOTED = "a check of the author's, whose words may hold the value"
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_PLAIN = frozenset({str, int, float, bool, type(None)})
_PLAIN_FIELDS = frozenset({"str", "int", "float", "bool", "none"})
_NOT_SENT_AS_IT_IS = ("serialization_exclude", "serialization_exclude_if", "validation_alias", "init_only")
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
    # What is read by another name, or handed to the class alone, is not what is sent under this one.
    if any(field.get(key) for key in _NOT_SENT_AS_IT_IS):
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
        shown = _cut(_outline(came, sendable if len(problem["loc"]) == 1 else ()))
        details = f"type=missing, input_value={shown}, input_type={type(came).__name__}"
        yield f"{format_path((*at, *path))}\n  {problem['msg']} [{details}]"
    others = [problem for problem in problems if problem["type"] != "missing"]
    for path, sentence in tell_misfits(others, value, describe_value=_name_kind, quotes=False):
        place = format_path((*at, *path))
        yield f"{place}\n  {sentence}" if place else f"  {sentence}"


def _name_kind(value: Any, *, path: Path) -> str:  # noqa: ARG001 - as `describe` is called
    return name_kind(value)


def _outline(value: object, sendable: Collection[str]) -> str:
    """Show of an object the values that would have been sent as they are."""
    if not isinstance(value, dict):
        return "..."
    kept = {key: item for key, item in value.items() if _is_sent(key, item, sendable)}
    shown = [f"{key!r}: {_show(item)}" for key, item in kept.items()]
    return f"{{{', '.join(shown if len(kept) == len(value) else [*shown, '...'])}}}"


def _is_sent(key: object, item: object, sendable: Collection[str]) -> bool:
    return type(key) is str and key in sendable and type(item) in _PLAIN and not secret_word(key)


def _write_problem(problem: ErrorDetails, *, at: Path, hides_input: bool) -> str:
    """Write a problem as pydantic does, values included."""
    place = _printable(".".join(str(step) for step in (*at, *problem["loc"])))
    details = f"type={problem['type']}"
    if not hides_input:
        value = problem["input"]
        is_secret = any(isinstance(step, str) and secret_word(step) for step in (*at, *problem["loc"]))
        if not is_secret:
            details += f", input_value={_show(value)}"
        details += f", input_type={type(value).__name__}"
    said = _UNQUOTED if hides_input and problem["type"] in _AUTHORS else _printable(problem["msg"])
    sentence = f"  {said} [{details}]"
    return f"{place}\n{sentence}" if place else sentence


def _printable(text: str) -> str:
    """Keep a text on its line, and short enough for one."""
    kept = text if len(text) <= _MAX_SAID else f"{text[:_MAX_SAID]}…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in kept)


class _Outline(reprlib.Repr):
    """Writes the beginning of any value, however large, deep or ill-behaved, without what is announced as secret."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 4, _MAX_SHOWN, _MAX_SHOWN, _MAX_SHOWN
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0:
            return "{...}"
        shown = [f"{self.repr1(key, level - 1)}: {self._item(key, x[key], level)}" for key in islice(x, self.maxdict)]
        return f"{{{', '.join(shown if len(x) <= self.maxdict else [*shown, '...'])}}}"

    def _item(self, key: object, item: object, level: int) -> str:
        return "Ellipsis" if isinstance(key, str) and secret_word(key) else self.repr1(item, level - 1)

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() < _MAX_BITS else f"about 2^{x.bit_length()}"

    def repr_instance(self, x: object, level: int) -> str:
        fields = getattr(type(x), "model_fields", None) or getattr(type(x), "__dataclass_fields__", None)
        if isinstance(fields, Mapping):  # its own `repr` knows nothing of secrets
            return f"{type(x).__name__}({self.repr_dict(_fields_of(x, fields), level)[1:-1]})"
        try:
            return super().repr_instance(x, level)
        except (Exception, SystemExit):  # noqa: BLE001 - the author's own `__repr__`
            return f"<{type(x).__name__}, which cannot be shown>"


def _fields_of(value: object, names: Iterable[str]) -> dict[str, Any]:
    held = getattr(value, "__dict__", {})
    return {name: held[name] for name in names if name in held}


_outline_of = _Outline().repr


def _show(value: object) -> str:
    return _cut(_ADDRESS.sub("", _outline_of(value)))


def _cut(shown: str) -> str:
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[: _MAX_SHOWN - 30]}...{shown[-27:]}"
    return shown.encode("utf-8", "backslashreplace").decode()
