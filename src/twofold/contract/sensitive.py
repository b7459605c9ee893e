"""Names that announce a secret: such a value is never shown in a message and never mirrored into a header."""

import re

SECRET_WORDS = frozenset({"password", "passwd", "secret", "token", "key", "credential", "authorization", "ssn"})
_RUN_TOGETHER = (
    r"(?:api|access|auth|private|secret|session|signing|encryption)(?:key|token)"
    r"|\w+(?:password|passwd|secret|credential)|pwd"
)
"""Names in one piece that say the same: `apikey`, `accesstoken`, `dbpassword`."""
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"


def secret_word(name: str) -> str | None:
    """Find the word in a name that announces a secret.

    Args:
        name: A parameter's or property's name in any spelling: `api_key`, `apiKey`, `API-KEYS`.

    Returns:
        The word in lower case, or None. Whole words count: `monkey` holds no `key`.
    """
    for word in re.findall(_WORD, name):
        lower = str(word).lower()
        for candidate in (lower, lower.removesuffix("s")):
            if candidate in SECRET_WORDS or re.fullmatch(_RUN_TOGETHER, candidate):
                return next((known for known in SECRET_WORDS if candidate.endswith(known)), candidate)
    return None
