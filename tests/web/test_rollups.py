"""What charts and groups are made of agrees with the rows themselves, whatever happened to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, execute, open_store, write
from lienworker.maintenance.upkeep import Chores
from lienworker.operator import rows
from lienworker.operator.tasks import cancel_tasks, retry_tasks
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import PAGE, list_tasks
from lienworker.queries.outbox import list_rows
from lienworker.settings import Settings
from lienworker.store import counts
from tests.web.seed import FAILED, seed

TRUTH = {
    "waiting_since": (
        "SELECT topic, host, place, minute, n FROM waiting_since WHERE n <> 0 ORDER BY 1, 2, 3, 4",
        "SELECT o.topic, o.host, CASE o.topic WHEN 'fetch' THEN coalesce(platform, '') || '|' || coalesce(t.state, '')"
        " || '|' || coalesce(county, '') ELSE '' END, o.created_at / 60000, count(*) FROM outbox o"
        " JOIN tasks t ON t.task_id = o.task_id WHERE o.state = 'waiting' GROUP BY 1, 2, 3, 4",
    ),
    "set_aside": (
        "SELECT state, topic, reason, fingerprint, n FROM set_aside WHERE n <> 0 ORDER BY 1, 2, 3, 4",
        "SELECT state, topic, coalesce(reason, ''), coalesce(fingerprint, ''), count(*) FROM outbox"
        " WHERE state IN ('held', 'parked') GROUP BY 1, 2, 3, 4",
    ),
    "failed_tasks": (
        "SELECT reason, n FROM failed_tasks WHERE n <> 0 ORDER BY 1",
        "SELECT coalesce(reason, 'unknown'), count(*) FROM tasks WHERE status IN ('failed', 'expired') GROUP BY 1",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    seed(tmp_path / "data")
    return open_store(tmp_path / "data")


def check() -> None:
    for name, (kept, counted) in TRUTH.items():
        assert all_rows(kept) == all_rows(counted), name


def test_groups_and_ages_agree_with_the_rows_after_everything_a_person_can_do(folder: DataFolder) -> None:
    check()
    ids = [row[0] for row in all_rows("SELECT id FROM outbox WHERE topic = 'upload_raw'")]
    retry_tasks([FAILED], "test")
    check()
    rows.ready_for_replay(ids, "test")
    check()
    rows.hold_rows(ids[:2], "test")
    check()
    rows.release_rows(ids[:1], "test")
    rows.discard_rows(ids, "test")
    check()
    cancel_tasks([FAILED], "test")
    check()
    with write("test"):
        execute("DELETE FROM outbox")
    check()


def test_old_minutes_become_hours_and_no_count_is_lost(folder: DataFolder) -> None:
    now = counts.this_minute()
    before = dict(all_rows("SELECT key, sum(n) FROM rollups WHERE name = 'task' GROUP BY 1"))
    with write("test"):
        for age in (1, 30 * 60, 30 * 60 + 1, 200 * 24 * 60, 201 * 24 * 60):
            execute("INSERT INTO rollups VALUES ('task', 'completed', ?, 10, 5)", (now - age,))
    counts.fold_old()
    counts.fold_old()
    sums = counts.sums("task")
    assert sums["completed"] == (before["completed"] + 50, 25)
    old = [row[0] for row in all_rows("SELECT minute FROM rollups WHERE name = 'task' AND minute < ?", (now - 1600,))]
    assert 0 in old
    assert all(minute % 60 == 0 for minute in old)


def test_disk_usage_is_recorded_once_a_minute_however_many_processes_do(folder: DataFolder) -> None:
    for _ in range(3):
        Chores(folder, Settings()).record_disk_usage()
    noted = all_rows("SELECT n FROM rollups WHERE name = 'disk_free_mb'")
    assert 1 <= len(noted) <= 2


def test_the_disk_is_full_by_our_own_growth_whatever_others_do(folder: DataFolder) -> None:
    from lienworker.web.overview import _time_to_full

    now = counts.this_minute()
    with write("test"):
        for age, mine, free in ((60, 100, 9_000), (30, 150, 1_000), (0, 200, 5_000)):
            execute("INSERT INTO rollups VALUES ('data_mb', '', ?, ?, 0)", (now - age, mine))
            execute("INSERT INTO rollups VALUES ('disk_free_mb', '', ?, ?, 0)", (now - age, free))
    assert _time_to_full(5_000, now) == 5_000 / 100 * 3600
    with write("test"):
        execute("UPDATE rollups SET n = 100 WHERE name = 'data_mb'")
    assert _time_to_full(5_000, now) is None


def test_pages_of_a_list_show_every_row_once(folder: DataFolder) -> None:
    with write("test"):
        execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO tasks"
            " (task_id, source, county, status, created_at, received_at, updated_at) SELECT 'x' || i, 'cli',"
            " CASE i % 100 WHEN 0 THEN 'Rare' ELSE 'Often' END, 'pending', '', '', '' FROM n"
        )
    for wanted, n in ((TaskFilter(county="Rare"), 120), (TaskFilter(status="pending", text="x119"), 111)):
        seen: list[str] = []
        below: int | None = 1 << 62
        while below is not None:
            listing = list_tasks(wanted, below)
            assert len(listing.rows) <= PAGE
            seen += [row["task_id"] for row in listing.rows]
            below = listing.more
        assert len(seen) == len(set(seen)) == n


def test_pages_of_rows_set_aside_show_every_row_once(folder: DataFolder) -> None:
    with write("test"):
        execute(
            "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 150) INSERT INTO outbox"
            " (topic, task_id, generation, queue, priority, state, due_at, reason, created_at) SELECT"
            " CASE i % 2 WHEN 0 THEN 'upload_raw' ELSE 'upload_result' END, ?, i, 'default', 3, 'parked', 0,"
            " CASE i % 3 WHEN 0 THEN NULL ELSE 'r' || i % 3 END, 0 FROM n",
            (FAILED,),
        )
    seen: list[int] = []
    below: int | None = 1 << 62
    while below is not None:
        listing = list_rows({"state": "parked"}, below)
        seen += [row["id"] for row in listing.rows]
        below = listing.more
    assert len(seen) == len(set(seen)) == 144
    assert seen == sorted(seen, reverse=True)
