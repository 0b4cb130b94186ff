"""`pending/*.json`: a view for people that can be made again from the database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import execute, write
from lienworker.store.pending import (
    differences,
    heal,
    item,
    pending_path,
    rebuild,
    remove_pending,
    show_undelivered,
    write_pending,
)
from lienworker.store.results import mark_synced, result
from tests.harness.store_rows import add_tasks, store_result


def _stored(folder: DataFolder, task_id: str, generation: int = 1, **fields: object) -> str:
    """A stored result with its file, as the scrape step leaves them; gives the file's place."""
    store_result(task_id, generation, json_path=pending_path(task_id), **fields)
    found = result(task_id)
    assert found is not None
    write_pending(folder, found)
    return pending_path(task_id)


def _names(folder: DataFolder) -> set[str]:
    return {path.name for path in folder.pending.iterdir()}


def test_a_result_becomes_one_file_that_people_can_read(folder: DataFolder) -> None:
    add_tasks("t1")
    place = _stored(folder, "t1", data={"owner_name": "Zoë"})

    content = json.loads((folder.root / place).read_text(encoding="utf-8"))
    found = result("t1")
    assert found is not None
    assert content == {**item(found), "raw_file": "raw/page.html.gz"}
    assert content["data"] == {"owner_name": "Zoë"}
    assert content["raw_html_hash"] == found["raw_sha256"]
    assert _names(folder) == {"t1.json"}, "nothing is left aside"


def test_rebuilding_what_is_right_changes_nothing(folder: DataFolder) -> None:
    add_tasks("t1", "t2")
    _stored(folder, "t1")
    _stored(folder, "t2")
    assert rebuild(folder) == (0, 0)


def test_rebuilding_makes_what_is_missing_and_removes_what_is_too_much(folder: DataFolder) -> None:
    add_tasks("missing", "delivered", "archived", "kept")
    places = {name: _stored(folder, name) for name in ("missing", "delivered", "archived", "kept")}
    before = (folder.root / places["missing"]).read_bytes()
    remove_pending(folder, "missing")
    remove_pending(folder, "missing")
    (folder.pending / "stranger.json").write_text("{}")
    with write("test"):
        mark_synced("delivered", 1)
        execute("UPDATE results SET json_path = NULL WHERE task_id = 'archived'")

    assert rebuild(folder) == (1, 3)

    assert _names(folder) == {"missing.json", "kept.json"}
    assert (folder.root / places["missing"]).read_bytes() == before


def test_rebuilding_mends_a_file_that_a_power_loss_has_emptied(folder: DataFolder) -> None:
    """Files here are not flushed, so an empty one under a good name is just what a power loss leaves."""
    add_tasks("t1")
    place = folder.root / _stored(folder, "t1")
    whole = place.read_bytes()
    place.write_bytes(b"")

    rebuild(folder)

    assert place.read_bytes() == whole


def test_rebuilding_mends_a_file_that_tells_of_an_older_result(folder: DataFolder) -> None:
    add_tasks("t1")
    place = folder.root / _stored(folder, "t1", data={"owner_name": "Old"})
    store_result("t1", 2, json_path=pending_path("t1"), data={"owner_name": "New"})

    rebuild(folder)

    assert json.loads(place.read_text())["data"] == {"owner_name": "New"}


def test_hostile_task_ids_stay_inside_the_folder(folder: DataFolder) -> None:
    ids = ["../../x", "a/b", "CON", "T1", "t1", "n" * 300]
    add_tasks(*ids)
    places = [folder.root / _stored(folder, task_id) for task_id in ids]

    assert len({str(place).casefold() for place in places}) == len(ids)
    assert all(place.parent == folder.pending and place.is_file() for place in places)
    assert rebuild(folder) == (0, 0)


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _from_before(path: Path) -> None:
    """The older file, whose successor never got its name."""
    path.write_text('{\n "task_id": "t1"\n}\n')
    os.utime(path, (1, 1))


@pytest.mark.parametrize("harm", [_half, _zeros, _empty, _from_before, Path.unlink])
def test_what_a_power_cut_did_to_a_file_heals_when_a_worker_starts(
    folder: DataFolder, harm: Callable[[Path], object]
) -> None:
    add_tasks("t1", "t2")
    place = folder.root / _stored(folder, "t1")
    _stored(folder, "t2")
    harm(place)
    assert differences(folder) == {"t1.json"}
    assert heal(folder, lambda: False) == (1, 0)
    assert differences(folder) == set()
    assert heal(folder, lambda: False) == (0, 0)


def test_a_file_without_a_row_stays_only_while_somebody_could_be_about_to_commit_it(folder: DataFolder) -> None:
    add_tasks("t1")
    _stored(folder, "t1")
    with write("test"):
        mark_synced("t1", 1)
    assert heal(folder, lambda: True) == (0, 0)
    assert _names(folder) == {"t1.json"}
    assert heal(folder, lambda: False) == (0, 1)
    assert _names(folder) == set()


def _scraped_ago(folder: DataFolder, task_id: str, seconds: float) -> None:
    """A result on demand: stored, without a file yet."""
    at = rfc3339(now_ms() - int(1000 * seconds))
    store_result(task_id, 1, json_path=pending_path(task_id), scraped_at=at)


def test_on_demand_a_result_gets_its_file_when_it_is_late(folder: DataFolder) -> None:
    add_tasks("late", "fresh", "delivered")
    _scraped_ago(folder, "late", 30)
    _scraped_ago(folder, "fresh", 1)
    _scraped_ago(folder, "delivered", 30)
    with write("test"):
        mark_synced("delivered", 1)
    until = show_undelivered(folder, "")
    assert _names(folder) == {"late.json"}
    assert differences(folder) == set(), "the fresh one may be delivered any moment"
    remove_pending(folder, "late")
    assert show_undelivered(folder, until) >= until
    assert _names(folder) == set(), "it was looked at before"


def test_a_process_that_ends_leaves_a_file_for_all_that_is_not_delivered(folder: DataFolder) -> None:
    add_tasks("fresh")
    _scraped_ago(folder, "fresh", 1)
    show_undelivered(folder, "", is_last=True)
    assert _names(folder) == {"fresh.json"}


def test_the_file_of_an_earlier_result_is_replaced_by_that_of_the_late_one(folder: DataFolder) -> None:
    add_tasks("t1")
    _stored(folder, "t1", data={"owner_name": "before"})
    os.utime(folder.root / pending_path("t1"), (0, 0))
    store_result(
        "t1", 2, json_path=pending_path("t1"), scraped_at=rfc3339(now_ms() - 30_000), data={"owner_name": "now"}
    )
    show_undelivered(folder, "")
    assert json.loads((folder.root / pending_path("t1")).read_text())["data"] == {"owner_name": "now"}


def test_a_file_that_is_missing_for_long_is_wrong(folder: DataFolder) -> None:
    add_tasks("t1")
    _scraped_ago(folder, "t1", 300)
    assert differences(folder) == {"t1.json"}


def test_a_file_that_cannot_be_made_keeps_nobody_else_from_having_one(folder: DataFolder) -> None:
    add_tasks("a", "b")
    _scraped_ago(folder, "a", 40)
    _scraped_ago(folder, "b", 30)
    (folder.pending / "a.json" / "x").mkdir(parents=True)
    os.utime(folder.pending / "a.json", (0, 0))
    show_undelivered(folder, "")
    remove_pending(folder, "a")
    assert {"a.json", "b.json"} <= _names(folder)
    assert json.loads((folder.pending / "b.json").read_text())["task_id"] == "b"
