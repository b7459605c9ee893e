"""Docstrings give the description and the parameters' descriptions, in three styles."""

import subprocess
import sys

import pytest

from twofold.tools.introspection.docstrings import Docstring, read_docstring

GOOGLE = """Find things.

    Looks everywhere.

    Args:
        topic (str): What to look for,
            in words.
        limit: How many: at most.
        *more: The rest.

    Returns:
        list: What was found.

    Raises:
        ValueError: Never.

    Example:
        find("x")
    """

NUMPY = """Find things.

    Looks everywhere.

    Parameters
    ----------
    topic : str
        What to look for,
        in words.
    limit : int, optional
        How many: at most.
    *more
        The rest.

    Returns
    -------
    list
        What was found.

    Example
    -------
    find("x")
    """

REST = """Find things.

    Looks everywhere.

    :param str topic: What to look for,
        in words.
    :param limit: How many: at most.
    :type limit: int
    :param more: The rest.
    :returns: What was found.
    :rtype: list
    :raises ValueError: Never.

    Example: find("x")
    """

PARAMETERS = {"topic": "What to look for, in words.", "limit": "How many: at most.", "more": "The rest."}


@pytest.mark.parametrize(
    ("text", "example"),
    [
        (GOOGLE, 'Example:\n    find("x")'),
        (NUMPY, 'Example\n-------\nfind("x")'),
        (REST, 'Example: find("x")'),
    ],
    ids=["google", "numpy", "rest"],
)
def test_parameters_are_read_and_left_out_of_the_description(text: str, example: str) -> None:
    """Contract row A1: parameter descriptions in the docstring reach the schema, the rest the tool."""
    assert read_docstring(text) == Docstring(f"Find things.\n\nLooks everywhere.\n\n{example}", PARAMETERS)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (None, ""),
        ("", ""),
        ("  One line.  ", "One line."),
        ("Lines:\n        kept as they are\n\n    Returns:\n        Things.\n", "Lines:\n    kept as they are\n\nReturns:\n    Things."),
        ("Args are nothing here: no section.", "Args are nothing here: no section."),
    ],
)  # fmt: skip
def test_docstring_without_a_section_on_parameters_is_kept_whole(text: str | None, description: str) -> None:
    """Without parameters in it the docstring is the description, cleaned as `inspect.cleandoc` does."""
    assert read_docstring(text) == Docstring(description, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n    Args:\n        x: The x.", Docstring("", {"x": "The x."})),
        ("Do.\n\nArgs:\n", Docstring("Do.\n\nArgs:", {})),
        ("Do.\n\nArgs:\n    x:\n    y: The y.", Docstring("Do.", {"y": "The y."})),
        ("Do.\n\nArgs:\nnot indented", Docstring("Do.\n\nArgs:\nnot indented", {})),
    ],
)
def test_odd_sections_do_no_harm(text: str, expected: Docstring) -> None:
    """A section that stands alone is read; one that holds nothing stays where it is."""
    assert read_docstring(text) == expected


def test_the_docstring_library_is_not_loaded_without_need() -> None:
    """Start-up does not pay for docstrings that have no section on parameters."""
    program = (
        "import sys; from twofold.tools.introspection.docstrings import read_docstring as r; r('Plain.');"
        "print('docstring_parser' in sys.modules); r('D.\\n\\nArgs:\\n    x: y'); print('docstring_parser' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
