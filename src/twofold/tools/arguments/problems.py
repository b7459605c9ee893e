"""What is wrong with a call's arguments, in plain sentences and all at once.

The published schema names most of it; what JSON Schema cannot say (a date that is none, an author's own
validator) comes from pydantic, whose jargon ends here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails, ValidationError

from twofold.contract.plain import Path, cut, describe, format_path
from twofold.contract.schema import CompiledSchema
from twofold.contract.sensitive import secret_word
from twofold.errors import ArgumentsRefused
from twofold.protocol.structs import Json

MAX_PROBLEMS = 20
"""Problems named in one message; a model mends these first."""

MAX_FOUND = 200
"""Problems looked for: each tells of an argument that may be JSON inside a string."""


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """One thing wrong with the arguments of a call.

    Attributes:
        argument: The argument it concerns; None when it concerns none in particular.
        sentence: `argument 'b': expected an integer, got a string ('two'); send a number`.
    """

    argument: str | None
    sentence: str


def refuse(tool_name: str, problems: Sequence[ArgumentProblem]) -> ArgumentsRefused:
    """Make the error that names all problems of a call: one on one line, several as a list."""
    sentences = [problem.sentence for problem in problems]
    if len(sentences) == 1:
        return ArgumentsRefused(f"tool {tool_name!r}, {sentences[0]}", sentences)
    lines = [f"- {sentence}" for sentence in sentences[:MAX_PROBLEMS]]
    if len(sentences) > MAX_PROBLEMS:
        lines.append("- and more")
    count = f"{len(sentences)}{' or more' if len(sentences) >= MAX_FOUND else ''}"
    head = f"tool {tool_name!r}: {count} problems with the arguments"
    return ArgumentsRefused("\n".join((head, *lines)), sentences)


def find_schema_problems(
    schema: CompiledSchema, arguments: dict[str, Json], names: Iterable[str]
) -> list[ArgumentProblem]:
    """Name what does not fit the published schema.

    Args:
        schema: What is published of the arguments, compiled.
        arguments: The arguments' object.
        names: What the tool calls its arguments.
    """
    written = {format_path((name,)): name for name in (*names, *arguments)}
    found = schema.problems(arguments, limit=MAX_FOUND)
    told = {problem.path for problem in found if not _advise(problem.message)}
    problems = []
    for problem in found:
        advice = _advise(problem.message)
        if advice and problem.path in told:  # of the wrong type, and none of the values that are listed
            continue
        argument = next((name for path, name in written.items() if _is_within(problem.path, path)), None)
        problems.append(_problem(argument, problem.path, problem.message + advice))
    return problems


def _is_within(path: str, argument: str) -> bool:
    return path.startswith(argument) and path[len(argument) : len(argument) + 1] in ("", ".", "[")


def _problem(argument: str | None, path: str, message: str) -> ArgumentProblem:
    return ArgumentProblem(argument, f"argument '{path}': {message}" if path else f"arguments: {message}")


_ADVICE = {
    "expected an integer, got a string": "send a number",
    "expected an integer, got a number": "send a whole number",
    "expected an integer": "send a number",
    "expected a number": "send a number",
    "expected a boolean": "send true or false",
    "expected a string": "send text",
    "expected an array": "send a JSON array",
    "expected an object": "send a JSON object",
}
"""What to do about a value of the wrong type; the longer openings come first."""


def _advise(message: str) -> str:
    """Add what to do, where one type is expected; a choice of several says it already."""
    expected, _, _ = message.partition(", got ")
    if " or " in expected:
        return ""
    return next((f"; {advice}" for opening, advice in _ADVICE.items() if message.startswith(opening)), "")


def find_value_problems(errors: Iterable[ErrorDetails], arguments: Mapping[str, Json]) -> list[ArgumentProblem]:
    """Say what pydantic refuses though the published schema does not.

    Args:
        errors: What pydantic lists, with context and input.
        arguments: The arguments' object, to tell places in it from pydantic's names of a union's members.
    """
    by_path: dict[Path, list[ErrorDetails]] = {}
    for error in errors:
        by_path.setdefault(find_place(error, arguments), []).append(error)
    return [
        _problem(str(path[0]) if path else None, format_path(path), sentence)
        for path, found in by_path.items()
        for sentence in _say_of_one_place(found, path)
    ]


def find_argument(error: ErrorDetails) -> str | None:
    """Give the argument that an error of pydantic concerns."""
    return str(error["loc"][0]) if error["loc"] else None


def find_place(error: ErrorDetails, arguments: Mapping[str, Json]) -> Path:
    """Give the path of an error in the arguments, without the members of unions that pydantic puts in it."""
    path: list[str | int] = []
    value: Any = arguments
    steps: tuple[Any, ...] = error["loc"]
    for index, step in enumerate(steps):
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        ):
            value = value[step]
        elif index + 1 < len(steps) or error["type"] not in _ABSENT:
            continue
        path.append(step)
    return tuple(path)


_ABSENT = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)


def _say_of_one_place(errors: list[ErrorDetails], path: Path) -> Iterator[str]:
    """Say all that is wrong in one place: of a union's members those that come near, in one sentence."""
    told = [error for error in errors if not error["type"].endswith("_type")] or errors
    hides = any(isinstance(step, str) and secret_word(step) for step in path)
    expectations = list(dict.fromkeys(expect(error, hides=hides) for error in told))
    if all(error["type"] in _SELF_CONTAINED for error in told):
        yield " or ".join(expectations)
        return
    yield f"{' or '.join(expectations)}, got {describe(told[0]['input'], path=path)}"


def expect(error: ErrorDetails, *, hides: bool = False) -> str:
    """Say what is expected where pydantic found an error.

    Args:
        error: One of pydantic's, of any type; an author's own type or text is passed on as it is.
        hides: The value is secret, so that what a parser says of it is left out.
    """
    context = error.get("ctx", {})
    if error["type"] in ("value_error", "assertion_error"):
        cause = context.get("error", error["msg"])
        if isinstance(cause, ValidationError):  # the author's validator used a model of its own
            return "; ".join(dict.fromkeys(expect(one) for one in cause.errors(include_url=False)))
        return str(cause)
    sentence = EXPECTATIONS.get(error["type"])
    if sentence is None:
        return error["msg"]
    shown = context | {"error": "unreadable"} if hides and "error" in context else context
    return sentence.format_map({key: cut(str(value)) for key, value in shown.items()})


_SELF_CONTAINED = _ABSENT | {
    "extra_forbidden",
    "unexpected_keyword_argument",
    "unexpected_positional_argument",
    "multiple_argument_values",
}
"""Errors about a place, not about the value in it."""

EXPECTATIONS: dict[str, str] = {
    "missing": "missing",
    "missing_argument": "missing",
    "missing_keyword_only_argument": "missing",
    "missing_positional_only_argument": "missing",
    "extra_forbidden": "unknown",
    "unexpected_keyword_argument": "unknown",
    "unexpected_positional_argument": "one value too many",
    "multiple_argument_values": "given twice",
    "no_such_attribute": "expected no {attribute}",
    "get_attribute_error": "expected a value that can be read ({error})",
    "frozen_field": "expected nothing here, as it cannot be changed",
    "frozen_instance": "expected nothing here, as it cannot be changed",
    "invalid_key": "expected keys that are text",
    "needs_python_object": "expected a Python object, which JSON cannot hold",
    "is_instance_of": "expected an instance of {class}, which JSON cannot hold",
    "is_subclass_of": "expected a subclass of {class}, which JSON cannot hold",
    "callable_type": "expected a function, which JSON cannot hold",
    "missing_sentinel_error": "expected nothing here",
    "ellipsis_error": "expected nothing here",
    "recursion_loop": "expected a value that does not hold itself",
    "recursion_depth_exceeded": "expected fewer levels inside one another",
    "json_invalid": "expected JSON as text ({error})",
    "json_type": "expected JSON as text",
    "default_factory_not_called": "expected the values that its default is made of",
    "model_type": "expected an object ({class_name})",
    "model_attributes_type": "expected an object",
    "dataclass_type": "expected an object ({class_name})",
    "dataclass_exact_type": "expected an object ({class_name})",
    "named_tuple_type": "expected an array ({class_name})",
    "dict_type": "expected an object",
    "frozen_dict_type": "expected an object",
    "ordered_dict_type": "expected an object",
    "counter_type": "expected an object",
    "mapping_type": "expected an object",
    "arguments_type": "expected an array or an object",
    "list_type": "expected an array",
    "deque_type": "expected an array",
    "tuple_type": "expected an array",
    "set_type": "expected an array",
    "frozen_set_type": "expected an array",
    "iterable_type": "expected an array",
    "iteration_error": "expected an array that can be read ({error})",
    "set_item_not_hashable": "expected text, numbers, booleans or null as items of a set",
    "too_short": "expected at least {min_length} items",
    "too_long": "expected at most {max_length} items",
    "none_required": "expected null",
    "bool_type": "expected a boolean",
    "bool_parsing": "expected a boolean",
    "int_type": "expected an integer",
    "int_parsing": "expected an integer",
    "int_parsing_size": "expected an integer of fewer digits",
    "int_from_float": "expected an integer, without a fraction",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a number that fits in 64 bits of floating point",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "multiple_of": "expected a multiple of {multiple_of}",
    "string_type": "expected a string",
    "string_unicode": "expected text in UTF-8",
    "string_too_short": "expected at least {min_length} characters",
    "string_too_long": "expected at most {max_length} characters",
    "string_pattern_mismatch": "expected text that matches '{pattern}'",
    "string_not_ascii": "expected ASCII text",
    "enum": "expected {expected}",
    "literal_error": "expected {expected}",
    "bytes_type": "expected base64 text",
    "bytes_too_short": "expected base64 text of at least {min_length} bytes",
    "bytes_too_long": "expected base64 text of at most {max_length} bytes",
    "bytes_invalid_encoding": "expected {encoding} text ({encoding_error})",
    "date_type": "expected a date (YYYY-MM-DD)",
    "date_parsing": "expected a date (YYYY-MM-DD; {error})",
    "date_from_datetime_parsing": "expected a date (YYYY-MM-DD; {error})",
    "date_from_datetime_inexact": "expected a date (YYYY-MM-DD) without a time",
    "date_past": "expected a date in the past",
    "date_future": "expected a date in the future",
    "time_type": "expected a time (HH:MM:SS)",
    "time_parsing": "expected a time (HH:MM:SS; {error})",
    "datetime_type": "expected a date and time (YYYY-MM-DDTHH:MM:SS)",
    "datetime_parsing": "expected a date and time (YYYY-MM-DDTHH:MM:SS; {error})",
    "datetime_object_invalid": "expected a date and time ({error})",
    "datetime_from_date_parsing": "expected a date and time (YYYY-MM-DDTHH:MM:SS; {error})",
    "datetime_past": "expected a date and time in the past",
    "datetime_future": "expected a date and time in the future",
    "timezone_naive": "expected a time without a zone",
    "timezone_aware": "expected a time with a zone, such as Z or +01:00",
    "timezone_offset": "expected a zone that is {tz_expected} seconds from UTC",
    "time_delta_type": "expected a duration (ISO 8601, such as PT1H30M)",
    "time_delta_parsing": "expected a duration (ISO 8601, such as PT1H30M; {error})",
    "uuid_type": "expected a UUID",
    "uuid_parsing": "expected a UUID ({error})",
    "uuid_version": "expected a UUID of version {expected_version}",
    "url_type": "expected a URL",
    "url_parsing": "expected a URL ({error})",
    "url_syntax_violation": "expected a URL ({error})",
    "url_too_long": "expected a URL of at most {max_length} characters",
    "url_scheme": "expected a URL that begins with {expected_schemes}",
    "decimal_type": "expected a decimal number",
    "decimal_parsing": "expected a decimal number",
    "decimal_max_digits": "expected a decimal number of at most {max_digits} digits",
    "decimal_max_places": "expected a decimal number of at most {decimal_places} decimal places",
    "decimal_whole_digits": "expected a decimal number of at most {whole_digits} digits before the point",
    "fraction_type": "expected a fraction, such as '1/3'",
    "fraction_parsing": "expected a fraction, such as '1/3'",
    "complex_type": "expected a complex number as text, such as '1+2j'",
    "complex_str_parsing": "expected a complex number as text, such as '1+2j'",
    "union_tag_invalid": "expected one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "expected {discriminator} to say which kind of object it is",
}
"""What each of pydantic's errors says to people; `{…}` stands for a word of its context."""
