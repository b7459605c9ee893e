"""Verdicts: what is said of a value under a schema that a stranger published, and that no schema breaks its bounds."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.contract import verdict as verdicts
from twofold.contract.verdict import OutputSchema, Verdict, VerdictProblem, judge
from twofold.protocol.structs import Json

WHAT = "tool 'q', output schema"
EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
CATASTROPHIC = r"^(?=a)(a|aa|aaa)*\1b$"
STUCK = "a" * 60 + "!"


def judged(schema: Any, value: Json, *, size_bytes: int | None = None, times: tuple[float, ...] = (0.0,)) -> Verdict:
    ticks = list(times)
    return judge(
        OutputSchema(schema, what=WHAT),
        value,
        size_bytes=len(json.dumps(value)) if size_bytes is None else size_bytes,
        clock=lambda: ticks.pop(0) if len(ticks) > 1 else ticks[0],
    )


# --- what a verdict says -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [{}, [], "text", 0, 1.5, True, False, None])
def test_any_json_value_is_a_value(value):
    """Objects, arrays, texts, numbers, booleans and null are judged alike (C5)."""
    assert judged(True, value) == Verdict("valid")
    assert judged({}, value) == Verdict("valid")
    assert judged(False, value).status == "invalid"


def test_every_problem_has_its_place_and_what_was_expected():
    """An invalid value is told by JSON Pointer, expected and got, all problems at once (C2)."""
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "rows": {"items": {"properties": {"a/b": {"type": "integer"}}, "additionalProperties": False}},
        },
        "required": ["kind", "rows", "total"],
    }
    assert judged(schema, {"kind": "c", "rows": [{"a/b": "one", "ab": 1}]}) == Verdict(
        "invalid",
        (
            VerdictProblem("/total", "a value", "nothing", "total: missing"),
            VerdictProblem(
                "/kind", "one of 'a', 'b'", "a string ('c')", "kind: expected one of 'a', 'b', got a string ('c')"
            ),
            VerdictProblem(
                "/rows/0/ab",
                "did you mean 'a/b'? allowed: a/b",
                "an integer (1)",
                "rows[0].ab: unknown; did you mean 'a/b'? allowed: a/b",
            ),
            VerdictProblem(
                "/rows/0/a~1b",
                "an integer",
                "a string ('one')",
                "rows[0][\"a/b\"]: expected an integer, got a string ('one')",
            ),
        ),
    )


def test_long_values_are_cut_and_secrets_left_out():
    """Values in a verdict have 80 characters at most, and none under a name that announces a secret."""
    schema = {"properties": {"note": {"type": "null"}, "api_key": {"type": "null"}}}
    problems = judged(schema, {"note": "x" * 500, "api_key": "sesame"}).problems
    assert [problem.got for problem in problems] == [f"a string ('{'x' * 78}…)", "a string"]
    assert "sesame" not in repr(problems)


def test_no_more_than_twenty_problems_are_named():
    """A verdict stays readable whatever came."""
    assert len(judged({"items": {"type": "null"}}, [1] * 5000).problems) == verdicts.MAX_PROBLEMS


def test_a_verdict_is_one_line_for_people():
    """`str(verdict)` says status and the first reason."""
    assert str(Verdict("valid")) == "valid"
    assert str(Verdict("absent", reason="nothing came")) == "absent: nothing came"
    assert str(judged({"type": "null"}, 1)) == "invalid: the value: expected null, got an integer (1)"
    assert str(judged({"items": {"type": "null"}}, [1, 2])) == (
        "invalid: [0]: expected null, got an integer (1) (and 1 more)"
    )


@pytest.mark.parametrize(
    ("status", "is_kept"),
    [("valid", True), ("unchecked", True), ("invalid", False), ("absent", False), ("uncheckable", False)],
)
def test_a_promise_is_kept_unless_something_is_broken_or_in_doubt(status, is_kept):
    """Three verdicts are reasons to raise, two are not (C2)."""
    assert Verdict(status).is_kept is is_kept


def test_a_format_is_an_annotation():
    """A violated `format` refuses nothing (2020-12, section 7)."""
    assert judged({"type": "string", "format": "date-time"}, "soon") == Verdict("valid")


# --- dialects and numbers ------------------------------------------------------------------------------

TUPLE_07 = {"type": "object", "properties": {"p": {"items": [{"type": "integer"}, {"type": "string"}]}}}


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ],
)
def test_a_declared_dialect_is_the_one_judged_by(uri):
    """Tuples are `items` before 2020-12, in either scheme and with or without the empty fragment (field case C19)."""
    assert judged({"$schema": uri, **TUPLE_07}, {"p": [1, "x"]}).status == "valid"
    assert judged({"$schema": uri, **TUPLE_07}, {"p": ["x", 1]}).status == "invalid"


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/own-dialect",
        "json-schema.org/draft-07/schema",
        "HTTP://JSON-SCHEMA.ORG/draft-07/schema#",
        "http://json-schema.org/schema#",
        "",
        7,
        None,
    ],
)
def test_an_unknown_dialect_is_named_and_judges_nothing(uri):
    """No schema is judged by another dialect's rules; the reason names it (MCP, "Schema Dialect": MUST)."""
    found = judged({"$schema": uri, "type": "object"}, {"s": 1})
    assert found.status == "uncheckable"
    assert found.reason.startswith(f"{WHAT}: unknown dialect, $schema is {uri!r}; known are 2020-12, ")


def test_what_stands_beside_a_reference_counts_by_dialect():
    """Beside `$ref` everything is void up to draft-07, and counts from 2019-09 on."""
    beside = {"definitions": {"any": {}}, "properties": {"p": {"$ref": "#/definitions/any", "type": "integer"}}}
    assert judged({"$schema": "http://json-schema.org/draft-07/schema#", **beside}, {"p": "x"}).status == "valid"
    assert judged({"$schema": "https://json-schema.org/draft/2019-09/schema", **beside}, {"p": "x"}).status == "invalid"
    assert judged(beside, {"p": "x"}).status == "invalid"


def test_numbers_are_judged_exactly():
    """Integers of any size are exact, 1.0 is an integer, minus zero is zero, true is no number (field case C14)."""
    assert judged({"const": 1915883588174806058}, 1915883588174806058).status == "valid"
    assert judged({"const": 1915883588174806058}, 1915883588174806059).status == "invalid"
    assert judged({"type": "integer", "maximum": 10**30}, 10**30 + 1).status == "invalid"
    assert judged({"type": "integer"}, 1.0).status == "valid"
    assert judged({"const": 0}, -0.0).status == "valid"
    assert judged({"const": 1}, True).status == "invalid"


# --- schemas that cannot be used -----------------------------------------------------------------------


def nested(depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [schema]}
    return schema


def doubled(depth: int) -> Any:
    definitions: dict[str, Any] = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(depth)}
    definitions[f"a{depth}"] = {"type": "integer"}
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


def chained(depth: int, keyword: str) -> Any:
    """Each level is judged once more to learn what was evaluated: the work doubles with each."""
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"unevaluatedProperties": False, keyword: [{"properties": {"a": schema}}]}
    return schema


@pytest.mark.parametrize(
    ("schema", "clause"),
    [
        ({"properties": {"s": {"$ref": "#/$defs/Missing"}}}, "leads nowhere: '$defs' is not there"),
        ({"properties": {"s": {"$ref": "https://example.com/s.json"}}}, "leads out of the schema"),
        ({"properties": {"s": {"$dynamicRef": "https://example.com/s.json"}}}, "leads out of the schema"),
        ({"type": "thing"}, "unknown type 'thing'"),
        ({"properties": []}, "not a valid schema"),
        ({"pattern": "("}, "is no regular expression"),
        (nested(3000), "nested deeper than 200 levels"),
        ({"description": "x" * 1_100_000}, "bytes of schema; at most 1000000 are taken"),
        ({"enum": list(range(100_001))}, "it holds more than 100000 values"),
        ({"properties": {f"p{i}": {} for i in range(10_001)}}, "more than 10000 subschemas"),
        (doubled(22), "too costly to check"),
        (chained(40, "anyOf"), "too costly to check"),
        (chained(40, "allOf"), "too costly to check"),
        ({"pattern": r"\p{L}{5000}"}, "is no regular expression that can be run in bounded time"),
        ({"allOf": [{"pattern": rf"\p{{L}}{{900}}{i}"} for i in range(2)]}, "together are too large to be compiled"),
        (
            {"patternProperties": {"|".join(f"w{i}" for i in range(99_999)): True}},
            "is no regular expression that can be",
        ),
        ("object", "a JSON Schema is an object or a boolean"),
    ],
)
def test_a_schema_that_cannot_be_used_makes_the_verdict_uncheckable(schema, clause):
    """Dangling and outside references and every bound: the reason names tool and fault, nothing is raised (C3)."""
    found = judged(schema, {"s": 1})
    assert found.status == "uncheckable"
    assert found.problems == ()
    assert found.reason.startswith(WHAT)
    assert clause in found.reason


def test_a_fault_is_found_once_and_remembered():
    """A schema is compiled when it is first needed; asking again gives the same fault without compiling."""
    schema: dict[str, Any] = {"$ref": "#/nope"}
    output = OutputSchema(schema, what=WHAT)
    fault = output.fault
    assert "leads nowhere" in fault
    schema["nope"] = True  # would make it good, were it read again
    assert output.fault == fault


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"properties": {"s": {"$ref": "#/properties/s"}}}])
def test_a_schema_that_refers_to_itself_for_ever_judges(schema):
    """Endless references end (field case C11)."""
    assert judged(schema, {"s": 1}) == Verdict("valid")


def test_a_recursive_value_is_judged_as_deep_as_the_stack_allows():
    """A value that is too deep for a recursive schema is uncheckable, not wrong and no crash."""
    schema = {"allOf": [{"allOf": [{"allOf": [{"allOf": [{"allOf": [{"properties": {"a": {"$ref": "#"}}}]}]}]}]}]}
    for _ in range(12):
        schema = {"allOf": [schema]}
    value: Any = 1
    for _ in range(950):
        value = {"a": value}
    found = judged(schema, value, size_bytes=5000)
    assert found.status == "uncheckable"
    assert found.reason.endswith("levels, which this schema cannot judge")


# --- work and time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"enum": [i + 0.5 for i in range(20_000)]}},
        {"items": {"enum": [[i] for i in range(20_000)]}},
        {"items": {"enum": [*range(10_000), *map(str, range(10_000))]}},
        {"items": {"anyOf": [{"type": "string", "maxLength": i} for i in range(9_000)]}},
        {"allOf": [{"$ref": "https://json-schema.org/draft/2020-12/schema"}] * 5_000},
    ],
    ids=["fractions", "arrays", "mixed", "union", "meta-schema"],
)
def test_more_work_than_can_be_done_in_bounded_time_is_not_begun(schema):
    """Subschemas tried times values judged is bounded before anything is judged (C3)."""
    found = judged(schema, [0.25] * 30_000)
    assert found.status == "uncheckable"
    assert "is more than can be judged in bounded time (at most 200000000 tries)" in found.reason


def test_large_values_under_ordinary_schemas_are_judged():
    """The bound on work leaves a union of 50 models over a list of 20,000 alone, and enums of texts of any size."""
    models = [{"properties": {"kind": {"const": f"k{i}"}, "n": {"type": "integer"}}} for i in range(50)]
    rows = [{"kind": f"k{i % 50}", "n": i} for i in range(20_000)]
    assert judged({"items": {"oneOf": models}}, rows).status == "valid"
    words = [f"w{i}" for i in range(50_000)]
    assert judged({"items": {"enum": words}}, words).status == "valid"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": CATASTROPHIC}, STUCK),
        ({"not": {"pattern": CATASTROPHIC}}, STUCK),
        ({"oneOf": [{"pattern": CATASTROPHIC}, True]}, STUCK),
        ({"if": {"pattern": CATASTROPHIC}, "else": True}, STUCK),
        ({"anyOf": [{"pattern": CATASTROPHIC}, {"type": "null"}]}, STUCK),
        ({"propertyNames": {"pattern": CATASTROPHIC}}, {STUCK: 1}),
        ({"patternProperties": {CATASTROPHIC: False}}, {"deep": [{STUCK: 1}]}),
        ({"items": {"pattern": CATASTROPHIC}}, [STUCK] * 10_000),
    ],
)
def test_a_pattern_that_takes_too_many_steps_makes_it_uncheckable(schema, value):
    """A spent backtracking limit is no answer, wherever the pattern stands, under `not` and in unions too (C3)."""
    found = judged(schema, value)
    assert found.status == "uncheckable"
    assert found.reason == f"the pattern '{CATASTROPHIC}' takes too many steps on a text of 61 characters"


def test_a_pattern_that_is_catastrophic_elsewhere_is_judged():
    """What an automaton can run has no catastrophe (field case C10)."""
    assert judged({"pattern": "^(a+)+$"}, "a" * 30 + "!").status == "invalid"
    assert judged({"pattern": "^(a+)+$"}, "a" * 30_000).status == "valid"


@pytest.mark.parametrize(
    "pattern",
    ["(?=[a-z])(?:[a-z]{1,50}){1,50}b", "(?=[a-z])[a-z]*b", "(?=a)[ab]*a[ab]{300}[0-9]"],
)
def test_a_pattern_that_takes_quadratic_time_is_not_begun_on_long_text(pattern):
    """No backtracking limit sees it, so that a length is the bound: 1,000 characters took 14 s (measured)."""
    found = judged({"pattern": pattern}, "ab" * 50_000)
    assert found.status == "uncheckable"
    assert "may take too long on a text of 100000 characters" in found.reason


def test_patterns_are_stopped_by_the_clock():
    """All watched patterns of a judgement share two seconds (C3: validation time is bounded)."""
    schema = {"items": {"pattern": EMAIL}}
    found = judged(schema, ["a@example.com"] * 100, times=(0.0, 0.1, 0.2, 3.0))
    assert found.status == "uncheckable"
    assert found.reason.startswith("its patterns, '^(?!")
    assert found.reason.endswith("take too long on this value")


def test_many_characters_under_many_patterns_are_watched():
    """Light patterns run unwatched only on as much text as they cannot take long on; the answers are the same."""
    schema = {"items": {"allOf": [{"pattern": f"^[ab]+(z{i})?$"} for i in range(100)]}}
    size = verdicts.MAX_UNWATCHED_WORK
    assert judged(schema, ["abab"], size_bytes=size) == Verdict("valid")
    assert judged(schema, ["abab"], size_bytes=size, times=(0.0, 3.0)).status == "uncheckable"
    assert judged(schema, ["abc"], size_bytes=size) == judged(schema, ["abc"])


def test_addresses_under_look_around_are_judged():
    """Patterns with look-around are in the field, and work on what they are meant for."""
    good = [f"some.user+{i}@example.com" for i in range(2_000)]
    assert judged({"items": {"pattern": EMAIL}}, good) == Verdict("valid")
    found = judged({"items": {"pattern": EMAIL}}, [*good, "no"])
    assert [(problem.pointer, problem.got) for problem in found.problems] == [("/2000", "a string ('no')")]
    assert found.problems[0].expected.startswith("text that matches '^(?!")


def test_what_takes_too_long_to_explain_is_still_invalid():
    """Saying what is wrong ends by the clock; that something is wrong is known by then."""
    found = judged({"properties": {"a": {"type": "null"}}}, {"a": 1}, times=(0.0, 9.0))
    message = "the value: does not fit the schema; what exactly is wrong takes too long to find"
    assert (found.status, [problem.message for problem in found.problems]) == ("invalid", [message])


# --- nothing is opened ---------------------------------------------------------------------------------


def test_nothing_is_ever_opened(trap, tmp_path):
    """References, identifiers and dialects of a server's schema open no connection and no file (MUST NOT; C3)."""
    address, hits = trap
    leaf = tmp_path / "leaf.json"
    leaf.write_text("true")  # would make each of these valid, were it read
    schemas = [
        {"properties": {"s": {keyword: where}}}
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef")
        for where in (f"{address}/{keyword}", leaf.as_uri(), str(leaf))
    ]
    schemas += [
        {"$schema": f"{address}/meta", "type": "object"},
        {"$schema": leaf.as_uri(), "type": "object"},
        {"$id": f"{address}/base/", "properties": {"s": {"$ref": "leaf"}}},
        {"$id": f"{tmp_path.as_uri()}/", "properties": {"s": {"$ref": "leaf.json"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": f"{address}/", "items": {"$ref": "leaf"}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$id": f"{address}/", "items": {"$ref": "leaf#/a"}},
        {"properties": {"s": {"$schema": f"{address}/inner", "type": "integer"}}},
    ]
    assert [judged(schema, {"s": 1}).status for schema in schemas] == ["uncheckable"] * len(schemas)
    assert judged({"$id": f"{address}/", "properties": {"s": {"$ref": "#/$defs/n"}}, "$defs": {"n": {}}}, {"s": 1})
    assert hits == []


# --- laws ----------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "ab"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "ba"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
PATTERNS = st.sampled_from(["^(?=a)", "(?!b)a$", "^a+$", r"^(a|b)\1?$"])
SCHEMAS = st.recursive(
    st.sampled_from([True, False, {"type": "string"}, {"type": "object"}, {"minimum": 1}])
    | st.builds(lambda pattern: {"pattern": pattern}, PATTERNS),
    lambda inner: st.one_of(
        st.builds(lambda keyword, parts: {keyword: parts}, st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda keyword, part: {keyword: part}, st.sampled_from(["not", "items", "additionalProperties", "propertyNames", "contains"]), inner),
        st.builds(lambda pattern, part: {"patternProperties": {pattern: part}}, PATTERNS, inner),
        st.builds(lambda key, part: {"properties": {key: part}}, KEYS, inner),
    ),
    max_leaves=6,
)  # fmt: skip


@given(SCHEMAS, VALUES, st.sampled_from([None, 10**9]))
def test_a_verdict_is_that_of_an_independent_validator(schema, value, size_bytes):
    """Watched or not, valid and invalid are what the reference implementation says, and each misfit has its place."""
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    found = judged(schema, value, size_bytes=size_bytes if isinstance(value, str) else None)
    assert found.status == ("valid" if fits else "invalid")
    assert bool(found.problems) is not fits


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$ref", "$schema", "type", "pattern", "properties", "anyOf", "enum", "x"]), inner, max_size=4)
    ),
    max_leaves=10,
)  # fmt: skip


@given(ANYTHING, VALUES)
def test_whatever_is_published_as_a_schema_leads_to_a_verdict(schema, value):
    """No schema of a server's makes judging raise."""
    assert judged(schema, value).status in ("valid", "invalid", "uncheckable")
