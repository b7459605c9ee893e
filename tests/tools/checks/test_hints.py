"""Hints: taken in either spelling, misspelt ones named, contradictions told."""

import warnings

import pytest

from twofold.errors import InvalidDefinition
from twofold.protocol.tool import ToolAnnotations
from twofold.tools.checks.complaints import DefinitionWarning
from twofold.tools.checks.hints import DEFAULTS, check_hints


def test_the_defaults_are_the_pessimistic_ones():
    """What is not set counts as false, true, false, true (MCP 2026-07-28, `ToolAnnotations`; A15)."""
    assert list(DEFAULTS.items()) == [
        ("read_only_hint", False),
        ("destructive_hint", True),
        ("idempotent_hint", False),
        ("open_world_hint", True),
    ]


@pytest.mark.parametrize(
    "given",
    [
        ToolAnnotations(read_only_hint=False, destructive_hint=True, title="T"),
        {"read_only_hint": False, "destructive_hint": True, "title": "T"},
        {"readOnlyHint": False, "destructiveHint": True, "title": "T"},
    ],
)
def test_hints_are_taken_in_either_spelling(given):
    """Objects and mappings, Python's names and the wire's, all mean the same (A15)."""
    hints = check_hints(given, tool_name="t", strict=True)
    assert hints == ToolAnnotations(read_only_hint=False, destructive_hint=True, title="T")
    assert hints.open_world_hint is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"readOnlyHnt": True},
            "tool 't', annotations: ToolAnnotations has no field 'readOnlyHnt'; did you mean 'readOnlyHint'?",
        ),
        (
            {"read_only_hint": "yes"},
            "tool 't', annotations: ToolAnnotations: Expected `bool | null`, got `str` - at `$.readOnlyHint`",
        ),
        (["readOnlyHint"], "tool 't', annotations: expected ToolAnnotations or a mapping, got a list"),
    ],
)
def test_a_misspelt_hint_is_an_error_that_names_it(given, message):
    """A hint that would silently be nothing is an error at registration."""
    with pytest.raises(InvalidDefinition) as caught:
        check_hints(given, tool_name="t", strict=False)
    assert str(caught.value) == message


CONTRADICTION = (
    "tool 't': destructive_hint=True means nothing beside read_only_hint=True, "
    "a tool that changes nothing destroys nothing; drop one of the two"
)


def test_destructive_beside_read_only_is_a_warning_an_error_under_strict():
    """The hints as given are still published; `strict=True` refuses them (A15)."""
    given = ToolAnnotations(read_only_hint=True, destructive_hint=True)
    with pytest.warns(DefinitionWarning) as caught:
        assert check_hints(given, tool_name="t", strict=False) is given
    assert [(str(warning.message), warning.filename) for warning in caught] == [(CONTRADICTION, __file__)]
    with pytest.raises(InvalidDefinition) as refused:
        check_hints(given, tool_name="t", strict=True)
    assert str(refused.value) == CONTRADICTION


@pytest.mark.parametrize(
    "hints",
    [
        {"read_only_hint": True, "destructive_hint": False},
        {"read_only_hint": True, "idempotent_hint": True},
        {"destructive_hint": True},
    ],
)
def test_what_does_not_contradict_passes_quietly(hints):
    """Only a destructive read-only tool says two things at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_hints(hints, tool_name="t", strict=False)
