"""Names: what is refused, what is served with a warning, which one was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import InvalidDefinition
from twofold.tools.checks.names import check_name, near_names


@pytest.mark.parametrize("name", ["a", "getUser", "DATA_EXPORT_v2", "admin.tools.list", "my-tool", "x" * 128])
def test_recommended_names_pass_quietly(name):
    """1 to 128 of A-Za-z0-9_.- need no word (MCP 2026-07-28, "Tool Names")."""
    assert check_name(name) is None


@pytest.mark.parametrize("name", ["my tool", "выборка", "x" * 129, "a,b", "a/b", "é", " x"])
def test_other_names_are_served_with_a_warning_that_names_them(name):
    """A name outside the recommended set is served; the warning has the name and what to do (A16)."""
    warning = check_name(name)
    assert warning is not None
    assert warning.startswith(f"tool {name!r:.80}: its name is outside the recommended 1 to 128 characters")
    assert warning.endswith("give a plain name= and put this text into title=")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "a tool's name is empty (''); give it one with name="),
        ("  ", "a tool's name is empty ('  '); give it one with name="),
        (None, "a tool's name is text, got a NoneType; give it with name="),
        (
            "a\nb",
            r"tool 'a\nb': its name has a control character (U+000A, at character 2); leave it out",
        ),
        (
            "a\x7f",
            r"tool 'a\x7f': its name has a control character (U+007F, at character 2); leave it out",
        ),
        (
            "\ud800",
            r"tool '\ud800': its name has half of a surrogate pair (U+D800, at character 1); leave it out",
        ),
        (
            "a\u2028",
            r"tool 'a\u2028': its name has a line separator (U+2028, at character 2); leave it out",
        ),
    ],
)
def test_names_that_cannot_be_carried_are_refused(name, message):
    """Empty names and control characters are errors at registration (A16)."""
    with pytest.raises(InvalidDefinition) as caught:
        check_name(name)
    assert str(caught.value) == message


@given(st.text(max_size=140))
def test_every_text_is_quiet_warned_of_or_refused(name):
    """Whatever a name holds, the answer is one of the three, and a refusal is of the one kind."""
    try:
        warning = check_name(name)
    except InvalidDefinition:
        assert not name.strip() or not name.isprintable()
    else:
        name.encode()
        assert (warning is None) is (name.isascii() and len(name) <= 128 and set(name) <= ALLOWED)


ALLOWED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("serch", ["search"]),
        ("SEARCH", ["search"]),
        ("clear-catalog", ["clear_catalog"]),
        ("clear_catalogue", ["clear_catalog"]),
        ("summary", ["price_summary"]),
        ("ar", []),
        ("zzz", []),
        ("x" * 10_000, []),
        (None, []),
    ],
)
def test_the_nearest_names_are_found(name, near):
    """An unknown tool is answered with what was perhaps meant; a huge name costs nothing (A22)."""
    assert near_names(name, ["search", "clear_catalog", "price_summary"]) == near
