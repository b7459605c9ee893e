"""Schemas of every shape and dialect, honest and hostile: compiled or refused, and judged as another validator does."""

import re
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.material import encode, fuzzed, values
from twofold.contract.bundle import bundle_schemas, open_schema
from twofold.contract.patterns import METER, Meter, MeteredPattern, check_patterns, is_light, is_linear, weigh
from twofold.contract.plain import cut as cut_text
from twofold.contract.plain import describe, format_path, format_pointer, show
from twofold.contract.schema import CompiledSchema
from twofold.contract.verdict import OutputSchema
from twofold.errors import InvalidDefinition

ORACLES = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "http://json-schema.org/draft-07/schema#": jsonschema.Draft7Validator,
    "http://json-schema.org/draft-06/schema#": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-04/schema#": jsonschema.Draft4Validator,
}
KEYS = st.sampled_from(["a", "b", "c", "~", "/", "é", "", "\n"])
KEYWORDS = [
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$ref",
    "$schema", "$vocabulary", "additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains",
    "contentEncoding", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "else", "enum",
    "exclusiveMaximum", "format", "id", "if", "items", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum",
    "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern",
    "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then", "title", "type",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
]  # fmt: skip
LINKS = st.sampled_from(
    [
        "#", "#a", "#/a", "#/$defs/a", "#/%", "#/%zz", "#/~2", "#/~0~1", "a", "/a", "a.json#/$defs/a", "http://[", "//[", "%",
        "x#/y", "http://h.example/a", "https://h.example/s.json#a", "file:///etc/passwd", "urn:x:y", "urn:", ":", "?", "\\",
        "http://h.example:99999999/", "http://\ud7ff/", "#/\u0000", "a b", "..", "\u202e", "http://h.example/a/../b#/properties/a",
    ]
)  # fmt: skip
PATTERN_PARTS = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "\\d",
        "\\w",
        "\\s",
        "[ab]",
        "[^a]",
        "[a-z]",
        "(a|b)",
        "(?:ab)",
        "^",
        "$",
        "\\b",
        "a*",
        "b+",
        "a?",
        "a{2}",
        "a{1,3}",
    ]
)
LIGHT_PATTERNS = st.lists(PATTERN_PARTS, max_size=5).map("".join)
NAME_PATTERNS = LIGHT_PATTERNS.filter(bool)
"""The oracle takes the empty pattern of a `patternProperties` for none; it fits every name."""
HOSTILE_PATTERNS = st.one_of(
    LIGHT_PATTERNS,
    st.text(max_size=12),
    st.lists(
        st.sampled_from(["(", ")", "[", "]", "{", "}", "*", "+", "?", "\\", "|", "(?=", "(?<!", "(?<n>", "\\1", "\\k<n>", "\\p{L}",
                         "{99999}", "{1,99999999999}", "\\u{110000}", "\\ud800", "(?i)", "(?>", "a++", "\\c", "\\x", "[[:alpha:]]", "&&", "--"]),
        max_size=8,
    ).map("".join),
)  # fmt: skip
hostile = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([1e308, -0.0, 2**70, 0.1]), KEYS, LINKS, HOSTILE_PATTERNS,
        st.sampled_from(["object", "array", "string", "integer", *ORACLES]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS) | KEYS | HOSTILE_PATTERNS, inner, max_size=5),
    max_leaves=14,
)  # fmt: skip


def compiled(schema: Any) -> OutputSchema | None:
    judged = OutputSchema(schema, what="tool 'x', output schema")
    return None if judged.fault else judged


@fuzzed(300)
@given(hostile, values)
@example({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, 1)
@example({"$id": "http://[", "$ref": "x"}, 1)
@example({"pattern": "(" * 5000}, "x")
@example({"enum": [2**70, -0.0]}, 2**70)
def test_whatever_is_published_is_judged_by_or_refused_in_words(schema, value):
    """Nothing but a verdict ever comes of judging, whatever the schema; the same twice (C2)."""
    judged = OutputSchema(schema, what="tool 'x', output schema")
    size_bytes = len(encode(value))
    verdicts = [judged.judge(value, size_bytes=size_bytes, clock=time.monotonic) for _ in range(2)]
    assert verdicts[0] == verdicts[1]
    verdict = verdicts[0]
    assert verdict.status in ("valid", "invalid", "uncheckable")
    assert bool(verdict.problems) is (verdict.status == "invalid")
    assert bool(verdict.reason) is (verdict.status == "uncheckable")
    assert str(verdict).startswith(verdict.status)
    for said in (judged.fault, str(verdict), *(problem.message for problem in verdict.problems)):
        assert said.isprintable(), said
        assert len(said) < 2000


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "aab", "b a", 1.5, 2.0])
instances = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


@st.composite
def honest(draw: Any, dialect: str, depth: int = 2) -> Any:
    """A schema that says what its dialect means, without references that would have the oracle go round for ever."""
    counts = st.integers(0, 3)
    leaves: dict[str, st.SearchStrategy[Any]] = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(scalars, min_size=1, max_size=3, unique_by=repr),
        "minimum": st.integers(-3, 3), "maximum": st.integers(-3, 3), "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": counts, "maxLength": counts, "pattern": LIGHT_PATTERNS,
        "minItems": counts, "maxItems": counts, "uniqueItems": st.booleans(),
        "minProperties": counts, "maxProperties": counts,
        "required": st.lists(KEYS, min_size=1, max_size=2, unique=True),
    }  # fmt: skip
    is_draft4, is_old = "draft-04" in dialect, "draft-0" in dialect
    if not is_draft4:
        leaves |= {"const": scalars, "exclusiveMinimum": st.integers(-3, 3), "exclusiveMaximum": st.integers(-3, 3)}
    else:
        leaves |= {"minimum": st.just(0), "exclusiveMinimum": st.booleans()}
    chosen = {
        key: draw(leaves[key]) for key in draw(st.lists(st.sampled_from(sorted(leaves)), max_size=2, unique=True))
    }
    if is_draft4 and "exclusiveMinimum" in chosen:
        chosen["minimum"] = 0
    if depth == 0:
        return chosen
    inner = honest(dialect, depth - 1)
    some, several = st.dictionaries(KEYS, inner, max_size=2), st.lists(inner, min_size=1, max_size=2)
    parts: dict[str, st.SearchStrategy[Any]] = {
        "properties": some, "patternProperties": st.dictionaries(NAME_PATTERNS, inner, max_size=1),
        "additionalProperties": inner | st.booleans(), "allOf": several, "anyOf": several, "oneOf": several, "not": inner,
        "items": inner if "2020" in dialect else inner | several,
    }  # fmt: skip
    if "2020" in dialect:
        parts |= {"prefixItems": several}
    else:
        parts |= {"additionalItems": inner | st.booleans()}
    if not is_draft4:
        parts |= {"contains": inner, "propertyNames": inner}
    if not is_draft4 and "draft-06" not in dialect:
        parts |= {"if": inner, "then": inner, "else": inner}
    if is_old:
        parts |= {
            "dependencies": st.dictionaries(
                KEYS, inner | st.lists(KEYS, min_size=1, max_size=2, unique=True), max_size=2
            )
        }
    else:
        parts |= {
            "dependentSchemas": some, "minContains": counts, "maxContains": counts,
            "dependentRequired": st.dictionaries(KEYS, st.lists(KEYS, max_size=2, unique=True), max_size=2),
            "unevaluatedProperties": inner | st.booleans(), "unevaluatedItems": inner | st.booleans(),
        }  # fmt: skip
    chosen |= {key: draw(parts[key]) for key in draw(st.lists(st.sampled_from(sorted(parts)), max_size=2, unique=True))}
    return chosen


@pytest.mark.parametrize("dialect", ORACLES)
@fuzzed(150)
@given(data=st.data())
def test_the_verdict_is_that_of_another_validator_in_each_dialect(dialect, data):
    """C2, X05: by the dialect that a schema declares; every misfit is told at a place that exists."""
    schema = {"$schema": dialect, **data.draw(honest(dialect))}
    value = data.draw(instances)
    judged = compiled(schema)
    assert judged is not None, OutputSchema(schema, what="x").fault
    verdict = judged.judge(value, size_bytes=len(encode(value)), clock=time.monotonic)
    is_valid = ORACLES[dialect](schema).is_valid(value)
    assert verdict.status == ("valid" if is_valid else "invalid"), (schema, value, str(verdict))
    for problem in verdict.problems:
        found = value
        for step in problem.pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)]
            elif key in found:
                found = found[key]
            else:
                break


@fuzzed(150)
@given(hostile, st.lists(hostile, max_size=2))
def test_schemas_that_refer_to_one_another_are_bundled_or_refused(schema, documents):
    """Nothing but `InvalidDefinition`, whatever documents come back; what is bundled compiles or is refused too."""
    urls = [f"https://h.example/{number}.json" for number in range(len(documents))]
    try:
        root = open_schema(schema, what="root")
        opened = [
            open_schema(each, what=url, url=url, referrer=root) for each, url in zip(documents, urls, strict=True)
        ]
        assert all(isinstance(each, str) for each in root.outside)
        whole = bundle_schemas(root, opened)
        CompiledSchema.compile(whole, what="bundle")
    except InvalidDefinition:
        return


@fuzzed(300)
@given(LIGHT_PATTERNS, st.text("ab c1_\n", max_size=8))
def test_a_pattern_finds_what_it_finds_elsewhere_however_it_is_run(pattern, text):
    """ECMA-262 as far as Python's `re` agrees with it: watched and unwatched, a pattern says the same."""
    schema = {"pattern": pattern}
    judged = compiled(schema)
    assert judged is not None
    expected = (
        re.search(pattern.replace("$", r"\Z").replace(r"\d", "[0-9]").replace(r"\w", "[A-Za-z0-9_]"), text) is not None
    )
    assert judged.judge(text, size_bytes=len(text) + 2, clock=time.monotonic).is_kept is expected
    token = METER.set(Meter(time.monotonic, 5.0))
    try:
        MeteredPattern({}, pattern, []).validate(text)
    except ValueError:
        found = False
    else:
        found = True
    finally:
        METER.reset(token)
    assert found is expected


@fuzzed(300)
@given(HOSTILE_PATTERNS)
@example("{" * 100)
@example("\\" * 99)
def test_whatever_stands_as_a_pattern_is_weighed_or_refused(pattern):
    """A pattern is never run before it is known what it may cost (C3)."""
    assert weigh(pattern) >= 1
    assert isinstance(is_linear(pattern) and is_light(pattern), bool)
    try:
        check_patterns({"pattern": pattern}, what="x")
    except InvalidDefinition:
        return
    compiled({"pattern": pattern, "patternProperties": {pattern: True}})


@fuzzed(200)
@given(values, st.lists(st.integers(0, 99) | st.text(max_size=5), max_size=4))
def test_every_value_and_place_can_be_shown_in_a_line(value, path):
    """Messages show values cut to 80 characters, whatever they hold."""
    for text in (describe(value), show(value), format_path(tuple(path)), cut_text(format_pointer(tuple(path)))):
        assert text.isprintable()
        assert text.encode().decode() == text
    assert len(show(value)) <= 100
