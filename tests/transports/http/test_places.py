"""How much may go on at once; who comes beyond is asked to come again."""

import pytest

from twofold.errors import ServerBusy
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


def test_one_tool_gets_three_quarters_of_the_places_and_the_next_one_still_some():
    """Issue 5: one slow tool never starves another; what it is refused takes no place, and a place left is free."""
    places = Places(16, "requests are running")
    slow = [places.take() for _ in range(12)]
    for place in slow:
        place.claim("slow")
    refused = places.take()
    with pytest.raises(ServerBusy) as caught:
        refused.claim("slow")
    assert caught.value.message == "busy: 13 requests are running, 12 of 'slow'; send this one again later"
    refused.leave()
    for _ in range(3):
        places.take().claim("other")
    with pytest.raises(ServerBusy):
        places.take().claim("slow")
    assert (places.taken, places.by_name) == (16, {"slow": 12, "other": 3})
    for place in slow:
        place.leave()
    assert (places.taken, places.by_name) == (4, {"other": 3})


def test_a_place_counts_for_the_first_tool_that_is_called_in_it():
    """A batch takes one place, whatever is called in it."""
    places = Places(2, "requests are running")
    place = places.take()
    place.claim("first")
    place.claim("second")
    assert places.by_name == {"first": 1}
    end = place.share()
    place.leave()
    assert places.by_name == {"first": 1}
    end()
    assert (places.taken, places.by_name) == (0, {})
