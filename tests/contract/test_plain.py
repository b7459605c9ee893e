"""What JSON can hold, whatever it is held in; articles."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.contract.plain import describe, find_foreign, format_path, name_type
from twofold.contract.schema import CompiledSchema
from twofold.errors import InvalidDefinition

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.sampled_from([object, 10**5000, "\ud800", math.inf]),
)


@given(st.lists(SCALARS, min_size=17), SCALARS)
def test_faults_of_a_long_list_are_those_of_its_items(items: list[Any], one: Any) -> None:
    """Long lists and objects are judged all at once where they can be; nothing slips through (contract C3)."""
    alone = [
        ((index, *path), fault)
        for index, item in enumerate(items)
        for path, fault in find_foreign([item], max_depth=9)
        for path in [path[1:]]
    ]
    assert list(find_foreign(items, max_depth=9)) == alone
    named = {f"k{index}": item for index, item in enumerate(items)}
    assert list(find_foreign(named, max_depth=9)) == [((f"k{path[0]}", *path[1:]), fault) for path, fault in alone]


def test_values_of_a_long_list_are_counted() -> None:
    """The bound on values holds for those that are judged at once too."""
    assert list(find_foreign([[1] * 50, [2] * 50], max_depth=9, max_values=103)) == []
    assert list(find_foreign([[1] * 50, [2] * 50, 3], max_depth=9, max_values=60)) == [
        ((), "it holds more than 60 values")
    ]


@pytest.mark.parametrize(
    ("value", "named"),
    [(1, "an int"), ("", "a str"), (None, "a NoneType"), (OSError(), "an OSError"), ({}, "a dict"), (b"", "a bytes")],
)
def test_a_type_is_named_with_its_article(value: object, named: str) -> None:
    """Messages read as sentences (STYLE, "Comments and errors")."""
    assert name_type(value) == named


def test_a_large_object_is_described_by_its_first_names() -> None:
    """A message does not grow with the value."""
    assert describe({f"k{n}": 1 for n in range(100_000)}) == (
        "an object with 'k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8', 'k9', 'k10', 'k11', 'k12'…"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("é", "é"),
        ("a\nb", '["a\\nb"]'),
        ("\x9b31m", '["\\u009b31m"]'),
        ("\u202e", '["\\u202e"]'),
        ("\u2028", '["\\u2028"]'),
    ],
)
def test_a_place_is_shown_without_characters_that_change_how_a_line_is_read(name: str, shown: str) -> None:
    """Names come from whoever sends the value: a terminal or a log would obey what they hold (found by fuzzing)."""
    assert format_path((name,)) == shown


def test_a_fault_in_a_schema_is_told_in_one_line_whatever_its_names_hold() -> None:
    """The place in the schema is shown in 80 printable characters (found by fuzzing)."""
    schema = {"properties": {"a\n" + "x" * 500: {"$ref": "#/nowhere"}}}
    with pytest.raises(InvalidDefinition) as caught:
        CompiledSchema.compile(schema, what="tool 'x'")
    told = str(caught.value)
    assert told.startswith("tool 'x', at #/properties/a�xxx")
    assert told.isprintable()
    assert len(told) < 300
