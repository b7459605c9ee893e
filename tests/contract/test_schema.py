"""A compiled schema: what is refused before compiling, and what is said of values that do not fit."""

import pytest

from twofold.contract.schema import MAX_BYTES, CompiledSchema, Problem
from twofold.errors import InvalidDefinition

WHAT = "tool 'x', input schema"


def refusal(schema) -> str:
    with pytest.raises(InvalidDefinition) as caught:
        CompiledSchema.compile(schema, what=WHAT)
    return str(caught.value)


def problems(schema, value) -> list[tuple[str, str]]:
    compiled = CompiledSchema.compile(schema, what=WHAT)
    found = compiled.problems(value)
    assert bool(found) is not compiled.is_valid(value)
    return [(problem.path, problem.message) for problem in found]


def unions(depth: int) -> dict:
    schema = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [schema, {"type": "string"}]}
    return schema


def doubled(depth: int, keyword: str) -> dict:
    """Definitions that each name the next one twice."""
    definitions = {f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(depth)}
    definitions[f"a{depth}"] = {"type": "integer"}
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


def test_nothing_is_ever_fetched(trap, tmp_path):
    """No reference, identifier or dialect opens a connection or a file (C3; MCP, "JSON Schema usage")."""
    address, hits = trap
    leaf = tmp_path / "leaf.json"
    leaf.write_text('{"type": "integer"}')
    outside = [
        {"$ref": f"{address}/a"},
        {"properties": {"s": {"$dynamicRef": f"{address}/b"}}},
        {"$recursiveRef": f"{address}/c"},
        {"$id": f"{address}/base/", "properties": {"s": {"$ref": "leaf"}}},
        {"$schema": f"{address}/meta", "type": "object"},
        {"$defs": {"d": {"$id": f"{address}/", "$schema": f"{address}/meta"}}},
        {"$ref": leaf.as_uri()},
        {"$ref": str(leaf)},
        {"$id": leaf.as_uri(), "properties": {"s": {"$ref": "leaf.json#/x"}}},
    ]
    for schema in outside:
        assert refusal(schema).startswith(WHAT)
    CompiledSchema.compile({"const": {"$ref": f"{address}/data"}}, what=WHAT).problems({"$ref": 1})
    assert hits == []


def test_a_reference_out_of_the_document_is_named_with_its_place():
    """An author reads which reference leads out, and what to do (C3, A26)."""
    assert refusal({"properties": {"s": {"$ref": "https://example.com/leaf.json"}}}) == (
        "tool 'x', input schema, at #/properties/s: the reference 'https://example.com/leaf.json' leads out of the "
        "schema; network and file references are never opened, so put what it names under $defs and refer to that"
    )


@pytest.mark.parametrize(
    ("schema", "place", "clause"),
    [
        ({"properties": {"s": {"$ref": "#/$defs/M"}}, "$defs": {}}, "#/properties/s", "'M' is not there"),
        ({"$defs": {"unused": {"$ref": "#/nope"}}}, "#/$defs/unused", "'nope' is not there"),
        ({"$ref": "#anchor"}, "#", "the schema has no such anchor"),
        ({"$ref": "#/title", "title": "t"}, "#", "something that is no schema"),
        ({"allOf": [{"$dynamicRef": "#meta"}]}, "#/allOf/0", "the schema has no such anchor"),
        ({"$ref": "#/allOf/7", "allOf": [True]}, "#", "'7' is not there"),
    ],
)
def test_a_reference_to_nothing_is_named(schema, place, clause):
    """A dangling local reference is told at registration, also where no value would ever reach it."""
    message = refusal(schema)
    assert message.startswith(f"{WHAT}, at {place}: the reference ")
    assert clause in message


@pytest.mark.parametrize(
    ("schema", "fits", "misfits"),
    [
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}}}, 1, "s"),
        ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer"}}}, 1, "s"),
        ({"$id": "https://h/a", "$ref": "b", "$defs": {"x": {"$id": "b", "type": "integer"}}}, 1, "s"),
        ({"$ref": "urn:b", "$defs": {"x": {"$id": "urn:b", "type": "integer"}}}, 1, "s"),
        ({"$ref": "#/extra/leaf", "extra": {"leaf": {"$ref": "#/other"}}, "other": {"type": "integer"}}, 1, "s"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": "x"}),
        ({"properties": {"$ref": {"type": "integer"}}}, {"$ref": 1}, {"$ref": "s"}),
        ({"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}}, {"kids": [{}]}, {"kids": [1]}),
    ],
)
def test_references_inside_the_document_are_followed(schema, fits, misfits):
    """Pointers, anchors, identifiers, the published meta-schemas: all of it works without a network."""
    assert problems(schema, fits) == []
    assert problems(schema, misfits) != []


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"properties": {"s": {"$ref": "#/properties/s"}}}, {"anyOf": [{"$ref": "#"}]}]
)
def test_a_reference_to_itself_ends(schema):
    """A schema that refers to itself for ever is taken, and judging ends (field case C11)."""
    assert CompiledSchema.compile(schema, what=WHAT).is_valid({"s": 1}) is True


def test_a_misfit_that_only_leads_in_circles_is_still_told():
    """Where each part blames the next and the last the first, the whole is named."""
    schema = {"unevaluatedProperties": False, "allOf": [{"$ref": "#"}]}
    assert problems(schema, {"a": 1}) == [("", "does not fit 'unevaluatedProperties' at #, got an object with 'a'")]


DIALECTS = ["draft/2020-12", "draft/2019-09", "draft-07", "draft-06", "draft-04"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ending", ["", "#"])
def test_each_supported_dialect_is_judged_and_explained(dialect, ending):
    """Five dialects are known; parts of a schema are explained in the dialect of the whole (C2)."""
    uri = f"http{'s' if '20' in dialect else ''}://json-schema.org/{dialect}/schema{ending}"
    schema = {"$schema": uri, "definitions": {"n": {"type": "integer"}}}
    schema["properties"] = {"n": {"$ref": "#/definitions/n"}}
    assert problems(schema, {"n": 1}) == []
    assert problems(schema, {"n": "one"}) == [("n", "expected an integer, got a string ('one')")]


def test_old_tuples_are_judged_by_their_own_dialect():
    """In draft-07 `items` may be a list, and everything beside `$ref` is void (field case C19)."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "integer"}, {"$ref": "#/definitions/s", "maxLength": 0}],
        "additionalItems": False,
        "definitions": {"s": {"type": "string"}},
    }
    assert problems(schema, [1, "x"]) == []
    assert problems(schema, ["x", 1, 2]) == [
        ("[0]", "expected an integer, got a string ('x')"),
        ("[1]", "expected a string, got an integer (1)"),
        ("[2]", "nothing is allowed here, got an integer (2)"),
    ]
    assert problems({**schema, "additionalItems": {"type": "null"}}, [1, "x", None, 2]) == [
        ("[3]", "expected null, got an integer (2)")
    ]


@pytest.mark.parametrize("named", ["https://example.com/own", "", "http://json-schema.org/draft-03/schema#", 1])
def test_an_unknown_dialect_is_named_and_refused(named):
    """Judging by another dialect's rules would be a lie; the message lists what is known (C3)."""
    known = "2020-12, 2019-09, draft-07, draft-06, draft-04 (2020-12 where $schema is absent)"
    assert refusal({"$schema": named}) == f"{WHAT}: unknown dialect, $schema is {named!r}; known are {known}"
    if isinstance(named, str):
        assert f"{WHAT}, at #/$defs/d: unknown dialect" in refusal({"$defs": {"d": {"$schema": named}}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"type": "strin"},
            "at #/type: unknown type 'strin'; there are string, integer, number, boolean, array, object, null",
        ),
        (
            {"properties": {"a": {"minimum": "x"}}},
            "at #/properties/a/minimum: not a valid schema: expected a number, got a string ('x')",
        ),
        ({"required": "a"}, "at #/required: not a valid schema: expected an array, got a string ('a')"),
        ({"minLength": -1}, "at #/minLength: not a valid schema: expected at least 0, got an integer (-1)"),
        (
            {"items": {"pattern": "("}},
            "at #/items/pattern: the pattern '(' is no regular expression that can be run in bounded time",
        ),
        (
            {"patternProperties": {"(a{1000}){1000}": True}},
            (
                "at #/patternProperties/(a{1000}){1000}: the pattern '(a{1000}){1000}' is no regular expression "
                "that can be run in bounded time"
            ),
        ),
        ({"enum": [float("nan")]}, "at #/enum/0: nan is not a JSON number"),
        ({"title": "\ud800"}, "at #/title: text with half of a surrogate pair"),
        ({1: 2}, "at #: the key 1 is not a string"),
        ({"default": {1, 2}}, "at #/default: not JSON but a Python value of type set"),
    ],
)
def test_what_is_no_schema_is_told_with_its_place(schema, message):
    """A malformed schema by hand is an error at registration that names the place and the fault (A26)."""
    assert refusal(schema) == f"{WHAT}, {message}"


def test_only_objects_and_booleans_are_schemas():
    """`true` and `false` are schemas; a list or a text is none (field case C06)."""
    assert problems(True, [1]) == []
    assert problems(False, [1]) == [("", "nothing is allowed here, got an array of 1")]
    assert problems({"properties": {"x": True}}, {"x": 1}) == []
    assert refusal([]) == f"{WHAT}: a JSON Schema is an object or a boolean, got a list"


def test_deep_but_sane_schemas_pass():
    """80 unions inside one another are odd but legitimate, judged and explained (field case C11)."""
    schema = {"properties": {"s": unions(80)}}
    assert problems(schema, {"s": 1}) == []
    assert problems(schema, {"s": None}) == [("s", "expected an integer or a string, got null")]


def test_a_schema_past_reason_is_refused_before_it_is_compiled():
    """Depth, size, number of subschemas and cost are bounded (C3); nothing recursive sees what is beyond."""
    ring: list = []
    ring += [ring, ring]
    wide = {"type": "integer"}
    for _ in range(22):
        wide = {"allOf": [wide, wide]}
    assert "nested deeper than 200 levels" in refusal(unions(3000))
    assert "nested deeper than 200 levels" in refusal({"const": ring})
    assert "it holds more than 100000 values" in refusal(wide)
    assert "more than 10000 subschemas" in refusal({"properties": {f"p{i}": True for i in range(10_000)}})
    assert (
        refusal({"title": "t" * MAX_BYTES})
        == f"{WHAT}: {MAX_BYTES + 13} bytes of schema; at most {MAX_BYTES} are taken"
    )


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_whose_work_doubles_at_each_step_is_refused(keyword):
    """Thirty definitions can mean 2^30 steps for one number, or for one leaf of a value: told beforehand (C3)."""
    assert "too costly to check" in refusal(doubled(30, keyword))
    deep = doubled(30, keyword)
    for definition in deep["$defs"].values():
        if keyword in definition:
            definition[keyword] = [{"properties": {"x": part}} for part in definition[keyword]]
    assert "too costly to check" in refusal(deep)
    for index in range(300):
        deep["$defs"][f"a{index}"] = {"$ref": f"#/$defs/a{index + 1}"}
    deep["$defs"]["a300"] = True
    assert "302 of them inside one another" in refusal(deep)


EXPRESSION = {
    "anyOf": [{"type": "integer"}]
    + [
        {"type": "object", "properties": {"op": {"const": op}, "of": {"$ref": "#"}}, "required": ["op", "of"]}
        for op in ("neg", "abs")
    ]
}


def nested(depth: int, leaf):
    value = leaf
    for _ in range(depth):
        value = {"op": "neg", "of": value}
    return value


def test_recursive_unions_are_explained_without_blowing_up():
    """jsonschema-rs's own error list takes 2^depth steps here; ours follows the alternative that is meant."""
    assert problems(EXPRESSION, nested(200, 1)) == []
    (problem,) = CompiledSchema.compile(EXPRESSION, what=WHAT).problems(nested(40, "s"))
    assert problem == Problem("of" + ".of" * 39, "expected an integer or an object, got a string ('s')")
    assert problems(EXPRESSION, {"op": "abs"}) == [("of", "missing; expected an integer or an object")]
    assert problems(EXPRESSION, {"op": "sqrt", "of": 1}) == [
        ("op", "expected one of 'neg', 'abs', got a string ('sqrt')")
    ]


def test_values_nested_past_reason_are_refused_not_fatal():
    """However deep a value or however high the frames it takes, the answer is a problem, not the end of the process."""
    deep_unions = unions(80)
    deep_unions["anyOf"].append({"type": "object", "properties": {"of": {"$ref": "#"}}})
    compiled = CompiledSchema.compile(deep_unions, what=WHAT)
    assert compiled.is_valid(nested(150, 1)) is True
    assert compiled.is_valid(nested(900, 1)) is False
    assert compiled.problems(nested(900, 1))[0].message == "nested deeper than 197 levels"
    (problem,) = CompiledSchema.compile(EXPRESSION, what=WHAT).problems(nested(100_000, 1))
    assert problem.message == "nested deeper than 1000 levels"
    assert len(problem.path) < 250


def test_patterns_cannot_be_made_to_backtrack_for_ever():
    """`^(a+)+$` runs in linear time; look-around, which pydantic itself writes for Decimal, has bounded steps (C10)."""
    text = "a" * 300_000 + "!"
    assert [path for path, _ in problems({"pattern": "^(a+)+$"}, text)] == [""]
    assert problems({"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}, "12.50") == []
    (problem,) = problems({"pattern": r"^(.*)(.*)(.*)(.*)\1x$"}, "ab" * 100)
    assert problem[1].startswith("its pattern takes too many steps on this text to be checked, got a string (")


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 1},
        "b": {"type": ["string", "null"]},
        "c": {"enum": ["x", "y"]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 2},
        "user": {"$ref": "#/$defs/User"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/User"}, {"type": "null"}]},
    },
    "required": ["a", "c"],
    "additionalProperties": False,
    "$defs": {
        "User": {
            "title": "User",
            "type": "object",
            "properties": {"age": {"type": "integer"}, "api_key": {"type": "string"}},
            "required": ["age"],
        }
    },
}


def test_problems_are_told_all_at_once_in_plain_words():
    """A person or a model reads where, what was expected, and what came; a secret's value is never shown (A21)."""
    assert problems(SCHEMA, {"a": 0, "b": 2, "tagz": 1}) == [
        ("c", "missing; expected one of 'x', 'y'"),
        ("tagz", "unknown; did you mean 'tags'? allowed: a, b, c, tags, user, maybe"),
        ("a", "expected at least 1, got an integer (0)"),
        ("b", "expected null or a string, got an integer (2)"),
    ]
    value = {"a": "two", "c": "z", "tags": ["a", "a", 3], "user": {"api_key": 99}, "maybe": {"age": "x"}}
    assert problems(SCHEMA, value) == [
        ("a", "expected an integer, got a string ('two')"),
        ("c", "expected one of 'x', 'y', got a string ('z')"),
        ("tags", "expected at most 2 items, got an array of 3"),
        ("tags", "expected no item twice, got an array of 3"),
        ("tags[2]", "expected a string, got an integer (3)"),
        ("user.age", "missing; expected an integer"),
        ("user.api_key", "expected a string, got an integer"),
        ("maybe.age", "expected an integer, got a string ('x')"),
    ]
    assert problems(SCHEMA, {"a": 1, "c": "x", "maybe": 3}) == [
        ("maybe", "expected an object (User) or null, got an integer (3)")
    ]


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 5, [("", "fits 2 alternatives where one is allowed, got an integer (5)")]),
        ({"not": {"type": "string"}}, "s", [("", "does not fit 'not' at #, got a string ('s')")]),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, [("b", "missing")]),
        ({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, {}, [("b", "missing")]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, [("b", "missing")]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("b", "missing")]),
        ({"contains": {"type": "null"}}, [1], [("", "does not fit 'contains' at #, got an array of 1")]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, [("", "the name 'ab': expected at most 1 character, got a string ('ab')")]),
        ({"unevaluatedProperties": False, "allOf": [{"properties": {"a": True}}]}, {"b": 1}, [("", "does not fit 'unevaluatedProperties' at #, got an object with 'b'")]),
        ({"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}}, {"x1": 1, "y": 2}, [("x1", "expected null, got an integer (1)"), ("y", "expected a string, got an integer (2)")]),
        ({"additionalProperties": False}, {"y": 2}, [("y", "unknown; none is allowed here")]),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}, [1, 2], [("[0]", "expected a string, got an integer (1)"), ("[1]", "expected null, got an integer (2)")]),
        ({"properties": {"a b": {"properties": {"": {"type": "null"}}}}}, {"a b": {"": True}}, [('["a b"][""]', "expected null, got a boolean (true)")]),
        ({"exclusiveMinimum": 3}, 3, [("", "expected more than 3, got an integer (3)")]),
        ({"exclusiveMaximum": 3}, 3.5, [("", "expected less than 3, got a number (3.5)")]),
        ({"maximum": 3, "multipleOf": 2}, 5, [("", "expected at most 3, got an integer (5)"), ("", "expected a multiple of 2, got an integer (5)")]),
        ({"minLength": 1}, "", [("", "expected at least 1 character, got a string ('')")]),
        ({"maxLength": 2, "pattern": "^a"}, "bcd", [("", "expected at most 2 characters, got a string ('bcd')"), ("", "expected text that matches '^a', got a string ('bcd')")]),
        ({"minItems": 1}, [], [("", "expected at least 1 item, got an array of 0")]),
        ({"minProperties": 1}, {}, [("", "expected at least 1 property, got an empty object")]),
        ({"maxProperties": 0}, {"a": 1}, [("", "expected at most 0 properties, got an object with 'a'")]),
        ({"const": {"a": 1}}, None, [("", 'expected {"a": 1}, got null')]),
        ({"enum": list(range(20))}, "s", [("", "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more, got a string ('s')")]),
        ({"type": "string"}, 10**400, [("", "expected a string, got an integer (about 2^1329)")]),
        ({"type": "null"}, "x" * 200 + "\x1b[31m", [("", f"expected null, got a string ('{'x' * 78}…)")]),
    ],
)  # fmt: skip
def test_each_keyword_has_its_sentence(schema, value, found):
    """Every keyword that can refuse a value says so in plain words, values cut to 80 characters."""
    assert problems(schema, value) == found


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        (float("nan"), "", "nan is not a JSON number"),
        ({"a": [1, float("-inf")]}, "a[1]", "-inf is not a JSON number"),
        ({"a": "\ud800"}, "a", "text with half of a surrogate pair"),
        ({"\ud800": 1}, "", r"the key '\ud800' holds half of a surrogate pair"),
        ({1: 2}, "", "the key 1 is not a string"),
        ({"a": object()}, "a", "not JSON but a Python value of type object"),
        ([b"x"], "[0]", "not JSON but a Python value of type bytes"),
        ([10**5000], "[0]", "an integer of more than 3,900 digits"),
    ],
)
def test_what_json_cannot_hold_is_a_problem_of_its_own(value, path, message):
    """Nan slips through unions in jsonschema-rs, other things crash it: here they are problems with a place."""
    compiled = CompiledSchema.compile(True, what=WHAT)
    assert compiled.problems(value) == [Problem(path, message)]


def test_exact_numbers_are_judged_exactly():
    """Integers beyond 2^64 and 1.0 as an integer follow JSON Schema, true is no integer (field case C14)."""
    big = {"type": "integer", "minimum": 10**30}
    assert problems(big, 10**30) == []
    assert [path for path, _ in problems(big, 10**30 - 1)] == [""]
    assert problems({"type": "integer"}, 1.0) == []
    assert problems({"type": "integer"}, True) == [("", "expected an integer, got a boolean (true)")]


def test_a_format_is_an_annotation():
    """In 2020-12 `format` says what is meant and refuses nothing."""
    assert problems({"type": "string", "format": "email"}, "nobody") == []


def test_so_many_problems_as_asked_for():
    """The list ends at the limit, whatever the value."""
    compiled = CompiledSchema.compile({"items": {"type": "null"}}, what=WHAT)
    assert len(compiled.problems([1] * 50)) == 20
    assert [problem.path for problem in compiled.problems([1] * 50, limit=2)] == ["[0]", "[1]"]
