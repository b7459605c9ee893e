"""Who may have how much of what all share: whatever one tool does, there is room for another."""

SHARE = 3
"""How many times what is free one may hold."""


def has_share(held: int, free: int) -> bool:
    """Tell whether somebody may take one more.

    One that takes all it can ends with three quarters, the next with three quarters of what that left: only a handful
    together take everything, and nobody is held back while there is plenty.

    Args:
        held: What it holds already.
        free: What nobody holds.
    """
    return held < SHARE * free
