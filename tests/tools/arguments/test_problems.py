"""Every error of pydantic ends as a plain sentence."""

import typing
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticKnownError, ValidationError, core_schema

from twofold.tools.arguments.problems import (
    EXPECTATIONS,
    ArgumentProblem,
    expect,
    find_value_problems,
    refuse,
    sort_problems,
)

CONTEXT: dict[str, Any] = {
    **dict.fromkeys(["attribute", "class_name", "method_name", "class", "discriminator"], "name"),
    **dict.fromkeys(["pattern", "encoding", "encoding_error", "tag", "expected_tags"], "text"),
    **dict.fromkeys(["gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "actual_length"], 3),
    **dict.fromkeys(["max_digits", "decimal_places", "whole_digits", "expected_version", "tz_expected"], 3),
    **dict.fromkeys(["tz_actual"], 4),
    "field_type": "List",
    "expected": "'a' or 'b'",
    "expected_schemes": "'ftp'",
    "error": "why",
    "expected_plural": "s",
}
AUTHORS = {"value_error": "ValueError", "assertion_error": "AssertionError"}
ALL_TYPES = typing.get_args(core_schema.ErrorType)


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_every_error_of_pydantic_has_a_sentence(kind: Any) -> None:
    """No validator jargon reaches the caller: contract row A21."""
    error: Any = {"type": kind, "loc": ("x",), "msg": "jargon", "input": 1, "ctx": CONTEXT}
    sentence = expect(error)
    if kind in AUTHORS:
        assert sentence == "why"
    else:
        assert sentence == EXPECTATIONS[kind].format_map(CONTEXT)
        assert not any(word in sentence for word in ("Input", "jargon", "pydantic", "http:", "{", "dictionary"))


def test_sentences_name_only_what_their_errors_know() -> None:
    """The words a sentence takes from an error's context are there in the error itself."""
    for kind in ALL_TYPES:
        known = dict(CONTEXT)
        try:
            error: Any = PydanticKnownError(kind, known)
        except TypeError:  # an error without context
            error = PydanticKnownError(kind)
        if kind not in AUTHORS:
            assert EXPECTATIONS[kind].format_map(error.context or {})


def test_no_sentence_is_left_over() -> None:
    """The table has what pydantic has."""
    assert set(EXPECTATIONS) | set(AUTHORS) == set(ALL_TYPES)


def test_author_s_own_error_type_keeps_its_text() -> None:
    """A `PydanticCustomError` of the author's is passed on as it reads."""
    error: Any = {"type": "too_odd", "loc": ("x",), "msg": "must be even", "input": 3}
    assert find_value_problems([error], {"x": 3}) == [
        ArgumentProblem("x", "argument 'x': must be even, got an integer (3)")
    ]


def test_validation_error_inside_a_validator_is_told_in_plain_words() -> None:
    """A model the author's validator uses inside brings its jargon and links; they end here."""

    class Inner(BaseModel):
        a: int
        b: str

    with pytest.raises(ValidationError) as caught:
        Inner.model_validate({"a": "x", "b": 1})
    error: Any = {"type": "value_error", "loc": (), "msg": "", "input": 1, "ctx": {"error": caught.value}}
    assert expect(error) == "expected an integer; expected a string"


def test_members_of_a_union_are_told_in_one_sentence() -> None:
    """One place, one sentence; pydantic's names of members are not part of the path."""
    errors: Any = [
        {"type": "date_parsing", "loc": ("x", 0, "date"), "msg": "", "input": "z", "ctx": {"error": "bad"}},
        {"type": "int_type", "loc": ("x", 0, "int"), "msg": "", "input": "z"},
        {"type": "uuid_parsing", "loc": ("x", 0, "uuid"), "msg": "", "input": "z", "ctx": {"error": "odd"}},
    ]
    assert find_value_problems(errors, {"x": ["z"]}) == [
        ArgumentProblem(
            "x",
            "argument 'x[0]': expected a date as text (2026-01-31) or a UUID as text"
            " (123e4567-e89b-42d3-a456-426614174000), got a string ('z')",
        )
    ]


def test_secret_is_not_shown_in_any_part() -> None:
    """A parameter whose name announces a secret never shows its value, nor a parser's words on it."""
    errors: Any = [
        {
            "type": "date_parsing",
            "loc": ("api_key",),
            "msg": "",
            "input": "2026-13-01",
            "ctx": {"error": "month value is outside expected range of 1-12"},
        }
    ]
    assert find_value_problems(errors, {"api_key": "2026-13-01"}) == [
        ArgumentProblem("api_key", "argument 'api_key': expected a date as text (2026-01-31), got a string")
    ]


def test_one_problem_is_a_line_and_several_are_a_list() -> None:
    """All problems of a call stand in one message: contract row A21."""
    problems = [ArgumentProblem("a", "argument 'a': missing"), ArgumentProblem("b", "argument 'b': missing")]
    assert str(refuse("add", problems[:1])) == "tool 'add', argument 'a': missing"
    error = refuse("add", problems)
    assert str(error) == ("tool 'add': 2 problems with the arguments\n- argument 'a': missing\n- argument 'b': missing")
    assert error.problems == ("argument 'a': missing", "argument 'b': missing")


def test_long_list_of_problems_is_cut() -> None:
    """A message does not flood the model."""
    text = str(refuse("add", [ArgumentProblem("a", f"argument 'a[{n}]': missing") for n in range(50)]))
    assert text.splitlines()[0] == "tool 'add': 50 problems with the arguments"
    assert len(text.splitlines()) == 22
    assert text.endswith("- and more")


def test_problems_are_read_in_the_order_of_the_schema() -> None:
    """Unknown and missing arguments mend much else and come first, then all in the schema's order: row A21."""
    names = ["a", "b", "c"]
    late, early = ArgumentProblem("c", "late"), ArgumentProblem("a", "early")
    missing, unknown = ArgumentProblem("b", "missing", 1), ArgumentProblem("z", "unknown", 0)
    whole, deeper = ArgumentProblem(None, "of the whole"), ArgumentProblem("a", "deeper")
    assert sort_problems([late, early, missing, deeper, whole, unknown], names) == [
        *(unknown, missing, whole, early, deeper, late)
    ]
