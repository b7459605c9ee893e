"""A schema and the documents it refers to become one, which says the same and refers to nothing outside."""

from typing import Any

import pytest

from twofold.contract.bundle import bundle_schemas, open_schema
from twofold.contract.schema import CompiledSchema, Problem
from twofold.errors import InvalidDefinition

A, B, C = "https://h.example/s/a.json", "https://h.example/s/b.json", "https://h.example/c.json"
DRAFTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-04": "http://json-schema.org/draft-04/schema#",
}


def bundle(schema: Any, documents: dict[str, Any]) -> dict[str, Any]:
    root = open_schema(schema, what="root")
    return bundle_schemas(
        root, [open_schema(each, what=url, url=url, referrer=root) for url, each in documents.items()]
    )


def judge(schema: Any, documents: dict[str, Any], *values: Any) -> list[bool]:
    compiled = CompiledSchema.compile(bundle(schema, documents), what="bundle")
    return [compiled.is_valid(value) for value in values]


def test_a_document_stands_among_the_definitions_under_its_identifier():
    """JSON Schema 2020-12, core, 9.3: a compound document. What is given stays as it is."""
    schema = {"properties": {"x": {"$ref": A + "#/$defs/n"}}, "$defs": {"own": True}}
    document = {"$defs": {"n": {"type": "integer"}}}
    assert bundle(schema, {A: document}) == {
        "properties": {"x": {"$ref": A + "#/$defs/n"}},
        "$defs": {"own": True, A: {"$id": A, "$defs": {"n": {"type": "integer"}}}},
    }
    assert schema == {"properties": {"x": {"$ref": A + "#/$defs/n"}}, "$defs": {"own": True}}
    assert document == {"$defs": {"n": {"type": "integer"}}}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("is_declared", [True, False])
def test_every_dialect_is_bundled(draft: str, is_declared: bool):
    """A document that declares no dialect is read in that of the schema that needs it."""
    place = "$defs" if draft.startswith("20") else "definitions"
    schema = {"$schema": DRAFTS[draft], "properties": {"x": {"$ref": f"{A}#/{place}/n"}}}
    document = {place: {"n": {"type": "integer"}}} | ({"$schema": DRAFTS[draft]} if is_declared else {})
    assert judge(schema, {A: document}, {"x": 1}, {"x": "a"}) == [True, False]


@pytest.mark.parametrize("draft", ["draft-07", "draft-06", "draft-04"])
def test_a_reference_that_stands_alone_is_bundled_too(draft: str):
    """Up to draft-07 `$ref` makes what is beside it void, and so would the definitions that a bundle adds."""
    schema = {"$schema": DRAFTS[draft], "$ref": A, "type": "null", "definitions": {"x": {}}}
    document = {"$ref": "#/definitions/n", "type": "null", "definitions": {"n": {"$ref": "b.json"}}}
    assert judge(schema, {A: document, B: {"type": "integer"}}, 1, "a", None) == [True, False, False]


def test_what_is_void_beside_a_reference_stays_void():
    """Draft-07, 8.3: were it not, this schema would be too costly to judge by."""
    beside = {"$ref": A, "anyOf": [{"$ref": "#/definitions/union"}] * 400}
    schema = {
        "$schema": DRAFTS["draft-07"],
        "properties": {"x": beside},
        "definitions": {"union": {"anyOf": [{"minimum": n} for n in range(400)]}},
    }
    assert judge(schema, {A: {"type": "integer"}}, {"x": 1}, {"x": "a"}) == [True, False]


@pytest.mark.parametrize(
    ("schema", "document", "outside"),
    [
        ({"$id": "https://h.example/s/tool.json", "$ref": "a.json"}, {"type": "integer"}, [A]),
        ({"allOf": [{"$id": "https://h.example/s/", "items": {"$ref": "a.json#/x"}}]}, {"x": {}}, [A]),
        ({"$dynamicRef": A + "#n"}, {"$dynamicAnchor": "n"}, [A]),
        ({"$ref": A, "anyOf": [{"$ref": A}, {"$ref": C}], "$dynamicRef": A}, True, [C, A]),
        ({"$ref": "other.json", "items": {"$ref": "urn:x:y"}}, True, ["other.json", "urn:x:y"]),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, True, []),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$id": A}, "b": {"$ref": A}}}, True, []),
        (True, True, []),
    ],
)
def test_references_that_lead_out_are_found(schema: Any, document: Any, outside: list[str]):
    """Resolved by the nearest identifier; what is embedded, and the published meta-schemas, are at hand."""
    root = open_schema(schema, what="root")
    assert list(root.outside) == outside
    open_schema(document, what="document", url=A, referrer=root)


def test_a_document_is_known_by_where_it_was_found_and_by_its_own_name():
    """Core, 9.1.1: what a document calls itself is what its own references are relative to."""
    schema = {"properties": {"x": {"$ref": "https://mirror.example/1#/$defs/n"}, "y": {"$ref": A}}}
    document = {"$id": A, "type": "object", "$defs": {"n": {"$ref": "b.json"}}}
    values = [{"x": 1, "y": {}}, {"x": "a"}, {"y": 1}]
    assert judge(schema, {"https://mirror.example/1": document, B: {"type": "integer"}}, *values) == [
        True,
        False,
        False,
    ]


def test_documents_that_refer_to_each_other_are_bundled():
    """A cycle is no fault: it ends where the value does."""
    documents = {A: {"properties": {"b": {"$ref": "b.json"}}}, B: {"required": ["k"], "properties": {"a": {"$ref": A}}}}
    values = [{"b": {"k": 1, "a": {"b": {"k": 1}}}}, {"b": {"k": 1, "a": {"b": {}}}}]
    assert judge({"$ref": A}, documents, *values) == [True, False]


@pytest.mark.parametrize(("document", "judged"), [(True, True), (False, False)])
def test_a_boolean_document_is_bundled(document: bool, judged: bool):
    assert judge({"properties": {"x": {"$ref": A}}}, {A: document}, {"x": 1}) == [judged]


def test_a_definition_of_the_same_name_is_kept():
    """The name of a definition says nothing: it may be a URL by chance."""
    schema = {"$ref": A, "items": {"$ref": f"#/$defs/{A.replace('/', '~1')}"}, "$defs": {A: {"type": "string"}}}
    assert judge(schema, {A: {"type": "array"}}, ["a"], [1], 1) == [True, False, False]


def test_what_is_wrong_is_said_as_in_any_schema():
    """The places are those of the value: where its schema came from does not matter."""
    compiled = CompiledSchema.compile(
        bundle(
            {"properties": {"x": {"$ref": A}}},
            {A: {"anyOf": [{"type": "integer"}, {"items": {"$ref": B}}]}, B: {"type": "string"}},
        ),
        what="bundle",
    )
    assert compiled.problems({"x": ["a", 2]}) == [Problem("x[1]", "expected a string, got an integer (2)")]


NESTED: Any = {}
for _ in range(300):
    NESTED = {"not": NESTED}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "a JSON Schema is an object or a boolean, got an array of 0"),
        (None, "got null"),
        ({"type": "text"}, "unknown type 'text'"),
        ({"$ref": "#/$defs/nowhere"}, "leads nowhere"),
        ({"$ref": C, "$defs": {"a": {"$ref": "#/$defs/nowhere"}}}, "leads nowhere"),
        ({"$ref": "#nowhere"}, "no such anchor"),
        ({"$ref": "//["}, "no URI reference"),
        ({"$id": "//["}, "no identifier"),
        ({"$schema": "https://example.com/own"}, "unknown dialect"),
        ({"pattern": "("}, "pattern"),
        (NESTED, "nested deeper than 200 levels"),
        ({"enum": ["x" * 1_000_001]}, "bytes of schema"),
        ({"allOf": [{}] * 20_000}, "subschemas"),
        ({"$schema": DRAFTS["draft-07"]}, "it is written in draft-07, and what refers to it in 2020-12"),
    ],
)
def test_a_document_is_held_to_the_bounds_of_a_schema(schema: Any, reason: str):
    """C5: bounds before compiling, for what was fetched as for what was listed; the message names the document."""
    root = open_schema({"$ref": A}, what="root")
    with pytest.raises(InvalidDefinition, match=reason) as refused:
        open_schema(schema, what="document A", url=A, referrer=root)
    assert str(refused.value).startswith("document A")
