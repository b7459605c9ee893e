"""Tool names: what cannot be published, what is served with a warning, which one was meant.

Source: MCP 2026-07-28, Tools, "Tool Names".
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable

from twofold.contract.plain import name_type
from twofold.errors import InvalidDefinition

MAX_NAME = 128
"""Characters the specification recommends at most."""

_RECOMMENDED = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}\Z")
_MAX_SHOWN = 80

_MIN_PART = 3
"""Letters that tell something as a part of a name."""

# Control characters, halves of surrogate pairs, line and paragraph separators: they break lines, terminals
# and headers, or cannot be written as UTF-8.
_UNPRINTABLE = {"Cc": "a control character", "Cs": "half of a surrogate pair", "Zl": "a line separator"}
_UNPRINTABLE["Zp"] = "a paragraph separator"


def check_name(name: str, *, kind: str = "tool") -> str | None:
    """Check the name of a tool, or of what is named by the same rules.

    Args:
        name: Any text; hosts and models call the tool by it.
        kind: What it names, for messages: a noun.

    Returns:
        None, or a sentence to warn with: the name is served, but is outside 1 to 128 of `A-Za-z0-9_.-`.

    Raises:
        InvalidDefinition: Not text, empty or blank, or with characters no name can carry.
    """
    if not isinstance(name, str):
        raise InvalidDefinition(f"a {kind}'s name is text, got {name_type(name)}; give it with name=")
    if not name.strip():
        raise InvalidDefinition(f"a {kind}'s name is empty ({name!r:.{_MAX_SHOWN}}); give it one with name=")
    for place, char in enumerate(name):
        what = _UNPRINTABLE.get(unicodedata.category(char))
        if what is not None:
            raise InvalidDefinition(
                f"{kind} {name!r:.{_MAX_SHOWN}}: its name has {what} "
                f"(U+{ord(char):04X}, at character {place + 1}); leave it out"
            )
    if _RECOMMENDED.match(name):
        return None
    return (
        f"{kind} {name!r:.{_MAX_SHOWN}}: its name is outside the recommended 1 to {MAX_NAME} characters of "
        "A-Z a-z 0-9 _ . -, so some clients will not show or call it; give a plain name= and put this text "
        "into title="
    )


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Find the names most like one that does not exist: what was perhaps meant.

    Args:
        name: As asked for, by anyone; a long one is not compared, which takes the square of its length.
        names: Those that exist.

    Returns:
        At most three, the nearest first, then those that have the name as a part; capitals do not count as
        differences, nor does `-` for `_`.
    """
    if not isinstance(name, str) or len(name) > 2 * MAX_NAME:
        return []
    folded: dict[str, list[str]] = {}
    for known in names:
        folded.setdefault(_fold(known), []).append(known)
    wanted = _fold(name)
    near = difflib.get_close_matches(wanted, folded, 3)
    if len(wanted) >= _MIN_PART:
        near += [key for key in folded if wanted in key and key not in near]
    return [known for key in near for known in folded[key]][:3]


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_").replace(".", "_")
