"""Deadlines: the earliest first within a host and rank, through retries and holds; what is said of those in danger."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, one_row, write
from lienworker.maintenance.deadlines import sort_in_retries
from lienworker.operator import hosts as operator
from lienworker.operator.tasks import retry_tasks
from lienworker.outbox.claims import Rules
from lienworker.outbox.outcomes import fail, give_back, try_again
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.transitions import end
from lienworker.queries.forecast.deadlines import deadlines
from lienworker.queries.forecast.facts import facts_now
from lienworker.queries.lists import overdue_hosts
from lienworker.settings import Settings
from lienworker.store.tasks import NewTask
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import add, in_transaction, row_of, take, the_books_are_right

SETTINGS = Settings(host_delay=1.0, host_concurrency=1)
MINUTE = 60_000


def names(rows: object) -> list[str]:
    return [row.task_id.rpartition("/")[2] for row in rows]  # type: ignore[attr-defined]


def test_the_earliest_deadline_comes_first_and_those_without_one_last(folder: DataFolder, clock: Clock) -> None:
    add(name="none")
    clock.go(1000)
    add(name="late", due_by=clock.ms + 60 * MINUTE)
    add(name="early", due_by=clock.ms + 10 * MINUTE)
    add(name="first", priority=1)
    add(name="urgent", queue="urgent")
    assert names(take()) == ["urgent0", "first0", "early0", "late0", "none0"]


def test_a_retry_waits_for_its_backoff_and_then_for_its_deadline_only(folder: DataFolder, clock: Clock) -> None:
    add(3, name="none")
    add(name="due", due_by=clock.ms + 10 * MINUTE)
    (row,) = take(1)
    in_transaction(try_again, row, 5000, "timeout", "no answer")
    clock.go(4999)
    sort_in_retries()
    assert names(take(1)) == ["none0"]
    clock.go(1)
    sort_in_retries()
    assert names(take(1)) == ["due0"]
    the_books_are_right()


def test_a_deadline_lasts_through_holds_gifts_and_rounds(folder: DataFolder, clock: Clock) -> None:
    add(2, name="none", state="FL", county="Dixie")
    add(name="due", due_by=clock.ms + 10 * MINUTE, state="FL", county="Dixie")
    county = operator.County("FL", "Dixie")
    operator.pause_county(county)
    clock.go(1000)
    operator.resume_county(county)
    (row,) = take(1)
    give_back([row])
    (row,) = take(1)
    assert names([row]) == ["due0"]
    in_transaction(fail, row, "http_404", "gone")
    retry_tasks([row.task_id], "test")
    assert names(take(1)) == ["due0"]


def test_known_tasks_get_an_earlier_deadline_and_never_a_later_one(folder: DataFolder, clock: Clock) -> None:
    add(2)
    soon, late = clock.ms + 10 * MINUTE, clock.ms + 60 * MINUTE
    for due_by in (late, soon, late):
        with write("test"):
            new = NewTask("cli", "http://a.example/p1", task_id="a.example/p1", due_by=due_by)
            new.expires_at = rfc3339(due_by)
            register_in_transaction([new])
    assert one_row("SELECT due_by, expires_at FROM tasks WHERE task_id = 'a.example/p1'") == (soon, rfc3339(soon))
    assert row_of("a.example/p1")["due_by"] == soon
    assert names(take(1)) == ["p1"]


def test_fresh_work_with_a_deadline_is_not_taken_for_stuck(folder: DataFolder, clock: Clock) -> None:
    add(due_by=clock.ms + 10 * MINUTE)
    assert overdue_hosts(clock.ms - 2 * MINUTE) == []
    clock.go(5 * MINUTE)
    assert overdue_hosts(clock.ms - 2 * MINUTE) == ["a.example"]


# Earliest deadline first keeps every deadline that some order keeps


def could_be_kept(jobs: list[tuple[int, int]]) -> bool:
    """Whether some order keeps all deadlines: no span of time has more jobs that fall into it than it is long."""
    for first in {release for release, _ in jobs}:
        for last in {deadline for _, deadline in jobs}:
            if sum(release >= first and deadline <= last for release, deadline in jobs) > max(0, last - first):
                return False
    return True


def some_jobs(dice: random.Random) -> list[tuple[int, int]]:
    """Jobs of one tick: when each comes, and when it is due."""
    comings = [dice.randrange(6) for _ in range(dice.randrange(3, 10))]
    return [(release, release + 1 + dice.randrange(7)) for release in comings]


def test_no_deadline_is_missed_that_some_order_could_have_kept(folder: DataFolder, clock: Clock) -> None:
    """Each host is an instance; at least a thousand of them have an order that keeps all deadlines."""
    dice = random.Random(22)
    jobs = {f"h{k}.example": some_jobs(dice) for k in range(1600)}
    began, missed = clock.ms, Counter[str]()
    for tick in range(16):
        new = [
            NewTask("cli", f"http://{host}/{n}", task_id=f"{host}/{n}", due_by=began + 1000 * deadline)
            for host, each in jobs.items()
            for n, (release, deadline) in enumerate(each)
            if release == tick
        ]
        with write("test"):
            register_in_transaction(new)
        taken = take(len(jobs), rules=Rules(1.0, 1))
        with write("test"):
            for row in taken:
                end(row)
                due_by = jobs[row.host][int(row.task_id.rpartition("/")[2])][1]
                missed[row.host] += tick + 1 > due_by
        clock.go(1000)
    assert all_rows("SELECT 1 FROM outbox WHERE state = 'waiting'") == []
    feasible = [host for host, each in jobs.items() if could_be_kept(each)]
    assert 1000 <= len(feasible) < len(jobs)
    assert [host for host in feasible if missed[host]] == []


# What is said of a deadline in danger


def _import(n: int, due_by: int, host: str = "a.example") -> None:
    with write("test"):
        number = all_rows(
            "INSERT INTO imports (name, status, started_at, due_by, auction)"
            " VALUES ('dixie.csv', 'done', '', ?, 'Dixie') RETURNING id",
            (due_by,),
        )[0][0]
    add(n, host, name=f"i{number}-", import_id=number, due_by=due_by)


def test_a_deadline_in_danger_says_how_many_and_what_would_help(folder: DataFolder, clock: Clock) -> None:
    operator.set_host("a.example", 3.0)
    _import(900, clock.ms + 25 * MINUTE)
    (row,) = deadlines(facts_now(SETTINGS))
    assert (row["name"], row["tasks"]) == ("Dixie", 900)
    assert 400 <= row["late"] <= 450
    assert "of 900 of Dixie will not make" in row["words"]
    assert "at 3 s (operator); `lienworker hosts set a.example --delay 1.6` would do" in row["words"]

    operator.set_host("a.example", 1.5)
    assert [row["late"] for row in deadlines(facts_now(SETTINGS))] == [0]


@pytest.mark.parametrize(
    ("act", "words"), [("pause", "is paused; `lienworker hosts resume a.example`"), ("none", "--drop-after")]
)
def test_where_no_delay_helps_something_else_is_advised(folder: DataFolder, clock: Clock, act: str, words: str) -> None:
    _import(900, clock.ms + MINUTE)
    if act == "pause":
        operator.pause_host("a.example")
    (row,) = deadlines(facts_now(SETTINGS))
    assert words in row["words"]


def test_other_work_before_it_counts_by_its_deadline(folder: DataFolder, clock: Clock) -> None:
    add(500, name="none")
    _import(100, clock.ms + 10 * MINUTE)
    _import(300, clock.ms + 5 * MINUTE + 1000)
    assert [row["late"] for row in deadlines(facts_now(SETTINGS))][1] == 0
