"""Patterns: what they weigh, which run unwatched, and how the watched ones end."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.contract.patterns import (
    MAX_WEIGHT,
    METER,
    Meter,
    MeteredPattern,
    OutOfTime,
    check_patterns,
    is_light,
    is_linear,
    list_patterns,
    weigh,
)
from twofold.errors import InvalidDefinition

EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
"""As a widespread library for TypeScript publishes it."""


@pytest.mark.parametrize(
    ("pattern", "weight"),
    [
        ("", 1),
        ("abc", 3),
        ("^[a-z0-9]+$", 4),
        ("a{3}", 3),
        ("a{2,5}", 5),
        ("a{2,}", 2),
        ("a{0}", 1),
        ("(ab){10}c", 21),
        ("((a{10}){10}){10}", 1000),
        (r"\{5}", 3),
        ("[]a{9}]b", 2),
        (r"\p{L}{2}", 1002),
        (r"[\p{L}\p{N}]", 1001),
        ("a{999999999999}", MAX_WEIGHT + 1),
        ("(((", 1),
        (")))", 3),
    ],
)
def test_a_pattern_weighs_its_characters_as_often_as_they_repeat(pattern, weight):
    """The estimate of an automaton's states follows counted repetition, groups and Unicode classes (C3)."""
    assert weigh(pattern) == weight


@given(st.text(alphabet="ab(){}[]\\,0159^$|.*+?pL-", max_size=40) | st.text(max_size=40))
def test_any_text_has_a_weight(pattern):
    """Whatever a server calls a pattern is weighed without an error, within bounds."""
    assert 1 <= weigh(pattern) <= MAX_WEIGHT + 1
    assert is_light(pattern) in (True, False)


@pytest.mark.parametrize("pattern", [r"^\d{4}-\d\d$", "(?:a|b)+", "(?P<n>a)", "(?<n>a)", "(?i)a", "(?i:a)", "^(a+)+$"])
def test_what_an_automaton_can_run_is_linear(pattern):
    """Groups, names, flags and nested repetition need no backtracking."""
    assert is_linear(pattern) is True


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)b", r"(a)\1", r"(?<n>a)\k<n>", "a*+", "(?(1)a|b)", EMAIL],
)
def test_what_looks_around_is_not_linear(pattern):
    """Look-around, back-references, atomic and possessive parts need backtracking, which is watched."""
    assert is_linear(pattern) is False


def test_patterns_of_a_subschema_are_its_own():
    """Both keywords count, and nothing below them."""
    schema = {"pattern": "a", "patternProperties": {"b": {"pattern": "c"}}, "properties": {"pattern": {"pattern": "d"}}}
    assert list_patterns(schema) == ["a", "b"]
    assert list_patterns({"pattern": 3, "patternProperties": ["x"]}) == []


def test_patterns_too_large_to_compile_are_refused_before_it():
    """Compiling is bounded too: all patterns of a schema together have at most half a million states (C3)."""
    schema = {"allOf": [{"pattern": rf"\p{{L}}{{900}}{i}"} for i in range(3)]}
    with pytest.raises(
        InvalidDefinition,
        match=re.escape(
            "tool 'x', output schema: its patterns together are too large to be compiled in bounded time, '\\p{L}"
        ),
    ):
        check_patterns(schema, what="tool 'x', output schema")
    check_patterns({"allOf": [{"pattern": r"\p{L}{900}"}] * 3}, what="the same pattern is compiled once")


def metered(pattern: str, text: object, *, times: tuple[float, ...] = (0.0,)) -> tuple[bool, str]:
    """Try a text; gives whether it fits, and what the meter says."""
    ticks = list(times)
    meter = Meter(lambda: ticks.pop(0) if len(ticks) > 1 else ticks[0], 1.0)
    token = METER.set(meter)
    try:
        MeteredPattern({}, pattern, []).validate(text)
    except ValueError:
        return False, meter.spent
    else:
        return True, meter.spent
    finally:
        METER.reset(token)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [(EMAIL, "a.b@example.com", True), (EMAIL, "a..b@example.com", False), ("^(?=a)", 3, True), ("(?=b)", "abc", True)],
)
def test_a_watched_pattern_judges_as_any_other(pattern, text, fits):
    """Being watched changes no answer: a pattern is searched for, and says nothing of what is no text."""
    assert metered(pattern, text) == (fits, "")


@pytest.mark.parametrize(
    ("pattern", "text", "times", "reason"),
    [
        (
            r"^(?=a)(a|aa|aaa)*\1b$",
            "a" * 60 + "!",
            (0.0,),
            r"the pattern '^(?=a)(a|aa|aaa)*\1b$' takes too many steps on a text of 61 characters",
        ),
        (
            "(?=[a-z])(?:[a-z]{1,50}){1,50}b",
            "a" * 1000,
            (0.0,),
            (
                "the pattern '(?=[a-z])(?:[a-z]{1,50}){1,50}b' may take too long on a text of 1000 characters; "
                "at most 339 are tried"
            ),
        ),
        ("(?=a)", "a", (0.0, 2.0), "its patterns, '(?=a)' among them, take too long on this value"),
    ],
)
def test_a_watched_pattern_says_when_its_answer_means_nothing(pattern, text, times, reason):
    """Backtracking, length and time each have their bound, and a sentence (C3)."""
    assert metered(pattern, text, times=times) == (False, reason)


def test_a_meter_ends_what_takes_too_long():
    """After the time, or once spent, every check ends the work."""
    ticks = [0.0, 0.5, 1.5]
    meter = Meter(lambda: ticks.pop(0), 1.0)
    meter.check()
    with pytest.raises(OutOfTime):
        meter.check()
    spent = Meter(lambda: 0.0, 1.0)
    spent.spent = "a pattern took too long"
    with pytest.raises(OutOfTime):
        spent.check()
