"""The `text=` option: templates over the wire's names, and functions of the value."""

import datetime
import json
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from twofold.errors import InvalidDefinition, ResultRefused
from twofold.protocol.content import ImageContent, TextContent
from twofold.tools.results.media import Image
from twofold.tools.results.returns import build_returns


class Shop(BaseModel):
    city: str
    open: bool = True


class Product(BaseModel):
    name: str
    price: float = Field(alias="priceEuros")
    shops: list[Shop] = []
    note: str | None = None


MUG = {"name": "Travel mug", "priceEuros": 24, "shops": [{"city": "Oslo", "open": True}]}


class Card(TypedDict):
    title: str
    note: NotRequired[str]


def told(annotation: Any, value: Any, text: Any, **options: Any) -> list[str]:
    returns = build_returns(annotation, tool_name="made", function_name="make", text=text, **options)
    content = returns.render(value).content
    assert isinstance(content, bytes)
    return [block["text"] for block in json.loads(content)]


@pytest.mark.parametrize(
    ("annotation", "value", "template", "text"),
    [
        (Product, MUG, "{name} costs {priceEuros:.2f}", "Travel mug costs 24.00"),
        (Product, MUG, "{name!r:>14}|", "  'Travel mug'|"),
        (Product, MUG, "{shops[0][city]}: {shops[0][open]}", "Oslo: true"),
        (Product, MUG, "{note} {shops}", 'null [{"city":"Oslo","open":true}]'),
        (Product, MUG, "{shops!r}", '[{"city":"Oslo","open":true}]'),
        (Product, MUG, "{{braces}}", "{braces}"),
        (Product, MUG, "{priceEuros:{name[0]}}", None),
        (int, 17, "{result} degrees", "17 degrees"),
        (float, 0.5, "{result:.0%}", "50%"),
        (None, None, "done: {result}", "done: null"),
        (list[int], [1, 2], "{result[1]} of {result}", "2 of [1,2]"),
        (dict[str, int], {"a b": 1}, "{a b}", "1"),
        (dict[int, int], {1: 2}, "{result[1]}", "2"),
        (Any, {"a": 1}, "{result[a]}", "1"),
        (str, "no fields", "as ever", "as ever"),
        (str, "no fields", "impact", "impact"),
    ],
)
def test_a_template_is_filled_by_the_wire_s_names(annotation: Any, value: Any, template: str, text: str | None) -> None:
    """The model reads a sentence, programs get the data (contract A19)."""
    if text is None:
        with pytest.raises(ResultRefused, match="the template given as text= does not fit this value"):
            told(annotation, value, template)
    else:
        assert told(annotation, value, template) == [text]


def test_a_template_leaves_the_structure_as_it_is() -> None:
    """Only the model's face is the author's sentence (contract A19)."""
    returns = build_returns(Shop, tool_name="made", function_name="make", text="in {city}")
    assert returns.render(Shop(city="Oslo")).structured == b'{"city":"Oslo","open":true}'


def test_a_template_serves_text_only_and_hand_written_tools_too() -> None:
    """Where no schema is known, names are looked up in the value (contract A19, A26)."""
    assert told(Product, {"any": 1}, "{any} {result[any]}", structured_output=False) == ["1 1"]
    assert told(int, [1], "{result[0]}", output_schema={"type": "array"}) == ["1"]
    assert told(int, {"a": 1}, "{a}", output_schema={"type": "object"}) == ["1"]


@pytest.mark.parametrize(
    ("annotation", "template", "complaint"),
    [
        (Product, "{price}", "the result has no field 'price'; it has name, priceEuros, shops, note"),
        (int, "{value}", "the result has no field 'value'; it has result"),
        (
            list[Shop],
            "{city}",
            (
                "the result has no field 'city'; it has result, a list: name one item's field as {result[0][city]}, "
                "or give a function for all of them"
            ),
        ),
        (
            list[Product],
            "{shops[0][city]}",
            (
                "the result has no field 'shops'; it has result, a list: name one item's field as "
                "{result[0][shops][0][city]}, or give a function for all of them"
            ),
        ),
        (int, "prety", "'prety' is neither 'pretty' nor 'compact', and no template (did you mean 'pretty'?)"),
        (int, "Compct", "'Compct' is neither 'pretty' nor 'compact', and no template (did you mean 'compact'?)"),
        (int, "PRETTY", "'PRETTY' is neither 'pretty' nor 'compact', and no template (did you mean 'pretty'?)"),
        (int, "", "'' is neither 'pretty' nor 'compact', and no template; a template names fields of the result"),
        (int, "  ", "'  ' is neither 'pretty' nor 'compact', and no template; a template names"),
        (int, lambda: "x", "is called with the value and nothing else, and takes (); give it one parameter"),
        (int, lambda a, b: "x", "is called with the value and nothing else, and takes (a, b); give it one parameter"),
        (int, lambda *, a: "x", "is called with the value and nothing else, and takes (*, a); give it one parameter"),
        (Product, "{name:{width}}", "the result has no field 'width'"),
        (Product, "{name.upper}", "cannot read {name.upper}"),
        (Product, "{name.__class__.__mro__}", "cannot read {name.__class__"),
        (Product, "{shops[0].city}", "cannot read {shops[0].city}"),
        (Product, "{}", "cannot read {}"),
        (Product, "{0}", "cannot read {0}"),
        (Product, "{name", "is no template: expected '}'"),
        (Product, 3, "expected a str or a function, got 3"),
    ],
)
def test_a_template_that_cannot_work_is_refused_at_registration(annotation: Any, template: Any, complaint: str) -> None:
    """A name that is not there, and Python's attributes, are found before the first call (contract A19)."""
    with pytest.raises(InvalidDefinition) as caught:
        build_returns(annotation, tool_name="made", function_name="make", text=template)
    assert str(caught.value).startswith("tool 'made', text: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "template"),
    [
        (Card, {"title": "x"}, "{note}"),
        (list[int], [], "{result[0]}"),
        (str | int, "x", "{result:.2f}"),
        (dict[str, int], {}, "{a}"),
    ],
)
def test_a_template_that_does_not_fit_this_value_is_a_refusal(annotation: Any, value: Any, template: str) -> None:
    """The message says that it is the template's fault (contract A19)."""
    with pytest.raises(ResultRefused, match="the template given as text= does not fit this value"):
        told(annotation, value, template)


def test_a_function_gets_the_validated_value() -> None:
    """Whatever was returned, the function sees what the annotation promises (contract A19)."""
    assert told(Product, MUG, lambda product: f"{type(product).__name__} {product.name}") == ["Product Travel mug"]
    assert told(list[int], iter(["1", 2]), lambda numbers: str(sum(numbers))) == ["3"]
    assert told(int, 1, lambda number: ["one", TextContent(str(number))]) == ["one", "1"]


def test_any_callable_of_one_value_is_a_function() -> None:
    """Those of C, bound methods, and ones with more parameters that have defaults (contract A19)."""
    assert told(int, 1, str) == ["1"]
    assert told(int, 1, "number {}".format) == ["number 1"]
    assert told(int, 1, lambda value, sign="!": f"{value}{sign}") == ["1!"]
    assert told(int, 1, lambda *values: str(values)) == ["(1,)"]


def test_a_function_may_give_blocks() -> None:
    """A chart beside the data (contract A14, A19)."""
    block = ImageContent(data="R0lGODlh", mime_type="image/gif")
    returns = build_returns(int, tool_name="made", function_name="make", text=lambda _: [Image(b"GIF89a"), "a chart"])
    faces = returns.render(1)
    assert (faces.content, faces.structured) == ((block, TextContent("a chart")), b"1")


class Account(BaseModel):
    opened: datetime.date
    closed: datetime.date | None = None
    balance: float | None = None
    visits: int = 0
    is_open: bool = True
    shops: list[Shop] = []
    history: dict[str, datetime.date] = {}


@pytest.mark.parametrize(
    ("template", "held"),
    [
        ("{opened:%Y}", "a date as text (2026-01-31)"),
        ("{closed:%d %B}", "a date as text (2026-01-31)"),
        ("since {visits:%Y}", "a JSON integer"),
        ("{balance:d}{balance:%Y}", "a JSON null or a JSON number"),
        ("{is_open:.2f}", "a JSON boolean"),
        ("{shops[0][city]:.1f}", "a JSON string"),
        ("{visits!s:d}", None),
        ("{history[a]:%Y}", None),
        ("{opened:{visits}}", None),
    ],
)
def test_a_format_that_no_value_takes_is_refused_at_registration(template: str, held: str | None) -> None:
    """What is known when a tool is declared is told then; what is not known, or written as text on purpose, is not."""
    if held is None:
        build_returns(Account, tool_name="made", function_name="make", text=template)
        return
    with pytest.raises(InvalidDefinition) as caught:
        build_returns(Account, tool_name="made", function_name="make", text=template)
    assert f"the result holds {held} there, which takes no format" in str(caught.value)
    assert str(caught.value).endswith("or give a function of the value itself: text=lambda value: …")


def test_the_message_on_a_format_says_what_to_write() -> None:
    """A bare date is a value by itself."""
    with pytest.raises(InvalidDefinition) as caught:
        build_returns(datetime.date, tool_name="made", function_name="make", text="{result:%Y}")
    assert str(caught.value) == (
        "tool 'made', text: {result:%Y} cannot be written: the result holds a date as text (2026-01-31) there, which "
        "takes no format '%Y'; write {result}, or give a function of the value itself: text=lambda value: …"
    )


def test_formats_that_values_take_are_kept() -> None:
    """A number may be whole or not, an optional one null; text takes width and precision."""
    value = {"opened": "2026-01-31", "balance": 2.5, "visits": 3}
    template = "{balance:.2f} {visits:03d} {opened:>12} {opened:.4} {closed:>5} {shops:>3}"
    assert told(Account, value, template) == ["2.50 003   2026-01-31 2026  null  []"]


@pytest.mark.parametrize(
    ("made", "article"),
    [(None, "a"), (1, "an"), ({"a": 1}, "a"), ([], "a"), ([1], "a"), (["a", None], "a"), (b"x", "a")],
)
def test_a_function_that_gives_anything_else_is_refused(made: Any, article: str) -> None:
    """The error says what it must give (contract A19)."""
    with pytest.raises(ResultRefused, match=f"text= returned {article} {type(made).__name__}; it must return a str"):
        told(int, 1, lambda _: made)


def test_a_crash_of_the_function_stays_a_crash() -> None:
    """It is the author's code (contract A22)."""
    with pytest.raises(ZeroDivisionError):
        told(int, 0, lambda number: 1 / number)


def test_an_async_function_is_refused() -> None:
    """Text is made from the value at once (contract A19)."""

    async def tell(value: int) -> str:
        return str(value)

    with pytest.raises(InvalidDefinition, match="the function is async"):
        build_returns(int, tool_name="made", function_name="make", text=tell)
