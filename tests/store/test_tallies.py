"""Tallies and backlog are kept by triggers: right after any change, whoever makes it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, close, execute, one_row, open_store, write
from lienworker.outbox.balance import wrong_tallies
from lienworker.store.counts import OUTBOX_STATES, failures, import_counts, outbox_counts, task_counts
from lienworker.store.tasks import STATUSES, insert_tasks, mark_failed
from tests.harness.store_rows import a_task, add_outbox_row, add_tasks

_TASKS = [f"t{n}" for n in range(4)]
_HOSTS = ["", "a", "b"]
_TOPICS = ["fetch", "scrape", "upload_raw"]
_values: dict[str, st.SearchStrategy[Any]] = {
    "state": st.sampled_from(OUTBOX_STATES),
    "due_at": st.integers(0, 5),
    "host": st.sampled_from(_HOSTS),
    "queue": st.sampled_from(["urgent", "default"]),
    "priority": st.integers(1, 4),
    "attempts": st.integers(0, 3),
    "lease_token": st.sampled_from([None, "a.1"]),
}
_one_value = st.sampled_from(sorted(_values)).flatmap(lambda name: st.tuples(st.just(name), _values[name]))
_add = st.tuples(st.just("add"), st.sampled_from(_TASKS), st.sampled_from(_TOPICS), st.fixed_dictionaries(_values))
_change = st.one_of(
    _add,
    st.tuples(st.just("set"), st.integers(0, 7), st.lists(_one_value, min_size=1, max_size=3).map(dict)),
    st.tuples(st.just("delete"), st.integers(0, 7)),
    st.tuples(st.just("task"), st.sampled_from(_TASKS), st.sampled_from(STATUSES)),
)


def _make(change: tuple[Any, ...]) -> None:
    match change:
        case "add", task_id, topic, values:
            (generation,) = one_row("SELECT coalesce(max(generation), 0) + 1 FROM outbox")
            add_outbox_row(task_id, topic, generation, **values)
        case "set", n, values:
            names = ", ".join(f"{name} = ?" for name in values)
            execute(f"UPDATE outbox SET {names} WHERE id % 8 = ?", (*values.values(), n))
        case "delete", n:
            execute("DELETE FROM outbox WHERE id % 8 = ?", (n,))
        case "task", task_id, status:
            execute("UPDATE tasks SET status = ? WHERE task_id = ?", (status, task_id))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_add, min_size=3, max_size=8), st.lists(_change, max_size=15))
def test_tallies_and_backlog_are_right_after_any_changes(
    rows: list[tuple[Any, ...]], changes: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        open_store(Path(place))
        add_tasks(*_TASKS)
        with write("test"):
            for change in rows + changes:
                _make(change)

        assert wrong_tallies() == []
        assert sum(outbox_counts().values()) == one_row("SELECT count(*) FROM outbox")[0]
        assert sum(task_counts().values()) == len(_TASKS)
        # Nobody looks at a place before `not_before`: it must never be later than a row that waits there.
        assert _places_noted_too_late() == []
        close()


def _places_noted_too_late() -> list[Any]:
    return all_rows(
        "SELECT o.id FROM outbox o LEFT JOIN backlog b ON b.topic = o.topic AND b.host = o.host AND b.rank = o.rank"
        " WHERE o.state = 'waiting' AND (b.not_before IS NULL OR b.not_before > o.due_at)"
    )


@pytest.mark.parametrize(
    ("column", "value"), [("due_at", 3), ("due_at", 7), ("host", "b"), ("queue", "urgent"), ("priority", 1)]
)
def test_a_waiting_row_that_changes_moves_in_the_backlog(folder: DataFolder, column: str, value: object) -> None:
    add_tasks("t")
    with write("test"):
        row_id = add_outbox_row("t", due_at=5)
        execute(f"UPDATE outbox SET {column} = ? WHERE id = ?", (value, row_id))
    assert wrong_tallies() == []
    assert _places_noted_too_late() == []


def test_what_is_taken_back_is_not_counted(folder: DataFolder) -> None:
    add_tasks("t")
    try:
        with write("test"):
            add_outbox_row("t")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert outbox_counts()["waiting"] == 0
    assert wrong_tallies() == []


def test_a_wrong_tally_is_said_in_a_sentence(folder: DataFolder) -> None:
    add_tasks("t")
    with write("test"):
        add_outbox_row("t")
        execute("UPDATE tally SET n = n + 1 WHERE kind = 'task'")
        execute("UPDATE tally SET n = 5 WHERE kind = 'outbox'")
        execute("UPDATE backlog SET waiting = 0")

    assert wrong_tallies() == [
        "outbox tally fetch/waiting: says 5, there are 1",
        "task tally pending: says 2, there are 1",
        "backlog fetch/a/13: says 0, there are 1",
    ]


def test_counts_can_be_asked_for_one_topic(folder: DataFolder) -> None:
    add_tasks("t")
    with write("test"):
        add_outbox_row("t", "fetch", state="delivered")
        add_outbox_row("t", "scrape", state="parked")

    assert outbox_counts("scrape") == {**dict.fromkeys(OUTBOX_STATES, 0), "parked": 1}
    assert outbox_counts() == {**dict.fromkeys(OUTBOX_STATES, 0), "parked": 1, "delivered": 1}


def test_an_import_answers_for_its_own_tasks_only(folder: DataFolder) -> None:
    with write("test"):
        insert_tasks({name: a_task(name, import_id=1) for name in ("a", "b")} | {"c": a_task("c", import_id=2)})
        mark_failed("a", "http_404", "not there")
        mark_failed("c", "captcha", "a puzzle")

    assert import_counts(1) == {**dict.fromkeys(STATUSES, 0), "pending": 1, "failed": 1}
    assert failures(1) == [("http_404", 1, "not there")]
    assert sorted(failures()) == [("captcha", 1, "a puzzle"), ("http_404", 1, "not there")]
