"""Ending a row, trying it again, giving it back: only by who holds it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lienworker.data_folder import DataFolder
from lienworker.outbox import transitions
from lienworker.outbox.leases import free
from lienworker.outbox.outcomes import fail, fingerprint, give_back, try_again
from lienworker.outbox.rows import Claimed, Entry, steps_of
from lienworker.outbox.states import Topic
from lienworker.outbox.transitions import end
from lienworker.store import tasks
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import add, in_transaction, row_of, status_of, take, the_books_are_right

_CLOSERS: dict[str, Callable[[Claimed], object]] = {
    "end": lambda row: in_transaction(end, row),
    "try_again": lambda row: in_transaction(try_again, row, 0, "http_500", "oh"),
    "fail": lambda row: in_transaction(fail, row, "http_404", "not there"),
    "give_back": lambda row: give_back([row]),
}


def _stale_row() -> tuple[str, Claimed]:
    """A row that was taken from its holder and is in another's hands now."""
    (task_id,) = add()
    (stale,) = take(token="dead.1")
    free("dead", blame=False)
    (fresh,) = take(token="alive.1")
    assert fresh.id == stale.id
    return task_id, stale


@pytest.mark.parametrize("closer", sorted(_CLOSERS))
def test_a_stale_lease_never_finishes_a_row(folder: DataFolder, closer: str) -> None:
    task_id, stale = _stale_row()
    before = row_of(task_id)

    assert not _CLOSERS[closer](stale)

    assert row_of(task_id) == before
    assert tasks.attempts_of(task_id) == []
    the_books_are_right()


@pytest.mark.parametrize("closer", sorted(_CLOSERS))
def test_a_stale_lease_does_not_touch_the_task_of_a_row_in_other_hands(folder: DataFolder, closer: str) -> None:
    task_id, stale = _stale_row()
    before = tasks.task(task_id)

    _CLOSERS[closer](stale)

    assert status_of(task_id) == "processing"
    assert tasks.task(task_id) == before


@pytest.mark.parametrize("closer", sorted(_CLOSERS))
def test_a_row_that_waits_again_is_not_finished_by_who_held_it(folder: DataFolder, closer: str) -> None:
    (task_id,) = add()
    (stale,) = take(token="dead.1")
    free("dead", blame=False)

    assert not _CLOSERS[closer](stale)

    assert row_of(task_id)["state"] == "waiting"
    assert status_of(task_id) == "pending"
    assert tasks.attempts_of(task_id) == []


@pytest.mark.parametrize("second", sorted(_CLOSERS))
@pytest.mark.parametrize("first", sorted(_CLOSERS))
def test_a_row_is_closed_once(folder: DataFolder, first: str, second: str) -> None:
    (task_id,) = add()
    (row,) = take()
    _CLOSERS[first](row)
    before, task_before = row_of(task_id), tasks.task(task_id)

    assert not _CLOSERS[second](row)

    assert row_of(task_id) == before
    assert tasks.task(task_id) == task_before
    the_books_are_right()


def test_an_ended_row_is_over(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    (row,) = take()

    assert in_transaction(end, row, reason="unchanged")

    stored = row_of(task_id)
    assert (stored["state"], stored["reason"], stored["finished_at"]) == ("delivered", "unchanged", clock.ms)
    assert (stored["lease_token"], stored["lease_until"]) == (None, None)
    assert take() == []
    the_books_are_right()


def test_a_row_that_is_tried_again_has_lost_an_attempt_and_remembers_why(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    (row,) = take()

    assert in_transaction(try_again, row, 5000, "http_500", "Status 500 of 'x'")

    stored, task = row_of(task_id), tasks.task(task_id)
    assert task is not None
    assert (stored["state"], stored["attempts"], stored["due_at"]) == ("waiting", 1, clock.ms + 5000)
    assert (stored["lease_token"], stored["reason"]) == (None, "http_500")
    assert stored["fingerprint"] == fingerprint("status 404 of 'y'")
    assert (task["status"], task["attempts"], task["last_error"]) == ("pending", 1, "Status 500 of 'x'")
    assert [(one["topic"], one["reason"]) for one in tasks.attempts_of(task_id)] == [("fetch", "http_500")]


def test_a_failed_row_ends_its_task_with_the_reason(folder: DataFolder) -> None:
    (task_id,) = add()
    (row,) = take()

    assert in_transaction(fail, row, "captcha", "a puzzle")

    task = tasks.task(task_id)
    assert task is not None
    assert (task["status"], task["reason"], task["last_error"], task["attempts"]) == (
        "failed",
        "captcha",
        "a puzzle",
        1,
    )
    assert row_of(task_id)["state"] == "delivered"
    assert [one["reason"] for one in tasks.attempts_of(task_id)] == ["captcha"]


def test_a_row_that_is_given_back_has_lost_nothing(folder: DataFolder) -> None:
    ids = add(2)
    before = [row_of(task_id) for task_id in ids]
    give_back(take(message_id=None))
    give_back([])
    assert [row_of(task_id) for task_id in ids] == before
    assert [status_of(task_id) for task_id in ids] == ["pending", "pending"]
    assert len(take()) == 2


def test_a_very_long_or_broken_error_text_does_not_hold_up_the_row(folder: DataFolder) -> None:
    """What a page or a parser says may be anything, also half a surrogate pair; the neighbours share the commit."""
    add(2)
    first, second = take()

    assert in_transaction(try_again, first, 0, "parser_failed", "x" * 100_000)
    assert in_transaction(fail, second, "parser_failed", "half a smile \ud83d")

    assert len(tasks.attempts_of(first.task_id)[0]["error"]) <= 2000


def test_the_fingerprint_leaves_out_what_differs_from_row_to_row() -> None:
    assert fingerprint("Row 12 of 'a', deadbeef01") == fingerprint("row 7 of 'b', feedface99")
    assert fingerprint("time-out") != fingerprint("captcha")


def test_the_fingerprint_leaves_out_addresses_of_objects() -> None:
    assert fingerprint("<Node object at 0x7f2b87a91b90>") == fingerprint("<Node object at 0x7f2b87aa8910>")


def test_the_steps_of_a_task_are_listed_in_their_order(folder: DataFolder) -> None:
    first, _ = add(2)
    row = take()[0]
    with_next = Entry(Topic.SCRAPE, first, 1, "default", 3)
    assert in_transaction(end, row)
    in_transaction(transitions.add, [with_next])

    assert [(step["topic"], step["state"]) for step in steps_of(first)] == [
        ("fetch", "delivered"),
        ("scrape", "waiting"),
    ]
