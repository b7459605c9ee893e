"""Pictures and sound as results: bytes or a file, made into a content block when the result is written."""

import base64
from typing import TYPE_CHECKING

from twofold.protocol.content import AudioContent, ImageContent

if TYPE_CHECKING:
    from pathlib import Path

_IMAGE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "avif": "image/avif",
}
_AUDIO_TYPES = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "weba": "audio/webm",
}
_MPEG_SYNC = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
"""How an MPEG layer III frame begins where no ID3 tag comes first."""


def _make_path(path: "str | Path") -> "Path":
    from pathlib import Path  # noqa: PLC0415 - 3 ms of start-up that only a file needs

    return Path(path)


class _Media:
    """What pictures and sound have in common; which types they know is each one's own."""

    __slots__ = ("_data", "_mime_type", "_path")
    # no annotations in the body: a class with annotated attributes is data (contract of return types)

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: "str | Path | None" = None,
        format: str | None = None,  # noqa: A002 - the name authors know it by
    ) -> None:
        """Take bytes, or the path of a file that is read when the result is written.

        Args:
            data: The file's bytes.
            path: A file instead of bytes.
            format: What it is: a suffix (`png`) or a MIME type (`image/png`). Needed only where neither the
                path's suffix nor the first bytes say it.

        Raises:
            ValueError: Neither or both of data and path, or a type that cannot be told.
        """
        name = type(self).__name__
        if (data is None) is (path is None):
            raise ValueError(f"{name} takes either data or path, got {'neither' if data is None else 'both'}")
        if data is not None and not isinstance(data, bytes | bytearray | memoryview):
            raise ValueError(f"{name}: data is bytes, got {type(data).__name__}; for a file give path=")
        self._data = None if data is None else bytes(data)
        self._path = None if path is None else _make_path(path)
        self._mime_type = self._tell_type(format)

    def _tell_type(self, format: str | None) -> str:  # noqa: A002 - the option's name
        types, name = self._types(), type(self).__name__
        if format is not None:
            wanted = format.lower().removeprefix(".")
            if wanted in types:
                return types[wanted]
            if wanted.startswith(next(iter(types.values())).partition("/")[0] + "/"):
                return wanted
            raise ValueError(f"{name}: format {format!r} is unknown; it knows {', '.join(types)}, or a MIME type")
        if self._path is not None:
            suffix = self._path.suffix.lower().removeprefix(".")
            if suffix in types:
                return types[suffix]
            raise ValueError(f"{name}: the type of {self._path.name!r} cannot be told from its suffix; pass format=")
        found = self._sniff(self._data or b"")
        if found is None:
            raise ValueError(f"{name}: the type cannot be told from the first bytes; pass format=")
        return types[found]

    def _encode(self) -> str:
        data = self._path.read_bytes() if self._path is not None else self._data or b""
        return base64.b64encode(data).decode("ascii")

    @staticmethod
    def _types() -> dict[str, str]:
        raise NotImplementedError

    @staticmethod
    def _sniff(data: bytes) -> str | None:
        raise NotImplementedError


class Image(_Media):
    """A picture that a tool returns, bare or in a list."""

    __slots__ = ()

    def to_content(self) -> ImageContent:
        """Make the content block, reading the file if there is one.

        Raises:
            OSError: The file cannot be read.
        """
        return ImageContent(data=self._encode(), mime_type=self._mime_type)

    @staticmethod
    def _types() -> dict[str, str]:
        return _IMAGE_TYPES

    @staticmethod
    def _sniff(data: bytes) -> str | None:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return "png"
        if data.startswith(b"\xff\xd8\xff"):
            return "jpeg"
        if data.startswith((b"GIF87a", b"GIF89a")):
            return "gif"
        return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


class Audio(_Media):
    """Sound that a tool returns, bare or in a list."""

    __slots__ = ()

    def to_content(self) -> AudioContent:
        """Make the content block, reading the file if there is one.

        Raises:
            OSError: The file cannot be read.
        """
        return AudioContent(data=self._encode(), mime_type=self._mime_type)

    @staticmethod
    def _types() -> dict[str, str]:
        return _AUDIO_TYPES

    @staticmethod
    def _sniff(data: bytes) -> str | None:
        if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
            return "wav"
        if data.startswith((b"ID3", *_MPEG_SYNC)):
            return "mp3"
        if data.startswith(b"OggS"):
            return "ogg"
        return "flac" if data.startswith(b"fLaC") else None
