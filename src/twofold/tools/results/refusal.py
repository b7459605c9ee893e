"""What a tool returned, and why pydantic does not take it, in the words pydantic's readers know.

Source: the page on structured output prints this form; only the link it ends in is left out.
"""

import re

from pydantic_core import ErrorDetails, ValidationError

from twofold.contract.plain import Path
from twofold.contract.sensitive import secret_word
from twofold.errors import ResultRefused

_MAX_PROBLEMS = 20
_MAX_SHOWN = 80
"""Characters of a value shown."""
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def refuse_value(error: ValidationError, *, title: str, at: Path, hides_input: bool) -> ResultRefused:
    """Make the refusal of a value that does not validate.

    Args:
        error: What pydantic found.
        title: The output schema's name.
        at: Where the value stands in the result (`result` where it is wrapped).
        hides_input: An author asked that values be left out of error messages.
    """
    count = error.error_count()
    problems = error.errors(include_url=False)[:_MAX_PROBLEMS]
    lines = [f"{count} validation error{'' if count == 1 else 's'} for {title}"]
    lines += [_write_problem(problem, at=at, hides_input=hides_input) for problem in problems]
    if count > len(problems):
        lines.append(f"and {count - len(problems)} more")
    return ResultRefused("\n".join(lines))


def _write_problem(problem: ErrorDetails, *, at: Path, hides_input: bool) -> str:
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
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[: _MAX_SHOWN - 30]}...{shown[-27:]}"
    return shown.encode("utf-8", "backslashreplace").decode()
