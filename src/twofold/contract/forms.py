"""What text must look like, in words and by an example: the formats and encodings of strings."""

from collections.abc import Mapping
from typing import Any

NUMBER_TEXT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""A number written as text: a `Decimal`, or a key of an object that stands for a number."""

INTEGER_TEXT = "^-?(0|[1-9][0-9]*)$"
"""An integer written as text, as the keys of `dict[int, …]` are."""

PATTERNS = {
    NUMBER_TEXT: 'a decimal number as text ("12.50")',
    INTEGER_TEXT: 'an integer as text ("12")',
}
"""Our own patterns, which no author wrote and no caller needs to read."""

_UUID = "123e4567-e89b-42d3-a456-426614174000"

_FORMATS = {
    "date": "a date as text (2026-01-31)",
    "date-time": "a date and time as text (2026-01-31T12:00:00Z)",
    "time": "a time as text (12:30:00)",
    "duration": "a duration as text (PT1H30M)",
    "uuid": f"a UUID as text ({_UUID})",
    **{f"uuid{version}": f"a UUID of version {version} as text" for version in range(1, 9)},
    "uri": "a URL as text (https://example.com/path)",
    "multi-host-uri": "a URL as text (scheme://example.com:1234/path)",
    "email": "an e-mail address as text (name@example.com)",
    "ipv4": "an IPv4 address as text (192.0.2.1)",
    "ipv6": "an IPv6 address as text (2001:db8::1)",
    "ipv4network": "an IPv4 network as text (192.0.2.0/24)",
    "ipv6network": "an IPv6 network as text (2001:db8::/32)",
    "ipv4interface": "an IPv4 interface as text (192.0.2.1/24)",
    "ipv6interface": "an IPv6 interface as text (2001:db8::1/32)",
    "ipvanyaddress": "an IP address as text (192.0.2.1)",
    "ipvanynetwork": "an IP network as text (192.0.2.0/24)",
    "ipvanyinterface": "an IP interface as text (192.0.2.1/24)",
    "decimal": PATTERNS[NUMBER_TEXT],
    "fraction": 'a fraction as text ("1/3")',
    "complex": 'a complex number as text ("1+2j")',
    "regex": "a regular expression as text",
    "path": "a path as text",
    "file-path": "the path of a file as text",
    "directory-path": "the path of a directory as text",
    "zoneinfo": "the name of a time zone (Europe/Oslo)",
    "base64": 'base64 text ("aGk=")',
    "base64url": 'base64 text ("aGk_")',
}
"""Formats of JSON Schema 2020-12 (section 7.3), of pydantic's, and of this package's own."""

_ENCODINGS = {"base64": _FORMATS["base64"]}


def form_of(schema: Mapping[str, Any]) -> str | None:
    """Name the form that a schema wants text to have, with an example; None where it names none that is known."""
    named = schema.get("format")
    form = _FORMATS.get(named) if isinstance(named, str) else None
    if form is None:
        encoding = schema.get("contentEncoding")
        form = _ENCODINGS.get(encoding) if isinstance(encoding, str) else None
    if form is None and schema.get("contentMediaType") == "application/json":
        form = "JSON as text"
    return form


def form_named(name: str) -> str:
    """Give the words for one of the formats listed here.

    Raises:
        KeyError: It is not listed.
    """
    return _FORMATS[name]
