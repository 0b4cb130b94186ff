"""Results: one a task, the newest, and known to be delivered only if that very one was."""

from __future__ import annotations

import sqlite3

import peewee
import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import write
from lienworker.store.results import confirm_result, forget_pending, get_unsynced_results, mark_synced, result
from tests.harness.store_rows import add_tasks, store_result


def _mark(task_id: str, generation: int) -> bool:
    with write("test"):
        return mark_synced(task_id, generation)


def test_a_result_reads_back_as_it_was_stored(folder: DataFolder) -> None:
    add_tasks("t1")
    stored = store_result("t1", data={"owner_name": "Zoë", "taxes": [{"year": 2025, "due": "12.50"}]})

    found = result("t1")

    assert found is not None
    assert found["data"] == stored.data
    assert (found["synced"], found["sync_attempts"], found["confirmed_at"]) == (0, 0, None)
    assert result("t2") is None


def test_a_newer_result_takes_the_place_of_the_older_and_is_to_be_delivered_again(folder: DataFolder) -> None:
    add_tasks("t1")
    store_result("t1", 1, data={"owner_name": "Old"})
    assert _mark("t1", 1)
    with write("test"):
        confirm_result("t1")

    store_result("t1", 2, data={"owner_name": "New"})

    found = result("t1")
    assert found is not None
    assert (found["generation"], found["data"], found["synced"]) == (2, {"owner_name": "New"}, 0)
    assert found["confirmed_at"] is None
    assert [row["task_id"] for row in get_unsynced_results()] == ["t1"]


def test_a_delivery_of_the_older_result_does_not_count_for_the_newer(folder: DataFolder) -> None:
    add_tasks("t1")
    store_result("t1", 2)

    assert not _mark("t1", 1)
    assert [row["task_id"] for row in get_unsynced_results()] == ["t1"]
    assert _mark("t1", 2)
    assert list(get_unsynced_results()) == []


def test_unsynced_results_come_oldest_first_and_no_more_than_asked_for(folder: DataFolder) -> None:
    add_tasks("t1", "t2", "t3")
    for task_id, second in (("t1", 3), ("t2", 1), ("t3", 2)):
        store_result(task_id, scraped_at=f"2026-11-16T00:00:0{second}.000Z")

    assert [row["task_id"] for row in get_unsynced_results()] == ["t2", "t3", "t1"]
    assert [row["task_id"] for row in get_unsynced_results(limit=2)] == ["t2", "t3"]


def test_a_result_without_its_task_is_refused(folder: DataFolder) -> None:
    with pytest.raises((peewee.IntegrityError, sqlite3.IntegrityError)):
        store_result("nobody")


def test_archived_files_are_forgotten_and_the_results_stay(folder: DataFolder) -> None:
    add_tasks("t1", "t2")
    store_result("t1")
    store_result("t2")
    with write("test"):
        forget_pending(["pending/t1.json"])

    assert [(row["task_id"], row["json_path"]) for row in get_unsynced_results()] == [
        ("t1", None),
        ("t2", "pending/t2.json"),
    ]


def test_a_result_with_a_broken_character_is_stored_like_any_other(folder: DataFolder) -> None:
    """A county's JSON may hold half a surrogate pair; one such page must not undo its neighbours' commit."""
    add_tasks("t1")
    store_result("t1", data={"owner_name": "half \ud83d a smile"})

    found = result("t1")
    assert found is not None
    assert found["data"]["owner_name"].startswith("half ")
