"""Which names announce a secret."""

import pytest

from twofold.contract.sensitive import secret_word


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("password", "password"),
        ("user_passwd", "passwd"),
        ("clientSecret", "secret"),
        ("accessToken", "token"),
        ("api_key", "key"),
        ("apiKey", "key"),
        ("APIKey", "key"),
        ("API-KEYS", "key"),
        ("key2", "key"),
        ("credentials", "credential"),
        ("Authorization", "authorization"),
        ("userSSN", "ssn"),
        ("apikey", "key"),
        ("accesstokens", "token"),
        ("dbpassword", "password"),
        ("pwd", "pwd"),
        ("monkey", None),
        ("turkey", None),
        ("hotkey", None),
        ("keyboard", None),
        ("tokenize", None),
        ("author", None),
        ("region", None),
        ("", None),
    ],
)
def test_whole_words_announce_a_secret(name, word):
    """A word counts in any spelling of the name, part of a word does not (A18)."""
    assert secret_word(name) == word
