"""Time as the store keeps it."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lienworker.db.clock import now_ms, rfc3339, to_ms

#: 1970 to 2100.
_TIMES = st.integers(0, 4_102_444_800_000)


def test_now_is_the_wall_clock_in_whole_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    now = now_ms()
    assert isinstance(now, int)
    assert before <= now <= time.time_ns() // 1_000_000


def test_a_known_moment_is_written_as_rfc_3339_in_utc() -> None:
    assert rfc3339(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"


def test_without_a_moment_it_is_now() -> None:
    before = now_ms()
    assert before <= to_ms(rfc3339()) + 1
    assert to_ms(rfc3339()) <= now_ms()


@given(_TIMES, _TIMES)
def test_texts_sort_as_their_moments_do(one: int, other: int) -> None:
    assert (rfc3339(one) < rfc3339(other)) == (one < other)


@given(_TIMES)
@example(1_001)
@example(1_763_251_200_001)
def test_a_moment_comes_back_from_its_text_as_it_was(ms: int) -> None:
    assert to_ms(rfc3339(ms)) == ms


def test_an_offset_is_taken_into_account() -> None:
    assert to_ms("2023-11-15T00:13:20+02:00") == 1_700_000_000_000


@pytest.mark.parametrize("text", ["", "yesterday", "2023-11-14T22:13:20", "2023-13-01T00:00:00Z", "1700000000"])
def test_what_is_no_moment_with_a_zone_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        to_ms(text)
