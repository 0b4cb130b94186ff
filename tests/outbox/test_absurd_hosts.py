"""Numbers about hosts that nobody can mean: brought within bounds where they are used, put right where they lie.

One host's bad row is that host's trouble; every other host is claimed as if it were not there.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from lienworker.data_folder import DataFolder
from lienworker.maintenance.clocks import forgive_clock_jumps
from lienworker.outbox.backoff import LONGEST_RETRY_AFTER, cooling_ms
from lienworker.outbox.claims import Rules, claim_task, claimable, next_due
from lienworker.outbox.pacing import (
    LONGEST_DELAY,
    Booking,
    Politeness,
    book,
    know_hosts,
    record_host_failure,
    slow_down,
)
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import add, change, host_row, in_transaction, take

RULES = Rules(host_delay=1.0, host_concurrency=4)
ABSURD: list[tuple[str, Any]] = [
    *(
        (column, value)
        for column in ("delay", "robots_delay")
        for value in (1e300, math.inf, -1e300, 1e9, "soon", b"x")
    ),
    *(("concurrency", value) for value in (-4, 0, 10**18, 1e300, "many")),
    *((column, value) for column in ("next_allowed_at", "cooling_until") for value in (2**62, 1e300, "later", -5)),
    *(("failures_in_a_row", value) for value in (2**62, -3, "often")),
]


@pytest.mark.parametrize(("column", "value"), ABSURD)
def test_one_hosts_absurd_number_keeps_no_other_host_from_being_claimed(
    folder: DataFolder, clock: Clock, column: str, value: Any
) -> None:
    add(3, "bad.example")
    add(3, "good.example")
    change(f"UPDATE hosts SET {column} = ? WHERE host = 'bad.example'", value)

    assert claimable("fetch", RULES, 100) >= 1
    assert "good.example" in {row.host for row in take(rules=RULES)}
    next_due("fetch")
    in_transaction(record_host_failure, "bad.example", clock.ms, "http_503", None)


@pytest.mark.parametrize(("column", "value"), ABSURD)
def test_an_absurd_number_that_is_stored_is_healed_and_its_host_is_claimed_again(
    folder: DataFolder, clock: Clock, column: str, value: Any
) -> None:
    add(3, "bad.example")
    change(f"UPDATE hosts SET {column} = ? WHERE host = 'bad.example'", value)

    forgive_clock_jumps()

    assert [row.host for row in take(1, rules=RULES)] == ["bad.example"]
    row = host_row("bad.example")
    assert clock.ms <= row["next_allowed_at"] <= clock.ms + 1000 * LONGEST_DELAY
    assert row["delay"] is None or 0 <= row["delay"] <= LONGEST_DELAY
    assert row["robots_delay"] is None or 0 <= row["robots_delay"] <= LONGEST_DELAY
    assert row["concurrency"] is None or 1 <= row["concurrency"] <= 1000


@pytest.mark.parametrize("value", [1e300, math.inf, 1e9])
def test_a_delay_beyond_all_measure_is_the_longest_there_is(folder: DataFolder, clock: Clock, value: float) -> None:
    add(2)
    in_transaction(slow_down, "a.example", value)
    take(1, rules=RULES)
    assert host_row()["next_allowed_at"] == clock.ms + 1000 * LONGEST_DELAY


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf])
def test_a_delay_that_is_none_leaves_the_host_as_it_was(folder: DataFolder, clock: Clock, value: float) -> None:
    add(2)
    in_transaction(slow_down, "a.example", value)
    take(1, rules=RULES)
    assert host_row()["next_allowed_at"] == clock.ms + 1000


def test_a_platform_that_asks_for_absurd_things_gets_what_is_possible(folder: DataFolder) -> None:
    wishes = {"a.example": Politeness(1e300, 10**9), "b.example": Politeness(-1.0, -1)}
    in_transaction(know_hosts, wishes, wishes)
    assert [host_row("a.example")[name] for name in ("delay", "concurrency")] == [LONGEST_DELAY, 1000]
    assert [host_row("b.example")[name] for name in ("delay", "concurrency")] == [None, None]


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf, None])
def test_a_retry_after_that_is_none_is_not_waited_for(value: float | None) -> None:
    assert cooling_ms(1, value, chance=0.5) == 2000
    assert cooling_ms(1, math.inf) == 1000 * LONGEST_RETRY_AFTER


def test_who_waits_for_one_task_of_a_host_with_absurd_numbers_gets_it(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    change("UPDATE hosts SET robots_delay = 1e300, next_allowed_at = 'x', cooling_until = 'y'")
    row = claim_task(task_id, "fetch", "me.1", RULES)
    assert row is not None
    assert row.start_at == clock.ms


# Turns that are booked one by one


def test_a_turn_that_is_booked_comes_after_all_others_and_before_the_next_claim(
    folder: DataFolder, clock: Clock
) -> None:
    add(2)
    (row,) = take(1, rules=RULES)
    booked = in_transaction(book, Booking("a.example"), 1.0, clock.ms)
    assert (booked.start_at, booked.delay_ms) == (row.start_at + 1000, 1000)
    clock.go(1000)
    assert take(1, rules=RULES) == []
    clock.go(1000)
    assert [row.start_at for row in take(1, rules=RULES)] == [clock.ms]


def test_who_missed_a_turn_goes_at_once_if_nobody_is_behind_and_to_the_end_otherwise(
    folder: DataFolder, clock: Clock
) -> None:
    add(2)
    (row,) = take(1, rules=RULES)
    clock.go(300)
    late = in_transaction(book, Booking("a.example", missed=row.start_at), 1.0, clock.ms)
    assert late.start_at == clock.ms
    assert host_row()["next_allowed_at"] == clock.ms + 1000

    behind = in_transaction(book, Booking("a.example"), 1.0, clock.ms)
    again = in_transaction(book, Booking("a.example", missed=late.start_at), 1.0, clock.ms)
    assert (behind.start_at, again.start_at) == (clock.ms + 1000, clock.ms + 2000)


def test_a_wish_of_robots_counts_from_the_request_that_read_it(folder: DataFolder, clock: Clock) -> None:
    add(2)
    (row,) = take(1, rules=RULES)
    booked = in_transaction(book, Booking("a.example", crawl_delay=5.0), 1.0, clock.ms)
    assert booked.start_at == row.start_at + 5000
    assert host_row()["next_allowed_at"] == booked.start_at + 5000


def test_a_host_that_nobody_knew_is_paced_from_its_first_request_on(folder: DataFolder, clock: Clock) -> None:
    starts = [in_transaction(book, Booking("elsewhere.example"), 1.0, clock.ms).start_at for _ in range(3)]
    assert starts == [clock.ms, clock.ms + 1000, clock.ms + 2000]
