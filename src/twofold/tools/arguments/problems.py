"""What is wrong with a call's arguments, in plain sentences and all at once.

The published schema names most of it; what JSON Schema cannot say (a date that is none, an author's own
validator) comes from pydantic, whose jargon ends here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic_core import ErrorDetails, ValidationError

from twofold.contract.forms import form_named
from twofold.contract.plain import Path, cut, describe, format_path
from twofold.contract.sensitive import secret_word
from twofold.errors import ArgumentsRefused
from twofold.protocol.structs import Json

if TYPE_CHECKING:
    from twofold.contract.schema import CompiledSchema

MAX_PROBLEMS = 20
"""Problems named in one message; a model mends these first."""

MAX_FOUND = 200
"""Problems looked for: each tells of an argument that may be JSON inside a string."""


class ArgumentProblem(msgspec.Struct, frozen=True):
    """One thing wrong with the arguments of a call.

    Attributes:
        argument: The argument it concerns; None when it concerns none in particular.
        sentence: `argument 'b': expected an integer, got a string ('two'); send a number`.
        rank: What is told first: 0 unknown and 1 missing arguments, which mend much else, 2 the rest.
    """

    argument: str | None
    sentence: str
    rank: int = 2


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


def sort_problems(problems: Iterable[ArgumentProblem], names: Sequence[str]) -> list[ArgumentProblem]:
    """Put problems in the order to read them: unknown and missing arguments, then all in the schema's order.

    Args:
        problems: Of one call; those of one argument keep their order.
        names: The properties of the schema, in its order.
    """
    places = {name: place for place, name in enumerate(names)}
    places_end = len(places)

    def place_of(problem: ArgumentProblem) -> tuple[int, int]:
        argument = problem.argument
        return problem.rank, -1 if argument is None else places.get(argument, places_end)

    return sorted(problems, key=place_of)


def find_schema_problems(
    schema: "CompiledSchema", arguments: dict[str, Json], names: Sequence[str], *, is_finite: bool = False
) -> list[ArgumentProblem]:
    """Name what does not fit the published schema.

    Args:
        schema: What is published of the arguments, compiled.
        arguments: The arguments' object, as `read_arguments` gives it.
        names: What the tool calls its arguments.
        is_finite: No number in it is infinite.
    """
    found = schema.find_problems(arguments, limit=MAX_FOUND, is_json=is_finite)
    told = {path for path, message in found if not _advise(message)}
    problems = []
    for path, message in found:
        advice = _advise(message)
        if advice and path in told:  # of the wrong type, and none of the values that are listed
            continue
        problems.append(_problem(path, message + advice))
    return sort_problems(problems, names)


def name_depth(argument: str, depth: int, *, limit: int) -> ArgumentProblem:
    """Name an argument that is nested too deep for the alternatives its type tries at every level.

    Args:
        argument: Its name.
        depth: Arrays and objects inside one another in it.
        limit: As many can be checked of a value of that size.
    """
    message = f"expected at most {limit} levels inside one another in a value of this size, got {depth}"
    return _problem((argument,), f"{message}; send fewer levels")


def _problem(path: Path, message: str) -> ArgumentProblem:
    argument = str(path[0]) if path else None
    is_of_itself = len(path) == 1
    rank = next((rank for opening, rank in _RANKS if is_of_itself and message.startswith(opening)), 2)
    place = f"argument '{format_path(path)}'" if path else "arguments"
    return ArgumentProblem(argument, f"{place}: {message}", rank)


_RANKS = (("unknown", 0), ("missing", 1))

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
    return [_problem(path, sentence) for path, sentence in tell_misfits(errors, arguments)]


def tell_misfits(
    errors: Iterable[ErrorDetails],
    value: object,
    *,
    describe_value: Callable[..., str] = describe,
    quotes: bool = True,
) -> list[tuple[Path, str]]:
    """Say what pydantic refuses, place by place: what was expected, and what came.

    Args:
        errors: What pydantic lists, with context and input.
        value: What it was given, to tell places in it from pydantic's names of a union's members.
        describe_value: Given what came and its path, says what it is.
        quotes: Words of an author's validator are passed on, which may hold the value.
    """
    by_path: dict[Path, list[ErrorDetails]] = {}
    for error in errors:
        by_path.setdefault(find_place(error, value), []).append(error)
    return [
        (path, sentence)
        for path, found in by_path.items()
        for sentence in _say_of_one_place(found, path, describe_value, quotes=quotes)
    ]


def find_argument(error: ErrorDetails) -> str | None:
    """Give the argument that an error of pydantic concerns."""
    return str(error["loc"][0]) if error["loc"] else None


def find_place(error: ErrorDetails, value: Any) -> Path:
    """Give the path of an error in a value, without the members of unions that pydantic puts in it."""
    path: list[str | int] = []
    steps: tuple[Any, ...] = error["loc"]
    for index, step in enumerate(steps):
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list | tuple) and isinstance(step, int) and 0 <= step < len(value)
        ):
            value = value[step]
        elif isinstance(step, str) and step in getattr(value, "__dict__", ()):  # an object among results
            value = value.__dict__[step]
        elif index + 1 < len(steps) or error["type"] not in _ABSENT:
            continue
        path.append(step)
    return tuple(path)


_ABSENT = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)


def _say_of_one_place(
    errors: list[ErrorDetails], path: Path, describe_value: Callable[..., str], *, quotes: bool
) -> Iterator[str]:
    """Say all that is wrong in one place: of a union's members those that come near, in one sentence."""
    told = [error for error in errors if not error["type"].endswith("_type")] or errors
    hides = any(isinstance(step, str) and secret_word(step) for step in path)
    first, *others = dict.fromkeys(expect(error, hides=hides, quotes=quotes) for error in told)
    sentence = " or ".join([first, *(other.removeprefix("expected ") for other in others)])
    if all(error["type"] in _SELF_CONTAINED for error in told):
        yield sentence
        return
    yield f"{sentence}, got {describe_value(told[0]['input'], path=path)}"


def expect(error: ErrorDetails, *, hides: bool = False, quotes: bool = True) -> str:
    """Say what is expected where pydantic found an error.

    Args:
        error: One of pydantic's, of any type; an author's own type or text is passed on as it is.
        hides: The value is secret, so that what a parser says of it is left out.
        quotes: An author's own text, which may hold the value, is passed on.
    """
    context = error.get("ctx", {})
    if error["type"] in ("value_error", "assertion_error"):
        return _pass_on(error, context.get("error", error["msg"]), quotes=quotes)
    sentence = EXPECTATIONS.get(error["type"])
    if sentence is None:
        form = _TYPES_OF_PYDANTIC.get(error["type"])
        if form:
            return f"expected {form}"
        return (error["msg"].strip() if quotes else "") or _UNSAID
    refinement = None if hides else _REFINEMENTS.get(str(context.get("error")))
    filled = sentence.format_map({key: cut(str(value)) for key, value in context.items()})
    return f"{filled} {refinement}" if refinement else filled


def _pass_on(error: ErrorDetails, cause: object, *, quotes: bool) -> str:
    """Give an author's words, unless a library spoke: a model inside, `ipaddress`, the checker of e-mail addresses."""
    if isinstance(cause, ValidationError):  # the author's validator used a model of its own
        return "; ".join(dict.fromkeys(expect(one, quotes=quotes) for one in cause.errors(include_url=False)))
    if type(cause).__module__ == "ipaddress":
        return "expected an IP address or network as text (192.0.2.1, 2001:db8::1, 192.0.2.0/24)"
    if error["msg"].startswith("value is not a valid email address"):
        return f"expected {form_named('email')}"
    return (str(cause).strip() if quotes else "") or _UNSAID


_UNSAID = "does not fit a check of the tool's author"
"""Said of a value that an author's validator refuses without a word (`assert x > 0`)."""

_SELF_CONTAINED = _ABSENT | {
    "extra_forbidden",
    "unexpected_keyword_argument",
    "unexpected_positional_argument",
    "multiple_argument_values",
}
"""Errors about a place, not about the value in it."""

_A_DATE = f"expected {form_named('date')}"
_A_TIME = f"expected {form_named('time')}"
_A_DATE_AND_TIME = f"expected {form_named('date-time')}"
_A_DURATION = f"expected {form_named('duration')}"
_A_UUID = f"expected {form_named('uuid')}"
_A_URL = f"expected {form_named('uri')}"
_A_DECIMAL = f"expected {form_named('decimal')}"
_A_FRACTION = f"expected {form_named('fraction')}"
_A_COMPLEX = f"expected {form_named('complex')}"

_REFINEMENTS = {
    "month value is outside expected range of 1-12": "with a month of 1 to 12",
    "day value is outside expected range": "with a day that the month has",
    "hour value is outside expected range of 0-23": "with an hour of 0 to 23",
    "minute value is outside expected range of 0-59": "with a minute of 0 to 59",
    "second value is outside expected range of 0-59": "with a second of 0 to 59",
    "timezone offset must be less than 24 hours": "with a zone less than 24 hours from UTC",
    "timezone minute value is outside expected range of 0-59": "with a zone's minute of 0 to 59",
    "second fraction value is more than 6 digits long": "with at most 6 digits of a second's fraction",
}
"""What the reader of dates finds wrong with text of the right shape, in our words; the form says all else."""

_TYPES_OF_PYDANTIC = {
    **{
        f"ip_{kind}_{what}": form_named(f"ip{kind}{what.removeprefix('address')}")
        for kind in ("v4", "v6")
        for what in ("address", "network", "interface")
    },
    **{f"ip_any_{what}": form_named(f"ipvany{what}") for what in ("address", "network", "interface")},
    **dict.fromkeys(("base64", "base64_decode"), form_named("base64")),
    "zoneinfo_str": form_named("zoneinfo"),
    "pattern_regex": form_named("regex"),
    "path_not_file": "the path of a file that exists",
    "path_not_directory": "the path of a directory that exists",
    "byte_size": 'a size as text ("1.5 MB")',
    "byte_size_unit": 'a size as text ("1.5 MB")',
}
"""Errors raised in the way of an author's own by pydantic's types and by ours, whose texts are not for callers."""

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
    "get_attribute_error": "expected a value that can be read",
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
    "json_invalid": "expected JSON as text",
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
    "iteration_error": "expected an array that can be read",
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
    "bytes_type": f"expected {form_named('base64')}",
    "bytes_too_short": "expected base64 text of at least {min_length} bytes",
    "bytes_too_long": "expected base64 text of at most {max_length} bytes",
    "bytes_invalid_encoding": "expected {encoding} text",
    "date_type": _A_DATE,
    "date_parsing": _A_DATE,
    "date_from_datetime_parsing": _A_DATE,
    "date_from_datetime_inexact": f"{_A_DATE} without a time",
    "date_past": "expected a date in the past",
    "date_future": "expected a date in the future",
    "time_type": _A_TIME,
    "time_parsing": _A_TIME,
    "datetime_type": _A_DATE_AND_TIME,
    "datetime_parsing": _A_DATE_AND_TIME,
    "datetime_object_invalid": _A_DATE_AND_TIME,
    "datetime_from_date_parsing": _A_DATE_AND_TIME,
    "datetime_past": "expected a date and time in the past",
    "datetime_future": "expected a date and time in the future",
    "timezone_naive": "expected a time without a zone",
    "timezone_aware": "expected a time with a zone, such as Z or +01:00",
    "timezone_offset": "expected a zone that is {tz_expected} seconds from UTC",
    "time_delta_type": _A_DURATION,
    "time_delta_parsing": _A_DURATION,
    "uuid_type": _A_UUID,
    "uuid_parsing": _A_UUID,
    "uuid_version": "expected a UUID of version {expected_version}",
    "url_type": _A_URL,
    "url_parsing": _A_URL,
    "url_syntax_violation": _A_URL,
    "url_too_long": "expected a URL of at most {max_length} characters",
    "url_scheme": "expected a URL that begins with {expected_schemes}",
    "decimal_type": _A_DECIMAL,
    "decimal_parsing": _A_DECIMAL,
    "decimal_max_digits": "expected a decimal number of at most {max_digits} digits",
    "decimal_max_places": "expected a decimal number of at most {decimal_places} decimal places",
    "decimal_whole_digits": "expected a decimal number of at most {whole_digits} digits before the point",
    "fraction_type": _A_FRACTION,
    "fraction_parsing": _A_FRACTION,
    "complex_type": _A_COMPLEX,
    "complex_str_parsing": _A_COMPLEX,
    "union_tag_invalid": "expected one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "expected {discriminator} to say which kind of object it is",
}
"""What each of pydantic's errors says to people; `{…}` stands for a word of its context."""
