"""Values as content blocks: what is content, in which order, and the text of everything else."""

import inspect
import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from twofold.errors import ResultRefused
from twofold.protocol.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from twofold.tools.results.content import encode_content, holds_content, promises_content, write_blocks, write_text
from twofold.tools.results.media import Audio, Image
from twofold.tools.results.returns import build_returns

PNG = b"\x89PNG\r\n\x1a\n"
IMAGE = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
LINK = ResourceLink(uri="file:///a", name="a")


@pytest.mark.parametrize(
    ("annotation", "is_content"),
    [
        (Image, True),
        (Audio, True),
        (TextContent, True),
        (ContentBlock, True),
        (list[ContentBlock], True),
        (Annotated[list[Image | str], "x"], True),
        (tuple[str, Image], True),
        (Sequence[Image], True),
        (AsyncIterator[TextContent], True),
        (list[list[Image]], True),
        (str | None, False),
        (list[str], False),
        (dict[str, Image], False),
        (list, False),
        (Any, False),
        (None, False),
        (type[Image], False),
    ],
)
def test_an_annotation_promises_content_or_data(annotation: Any, is_content: bool) -> None:
    """Blocks and helpers bare, in lists and in unions are content; inside a dict they are not (contract A14)."""
    assert promises_content(annotation) is is_content


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("plain", ["plain"]),
        (None, ["null"]),
        (True, ["true"]),
        (1.5, ["1.5"]),
        ({}, ["{}"]),
        ([], ["[]"]),
        ([[]], ["[]"]),
        (["a", 1, None], ["a", "1", "null"]),
        ({"a": [1, {}]}, ['{\n  "a": [\n    1,\n    {}\n  ]\n}']),
        ([{"a": '\n\\"é\u2028'}], ['{\n  "a": "\\n\\\\\\"é\u2028"\n}']),
    ],
)
def test_json_becomes_text_block_by_block(value: Any, texts: list[str]) -> None:
    """One block an element, an empty list one block, strings as they are, objects indented by two (contract A7)."""
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert json.loads(write_blocks(raw, is_indented=True)) == [{"type": "text", "text": text} for text in texts]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    )
)
def test_text_reads_back_as_the_value(value: Any) -> None:
    """Both forms of the text are the value's own JSON, whatever characters it holds (contract A7)."""
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    elements = value if isinstance(value, list) and value else [value]
    for is_indented in (True, False):
        blocks = json.loads(write_blocks(raw, is_indented=is_indented))
        assert [block["type"] for block in blocks] == ["text"] * len(elements)
        read = [
            block["text"] if isinstance(element, str) else json.loads(block["text"])
            for block, element in zip(blocks, elements, strict=True)
        ]
        assert read == elements


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    """It is a refusal, not a crash of the codec (issue 2, part 2)."""
    with pytest.raises(ResultRefused, match="half of a surrogate pair"):
        write_text("\ud800")
    with pytest.raises(ResultRefused, match="content"):
        encode_content([TextContent("a"), TextContent("\ud800")], is_indented=True)


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        (Image(PNG), (IMAGE,)),
        ([Image(PNG), Audio(b"fLaC")], (IMAGE, AudioContent(data="ZkxhQw==", mime_type="audio/flac"))),
        ((LINK, "a", {"b": 1}), (LINK, TextContent("a"), TextContent('{\n  "b": 1\n}'))),
        ([[IMAGE, "x"], [1]], (IMAGE, TextContent("x"), TextContent("[\n  1\n]"))),
        (TextContent("a", meta={"k": 1}), (TextContent("a", meta={"k": 1}),)),
        (
            EmbeddedResource(resource=ResourceContents(uri="file:///a", text="x")),
            (EmbeddedResource(resource=ResourceContents(uri="file:///a", text="x")),),
        ),
    ],
)
def test_blocks_keep_their_order_and_values_among_them_become_text(value: Any, blocks: tuple[Any, ...]) -> None:
    """Content goes out in order, under a content annotation and without any (contract A14)."""
    assert holds_content(value)
    assert encode_content(value, is_indented=True) == blocks
    for annotation in (list[ContentBlock], inspect.Signature.empty):
        returns = build_returns(annotation, tool_name="t", function_name="f")
        assert returns.render(value).content == blocks
        assert returns.render(value).structured is None


@pytest.mark.parametrize(
    ("value", "texts"),
    [([TextContent("a"), "b"], ["a", "b"]), ([], ["[]"]), ("x", ["x"]), (None, ["null"])],
)
def test_plain_text_is_encoded_once(value: Any, texts: list[str]) -> None:
    """Text blocks alone travel as bytes that every revision writes alike; there is always a block (contract A25)."""
    encoded = encode_content(value, is_indented=True)
    assert isinstance(encoded, bytes)
    assert json.loads(encoded) == [{"type": "text", "text": text} for text in texts]


def _cycle(*items: Any) -> list[Any]:
    made: list[Any] = [*items, []]
    made[-1].append(made)
    return made


def test_a_list_that_holds_itself_is_refused_by_place() -> None:
    """With content in it or without, under each text-only annotation (issue 2, part 2)."""
    assert not holds_content(_cycle("a"))
    for annotation, options in (
        (inspect.Signature.empty, {}),
        (list[ContentBlock], {}),
        (list, {"structured_output": False}),
    ):
        returns = build_returns(annotation, tool_name="t", function_name="f", **options)
        for value, place in ((_cycle("a"), "[1][0]"), (_cycle(IMAGE), "[1][0]")):
            with pytest.raises(ResultRefused, match="it holds itself, so it has no end") as caught:
                returns.render(value)
            assert place in str(caught.value) or annotation is not inspect.Signature.empty


def test_content_very_deep_is_refused() -> None:
    """Lists inside one another end somewhere, and not in the interpreter."""
    value: Any = IMAGE
    for _ in range(50_000):
        value = [value]
    assert holds_content(value)
    with pytest.raises(ResultRefused, match="content inside more than 250 lists; return one list"):
        encode_content(value, is_indented=True)


def test_a_model_among_blocks_is_its_json() -> None:
    """Other values in a content list follow the same rules as text (contract A7, A14)."""

    class Price(BaseModel):
        euros: float

    blocks = encode_content([IMAGE, Price(euros=2.5)], is_indented=False)
    assert blocks == (IMAGE, TextContent('{"euros":2.5}'))


_ODD_TEXT = st.text(alphabet=st.sampled_from(',{}[]"\\\n\r\t\x00 aé\u2028'), max_size=6)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _ODD_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_ODD_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(_ODD_TEXT, _JSON, max_size=4), min_size=1, max_size=5), st.booleans())
def test_objects_written_all_at_once_read_as_if_written_one_by_one(items, is_indented):
    """One block an element, each the element's own JSON: the quick way cuts nowhere else."""
    raw = msgspec.json.encode(items)
    texts = [
        block["text"] for block in msgspec.json.decode(write_blocks(raw, is_indented=is_indented, lists_objects=True))
    ]
    shown = [msgspec.json.encode(item) for item in items]
    assert texts == [(msgspec.json.format(each, indent=2) if is_indented else each).decode() for each in shown]


class _Point(BaseModel):
    x: int


@pytest.mark.parametrize(
    ("annotation", "value", "texts"),
    [
        (list[_Point], [_Point(x=1), _Point(x=2)], ['{"x":1}', '{"x":2}']),
        (list[dict[str, int]], [{"x": 1}, {}], ['{"x":1}', "{}"]),
        (list[_Point | int], [_Point(x=1), 5, _Point(x=2)], ['{"x":1}', "5", '{"x":2}']),
        (list[list[int]], [[1, 2], []], ["[1,2]", "[]"]),
        (tuple[_Point, int], (_Point(x=1), 5), ['{"x":1}', "5"]),
    ],
)
def test_an_array_is_one_block_an_element_whatever_its_elements_are(annotation, value, texts):
    """The quick way is for arrays of objects alone; all others are written element by element."""
    faces = build_returns(annotation, tool_name="points", function_name="points", text="compact").render(value)
    assert [block["text"] for block in msgspec.json.decode(faces.content)] == texts
