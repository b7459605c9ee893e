"""The founding page in Thai: the same programs as the English one, and its table of hints with their defaults."""

from twofold import ToolAnnotations
from twofold.tools.checks.hints import DEFAULTS


def test_the_hints_and_their_pessimistic_defaults_are_those_of_the_table():
    """Annotations: an annotation-free tool may be destructive, is not idempotent, and is open-world."""
    assert dict(DEFAULTS) == {
        "read_only_hint": False,
        "destructive_hint": True,
        "idempotent_hint": False,
        "open_world_hint": True,
    }


def test_a_hint_that_is_not_set_is_none():
    assert ToolAnnotations() == ToolAnnotations(
        title=None, read_only_hint=None, destructive_hint=None, idempotent_hint=None, open_world_hint=None
    )
