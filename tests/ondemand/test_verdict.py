"""What failed calls mean for their endpoint: one failure among successes is not an outage."""

from __future__ import annotations

import pytest

from lienworker.outbox.breaker import REMEMBERED, asked_ms
from lienworker.steps.upload.verdict import BreakerAction, breaker_action, remember


@pytest.mark.parametrize(
    ("before", "marks", "action"),
    [
        ("aaaaa", "r", BreakerAction.PROBE_AGAIN),  # a lone 429
        ("", "r", BreakerAction.PROBE_AGAIN),  # nothing else is known
        ("", "rr", BreakerAction.PAUSE),  # nothing else came
        ("r", "r", BreakerAction.PAUSE),
        ("aarar", "r", BreakerAction.PAUSE),  # two of the twenty before it
        ("aaaar", "r", BreakerAction.PROBE_AGAIN),  # one of them
        ("r" + 18 * "a" + "r", "r", BreakerAction.PAUSE),  # the first of them is the twentieth before it
        ("rr" + 20 * "a", "r", BreakerAction.PROBE_AGAIN),  # both are older than that
        ("r" + 19 * "a" + "r", "r", BreakerAction.PROBE_AGAIN),
        ("a", "rararaaaaaaaaaaaaaaaaaaaaaaaaaaaa", BreakerAction.PAUSE),  # many ended together: the worst moment counts
        ("aaaaa", "f", BreakerAction.PROBE_AGAIN),  # a lone 5xx, reset or time-out
        ("affff", "f", BreakerAction.OPEN),  # a run of five
        ("afff", "f", BreakerAction.PROBE_AGAIN),
        ("fffff", "fa", BreakerAction.PROBE_AGAIN),  # one of those under way together was answered
        ("", "f", BreakerAction.OPEN),  # nothing speaks for the destination
        ("aaaaa", "x", BreakerAction.OPEN),  # 401: no luck and no row can cause it
        ("aaaaa", "aaax", BreakerAction.OPEN),
        ("ffff", "fr", BreakerAction.OPEN),  # down, whatever else was asked for
        ("aaaaa", "aa", BreakerAction.NOTHING),
        ("rrr", "a", BreakerAction.NOTHING),
    ],
)
def test_what_the_last_calls_mean_for_the_breaker(before: str, marks: str, action: BreakerAction) -> None:
    assert breaker_action(before, marks) is action


def test_no_more_is_remembered_than_is_needed() -> None:
    assert remember("r" + 30 * "a", "f") == 20 * "a" + "f"
    assert len(remember("", 100 * "a")) == REMEMBERED


@pytest.mark.parametrize(
    ("asked", "ms"), [(2.0, 2000), (90.5, 90_500), (None, 5000), (0.0, 1000), (1e9, 24 * 3600 * 1000)]
)
def test_a_429_makes_wait_for_what_it_asked_and_not_for_times_of_our_own(asked: float | None, ms: int) -> None:
    assert asked_ms(asked, first_delay=30.0) == ms
