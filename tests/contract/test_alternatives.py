"""Unions: which alternative is meant, and what is said where none is."""

import pytest

from twofold.contract.schema import CompiledSchema


def problems(schema, value):
    return [(problem.path, problem.message) for problem in CompiledSchema.compile(schema, what="x").problems(value)]


def tagged(value, **properties):
    return {"type": "object", "properties": {"kind": {"const": value}, **properties}, "required": ["kind", *properties]}


INTEGER, STRING = {"type": "integer"}, {"type": "string"}
SHAPES = {"oneOf": [tagged("a", n=INTEGER), tagged("b", s=STRING)]}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        (SHAPES, {"kind": "c"}, [("kind", "expected one of 'a', 'b', got a string ('c')")]),
        (SHAPES, {"n": 1}, [("kind", "missing; expected one of 'a', 'b'")]),
        (SHAPES, {"kind": "b"}, [("s", "missing; expected a string")]),
        ({"anyOf": [SHAPES, {"type": "null"}]}, {"kind": 3}, [("kind", "expected one of 'a', 'b', got an integer (3)")]),
        ({"anyOf": [SHAPES, {"type": "null"}]}, 3, [("", "expected an object or null, got an integer (3)")]),
        ({"$defs": {"S": SHAPES}, "items": {"$ref": "#/$defs/S"}}, [{"kind": 1}], [("[0].kind", "expected one of 'a', 'b', got an integer (1)")]),
        ({"anyOf": [tagged("a", n=INTEGER), {"required": ["x"], "type": "object"}]}, {"kind": "a"}, [("n", "missing; expected an integer")]),
        ({"anyOf": [tagged("a"), {"required": ["x"], "type": "object"}]}, {"kind": "z"}, [("x", "missing")]),
        (
            {"anyOf": [{"properties": {"unit": {"enum": ["m", "km"]}}}, {"properties": {"unit": {"enum": ["km", "mi"]}}}]},
            {"unit": "ft"},
            [("unit", "expected one of 'm', 'km', 'mi', got a string ('ft')")],
        ),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
            {},
            [("", "fits none of 2 alternatives, got an empty object; alternative 1: 'a' is missing; alternative 2: 'b', 'c' are missing")],
        ),
        (
            {"anyOf": [{"type": "object", "title": t, "required": [t]} for t in "ABCDE"]},
            {},
            [("", "expected an object (A) or an object (B) or an object (C) or an object (D) or an object (E), got an empty object; A: 'A' is missing; B: 'B' is missing; C: 'C' is missing; D: 'D' is missing; and 1 more")],
        ),
        ({"anyOf": [{"items": INTEGER, "type": "array"}, {"items": STRING, "type": "array"}]}, [None], [("[0]", "expected an integer or a string, got null")]),
        (
            {"anyOf": [{"items": INTEGER, "type": "array"}, {"items": STRING, "type": "array"}]},
            [1, "s"],
            [("", "fits none of 2 alternatives, got an array of 2; alternative 1: '[1]' expected an integer, got a string ('s'); alternative 2: '[0]' expected a string, got an integer (1)")],
        ),
        ({"anyOf": [INTEGER | {"minimum": 9}, INTEGER | {"maximum": 1}]}, 5, [("", "expected at least 9 or at most 1, got an integer (5)")]),
        ({"oneOf": [STRING, {"type": "object", "properties": {"z": {"const": 1}}}]}, {"z": 2}, [("z", "expected 1, got an integer (2)")]),
        ({"anyOf": [{"const": "a"}, {"enum": ["b"]}, INTEGER]}, "c", [("", "expected 'a' or 'b' or an integer, got a string ('c')")]),
        (SHAPES | {"discriminator": {"propertyName": "kind"}, "required": ["kind"]}, {}, [("kind", "missing; expected one of 'a', 'b'")]),
    ],
    ids=range(17),
)  # fmt: skip
def test_of_a_union_is_told_what_helps(schema, value, found):
    """The tag, the one alternative that is meant, or in few words why it is none of them (contract A21, A26)."""
    assert problems(schema, value) == found


def test_a_secret_tag_is_not_shown():
    """A value under a name that announces a secret stays out of messages (contract A21)."""
    alternatives = [{"type": "object", "properties": {"token": {"const": one}}} for one in "ab"]
    assert problems({"anyOf": alternatives}, {"token": "hush"}) == [("token", "expected one of 'a', 'b', got a string")]


def test_unions_inside_unions_are_told_where_they_end():
    """Alternatives that agree on what is wrong are followed to it, in steps that grow with its depth only (C3)."""
    row = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}
    one = {**row, "title": "A", "properties": {**row["properties"], "n": INTEGER}}
    other = {**row, "title": "B", "properties": {**row["properties"], "n": STRING}}
    schema = {"$defs": {"a": one, "b": other}, "$ref": "#/$defs/a"}
    value = {"n": None}
    for _ in range(12):
        value = {"next": value}
    assert problems(schema, value) == [("next" + ".next" * 11 + ".n", "expected an integer or a string, got null")]
