"""What a docstring says: the tool's description, and one for each parameter.

Reads Google, NumPy and reST style. The sections on parameters, results and exceptions are for readers of
the source; the model sees parameters in the schema, so the description leaves those sections out.
"""

import inspect
import re
from collections.abc import Iterator

import msgspec

_PARAMETER_SECTIONS = "Args|Arguments|Params|Parameters|Other Parameters|Keyword Args|Keyword Arguments"
_OTHER_SECTIONS = "Return|Returns|Yield|Yields|Raise|Raises|Exceptions|Except|Warns"
_GOOGLE = rf"(?P<indent>\s*)(?:{_PARAMETER_SECTIONS}|{_OTHER_SECTIONS}):\s*"
_REST = r"(?P<indent>\s*):(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|yields?)\b[^:]*:.*"
_NUMPY = rf"\s*(?:{_PARAMETER_SECTIONS}|{_OTHER_SECTIONS})\s*"
_UNDERLINE = r"\s*-{3,}\s*"

_STYLES = {
    "GOOGLE": rf"^\s*(?:{_PARAMETER_SECTIONS}):\s*$",
    "NUMPYDOC": rf"^\s*(?:{_PARAMETER_SECTIONS})\s*\n\s*-{{3,}}\s*$",
    "REST": r"^\s*:(?:param|parameter|arg|argument|key|keyword)\b[^:\n]*:",
}
"""How a section on parameters shows, by the library's name for the style."""


class Docstring(msgspec.Struct, frozen=True):
    """A docstring taken apart.

    Attributes:
        description: What it says, without the sections on parameters, results and exceptions.
        parameters: The description of each parameter that has one, on one line.
    """

    description: str
    parameters: dict[str, str] = msgspec.field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Take a docstring apart.

    Args:
        text: As written, indentation included. One without a section on parameters is kept whole.

    Returns:
        Its description and its parameters, both empty for None.
    """
    clean = inspect.cleandoc(text or "").strip()
    style = _find_style(clean)
    if style is None:
        return Docstring(clean)
    # here and not above: 15 ms that a server without such docstrings does not spend
    import docstring_parser  # noqa: PLC0415 - see above

    try:
        # the library fails on a section that nothing stands before
        parsed = docstring_parser.parse(f"-\n\n{clean}", docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return Docstring(clean)
    parameters = {
        parameter.arg_name.lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    described = "\n".join(_keep_description(clean.splitlines(), style=style))
    return Docstring(re.sub(r"\n{3,}", "\n\n", described).strip(), parameters)


def _find_style(text: str) -> str | None:
    if ":" not in text and "---" not in text:  # as in most of one line; then no pattern has to be compiled
        return None
    return next((name for name, mark in _STYLES.items() if re.search(mark, text, re.MULTILINE)), None)


def _keep_description(lines: list[str], *, style: str) -> Iterator[str]:
    """Go through the lines outside the sections that are not for the model."""
    skipping: int | None = None
    """The indentation of the section left out at present."""
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if style == "NUMPYDOC":
            if index + 1 < len(lines) and re.fullmatch(_UNDERLINE, lines[index + 1]) and line.strip():
                skipping = indent if re.fullmatch(_NUMPY, line) else None
        elif re.fullmatch(_GOOGLE if style == "GOOGLE" else _REST, line):
            skipping = indent
        elif skipping is not None and line.strip() and indent <= skipping:
            skipping = None
        if skipping is None:
            yield line
