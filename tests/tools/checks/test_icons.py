"""Icons: only sources a client may take, only image types it may know."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import InvalidDefinition
from twofold.protocol.tool import Icon
from twofold.tools.checks.icons import check_icons

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
OWNER = "tool 'search'"


@pytest.mark.parametrize(
    "icon",
    [
        Icon("https://example.com/search.png", mime_type="image/png", sizes=["48x48", "any"], theme="dark"),
        Icon("HTTPS://example.com:8443/i"),
        Icon("https://münchen.example/i.svg", mime_type="image/svg+xml"),
        Icon(f"data:image/png;base64,{PNG}"),
        Icon(f"DATA:image/PNG;BASE64,{PNG}", mime_type="image/png"),
        Icon(f"data:image/jpg;base64,{PNG}", mime_type="image/jpeg"),
        Icon(f"data:image/svg+xml;charset=utf-8;base64,{PNG}"),
        Icon("data:image/webp;base64,AA%3D%3D"),
    ],
)
def test_proper_icons_pass_as_they_are(icon):
    """`https:` and base64 `data:` sources with known types are published as given (A17)."""
    assert check_icons([icon], owner=OWNER) == (icon,)


def test_mappings_are_icons_too():
    """Either spelling of the fields is taken."""
    given = {"src": "https://example.com/i", "mimeType": "image/png"}
    assert check_icons([given], owner=OWNER) == (Icon("https://example.com/i", mime_type="image/png"),)


@pytest.mark.parametrize(
    ("icon", "message"),
    [
        *(
            (
                {"src": src},
                f"tool 'search', icon 2: only https: and data: sources are allowed, got {src!r}; clients refuse every other",
            )
            for src in ("http://example.com/i.png", "file:///etc/passwd", "javascript:alert(1)", "ftp://h/i", "i.png", "")
        ),
        (
            {"src": "https:///i.png"},
            "tool 'search', icon 2: 'https:///i.png' names no host; write https://host/path",
        ),
        (
            {"src": "https:i.png"},
            "tool 'search', icon 2: 'https:i.png' names no host; write https://host/path",
        ),
        (
            {"src": "https://me:pw@example.com/i"},
            "tool 'search', icon 2: the source carries a user name; icons are fetched without credentials",
        ),
        (
            {"src": "https://[::1"},
            "tool 'search', icon 2: 'https://[::1' is no address (Invalid IPv6 URL)",
        ),
        (
            {"src": "java\nscript:alert(1)"},
            "tool 'search', icon 2: the source has the character U+000A, which no URI has",
        ),
        (
            {"src": "https://example.com/a b"},
            "tool 'search', icon 2: the source has the character U+0020, which no URI has",
        ),
        (
            {"src": "https://h/i", "mime_type": "text/html"},
            ("tool 'search', icon 2, mime_type: unknown image type 'text/html'; known are image/png, image/jpeg, "
            "image/jpg, image/svg+xml, image/webp, image/gif"),
        ),
        (
            {"src": "https://h/i", "sizes": ["48"]},
            "tool 'search', icon 2, sizes: expected '48x48' (width x height) or 'any', got '48'",
        ),
        (
            {"src": "https://h/i", "sizes": ["0x48"]},
            "tool 'search', icon 2, sizes: expected '48x48' (width x height) or 'any', got '0x48'",
        ),
        (
            {"src": "data:image/svg+xml,<svg/>"},
            ("tool 'search', icon 2: a data: source is base64, as in 'data:image/png;base64,…', got "
            "'data:image/svg+xml,<svg/>'"),
        ),
        (
            {"src": "data:text/html;base64,AAAA"},
            ("tool 'search', icon 2, data: source: unknown image type 'text/html'; known are image/png, image/jpeg, "
            "image/jpg, image/svg+xml, image/webp, image/gif"),
        ),
        (
            {"src": "data:image/png;base64,AAAA", "mime_type": "image/webp"},
            "tool 'search', icon 2: mime_type says 'image/webp', its data: source 'image/png'; they must agree",
        ),
        (
            {"src": "data:image/png;base64,"},
            "tool 'search', icon 2: its data: source holds no image, nothing follows the comma",
        ),
        ({"source": "x"}, "tool 'search', icon 2: Icon has no field 'source'; did you mean 'src'?"),
        (
            {"src": "https://h/i", "theme": "blue"},
            "tool 'search', icon 2: Icon: Invalid enum value 'blue' - at `$.theme`",
        ),
        ("https://h/i", "tool 'search', icon 2: expected an Icon, got 'https://h/i'"),
    ],
)  # fmt: skip
def test_every_other_icon_is_refused_by_name(icon, message):
    """The author reads whose icon is wrong, which one, and why (A17; MCP 2026-07-28, "icons")."""
    with pytest.raises(InvalidDefinition) as caught:
        check_icons([Icon("https://h/i"), icon], owner=OWNER)
    assert str(caught.value) == message


@pytest.mark.parametrize("payload", ["A", "AA=A", "****", "é", "AAAA\u00a0"])
def test_data_that_is_no_base64_is_refused(payload):
    """An icon that no client could decode is told at registration."""
    with pytest.raises(InvalidDefinition, match=r"tool 'search', icon 1: .*"):
        check_icons([Icon(f"data:image/png;base64,{payload}")], owner=OWNER)


@pytest.mark.parametrize("icons", [Icon("https://h/i"), {"src": "https://h/i"}, "https://h/i", 3])
def test_icons_are_a_list(icons):
    """One icon without brackets is a slip that is named."""
    with pytest.raises(InvalidDefinition, match="tool 'search', icons: expected a list of Icon, got an? "):
        check_icons(icons, owner=OWNER)


@given(st.text(max_size=30), st.sampled_from(["", "https:", "https://", "data:image/png;base64,", "data:"]))
def test_whatever_the_source_the_answer_is_an_icon_or_a_refusal(text, prefix):
    """No source crashes the check, and what passes has one of the two schemes."""
    try:
        (icon,) = check_icons([Icon(prefix + text)], owner=OWNER)
    except InvalidDefinition:
        return
    assert icon.src.lower().startswith(("https://", "data:image/"))
