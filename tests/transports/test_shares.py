"""The rule by which many share a bounded number of places."""

import pytest

from twofold.transports.shares import has_share


def _take_all(capacity: int, held: int, taken: int) -> int:
    while has_share(held, capacity - taken):
        held, taken = held + 1, taken + 1
    return held


@pytest.mark.parametrize(("capacity", "shares"), [(1, [1]), (3, [3]), (4, [3, 1]), (256, [192, 48, 12, 3, 1])])
def test_each_that_takes_all_it_can_leaves_a_quarter_for_the_next(capacity, shares):
    """Issue 5: one slow tool never starves another; where there are hardly any places, one may have them all."""
    found, taken = [], 0
    while taken < capacity:
        found.append(_take_all(capacity, 0, taken))
        taken += found[-1]
    assert found == shares


def test_whoever_holds_nothing_gets_whatever_is_free():
    """Only where nothing at all is free is a newcomer refused."""
    assert [has_share(0, free) for free in (0, 1, 100)] == [False, True, True]
