"""What people do by hand, what the audit says of it, and that nothing is dropped."""

from __future__ import annotations

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import execute, write
from lienworker.operator import tasks as operator
from lienworker.operator.tasks import Done, cancel_tasks, retry_tasks
from lienworker.outbox import transitions
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.outcomes import fail, try_again
from lienworker.outbox.rows import Entry, count_rows
from lienworker.outbox.states import State, Topic
from lienworker.outbox.transitions import end
from lienworker.store import tasks
from lienworker.store.audit import actions
from tests.harness.outbox_rows import add, change, in_transaction, row_of, states, status_of, take, the_books_are_right


def _audit() -> list[tuple[str, str, int]]:
    return [(row["action"], row["what"], row["n"]) for row in reversed(actions())]


def test_failed_tasks_go_round_again_and_others_are_left(folder: DataFolder) -> None:
    failed, completed, waiting, in_hand = add(4)
    rows = take(2)
    in_transaction(fail, rows[0], "captcha", "a puzzle")
    in_transaction(end, rows[1])
    in_transaction(tasks.mark_completed, completed)
    change("UPDATE outbox SET due_at = due_at + 1 WHERE task_id = ?", waiting)
    assert take(1)[0].task_id == in_hand

    assert retry_tasks([failed, completed, waiting, in_hand, "nobody"], "by id") == Done(changed=1, left=4)

    row = row_of(failed)
    assert (row["generation"], row["state"], row["attempts"], row["alone"]) == (2, "waiting", 0, 0)
    assert status_of(failed) == "pending"
    assert _audit() == [("retry", "by id", 1)]
    the_books_are_right()


def test_a_task_that_is_named_twice_is_retried_once(folder: DataFolder) -> None:
    (task_id,) = add()
    in_transaction(fail, take()[0], "captcha", "a puzzle")
    assert retry_tasks([task_id, task_id], "by id") == Done(1, 1)
    assert states() == {"delivered": 1, "waiting": 1}


def test_waiting_tasks_are_cancelled_and_one_in_hand_is_left(folder: DataFolder) -> None:
    in_hand, waiting, put_off = add(3)
    rows = take(1)
    in_transaction(try_again, rows[0], 0, "timeout", "slow")
    change("UPDATE outbox SET due_at = 9999999999999 WHERE task_id = ?", put_off)
    assert take(1, quarantined=True)[0].task_id in {in_hand, waiting}
    leased = next(task_id for task_id in (in_hand, waiting) if row_of(task_id)["state"] == "leased")

    assert cancel_tasks([in_hand, waiting, put_off], "county=Lee") == Done(2, 1)

    assert row_of(leased)["state"] == "leased"
    assert status_of(leased) == "processing"
    assert (row_of(put_off)["state"], row_of(put_off)["reason"]) == ("discarded", "cancelled")
    assert status_of(put_off) == "failed"
    assert _audit() == [("cancel", "county=Lee", 2)]
    assert take() == []
    the_books_are_right()


def test_a_cancelled_task_can_be_retried(folder: DataFolder) -> None:
    (task_id,) = add()
    cancel_tasks([task_id], "x")
    assert retry_tasks([task_id], "x") == Done(1, 0)
    assert [row.task_id for row in take()] == [task_id]
    the_books_are_right()


def test_cancelling_stops_a_task_between_its_steps_and_leaves_what_is_to_be_delivered(folder: DataFolder) -> None:
    task_id, done = add(2)
    for row in take():
        in_transaction(end, row)
    in_transaction(transitions.add, [Entry(Topic.SCRAPE, task_id, 1, "default", 3)])
    in_transaction(transitions.add, [Entry(Topic.UPLOAD_RAW, done, 1, "default", 3)])
    in_transaction(tasks.mark_completed, done)

    assert cancel_tasks([task_id, done], "x") == Done(1, 1)

    assert row_of(task_id, "scrape")["state"] == "discarded"
    assert row_of(done, "upload_raw")["state"] == "waiting"
    assert status_of(done) == "completed"


def test_many_tasks_are_changed_in_chunks_each_with_its_audit(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "_CHUNK", 4)
    ids = add(10)
    assert cancel_tasks(ids, "all") == Done(10, 0)
    assert _audit() == [("cancel", "all", 4), ("cancel", "all", 4), ("cancel", "all", 2)]


def test_an_action_that_changes_nothing_is_not_in_the_audit(folder: DataFolder) -> None:
    assert retry_tasks(["nobody"], "x") == Done(0, 1)
    assert retry_tasks([], "x") == Done(0, 0)
    assert _audit() == []


# The balance


def test_the_balance_holds_and_says_where_the_rows_are(folder: DataFolder) -> None:
    ids = add(5)
    rows = take(3)
    in_transaction(end, rows[0])
    cancel_tasks([ids[3]], "x")
    held = Entry(Topic.UPLOAD_RAW, ids[0], 1, "default", 3, state=State.HELD, reason="standalone")
    in_transaction(transitions.add, [held])

    fetch, upload = balances()

    assert (fetch.topic, fetch.added, fetch.there, fetch.holds) == ("fetch", 5, 5, True)
    assert {state: n for state, n in fetch.by_state.items() if n} == {
        "waiting": 1,
        "leased": 2,
        "delivered": 1,
        "discarded": 1,
    }
    assert (upload.topic, upload.by_state["held"], upload.holds) == ("upload_raw", 1, True)


def test_a_row_that_was_deleted_behind_its_back_is_found_out(folder: DataFolder) -> None:
    add(3)
    change("DELETE FROM outbox WHERE id = 2")

    (side,) = balances()

    assert not side.holds
    assert (side.added, side.there) == (3, 2)
    assert wrong_tallies() == [], "the tallies follow the rows, so they cannot tell"


def test_all_rows_deleted_behind_its_back_are_found_out(folder: DataFolder) -> None:
    add(3)
    change("DELETE FROM outbox")
    (side,) = balances()
    assert not side.holds


def test_a_row_that_nobody_counted_is_found_out(folder: DataFolder) -> None:
    (task_id,) = add()
    change(
        "INSERT INTO outbox (topic, task_id, generation, queue, priority, state, due_at, created_at)"
        " VALUES ('scrape', ?, 1, 'default', 3, 'waiting', 0, 0)",
        task_id,
    )
    assert [side.topic for side in balances() if not side.holds] == ["scrape"]


def test_rows_that_are_purged_on_purpose_keep_the_balance(folder: DataFolder) -> None:
    from collections import Counter

    add(3)
    with write("purge"):
        n = execute("DELETE FROM outbox WHERE id <= 2").rowcount
        count_rows("purged", Counter({"fetch": n}))
    the_books_are_right()
    assert [(side.added, side.purged, side.there) for side in balances()] == [(3, 2, 1)]


def test_what_is_rolled_back_was_never_added(folder: DataFolder) -> None:
    (task_id,) = add()

    def go_wrong() -> None:
        with write("test"):
            transitions.add([Entry(Topic.SCRAPE, task_id, 1, "default", 3)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_wrong()
    the_books_are_right()
    assert [side.topic for side in balances()] == ["fetch"]
