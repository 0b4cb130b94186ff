"""A task is in SQLite, with its first row, before anything else happens to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, one_row
from lienworker.hostnames import host_of
from lienworker.outbox.outcomes import fail
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import Registered, register_in_transaction, register_task
from lienworker.outbox.transitions import end
from lienworker.store import tasks
from lienworker.store.tasks import NewTask
from tests.harness.outbox_rows import (
    Player,
    add,
    host_row,
    in_transaction,
    row_of,
    status_of,
    take,
    the_books_are_right,
)


def _counts() -> tuple[int, int]:
    return one_row("SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM outbox)")


def _task(n: int = 1, **fields: object) -> NewTask:
    return NewTask(**{"source": "local_file", "url": f"http://a.example/{n}", **fields})  # type: ignore[arg-type]


def test_a_task_comes_with_its_first_row_and_its_host(folder: DataFolder) -> None:
    new = _task(queue="urgent", priority=2, parcel_id="12-34", target={"lot": 7})

    assert register_task(new, politeness=Politeness(2.5, 3)) == Registered(added=1)

    row = row_of(new.task_id)
    assert (row["state"], row["generation"], row["host"]) == ("waiting", 1, "a.example")
    assert (row["queue"], row["priority"], row["rank"]) == ("urgent", 2, 2)
    assert status_of(new.task_id) == "pending"
    assert (host_row()["delay"], host_row()["concurrency"]) == (2.5, 3)
    (claimed,) = take()
    assert (claimed.url, claimed.parcel_id, claimed.target) == (new.url, "12-34", {"lot": 7})
    the_books_are_right()


@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize(("point", "there"), [("register.before_commit", False), ("register.after_commit", True)])
def test_a_kill_leaves_task_and_row_or_neither(player: Callable[..., Player], n: int, point: str, there: bool) -> None:
    killed = player("register", n, LIENWORKER_CRASH_AT=point)

    assert killed.wait() == -9
    assert _counts() == ((n, n) if there else (0, 0))
    assert (one_row("SELECT coalesce(sum(n), 0) FROM counters")[0]) == (n if there else 0)
    the_books_are_right()


@pytest.mark.parametrize(("point", "rows"), [("step.before_commit", 1), ("step.after_commit", 2)])
def test_a_kill_around_a_steps_commit_leaves_the_whole_step_or_nothing(
    player: Callable[..., Player], point: str, rows: int
) -> None:
    (task_id,) = add()

    assert player("step", LIENWORKER_CRASH_AT=point).wait() == -9

    assert row_of(task_id)["state"] == ("leased" if rows == 1 else "delivered")
    assert _counts() == (1, rows)
    the_books_are_right()


def test_a_row_that_fails_takes_its_task_with_it(folder: DataFolder) -> None:
    add(name="known")
    with pytest.raises(sqlite3.IntegrityError):
        in_transaction(register_in_transaction, [_task(1), _task(2, priority=9)])
    assert _counts() == (1, 1)
    the_books_are_right()


def test_importing_twice_adds_nothing_and_says_so(folder: DataFolder) -> None:
    batch = [_task(n) for n in range(5)]
    first = in_transaction(register_in_transaction, batch)
    again = in_transaction(register_in_transaction, [_task(n, queue="urgent") for n in range(5)])

    assert (first, again) == (Registered(added=5), Registered(known=5, lifted=5))
    assert _counts() == (5, 5)
    the_books_are_right()


def test_a_task_that_a_batch_names_twice_is_added_once(folder: DataFolder) -> None:
    registered = in_transaction(register_in_transaction, [_task(1), _task(2), _task(1, url="http://a.example/1#top")])

    assert registered == Registered(added=2, known=1)
    assert _counts() == (2, 2)


def test_an_ended_task_becomes_another_generation_when_it_is_refreshed(folder: DataFolder) -> None:
    waiting, in_hand, completed, failed = (_task(n) for n in range(4))
    in_transaction(register_in_transaction, [in_hand, completed, failed])
    rows = {row.task_id: row for row in take()}
    with_end = in_transaction(end, rows[completed.task_id])
    in_transaction(tasks.mark_completed, completed.task_id)
    in_transaction(fail, rows[failed.task_id], "http_404", "not there")
    in_transaction(register_in_transaction, [waiting])

    registered = in_transaction(register_in_transaction, [waiting, in_hand, completed, failed], refresh=True)

    assert with_end
    assert registered == Registered(known=2, refreshed=2)
    generations = {task.task_id: row_of(task.task_id)["generation"] for task in (waiting, in_hand, completed, failed)}
    assert list(generations.values()) == [1, 1, 2, 2]
    assert {row.task_id for row in take(token="me.2")} == {waiting.task_id, completed.task_id, failed.task_id}
    the_books_are_right()


def test_without_refresh_an_ended_task_stays_ended(folder: DataFolder) -> None:
    new = _task()
    register_task(new)
    in_transaction(fail, take()[0], "http_404", "not there")

    assert register_task(new) == Registered(known=1)
    assert status_of(new.task_id) == "failed"
    assert take(token="me.2") == []


def test_a_refresh_that_names_another_address_is_still_claimed(folder: DataFolder) -> None:
    """A Gateway's task keeps its id when its county moves; a row of a host that nobody knows would wait for ever."""
    register_task(NewTask("gateway", "http://old.example/1", task_id="g-1"))
    in_transaction(fail, take()[0], "http_404", "not there")

    assert register_task(NewTask("gateway", "http://new.example/1", task_id="g-1"), refresh=True).refreshed == 1

    (claimed,) = take(token="me.2")
    assert claimed.host == host_of(claimed.url), "the host that is paced is the host that is called"


def test_an_import_answers_for_the_known_tasks_that_it_named(folder: DataFolder) -> None:
    register_task(_task(1))
    in_transaction(register_in_transaction, [_task(1, import_id=7), _task(2, import_id=7)])
    assert all_rows("SELECT import_id FROM tasks") == [(7,), (7,)]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://a.example/1", "a.example"),
        ("http://A.Example", "a.example"),
        ("HTTP://a.example:80/x", "a.example"),
        ("https://a.example:443?q=/", "a.example"),
        ("https://a.example:80/", "a.example:80"),
        ("http://user:pass@a.example:8080/", "a.example:8080"),
        ("http://[::1]:8080/x", "[::1]:8080"),
        ("http://a.example#x/y", "a.example"),
        ("http://x/", "x"),
    ],
)
def test_politeness_is_kept_by_host_and_port(url: str, host: str) -> None:
    assert host_of(url) == host
