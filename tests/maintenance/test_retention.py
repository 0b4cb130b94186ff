"""Retention: what is delivered and old goes, what is not delivered stays, and the books stay right."""

from __future__ import annotations

import gzip
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.restarts import Clock, Lives, Shares, lives
from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, close, execute, one_row, write
from lienworker.errors import BusyError
from lienworker.fetching import Fetched
from lienworker.maintenance.pending_deletes import add_pending_deletes, count_pending_deletes, delete_pending_files
from lienworker.maintenance.retention import Keep, Pace, alone, plan, purge
from lienworker.operator.archive import archive_pending
from lienworker.operator.reparse import Reparse, Reread
from lienworker.operator.rows import RowFilter, discard_rows, find_ids, hold_rows
from lienworker.operator.tasks import retry_tasks
from lienworker.outbox.claims import claim
from lienworker.outbox.outcomes import as_row
from lienworker.outbox.registration import register_in_transaction
from lienworker.platforms import ParsedPage
from lienworker.steps.fetch import Arrived, store_fetches
from lienworker.steps.ranges import UsualSizes
from lienworker.steps.scrape import Scraped, result_of
from lienworker.store.audit import actions
from lienworker.store.counts import task_counts
from lienworker.store.pages import page_of
from lienworker.store.raw_files import PageKey, read_page, write_aside
from lienworker.store.runs import PageFilter, start_run
from lienworker.store.tasks import NewTask
from tests.harness.outbox_rows import FREE, change, the_books_are_right

ALL_WELL = Shares(0, 0, 0)
#: Everything that is settled goes at once.
MINIMUM = Keep(0, 0, 0, math.inf, 0)


@pytest.fixture
def clock() -> Iterator[Clock]:
    made = Clock()
    with made.in_place():
        yield made


@pytest.fixture
def worker(tmp_path: Path, clock: Clock) -> Iterator[Lives]:
    with lives(tmp_path / "data") as made:
        yield made


@pytest.fixture
def alone_worker(tmp_path: Path, clock: Clock) -> Iterator[Lives]:
    with lives(tmp_path / "data", "standalone") as made:
        yield made


def new_task(number: int, **fields: Any) -> NewTask:
    about = {"platform": "demo", "state": "XX", "county": "Juniper", "parcel_id": f"P-{number}"}
    return NewTask(
        **{"source": "gateway", "url": f"http://a.example/{number}", "task_id": f"t{number}"} | about | fields
    )


def scraped(worker: Lives, *numbers: int, **fields: Any) -> None:
    worker.register([new_task(number, **fields) for number in numbers])
    worker.fetch(ALL_WELL, 300)
    worker.scrape(ALL_WELL)


def delivered(worker: Lives, *numbers: int, **fields: Any) -> None:
    scraped(worker, *numbers, **fields)
    worker.deliver(ALL_WELL)


def raw_files(folder: DataFolder) -> list[Path]:
    return [path for path in folder.raw.rglob("*") if path.is_file()]


def run(worker: Lives, keep: Keep = MINIMUM) -> Any:
    return purge(keep, worker.runtime.folder, Pace())


def tasks_there() -> set[str]:
    return {row[0] for row in all_rows("SELECT task_id FROM tasks")}


def test_a_delivered_task_goes_with_everything_that_belongs_to_it(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1, 2, 3)
    clock.go(1)

    purged = run(worker)

    assert (purged.tasks, purged.results, purged.files) == (3, 3, 3)
    for table in ("tasks", "results", "pages", "outbox", "attempts", "doomed_files", "delivered_parcels"):
        assert one_row(f"SELECT count(*) FROM {table}")[0] == 0, table
    assert raw_files(worker.runtime.folder) == []
    assert dict(all_rows("SELECT topic, n FROM counters WHERE name = 'purged'")) == {
        "fetch": 3, "scrape": 3, "upload_raw": 3, "upload_result": 3,
    }  # fmt: skip
    the_books_are_right()


def test_what_is_younger_than_its_time_stays(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    clock.go(89)
    delivered(worker, 2)
    clock.go(2)

    run(worker, Keep(math.inf, math.inf, 90, math.inf, math.inf))

    assert tasks_there() == {"t2"}


@pytest.mark.parametrize("state", ["waiting", "held", "parked", "leased"])
@pytest.mark.parametrize("topic", ["upload_raw", "upload_result"])
def test_what_is_not_delivered_is_never_purged(worker: Lives, clock: Clock, topic: str, state: str) -> None:
    scraped(worker, 1)
    if topic == "upload_result":
        change("UPDATE outbox SET state = 'delivered', finished_at = 1 WHERE topic = 'upload_raw'")
    change("UPDATE outbox SET state = ?, reason = 'x' WHERE topic = ?", state, topic)
    clock.go(5000)

    run(worker)

    assert tasks_there() == {"t1"}
    assert len(raw_files(worker.runtime.folder)) == 1
    left = {row[0] for row in all_rows("SELECT topic FROM outbox")}
    assert {"upload_raw", "upload_result"} <= left
    assert one_row("SELECT synced, html_path FROM results")[0] == 0


def test_a_task_that_has_not_ended_stays(worker: Lives, clock: Clock) -> None:
    worker.register([new_task(1), new_task(2)])
    worker.fetch(Shares(0, 0, 0), 300)
    worker.register([new_task(3)])
    clock.go(5000)

    run(worker)

    assert tasks_there() == {"t1", "t2", "t3"}
    assert len(raw_files(worker.runtime.folder)) == 2


def test_a_failed_task_stays_until_the_gateway_knows(worker: Lives, clock: Clock) -> None:
    worker.register([new_task(1), new_task(2, source="local_file")])
    worker.fetch(Shares(not_found=1), 300)
    clock.go(10)

    run(worker)

    assert tasks_there() == {"t1"}, "its report waits; the one from a file has nobody to be told"
    assert task_counts()["failed"] == 1
    the_books_are_right()


def test_a_raw_page_goes_before_its_task_and_a_refresh_still_knows_it(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    clock.go(31)

    purged = run(worker, Keep(30, math.inf, 90, math.inf, math.inf))

    assert (purged.tasks, purged.pages, purged.files) == (0, 1, 1)
    assert raw_files(worker.runtime.folder) == []
    sha, purged_at = one_row("SELECT sha256, purged_at FROM pages")
    assert len(sha) == 64
    assert purged_at
    assert one_row("SELECT count(*) FROM results")[0] == 1


def test_a_refresh_after_the_raw_page_went_leaves_no_file_behind(worker: Lives, clock: Clock) -> None:
    keep = Keep(30, math.inf, 900, math.inf, math.inf)
    delivered(worker, 1)
    (path,) = raw_files(worker.runtime.folder)
    page = path.read_bytes()
    clock.go(31)
    run(worker, keep)
    with write("test"):
        register_in_transaction([new_task(1)], refresh=True)
    with worker.runtime.holder.lease() as token:
        (row,) = claim("fetch", 1, token, FREE)
        body = gzip.decompress(page)
        key = PageKey("demo", "XX", "Juniper", "P-1", "t1")
        written = write_aside(worker.runtime.folder, key, body, "text/html")
        fetched = Fetched(row.url, 200, body, "text/html", "utf-8", None, None, 0, 1)
        store_fetches(worker.runtime.folder, worker.runtime.retries, [Arrived(row, fetched, written)])
    assert one_row("SELECT purged_at FROM pages") == (None,)
    assert raw_files(worker.runtime.folder) == [path]
    clock.go(31)

    run(worker, keep)

    assert raw_files(worker.runtime.folder) == []
    assert one_row("SELECT status FROM tasks") == ("completed",)


def test_steps_go_before_their_task_but_not_those_of_an_open_delivery(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    scraped(worker, 2)
    clock.go(15)

    run(worker, Keep(30, 14, 90, math.inf, math.inf))

    assert sorted(all_rows("SELECT task_id, topic FROM outbox")) == [("t2", "upload_raw"), ("t2", "upload_result")]
    assert tasks_there() == {"t1", "t2"}
    the_books_are_right()

    worker.deliver(ALL_WELL)
    assert one_row("SELECT synced FROM results WHERE task_id = 't2'")[0] == 1


def test_an_acknowledged_raw_file_stays_noted_while_its_result_is_parked(worker: Lives, clock: Clock) -> None:
    """Otherwise a replay would wait for a raw file that was sent long ago."""
    scraped(worker, 1)
    worker.deliver(Shares(0, 0, refused=1))
    clock.go(1000)

    run(worker)

    assert dict(all_rows("SELECT topic, state FROM outbox")) == {"upload_raw": "delivered", "upload_result": "parked"}
    assert len(raw_files(worker.runtime.folder)) == 1


def test_a_discarded_result_is_not_delivered_and_stays(worker: Lives, clock: Clock) -> None:
    scraped(worker, 1)
    discard_rows(find_ids(RowFilter(topic="upload_result"), ("waiting",)), "test")
    discard_rows(find_ids(RowFilter(topic="upload_raw"), ("waiting",)), "test")
    clock.go(1000)

    run(worker)

    assert one_row("SELECT count(*) FROM results")[0] == 1
    assert len(raw_files(worker.runtime.folder)) == 1


def test_a_result_that_a_newer_one_has_overtaken_goes(worker: Lives, clock: Clock) -> None:
    scraped(worker, 1)
    hold_rows(find_ids(RowFilter(), ("waiting",)), "test")
    clock.go(1)
    delivered(worker, 2, parcel_id="P-1")
    change("UPDATE outbox SET state = 'waiting', due_at = 0 WHERE state = 'held'")
    worker.deliver(ALL_WELL)
    assert one_row("SELECT state FROM outbox WHERE task_id = 't1' AND topic = 'upload_result'")[0] == "superseded"
    change("UPDATE outbox SET state = 'delivered', finished_at = 1 WHERE topic = 'report_failure'")
    clock.go(1)

    run(worker)

    assert tasks_there() == set()


def test_which_result_the_gateway_has_is_known_as_long_as_an_older_one_is_there(worker: Lives, clock: Clock) -> None:
    scraped(worker, 1)
    hold_rows(find_ids(RowFilter(), ("waiting",)), "test")
    clock.go(1)
    delivered(worker, 2, parcel_id="P-1")
    clock.go(1000)

    run(worker)

    assert tasks_there() == {"t1"}
    change("UPDATE outbox SET state = 'waiting', due_at = 0 WHERE state = 'held'")
    worker.deliver(ALL_WELL)
    assert one_row("SELECT state FROM outbox WHERE task_id = 't1' AND topic = 'upload_result'")[0] == "superseded"


def test_in_standalone_nothing_undelivered_goes_by_itself(alone_worker: Lives, clock: Clock) -> None:
    scraped(alone_worker, 1, 2)
    clock.go(5000)

    run(alone_worker)

    assert tasks_there() == {"t1", "t2"}
    assert len(raw_files(alone_worker.runtime.folder)) == 2
    assert len(list(alone_worker.runtime.folder.pending.glob("*.json"))) == 2


def test_in_standalone_an_archived_result_goes_when_a_person_says_so(alone_worker: Lives, clock: Clock) -> None:
    folder = alone_worker.runtime.folder
    scraped(alone_worker, 1)
    archive_pending(folder, compress=False)
    scraped(alone_worker, 2)
    clock.go(10)

    run(alone_worker)
    assert tasks_there() == {"t1", "t2"}, "archiving alone is not enough"

    purged = run(alone_worker, Keep(0, 0, 0, 0, math.inf))

    assert purged.archived == 1
    assert tasks_there() == {"t2"}, "what is in no archive stays"
    assert len(raw_files(folder)) == 1
    assert len(list(folder.archive.iterdir())) == 1
    the_books_are_right()


def test_a_list_which_has_nowhere_to_go_goes_with_its_time(worker: Lives, clock: Clock) -> None:
    scraped(worker, 1)
    change("DELETE FROM outbox WHERE topic LIKE 'upload%'")
    change("UPDATE counters SET n = 0 WHERE topic LIKE 'upload%'")
    change("UPDATE results SET stays_here = 1")
    clock.go(10)

    run(worker)

    assert tasks_there() == set()
    assert list(worker.runtime.folder.pending.glob("*.json")) == []


def test_a_result_without_any_row_that_is_no_list_is_not_trusted(worker: Lives, clock: Clock) -> None:
    scraped(worker, 1)
    change("DELETE FROM outbox WHERE topic LIKE 'upload%'")
    clock.go(10)

    run(worker)

    assert tasks_there() == {"t1"}


def test_a_dry_run_says_what_a_purge_then_does_and_touches_nothing(worker: Lives, clock: Clock) -> None:
    delivered(worker, *range(40))
    clock.go(80)
    delivered(worker, *range(40, 60))
    scraped(worker, *range(60, 70))
    clock.go(35)
    keep = Keep(30, 14, 90, math.inf, math.inf)
    before = one_row("PRAGMA data_version")

    said = plan(keep, worker.runtime.folder)

    assert one_row("PRAGMA data_version") == before
    done = run(worker, keep)
    assert (said.tasks, said.results, said.pages, said.steps, said.size) == (
        done.tasks, done.results, done.pages, done.steps, done.size,
    )  # fmt: skip
    assert (done.tasks, done.pages) == (40, 60)


def test_a_purge_is_in_the_audit(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    clock.go(1)

    run(worker)
    run(worker)

    assert [(row["action"], row["n"]) for row in actions()] == [("purge", 1 + 1 + 4)], "the second one did nothing"


def test_the_same_parcels_can_be_imported_again_after_a_purge(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    clock.go(1)
    run(worker)

    with write("test"):
        assert register_in_transaction([new_task(1)]).added == 1
    delivered(worker)

    assert one_row("SELECT synced, generation FROM results") == (1, 1)
    assert len(raw_files(worker.runtime.folder)) == 1
    the_books_are_right()


def test_a_file_that_another_row_names_stays(worker: Lives, clock: Clock) -> None:
    """Two tasks of one parcel whose page has not changed share a file."""
    delivered(worker, 1)
    scraped(worker, 2, parcel_id="P-1")
    path = one_row("SELECT path FROM pages WHERE task_id = 't1'")[0]
    change("UPDATE pages SET path = ? WHERE task_id = 't2'", path)
    clock.go(1)

    run(worker)

    assert tasks_there() == {"t2"}
    assert (worker.runtime.folder.root / path).is_file()
    assert count_pending_deletes() == 0


def test_a_young_file_waits_for_the_next_purge(worker: Lives, clock: Clock) -> None:
    """A worker may have put the very same page there and be about to write its row."""
    delivered(worker, 1)
    clock.go(1)
    (path,) = raw_files(worker.runtime.folder)
    os.utime(path, (clock.ms / 1000, clock.ms / 1000))

    run(worker)
    assert path.is_file()
    assert count_pending_deletes() == 1

    clock.go(1)
    run(worker)
    assert not path.exists()
    assert count_pending_deletes() == 0


def test_only_raw_pages_are_ever_removed(worker: Lives, clock: Clock, tmp_path: Path) -> None:
    folder = worker.runtime.folder
    outside = tmp_path / "precious.txt"
    outside.write_text("precious")
    (folder.raw / "way_out").symlink_to(tmp_path)
    with write("test"):
        add_pending_deletes(
            [
                ("raw/../../precious.txt", "x"),
                (str(outside), "x"),
                ("raw/way_out/precious.txt", "x"),
                ("lienworker.db", "x"),
                ("raw/..", "x"),
            ]
        )
    clock.go(1)

    delete_pending_files(folder, "", 100)

    assert outside.read_text() == "precious"
    assert folder.database.exists()
    assert count_pending_deletes() == 0


def test_a_page_that_shows_why_a_county_is_paused_stays(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    path = one_row("SELECT path FROM pages")[0]
    change("DELETE FROM field_history")
    change(
        "INSERT INTO field_history (platform, state, county, paused_at, sample_path) VALUES ('d', 'X', 'Y', 'now', ?)",
        path,
    )
    clock.go(40)

    run(worker, Keep(30, math.inf, 90, math.inf, math.inf))

    assert (worker.runtime.folder.root / path).is_file()


def test_a_retry_in_the_last_moment_saves_a_task(worker: Lives, clock: Clock) -> None:
    """What was a candidate is looked at again inside the transaction."""
    from lienworker.maintenance.sweeps import Purged, TaskSweep

    worker.register([new_task(1, source="local_file")])
    worker.fetch(Shares(not_found=1), 300)
    clock.go(1)
    sweep = TaskSweep(clock.ms)
    items = sweep.look("").items
    assert items == [("t1",)]
    retry_tasks(["t1"], "test")

    with write("test"):
        sweep.remove(items, Purged())

    assert tasks_there() == {"t1"}


def test_a_reparse_that_a_purge_has_overtaken_stores_nothing(worker: Lives, clock: Clock) -> None:
    """A result that could not be delivered, since its page has gone, must not come to be."""
    delivered(worker, 1)
    found, page = as_row("t1"), page_of("t1", 1)
    assert found
    again = Reparse(worker.runtime.folder, worker.runtime.registry, PageFilter())
    again.run_id = start_run("reparse", "test")
    scraped_anew = Scraped(found[0], page, ParsedPage("demo", "2", {"owner_name": "somebody else"}), 1)
    clock.go(31)
    run(worker, Keep(30, math.inf, 90, math.inf, math.inf))

    with write("test"):
        made = result_of(worker.runtime.registry, scraped_anew, UsualSizes())
        assert not again._store(Reread(scraped_anew, "completed", True), made)

    assert one_row("SELECT synced, generation FROM results") == (1, 1)


def test_history_goes_after_its_time_and_counts_stay(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    change("INSERT INTO audit (at, who, action, what, n) VALUES ('2001-01-01', 'x', 'y', 'z', 1)")
    change("INSERT INTO imports (name, status, started_at) VALUES ('a.csv', 'done', '2001-01-01')")
    change("INSERT INTO list_columns (import_id, name) SELECT id, 'case_no' FROM imports")
    ever = one_row("SELECT sum(n) FROM rollups WHERE name = 'county'")[0]
    clock.go(400)

    run(worker, Keep(math.inf, math.inf, math.inf, math.inf, 365))

    assert all_rows("SELECT count(*) FROM imports UNION ALL SELECT count(*) FROM audit WHERE who = 'x'") == [(0,), (0,)]
    assert all_rows("SELECT * FROM list_columns") == []
    assert one_row("SELECT sum(n) FROM rollups WHERE name = 'county'")[0] == ever


def test_old_rejects_go_wherever_the_folder_was_when_they_were_written(worker: Lives) -> None:
    rejects = worker.runtime.folder.rejects
    rejects.mkdir(exist_ok=True)
    for name, at in (("old", "2001-01-01"), ("shared", "2001-01-01"), ("shared", "2101-01-01")):
        (rejects / f"{name}.csv").write_text("x")
        change(
            "INSERT INTO imports (name, status, started_at, rejects_path) VALUES ('a', 'done', ?, ?)",
            at,
            f"/where/it/was/rejects/{name}.csv",
        )

    run(worker, Keep(math.inf, math.inf, math.inf, math.inf, 365))

    assert [path.name for path in rejects.iterdir()] == ["shared.csv"]


def test_a_purge_and_a_backup_do_not_meet(worker: Lives) -> None:
    with alone(worker.runtime.folder), pytest.raises(BusyError, match="wait until it is done"):
        run(worker)


def test_a_stopped_purge_goes_on_where_it_was(worker: Lives, clock: Clock) -> None:
    delivered(worker, *range(30))
    clock.go(1)
    looks = iter([False] * 2 + [True] * 1000)
    folder = worker.runtime.folder

    purge(MINIMUM, folder, Pace(limit=10, is_over=lambda: next(looks)), remembering=True)
    left = len(tasks_there())
    assert 0 < left < 30
    the_books_are_right()

    purge(MINIMUM, folder, Pace(), remembering=True)
    assert tasks_there() == set()
    assert raw_files(folder) == []


def test_no_slice_holds_writers_up_for_long(worker: Lives, clock: Clock) -> None:
    """The size of a slice follows from how long it takes; another writer gets in between."""
    delivered(worker, *range(300))
    clock.go(1)
    waits: list[float] = []
    done = threading.Event()

    def write_now_and_then() -> None:
        while not done.is_set():
            began = time.perf_counter()
            with write("other"):
                execute("UPDATE facts SET value = value WHERE name = 'x'")
            waits.append(time.perf_counter() - began)
            time.sleep(0.002)
        close()

    other = threading.Thread(target=write_now_and_then)
    other.start()
    pace = Pace()
    try:
        purge(MINIMUM, worker.runtime.folder, pace)
    finally:
        done.set()
        other.join()

    assert tasks_there() == set()
    assert len(waits) > 10, "the other writer got its turns"
    assert pace.longest > 0


def test_what_is_left_can_still_be_read(worker: Lives, clock: Clock) -> None:
    delivered(worker, 1)
    scraped(worker, 2)
    clock.go(1)

    run(worker)

    path, sha256 = one_row("SELECT path, sha256 FROM pages WHERE task_id = 't2'")
    assert read_page(worker.runtime.folder.root / path, sha256)


_PURGE = """
import math, sys
from pathlib import Path
from lienworker.maintenance.retention import Keep, Pace, purge
from lienworker.db import clock
from lienworker.db.database import open_store
real = clock.time.time_ns
clock.time = type("Later", (), {"time_ns": staticmethod(lambda: real() + 86_400_000_000_000)})
purge(Keep(0, 0, 0, math.inf, 0), open_store(Path(sys.argv[1])), Pace())
"""


@pytest.mark.parametrize(
    "point",
    [
        "purge.before_commit",
        "purge.after_commit",
        "purge_file.before_rename",
        "purge_file.after_rename",
        "purge_files.before_commit",
        "purge_files.before_unlink",
        "purge_files_done.before_commit",
        "purge_files_done.after_commit",
        "purge_audit.before_commit",
    ],
)
def test_a_purge_that_is_killed_anywhere_is_finished_by_the_next(worker: Lives, clock: Clock, point: str) -> None:
    """Neither a row without its file nor a file without its row is left."""
    folder = worker.runtime.folder
    delivered(worker, 1, 2, 3)
    scraped(worker, 4)

    command = [sys.executable, "-c", _PURGE, str(folder.root)]
    died = subprocess.run(command, env={**os.environ, "LIENWORKER_CRASH_AT": point}, timeout=120, capture_output=True)

    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    kept = all_rows("SELECT path FROM pages WHERE purged_at IS NULL")
    assert all((folder.root / path).is_file() for (path,) in kept)
    the_books_are_right()

    clock.go(1)
    run(worker)
    assert tasks_there() == {"t4"}
    assert len(raw_files(folder)) == 1
    assert count_pending_deletes() == 0
    the_books_are_right()
