"""Icons: sources a client may take, image types it may know.

Source: MCP 2026-07-28, Basics, "icons".
"""

import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from twofold.contract.plain import name_type
from twofold.errors import InvalidDefinition
from twofold.protocol.tool import Icon

IMAGE_TYPES = ("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp", "image/gif")
"""What the specification names; `image/jpg` is another spelling of `image/jpeg`."""

_MAX_SHOWN = 80
_SIZE = r"[1-9][0-9]{0,5}x[1-9][0-9]{0,5}\Z"
_UNSAFE = r"[\x00-\x20\x7f-\x9f\ud800-\udfff]"


def check_icons(icons: Sequence[Icon | Mapping[str, Any]], *, owner: str) -> tuple[Icon, ...]:
    """Check the icons of a tool, a server or anything else that carries them.

    Args:
        icons: The icons, also as mappings in either spelling.
        owner: Whose they are, to open messages with: `tool 'search'`.

    Returns:
        The icons as given.

    Raises:
        InvalidDefinition: A source that is not `https:` or base64 `data:`, an image type that is not known
            or contradicts the data, or a malformed size; the message names the owner and the icon.
    """
    if isinstance(icons, Icon | Mapping | str) or not isinstance(icons, Sequence):
        raise InvalidDefinition(f"{owner}, icons: expected a list of Icon, got {name_type(icons)}")
    return tuple(_check(icon, where=f"{owner}, icon {place + 1}") for place, icon in enumerate(icons))


def _check(given: Icon | Mapping[str, Any], *, where: str) -> Icon:
    icon = _to_icon(given, where=where)
    _check_type(icon.mime_type, where=f"{where}, mime_type")
    unsafe = re.search(_UNSAFE, icon.src)
    if unsafe is not None:
        raise InvalidDefinition(f"{where}: the source has the character U+{ord(unsafe[0]):04X}, which no URI has")
    scheme = icon.src.partition(":")[0].lower()
    if scheme == "https":
        _check_address(icon.src, where=where)
    elif scheme == "data":
        _check_data(icon, where=where)
    else:
        raise InvalidDefinition(
            f"{where}: only https: and data: sources are allowed, got {icon.src!r:.{_MAX_SHOWN}}; "
            "clients refuse every other"
        )
    for size in icon.sizes or ():
        if size != "any" and not re.match(_SIZE, size):
            raise InvalidDefinition(
                f"{where}, sizes: expected '48x48' (width x height) or 'any', got {size!r:.{_MAX_SHOWN}}"
            )
    return icon


def _to_icon(given: Icon | Mapping[str, Any], *, where: str) -> Icon:
    if isinstance(given, Icon):
        return given
    if not isinstance(given, Mapping):
        raise InvalidDefinition(f"{where}: expected an Icon, got {given!r:.{_MAX_SHOWN}}")
    try:
        return Icon(**given)
    except TypeError as error:
        raise InvalidDefinition(f"{where}: {error}") from None


def _check_type(mime_type: str | None, *, where: str) -> None:
    if mime_type is not None and mime_type.lower() not in IMAGE_TYPES:
        raise InvalidDefinition(
            f"{where}: unknown image type {mime_type!r:.{_MAX_SHOWN}}; known are {', '.join(IMAGE_TYPES)}"
        )


def _check_address(src: str, *, where: str) -> None:
    from urllib.parse import urlsplit  # noqa: PLC0415 - 3 ms of start-up that only an https: icon needs

    try:
        address = urlsplit(src)
        has_host, has_user = bool(address.hostname), "@" in address.netloc
        address.port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        raise InvalidDefinition(f"{where}: {src!r:.{_MAX_SHOWN}} is no address ({error})") from None
    if not has_host:
        raise InvalidDefinition(f"{where}: {src!r:.{_MAX_SHOWN}} names no host; write https://host/path")
    if has_user:
        raise InvalidDefinition(f"{where}: the source carries a user name; icons are fetched without credentials")


def _check_data(icon: Icon, *, where: str) -> None:
    """Check a `data:` URI (RFC 2397): `data:image/png;base64,…`."""
    head, comma, payload = icon.src[len("data:") :].partition(",")
    mime_type, *parameters = head.lower().split(";")
    if not comma or not parameters or parameters[-1] != "base64":
        raise InvalidDefinition(
            f"{where}: a data: source is base64, as in 'data:image/png;base64,…', got {icon.src!r:.{_MAX_SHOWN}}"
        )
    _check_type(mime_type, where=f"{where}, data: source")
    if icon.mime_type is not None and _kind(icon.mime_type) != _kind(mime_type):
        raise InvalidDefinition(
            f"{where}: mime_type says {icon.mime_type!r}, its data: source {mime_type!r}; they must agree"
        )
    try:
        content = binascii.a2b_base64(payload.replace("%3D", "=").replace("%3d", "="), strict_mode=True)
    except ValueError as error:  # not base64, or not even ASCII
        raise InvalidDefinition(f"{where}: its data: source is no base64 ({error})") from None
    if not content:
        raise InvalidDefinition(f"{where}: its data: source holds no image, nothing follows the comma")


def _kind(mime_type: str) -> str:
    return "image/jpeg" if mime_type.lower() == "image/jpg" else mime_type.lower()
