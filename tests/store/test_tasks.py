"""Tasks: their names, their states, and what people ask about them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, write
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import count_tasks, each_result, each_task, task_ids
from lienworker.store import audit, imports, tasks
from lienworker.store.pages import PageRecord, latest_page, page_behind_result, page_of, save_page
from lienworker.store.tasks import NewTask, insert_tasks, known_ids, local_task_id
from tests.harness.store_rows import a_task, add_tasks, store_result


def _status(task_id: str) -> str:
    found = tasks.task(task_id)
    assert found is not None
    return str(found["status"])


def test_the_page_names_the_task_and_the_part_after_the_hash_does_not_count() -> None:
    one = NewTask(source="cli", url="http://a.example/1")

    assert one.task_id == NewTask(source="local_file", url="http://a.example/1#owner", queue="urgent").task_id
    assert one.task_id != NewTask(source="cli", url="http://a.example/2").task_id
    assert one.task_id == local_task_id("http://a.example/1")
    assert NewTask(source="gateway", url="http://a.example/1", task_id="g-1").task_id == "g-1"


def test_known_ids_are_those_that_are_there(folder: DataFolder) -> None:
    add_tasks("a", "b'; DROP TABLE tasks; --", "ü")
    assert known_ids(["a", "ü", "c", "b'; DROP TABLE tasks; --"]) == {"a", "ü", "b'; DROP TABLE tasks; --"}
    assert known_ids([]) == set()


def test_only_a_task_in_progress_goes_back_to_pending(folder: DataFolder) -> None:
    add_tasks("in_hand", "done")
    with write("test"):
        tasks.mark_processing(["in_hand", "done"])
        tasks.mark_completed("done")
        tasks.mark_pending(["in_hand", "done"])
    assert (_status("in_hand"), _status("done")) == ("pending", "completed")


def test_a_failure_keeps_its_reason_until_the_task_completes(folder: DataFolder) -> None:
    add_tasks("t")
    with write("test"):
        tasks.mark_failed("t", "captcha", "a puzzle")
    failed = tasks.task("t")
    with write("test"):
        generation = tasks.start_generation("t")
    again = tasks.task("t")
    with write("test"):
        tasks.mark_completed("t")
    completed = tasks.task("t")

    assert failed is not None
    assert again is not None
    assert completed is not None
    assert (failed["status"], failed["reason"], failed["last_error"]) == ("failed", "captcha", "a puzzle")
    assert failed["completed_at"] is not None
    assert (generation, again["status"], again["attempts"], again["completed_at"]) == (2, "pending", 0, None)
    assert (completed["status"], completed["reason"], completed["last_error"]) == ("completed", None, None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (TaskFilter(), ["z1", "m2", "a3"]),
        (TaskFilter(status="failed"), ["m2"]),
        (TaskFilter(reason="captcha"), ["m2"]),
        (TaskFilter(county="lee"), ["z1"]),
        (TaskFilter(queue="urgent"), ["a3"]),
        (TaskFilter(text="example/a3"), ["a3"]),
        (TaskFilter(text="50%"), ["z1"]),
        (TaskFilter(text="_"), []),
        (TaskFilter(status="failed", county="Lee"), []),
    ],
)
def test_tasks_are_found_by_what_is_asked_in_the_order_of_their_coming(
    folder: DataFolder, wanted: TaskFilter, found: list[str]
) -> None:
    with write("test"):
        insert_tasks({"z1": a_task("z1", county="Lee", parcel_id="50%")})
        insert_tasks({"m2": a_task("m2")})
        insert_tasks({"a3": a_task("a3", queue="urgent")})
        tasks.mark_failed("m2", "captcha", "a puzzle")

    assert [row["task_id"] for row in each_task(wanted, oldest_first=True)] == found
    assert [row["task_id"] for row in each_task(wanted)] == found[::-1]
    assert task_ids(wanted, ("pending", "failed")) == found
    assert count_tasks(wanted) == len(found)


def test_results_are_found_by_county_and_text(folder: DataFolder) -> None:
    add_tasks("t1", "t2")
    store_result("t1", county="Lee", parcel_id="A-1")
    store_result("t2", county="Polk", parcel_id="B-2")

    assert [row["task_id"] for row in each_result(TaskFilter(county="POLK"))] == ["t2"]
    assert [row["data"] for row in each_result(TaskFilter(text="A-"))] == [{"owner_name": "Ann"}]
    assert len(list(each_result(TaskFilter()))) == 2


def _page(task_id: str, generation: int) -> PageRecord:
    return PageRecord(
        task_id, generation, f"raw/{generation}", "00", 1, "http://a", 200, "text/html", None, '"e"', None, "2026", 5
    )


def test_pages_are_kept_by_generation_and_a_refresh_looks_at_the_one_behind_the_result(folder: DataFolder) -> None:
    add_tasks("t1")
    with write("test"):
        save_page(_page("t1", 1))
        save_page(_page("t1", 2))
    store_result("t1", 1)

    assert page_of("t1", 1) == _page("t1", 1)
    assert latest_page("t1") == _page("t1", 2)
    assert page_behind_result("t1") == _page("t1", 1)
    assert page_of("t1", 3) is None


@dataclass
class _Counts:
    rows: int = 5
    added: int = 3
    known: int = 1
    refreshed: int = 0
    rejected: int = 1


def test_an_import_keeps_its_counts(folder: DataFolder) -> None:
    with imports.running_import("parcels.csv") as import_id:
        with write("test"):
            imports.record_progress(import_id, _Counts())
        running = imports.imports()[0]
        imports.finish_import(import_id, "done", "rejects/1.csv")
    done = imports.imports()[0]

    assert (running["status"], running["rows"], running["added"], running["rejected"]) == ("running", 5, 3, 1)
    assert (done["status"], done["rejects_path"], done["name"]) == ("done", "rejects/1.csv", "parcels.csv")
    assert done["finished_at"] is not None


def test_an_import_that_was_killed_does_not_count_as_running(folder: DataFolder) -> None:
    with imports.running_import("killed.csv"):
        pass  # nobody finished it
    assert imports.imports()[0]["status"] == "stopped"
    with imports.running_import("next.csv"), imports.running_import("beside.csv"):
        assert [row["status"] for row in imports.imports()] == ["running", "running", "stopped"]
    assert all_rows("SELECT status FROM imports WHERE name = 'killed.csv'") == [("stopped",)]


def test_the_audit_says_who_did_what_newest_first(folder: DataFolder) -> None:
    with write("test"):
        audit.record_action("retry", "all", 3)
        audit.record_action("cancel", "county=Lee", 1)

    assert [(row["action"], row["what"], row["n"]) for row in audit.actions()] == [
        ("cancel", "county=Lee", 1),
        ("retry", "all", 3),
    ]
    assert all(row["who"] and row["at"] for row in audit.actions())


def test_a_task_with_a_priority_or_queue_that_is_none_is_refused(folder: DataFolder) -> None:
    for wrong in ({"priority": 0}, {"priority": 5}, {"queue": "later"}, {"source": "mars"}):
        with pytest.raises((sqlite3.IntegrityError, ValueError)), write("test"):
            insert_tasks({"t": a_task("t", **wrong)})
    assert all_rows("SELECT * FROM tasks") == []
