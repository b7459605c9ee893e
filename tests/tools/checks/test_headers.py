"""Headers: every rule of `x-mcp-header`, and secrets that must not be mirrored."""

import copy
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from twofold.errors import InvalidDefinition
from twofold.protocol.headers import HeaderParameter
from twofold.tools.checks.headers import Header, check_headers


def tool_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(header: Any = "Region", kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header, **more}


def refusal(schema: dict[str, Any]) -> str:
    with pytest.raises(InvalidDefinition) as caught:
        check_headers(schema, tool_name="sql")
    return str(caught.value)


def test_the_marker_reaches_the_schema_and_nothing_else_does():
    """`Annotated[str, Header("Region")]` publishes the extension property, as it would be by hand (A18)."""
    annotation = Annotated[str, Header("Region"), Field(description="Where.")]
    schema = TypeAdapter(annotation).json_schema()
    assert schema == {"type": "string", "description": "Where.", "x-mcp-header": "Region"}


def test_mirrored_parameters_are_listed_with_their_path_and_type():
    """Strings, integers and booleans at the end of a chain of `properties` are mirrored (Streamable HTTP)."""
    schema = tool_schema(
        region=marked("Region"),
        plain={"type": "string"},
        shard=marked("Shard", "integer", minimum=0, maximum=2**53 - 1),
        options=tool_schema(dry=marked("X-Dry.Run", "boolean")),
        kind=marked("Kind", enum=["a", "b"]),
    )
    before = copy.deepcopy(schema)
    assert check_headers(schema, tool_name="sql") == (
        HeaderParameter(("region",), "Region", "string"),
        HeaderParameter(("shard",), "Shard", "integer"),
        HeaderParameter(("options", "dry"), "X-Dry.Run", "boolean"),
        HeaderParameter(("kind",), "Kind", "string"),
    )
    assert schema == before


def test_a_schema_without_annotations_has_none():
    """Data and property names that look like the annotation are none."""
    schema = tool_schema(**{"x-mcp-header": {"type": "string", "default": {"x-mcp-header": "A"}}})
    assert check_headers(schema, tool_name="sql") == ()


@pytest.mark.parametrize("name", ["", None, 3, ["Region"]])
def test_an_empty_header_name_is_refused(name):
    """MUST NOT be empty."""
    assert refusal(tool_schema(r=marked(name))) == (
        "tool 'sql', x-mcp-header at #/properties/r: a header's name is text that is not empty, got " + repr(name)
    )


@pytest.mark.parametrize("name", ["My Region", "a\r\nX-Evil: 1", "a:b", "é", "a\x00", "a/b", "(a)", "Region\n", "a,b"])
def test_a_header_name_that_is_no_token_is_refused(name):
    """MUST match `1*tchar` of RFC 9110, so no control characters, spaces or colons."""
    message = refusal(tool_schema(r=marked(name)))
    assert message.startswith("tool 'sql', x-mcp-header at #/properties/r: ")
    assert "is no header name; allowed are letters, digits and !#$%&'*+-.^_`|~ (RFC 9110)" in message


def test_every_character_of_a_token_is_allowed():
    """All of `tchar` may stand in a name."""
    name = "!#$%&'*+-.^_`|~09azAZ"
    assert check_headers(tool_schema(r=marked(name)), tool_name="sql")[0].header == name


def test_header_names_are_unique_whatever_their_case():
    """MUST be case-insensitively unique in the schema."""
    assert refusal(tool_schema(a=marked("Region"), b=tool_schema(c=marked("REGION")))) == (
        "tool 'sql', x-mcp-header at #/properties/b/properties/c: the header 'REGION' is taken by 'a' "
        "(capitals do not count); give each its own"
    )


@pytest.mark.parametrize("kind", ["number", "array", "object", "null", ["string"], ["string", "null"]])
def test_other_types_are_refused(kind):
    """MUST only be applied to integer, string and boolean parameters."""
    assert refusal(tool_schema(r=marked(kind=kind))) == (
        "tool 'sql', x-mcp-header at #/properties/r: only a string, integer or boolean parameter can be mirrored, "
        f"this is one of type {kind!r}"
    )


@pytest.mark.parametrize(
    "node",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/Region"},
        {"enum": ["a"]},
        {},
    ],
)
def test_a_parameter_without_a_plain_type_is_refused(node):
    """A nullable, a union and a reference have no primitive type of their own."""
    assert refusal(tool_schema(r={**node, "x-mcp-header": "Region"})) == (
        "tool 'sql', x-mcp-header at #/properties/r: only a string, integer or boolean parameter can be mirrored, "
        "this is one without a plain type: a union, an optional, or a $ref (for an Enum, use Literal)"
    )


@pytest.mark.parametrize(
    ("schema", "place", "through"),
    [
        (marked(), "#", "it stands on no parameter"),
        (tool_schema(r={"items": marked()}), "#/properties/r/items", "it stands under 'items'"),
        (tool_schema(r={"prefixItems": [marked()]}), "#/properties/r/prefixItems/0", "it stands under 'prefixItems'"),
        (tool_schema(r={"anyOf": [marked()]}), "#/properties/r/anyOf/0", "it stands under 'anyOf'"),
        (tool_schema(r={"oneOf": [True, marked()]}), "#/properties/r/oneOf/1", "it stands under 'oneOf'"),
        ({"allOf": [tool_schema(r=marked())]}, "#/allOf/0/properties/r", "it stands under 'allOf'"),
        ({"not": tool_schema(r=marked())}, "#/not/properties/r", "it stands under 'not'"),
        ({"if": tool_schema(r=marked())}, "#/if/properties/r", "it stands under 'if'"),
        ({"then": tool_schema(r=marked())}, "#/then/properties/r", "it stands under 'then'"),
        ({"else": tool_schema(r=marked())}, "#/else/properties/r", "it stands under 'else'"),
        ({"$defs": {"D": tool_schema(r=marked())}}, "#/$defs/D/properties/r", "it stands under '$defs'"),
        ({"definitions": {"D": marked()}}, "#/definitions/D", "it stands under 'definitions'"),
        ({"additionalProperties": marked()}, "#/additionalProperties", "it stands under 'additionalProperties'"),
        ({"patternProperties": {"^r": marked()}}, "#/patternProperties/^r", "it stands under 'patternProperties'"),
        ({"dependentSchemas": {"a": tool_schema(r=marked())}}, "#/dependentSchemas/a/properties/r", "it stands under 'dependentSchemas'"),
        ({"propertyNames": marked()}, "#/propertyNames", "it stands under 'propertyNames'"),
        ({"contains": marked()}, "#/contains", "it stands under 'contains'"),
        ({"unevaluatedProperties": marked()}, "#/unevaluatedProperties", "it stands under 'unevaluatedProperties'"),
        ({"x-own": {"deep": [marked()]}}, "#/x-own/deep/0", "it stands under 'x-own'"),
        (tool_schema(p=tool_schema(q={"items": tool_schema(r=marked())})), "#/properties/p/properties/q/items/properties/r", "it stands under 'items'"),
    ],
)  # fmt: skip
def test_only_a_chain_of_properties_leads_to_a_header(schema, place, through):
    """MUST be statically reachable: an annotation anywhere else makes the definition invalid."""
    is_union = through.endswith(("'anyOf'", "'oneOf'"))
    mend = "give it one plain type: an optional one has a default that is not None"
    assert refusal(schema) == (
        f"tool 'sql', x-mcp-header at {place}: only a parameter reached through 'properties' alone can be mirrored, "
        f"and {through}; {mend if is_union else 'make it a plain parameter of the tool'}"
    )


@pytest.mark.parametrize(
    "bound",
    [
        {"minimum": -(2**53)},
        {"maximum": 2**53},
        {"exclusiveMaximum": 2**53 + 1},
        {"exclusiveMinimum": -(2**53) - 1},
        {"const": 2**60},
        {"default": 2**53},
        {"enum": [1, -(2**53)]},
        {"maximum": 1e20},
    ],
)
def test_integers_beyond_the_safe_range_are_refused(bound):
    """Integer values MUST be within plus or minus 2^53-1."""
    ((keyword, _),) = bound.items()
    message = refusal(tool_schema(r=marked(kind="integer", **bound)))
    assert message.startswith(f"tool 'sql', x-mcp-header at #/properties/r: {keyword} ")
    assert message.endswith("is beyond what a header may carry, -(2^53-1) to 2^53-1 (9007199254740991)")


def test_bounds_that_just_fit_pass():
    """The bounds themselves are inclusive; an exclusive one may name the first number beyond."""
    bounds = {"minimum": 1 - 2**53, "exclusiveMaximum": 2**53, "default": 2**53 - 1}
    assert check_headers(tool_schema(r=marked(kind="integer", **bounds)), tool_name="sql") != ()


@pytest.mark.parametrize(
    "name",
    ["password", "user_passwd", "client_secret", "token", "accessToken", "api_key", "apiKey", "credentials", "ssn"],
)
def test_a_parameter_named_like_a_secret_is_refused(name):
    """Headers are read by everything in between, so secrets are mirrored only on the author's word (A18)."""
    message = refusal(tool_schema(**{name: marked("Mine")}))
    assert f"the parameter {name!r} is named like a secret (" in message
    assert message.endswith("do not mirror it, or write Header('Mine', allow_secret=True)")
    assert "is named like a secret" in refusal(tool_schema(**{name: tool_schema(region=marked())}))


def test_a_secret_may_be_allowed_and_the_permit_is_not_published():
    """`allow_secret=True` lets it through; the schema then looks as if written by hand (A18)."""
    schema = tool_schema(api_key=TypeAdapter(Annotated[str, Header("Key", allow_secret=True)]).json_schema())
    assert check_headers(schema, tool_name="sql") == (HeaderParameter(("api_key",), "Key", "string", is_secret=True),)
    assert schema == tool_schema(api_key={"type": "string", "x-mcp-header": "Key"})


@pytest.mark.parametrize("name", ["monkey", "keyboard", "author", "region"])
def test_part_of_a_word_is_no_secret(name):
    """`monkey` is no key."""
    assert check_headers(tool_schema(**{name: marked()}), tool_name="sql")[0].path == (name,)


class Inner(BaseModel):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Header("")],
        Annotated[str, Header("My Region")],
        Annotated[str, Header("a\r\nX-Evil: 1")],
        Annotated[float, Header("Ratio")],
        Annotated[list[str], Header("List")],
        list[Annotated[str, Header("Item")]],
        Annotated[str | None, Header("Maybe")],
        Annotated[Inner, Header("Inner")],
        Inner,
    ],
)
def test_what_pydantic_makes_of_bad_annotations_is_refused(annotation):
    """The forms of field case X04, by annotation and by hand."""
    model = TypeAdapter(dict[str, annotation]).json_schema()
    schema = tool_schema(x=model["additionalProperties"]) | {"$defs": model.get("$defs", {})}
    assert refusal(schema).startswith("tool 'sql', x-mcp-header at #/")


def test_literals_and_constrained_types_can_be_mirrored():
    """What is a plain string or integer on the wire may carry a header."""
    schema = tool_schema(
        region=TypeAdapter(Annotated[Literal["eu", "us"], Header("Region")]).json_schema(),
        shard=TypeAdapter(Annotated[int, Field(ge=0, le=9), Header("Shard")]).json_schema(),
    )
    assert [parameter.type for parameter in check_headers(schema, tool_name="sql")] == ["string", "integer"]


def test_a_name_with_the_prefix_that_is_added_anyway_is_refused():
    """It would go out as `Mcp-Param-Mcp-Param-Region`."""
    with pytest.raises(InvalidDefinition, match="give the part after 'Mcp-Param-' alone"):
        Header("mcp-param-Region")
