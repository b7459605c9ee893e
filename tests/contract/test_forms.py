"""Formats in words: what text must look like, by an example that is right itself."""

import re

import pytest
from jsonschema_rs import validator_for
from pydantic import TypeAdapter

from twofold.contract.forms import INTEGER_TEXT, NUMBER_TEXT, PATTERNS, form_named, form_of
from twofold.contract.schema import CompiledSchema

OFFICIAL = ["date", "date-time", "duration", "uuid", "uri", "email", "ipv4", "ipv6"]


@pytest.mark.parametrize("name", OFFICIAL)
def test_the_example_of_a_format_is_of_the_format(name: str) -> None:
    """A model copies the example (JSON Schema 2020-12, section 7.3)."""
    example = form_named(name).partition("(")[2].rstrip(")")
    assert validator_for({"format": name}, validate_formats=True).is_valid(example)


@pytest.mark.parametrize("pattern", [NUMBER_TEXT, INTEGER_TEXT])
def test_the_example_of_a_pattern_matches_it(pattern: str) -> None:
    """A model copies the example."""
    example = PATTERNS[pattern].partition('"')[2].partition('"')[0]
    assert re.search(pattern, example)
    assert TypeAdapter(float).validate_python(example)


def test_a_schema_says_its_form_by_format_or_encoding() -> None:
    """What is not known is not made up."""
    assert form_of({"format": "date"}) == "a date as text (2026-01-31)"
    assert form_of({"contentEncoding": "base64"}) == 'base64 text ("aGk=")'
    assert form_of({"contentMediaType": "application/json"}) == "JSON as text"
    assert form_of({"format": "x-own", "contentEncoding": ["odd"]}) is None


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": ["string", "null"], "format": "date"}, 5, "expected null or a date as text (2026-01-31), got an integer (5)"),
        ({"type": "string", "format": "uri", "minLength": 1}, "", "expected a URL as text (https://example.com/path), got a string ('')"),
        ({"type": "string", "format": "uri", "minLength": 9}, "x", "expected at least 9 characters, got a string ('x')"),
        ({"type": "string", "format": "x-own"}, 5, "expected a string, got an integer (5)"),
        ({"type": "number", "format": "decimal"}, "x", "expected a number, got a string ('x')"),
        ({"pattern": r"^\d{4}\\$"}, "x", r"expected text that matches '^\d{4}\\$', got a string ('x')"),
        ({"format": "date", "pattern": "^2026"}, "x", "expected text that matches '^2026', got a string ('x')"),
        ({"pattern": NUMBER_TEXT}, "x", 'expected a decimal number as text ("12.50"), got a string (\'x\')'),
    ],
    ids=range(8),
)  # fmt: skip
def test_forms_and_patterns_are_told_as_their_author_means_them(schema, value, message) -> None:
    """Formats by name and example, patterns as they are written (contract A21)."""
    (problem,) = CompiledSchema.compile(schema, what="x").problems(value)
    assert problem.message == message
