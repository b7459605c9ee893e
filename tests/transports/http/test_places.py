"""How much may go on at once; who comes beyond is asked to come again."""

import pytest

from twofold.transports.http.places import Places
from twofold.transports.http.reply import Refusal


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_who_comes_beyond_the_limit_is_asked_to_come_again(limit):
    """B3: 503 with `Retry-After`, and nothing is taken by being refused."""
    places = Places(limit, "requests are running")
    taken = [places.take() for _ in range(limit)]
    for _ in range(2):
        with pytest.raises(Refusal) as caught:
            places.take()
        refusal = caught.value
        assert (refusal.status, refusal.headers) == (503, [(b"retry-after", b"1")])
        assert refusal.error.message == f"busy: {limit} requests are running; send this one again later"
    assert (len(taken), places.taken) == (limit, limit)


def test_a_place_that_was_left_is_free_again():
    """B3: the bound is on what goes on at once, not on what ever came."""
    places = Places(1, "streams are open")
    for _ in range(3):
        place = places.take()
        place.leave()
    assert places.taken == 0


def test_a_shared_place_is_free_when_everybody_has_left():
    """B3: a call whose client has gone still counts, until it ends; in whichever order the two leave."""
    places = Places(2, "requests are running")
    first, second = places.take(), places.take()
    end_first, end_second = first.share(), second.share()
    taken = []
    for leave in (first.leave, end_second, end_first, second.leave):
        leave()
        taken.append(places.taken)
    assert taken == [2, 2, 1, 0]
