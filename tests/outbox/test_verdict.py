"""What failed calls mean for their endpoint: one failure among successes is not an outage."""

from __future__ import annotations

import pytest

from lienworker.outbox.breaker import asked_ms
from lienworker.outbox.verdict import REMEMBERED, Verdict, judge, remember


@pytest.mark.parametrize(
    ("before", "group", "verdict"),
    [
        ("aaaaa", "r", Verdict.GO_ON),  # a lone 429
        ("", "r", Verdict.GO_ON),  # nothing else is known
        ("", "rr", Verdict.PAUSE),  # nothing else came
        ("r", "r", Verdict.PAUSE),
        ("arrar", "r", Verdict.PAUSE),  # three of the twenty before it
        ("aarar", "r", Verdict.GO_ON),  # two of them
        ("r" + 17 * "a" + "rr", "r", Verdict.PAUSE),  # the first of them is the twentieth before it
        ("rrr" + 20 * "a", "r", Verdict.GO_ON),  # all are older than that
        ("r" + 18 * "a" + "rr", "r", Verdict.GO_ON),
        ("a", "rarararaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Verdict.PAUSE),  # many ended together: the worst moment counts
        ("aaaaa", "f", Verdict.GO_ON),  # a lone 5xx, reset or time-out
        ("affff", "f", Verdict.OPEN),  # a run of five
        ("afff", "f", Verdict.GO_ON),
        ("fffff", "fa", Verdict.GO_ON),  # one of those under way together was answered
        ("", "f", Verdict.OPEN),  # nothing speaks for the destination
        ("aaaaa", "x", Verdict.OPEN),  # 401: no luck and no row can cause it
        ("aaaaa", "aaax", Verdict.OPEN),
        ("ffff", "fr", Verdict.OPEN),  # down, whatever else was asked for
        ("aaaaa", "aa", Verdict.GO_ON),
        ("rrr", "a", Verdict.GO_ON),
    ],
)
def test_a_verdict_on_the_last_calls(before: str, group: str, verdict: Verdict) -> None:
    assert judge(before, group) is verdict


def test_no_more_is_remembered_than_is_needed() -> None:
    assert remember("r" + 30 * "a", "f") == 20 * "a" + "f"
    assert len(remember("", 100 * "a")) == REMEMBERED


@pytest.mark.parametrize(
    ("asked", "ms"), [(2.0, 2000), (90.5, 90_500), (None, 5000), (0.0, 1000), (1e9, 24 * 3600 * 1000)]
)
def test_a_429_makes_wait_for_what_it_asked_and_not_for_times_of_our_own(asked: float | None, ms: int) -> None:
    assert asked_ms(asked, first_delay=30.0) == ms
