"""How many calls are under way: learned from what the Gateway takes."""

from __future__ import annotations

import random

import pytest

from lienworker.steps.upload.context import CallBound
from lienworker.steps.upload.verdict import BatchAction

MOST = 16


def grown_to(width: int, most: int = MOST) -> CallBound:
    bound = CallBound(most)
    while bound.now < width:
        bound.adjust(bound.now, BatchAction.GROW)
    return bound


def test_a_round_of_calls_that_went_well_brings_one_more_up_to_what_is_allowed() -> None:
    bound = CallBound(MOST)
    for width in [5, 6, 7]:
        bound.adjust(bound.now, BatchAction.GROW)
        assert bound.now == width
    bound.adjust(1000, BatchAction.GROW)
    assert bound.now == MOST


def test_calls_that_went_well_count_together_however_few_ended_at_a_time() -> None:
    bound = CallBound(MOST)
    for _ in range(4):
        bound.adjust(1, BatchAction.GROW)
    assert bound.now == 5


@pytest.mark.parametrize(("most", "left"), [(MOST, 2), (1, 1)])
def test_each_failure_halves_them_but_two_stay_where_allowed(most: int, left: int) -> None:
    bound = CallBound(most)
    for _ in range(5):
        bound.adjust(1, BatchAction.SHRINK)
    assert bound.now == left


def test_after_a_failure_each_call_that_goes_well_brings_one_back() -> None:
    bound = grown_to(12)
    bound.adjust(3, BatchAction.SHRINK)
    assert bound.now == 6
    bound.adjust(4, BatchAction.GROW)
    assert bound.now == 10


def test_beyond_what_it_was_before_the_failure_it_grows_slowly_again() -> None:
    bound = grown_to(12)
    bound.adjust(1, BatchAction.SHRINK)
    bound.adjust(6 + 11, BatchAction.GROW)
    assert bound.now == 12
    bound.adjust(1, BatchAction.GROW)
    assert bound.now == 13


def test_a_second_failure_on_the_way_back_leaves_less_to_return_to() -> None:
    bound = grown_to(12)
    bound.adjust(1, BatchAction.SHRINK)
    bound.adjust(2, BatchAction.GROW)
    bound.adjust(1, BatchAction.SHRINK)
    assert bound.now == 4
    bound.adjust(4 + 7, BatchAction.GROW)
    assert bound.now == 8


def test_few_failures_leave_most_of_the_calls_under_way() -> None:
    """A round of calls ends together, and one call in 33 fails."""
    dice = random.Random(1)
    bound, widths = grown_to(MOST), []
    for _ in range(1000):
        is_good = all(dice.random() >= 0.03 for _ in range(bound.now))
        bound.adjust(bound.now, BatchAction.GROW if is_good else BatchAction.SHRINK)
        widths.append(bound.now)
    assert sum(widths) / len(widths) > 0.5 * MOST
