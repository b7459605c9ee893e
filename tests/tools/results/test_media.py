"""The `Image` and `Audio` helpers: bytes or a file, and the type they are told or tell."""

import re
from pathlib import Path
from typing import Any

import pytest

from twofold.protocol.content import AudioContent, ImageContent
from twofold.tools.results.media import Audio, Image
from twofold.tools.results.returns import build_returns


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
def test_a_picture_tells_its_type_by_its_first_bytes(data: bytes, mime_type: str) -> None:
    """PNG, JPEG, GIF and WebP need no format (contract A14)."""
    assert Image(data).to_content().mime_type == mime_type


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"ID3\x03", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
    ],
)
def test_sound_tells_its_type_by_its_first_bytes(data: bytes, mime_type: str) -> None:
    """WAV, MP3, Ogg and FLAC need no format (contract A14)."""
    assert Audio(data).to_content().mime_type == mime_type


@pytest.mark.parametrize("given", [b"\0\xff", bytearray(b"\0\xff"), memoryview(b"\0\xff")])
def test_bytes_become_base64(given: Any) -> None:
    """The block holds the bytes in base64, beside the type that was given."""
    assert Image(given, format="PNG").to_content() == ImageContent(data="AP8=", mime_type="image/png")
    assert Audio(given, format="audio/x-own").to_content() == AudioContent(data="AP8=", mime_type="audio/x-own")


@pytest.mark.parametrize(
    ("name", "options", "mime_type"),
    [
        ("a.JPG", {}, "image/jpeg"),
        ("a.svg", {}, "image/svg+xml"),
        ("a", {"format": "gif"}, "image/gif"),
        ("a.png", {"format": ".webp"}, "image/webp"),
    ],
)
def test_a_file_tells_its_type_by_its_suffix(
    tmp_path: Path, name: str, options: dict[str, str], mime_type: str
) -> None:
    """What is given comes first, then the suffix."""
    (tmp_path / name).write_bytes(b"x")
    content = Image(path=str(tmp_path / name), **options).to_content()
    assert content == ImageContent(data="eA==", mime_type=mime_type)


def test_a_file_is_read_when_the_result_is_written(tmp_path: Path) -> None:
    """What counts is the file at the time of the call; a file that is missing then is a crash of the tool."""
    path = tmp_path / "late.wav"
    returns = build_returns(Audio, tool_name="t", function_name="f")
    sound = Audio(path=path)
    with pytest.raises(FileNotFoundError):
        returns.render(sound)
    path.write_bytes(b"x")
    assert returns.render(sound).content == (AudioContent(data="eA==", mime_type="audio/wav"),)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "Image takes either data or path, got neither"),
        ({"data": b"x", "path": "x.png"}, "Image takes either data or path, got both"),
        ({"data": "x.png"}, "Image: data is bytes, got str; for a file give path="),
        ({"data": b"x"}, "Image: the type cannot be told from the first bytes; pass format="),
        ({"path": "x.exe"}, "Image: the type of 'x.exe' cannot be told from its suffix; pass format="),
        ({"data": b"x", "format": "wav"}, "Image: format 'wav' is unknown; it knows png, "),
        ({"data": b"x", "format": "audio/wav"}, "Image: format 'audio/wav' is unknown; it knows png, "),
    ],
)
def test_a_helper_that_cannot_work_is_refused_when_made(options: dict[str, Any], complaint: str) -> None:
    """The error stands at the author's own line and says what to pass."""
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}"):
        Image(**options)
