"""The one way to write: IMMEDIATE, durable, one transaction a thread, none inside another."""

from __future__ import annotations

import os
import queue
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import (
    DATABASE_TROUBLE,
    after_commit,
    all_rows,
    close,
    database,
    execute,
    one_row,
    open_store,
    set_fact,
    write,
)
from tests.harness.store_rows import add_outbox_row, add_tasks

_CRASH = """
import sys
from pathlib import Path
from lienworker.db.database import open_store, write, execute
open_store(Path(sys.argv[1]))
with write("note"):
    execute("INSERT INTO pauses VALUES ('fetch', 'test', '', '')")
print("still here")
"""


def in_a_thread(work: Callable[[], object]) -> object:
    """What some work gives in another thread, with a connection of its own."""
    answer: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put(work())
        except Exception as problem:
            answer.put(problem)
        finally:
            close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return answer.get(timeout=60)


def test_every_connection_is_durable_and_checks_references(folder: DataFolder) -> None:
    def pragmas() -> dict[str, object]:
        return {name: one_row(f"PRAGMA {name}")[0] for name in ("synchronous", "foreign_keys", "journal_mode")}

    wanted = {"synchronous": 2, "foreign_keys": 1, "journal_mode": "wal"}  # 2 is FULL

    assert pragmas() == wanted
    assert in_a_thread(pragmas) == wanted


def test_every_connection_waits_for_a_rude_writer(folder: DataFolder) -> None:
    assert one_row("PRAGMA busy_timeout")[0] == 30_000
    assert in_a_thread(lambda: one_row("PRAGMA busy_timeout")[0]) == 30_000


def test_a_new_connection_reads_beside_a_writer_without_waiting(folder: DataFolder) -> None:
    close()  # so that it is read over a connection made while the writer has the lock
    other = sqlite3.connect(folder.database, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()

    assert all_rows("SELECT * FROM pauses") == []

    assert time.monotonic() - began < 25  # a writer would wait 30 seconds
    other.execute("ROLLBACK")
    other.close()


def test_a_new_file_can_shrink(folder: DataFolder) -> None:
    assert one_row("PRAGMA auto_vacuum") == (2,)


def test_what_follows_a_commit_is_done_after_it(folder: DataFolder) -> None:
    seen: list[object] = []
    other = sqlite3.connect(folder.database)
    with write("test"):
        execute("INSERT INTO pauses VALUES ('fetch', 'test', '', '')")
        after_commit(lambda: seen.extend(other.execute("SELECT cause FROM pauses")))
        assert seen == []
    assert seen == [("test",)]
    with write("next"):
        pass
    assert seen == [("test",)]  # and once only
    other.close()


def test_what_follows_a_commit_is_not_done_when_there_is_none(folder: DataFolder) -> None:
    seen: list[str] = []

    def go_wrong() -> None:
        with write("test"):
            after_commit(lambda: seen.append("told"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_wrong()
    with write("next"):
        pass
    assert seen == []


def test_a_write_takes_the_lock_before_its_first_statement(folder: DataFolder) -> None:
    other = sqlite3.connect(folder.database, timeout=0, isolation_level=None)
    with write("test"), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


def test_a_write_inside_a_write_is_refused_and_the_outer_one_can_go_on(folder: DataFolder) -> None:
    with write("outer"):
        execute("INSERT INTO pauses VALUES ('fetch', 'outer', '', '')")
        with pytest.raises(RuntimeError, match="a write inside a write"), write("inner"):
            raise AssertionError("the inner block must not run")
    assert all_rows("SELECT cause FROM pauses") == [("outer",)]


def test_an_error_inside_a_write_takes_all_of_it_back(folder: DataFolder) -> None:
    def go_wrong() -> None:
        with write("test"):
            execute("INSERT INTO pauses VALUES ('fetch', 'test', '', '')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_wrong()
    assert all_rows("SELECT * FROM pauses") == []
    with write("next"):  # and the connection is good for the next one
        execute("INSERT INTO pauses VALUES ('fetch', 'next', '', '')")
    assert all_rows("SELECT cause FROM pauses") == [("next",)]


def test_two_threads_do_not_share_a_transaction(folder: DataFolder) -> None:
    is_open, may_end = threading.Event(), threading.Event()

    def roll_back() -> None:
        with suppress(ZeroDivisionError), write("doomed"):
            execute("INSERT INTO pauses VALUES ('fetch', 'doomed', '', '')")
            is_open.set()
            may_end.wait(60)
            raise ZeroDivisionError
        close()

    thread = threading.Thread(target=roll_back)
    thread.start()
    assert is_open.wait(60)
    # The other one's row is not ours to see, and we are in no transaction.
    assert all_rows("SELECT * FROM pauses") == []
    assert not database.in_transaction()
    may_end.set()
    with write("mine"):  # waits for the other to end
        execute("INSERT INTO pauses VALUES ('fetch', 'mine', '', '')")
    thread.join(60)

    assert all_rows("SELECT cause FROM pauses") == [("mine",)]


def test_threads_that_write_at_once_lose_no_change(folder: DataFolder) -> None:
    add_tasks("t")
    barrier = threading.Barrier(4)
    problems: list[BaseException] = []

    def count() -> None:
        try:
            barrier.wait(60)
            for _ in range(25):
                with write("count"):
                    (n,) = one_row("SELECT attempts FROM tasks")
                    execute("UPDATE tasks SET attempts = ?", (n + 1,))
        except BaseException as problem:
            problems.append(problem)
        finally:
            close()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert problems == []
    assert one_row("SELECT attempts FROM tasks") == (100,)


@pytest.mark.parametrize(("point", "rows"), [("note.before_commit", 0), ("note.after_commit", 1)])
def test_a_kill_before_the_commit_leaves_nothing_and_one_after_it_everything(
    folder: DataFolder, point: str, rows: int
) -> None:
    environment = {**os.environ, "LIENWORKER_CRASH_AT": point}
    ended = subprocess.run(
        [sys.executable, "-c", _CRASH, str(folder.root)], env=environment, capture_output=True, text=True, timeout=60
    )

    assert (ended.returncode, ended.stdout) == (-9, "")
    assert len(all_rows("SELECT * FROM pauses")) == rows


def test_a_crash_point_with_a_mark_strikes_once(folder: DataFolder, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LIENWORKER_CRASH_AT": "note.before_commit",
        "LIENWORKER_CRASH_MARK": str(tmp_path / "mark"),
    }
    command = [sys.executable, "-c", _CRASH, str(folder.root)]
    ends = [subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60) for _ in range(2)]

    assert [end.returncode for end in ends] == [-9, 0]
    assert len(all_rows("SELECT * FROM pauses")) == 1


def test_a_process_can_turn_from_one_folder_to_another(folder: DataFolder, tmp_path: Path) -> None:
    add_tasks("here")
    other = open_store(tmp_path / "other")
    assert all_rows("SELECT task_id FROM tasks") == []
    open_store(folder.root)
    assert all_rows("SELECT task_id FROM tasks") == [("here",)]
    assert other.database.exists()


def test_ids_of_outbox_rows_are_never_used_again(folder: DataFolder) -> None:
    add_tasks("t")
    with write("test"):
        first = add_outbox_row("t")
        execute("DELETE FROM outbox")
        second = add_outbox_row("t")
    assert second > first


def test_a_full_disk_is_named_by_its_own_words(folder: DataFolder) -> None:
    """SQLite ends the transaction by itself then; what fails after that says nothing to anybody."""
    (pages,) = one_row("PRAGMA page_count")
    execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with write("test"):
            set_fact("large", "x" * 1_000_000)

    with pytest.raises(DATABASE_TROUBLE, match="disk is full"):
        fill()
    execute("PRAGMA max_page_count = 1000000")
    fill()
    assert one_row("SELECT length(value) FROM facts WHERE name = 'large'") == (1_000_000,)


def test_what_is_done_after_a_commit_is_not_held_any_longer(folder: DataFolder) -> None:
    """A log line of a list refers to its record, and the next transaction of the thread may be far off."""

    class Large:
        pass

    large = Large()
    is_alive = weakref.ref(large)
    with write("test"):
        after_commit(lambda kept=large: None)
    del large
    assert is_alive() is None
