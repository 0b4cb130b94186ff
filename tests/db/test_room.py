"""Migration 8 edits large tables in place: kills in the middle, other processes, files that are not ours."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db import migrations
from lienworker.db.database import all_rows, close, execute, open_store, write
from lienworker.db.migrations import _statements, known_migrations, schema_version
from lienworker.errors import StoreError
from lienworker.repair.checks import unusable_rows
from lienworker.repair.rebuild import rebuild_tasks
from lienworker.store.damage import integrity_problems
from tests.db.test_upgrades import DUMPS, old_folder
from tests.harness.store_rows import add_outbox_row, add_tasks, store_result

_BEFORE = next(path for path in DUMPS if path.stem == "0007")
_ROOM = next(item for item in known_migrations() if item.version == 8)
_STEPS = len(_statements(_ROOM.sql))
_ROWS = 5_000
_PAGE = (
    "INSERT OR REPLACE INTO pages (task_id, generation, path, sha256, size, url, status, content_type, charset, etag,"
    " last_modified, fetched_at, fetch_ms)"
    " VALUES (?, ?, 'raw/a.html.gz', '0', 1, 'http://a', 200, 'text/html', NULL, NULL, NULL, '2026-10-09', 5)"
)
#: Opens a folder and dies at the nth time of a point, or after so many thousand steps of SQLite's machine.
_VICTIM = """
import os, signal, sys
from pathlib import Path
from lienworker import failpoints as crash
from lienworker.db import database as store

root, point, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
left = n
def reached(name):
    global left
    left -= name == point
    if left == 0 and point != "vm":
        die()
crash.watch(reached)
if point == "vm":
    store.connect(root / "lienworker.db")
    ticks = iter(range(n))
    store.database.connection().set_progress_handler(lambda: next(ticks, None) is None and die(), 1000)
store.open_store(root)
"""


@pytest.fixture
def old(tmp_path: Path) -> DataFolder:
    """A folder of the version before, with some thousand pages."""
    folder = old_folder(tmp_path / "data", _BEFORE)
    with contextlib.closing(sqlite3.connect(folder.database)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.executemany(
            "INSERT INTO tasks (task_id, source, created_at, received_at, updated_at) VALUES (?, 'cli', '', '', '')",
            ((f"t{n * 7919 % _ROWS}",) for n in range(_ROWS)),
        )
        connection.executemany(_PAGE, ((f"t{n}", 1 + n % 3) for n in range(_ROWS)))
        connection.execute("DELETE FROM pages WHERE rowid % 10 = 3")  # row ids with gaps, which must stay
        connection.commit()
    return folder


_ADDED_TABLES = (
    "sessions",
    "unsafe_posts",
    "list_columns",
    "result_columns",
    "paused_counties",
    "host_paces",
    "harvests",
)
_ADDED_COLUMNS = (
    "part", "doubts", "ranges", "position", "sent_name", "flow_width", "requests", "platform_learned",
    "operator_delay", "operator_concurrency", "over_robots", "ended", "due_by", "auction",
    "options", "source_task", "source_index", "raw_id",
)  # fmt: skip
#: Of one table only: `field_history` has a column of this name from the beginning.
_ADDED_TO_HOSTS = ("paused_at",)


def _content(path: Path) -> dict[str, list[Any]]:
    """Everything in the file by table, with row ids, but for what this migration and later ones add."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = connection.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
        found = {}
        for table, has_no_rowid in tables.fetchall():
            if table in _ADDED_TABLES:
                continue
            names = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            columns = ", ".join(f'"{name}"' for (name,) in names if not _is_added(table, name))
            order = "1, 2" if has_no_rowid else "rowid"
            sql = f"SELECT {'' if has_no_rowid else 'rowid, '}{columns} FROM {table} ORDER BY {order}"
            found[table] = connection.execute(sql).fetchall() if not table.startswith("sqlite_s") else []
        found["schema_versions"] = [row for row in found["schema_versions"] if row[1] < 8]
        found["facts"] = [row for row in found["facts"] if row[0] != "columns_unknown"]
        return found


def _is_added(table: str, column: str) -> bool:
    return column in _ADDED_COLUMNS or (table == "hosts" and column in _ADDED_TO_HOSTS)


def _kill(folder: DataFolder, point: str, n: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _VICTIM, str(folder.root), point, str(n)], check=False, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, (point, n, done.stderr)


@pytest.mark.parametrize(
    ("point", "n"),
    [
        *(("migration.statement", n) for n in (1, 2, 3, _STEPS - 2, _STEPS - 1, _STEPS)),
        *(("vm", n) for n in (5, 15, 25, 35, 45)),
        ("migration.before_commit", 1),
        ("migration.after_commit", 1),
    ],
)
def test_a_kill_in_the_middle_and_another_lose_nothing(old: DataFolder, point: str, n: int) -> None:
    before = _content(old.database)

    for _ in range(2):
        _kill(old, point, n)
        assert _content(old.database) == before
        if point == "migration.after_commit":
            break

    open_store(old.root)
    assert schema_version() == known_migrations()[-1].version
    assert all_rows("SELECT DISTINCT part FROM pages") == [("page",)]
    assert integrity_problems(old.database) == []
    close()
    assert _content(old.database) == before


def test_files_of_every_version_come_to_the_very_schema_of_a_new_one(tmp_path: Path) -> None:
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2"
    open_store(tmp_path / "new")
    wanted = all_rows(schema)
    for dump in DUMPS:
        old_folder(tmp_path / dump.stem, dump)
        open_store(tmp_path / dump.stem)
        assert all_rows(schema) == wanted, dump.stem
    close()


def test_a_process_of_the_version_before_works_on_beside_the_upgrade(old: DataFolder) -> None:
    with contextlib.closing(sqlite3.connect(old.database, isolation_level=None)) as theirs:
        read = "SELECT path FROM pages WHERE task_id = 't5' AND generation = 3"
        assert theirs.execute(read).fetchall() == [("raw/a.html.gz",)]

        open_store(old.root)

        assert theirs.execute(read).fetchall() == [("raw/a.html.gz",)]
        for _ in range(2):
            theirs.execute(_PAGE, ("t5", 4))
        assert theirs.execute("SELECT part FROM pages WHERE task_id = 't5' AND generation = 4").fetchall() == [
            ("page",)
        ]
    assert integrity_problems(old.database) == []
    close()


def test_an_upgrade_waits_for_a_writer_and_keeps_what_it_wrote(old: DataFolder) -> None:
    with contextlib.closing(sqlite3.connect(old.database, isolation_level=None)) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        theirs.execute(_PAGE, ("t5", 9))
        opening = [sys.executable, "-c", "import sys; from pathlib import Path; from lienworker.db.database import"]
        opening[-1] += " open_store; print('began', flush=True); open_store(Path(sys.argv[1]))"
        with subprocess.Popen([*opening, str(old.root)], stdout=subprocess.PIPE, text=True) as newcomer:
            assert newcomer.stdout is not None
            assert newcomer.stdout.readline() == "began\n"
            with pytest.raises(subprocess.TimeoutExpired):
                newcomer.wait(0.5)
            theirs.execute("COMMIT")
            assert newcomer.wait(30) == 0
        found = theirs.execute("SELECT part FROM pages WHERE task_id = 't5' AND generation = 9").fetchall()
    assert found == [("page",)]


def test_tables_that_are_not_ours_are_left_as_they_are(tmp_path: Path) -> None:
    text = _BEFORE.read_text(encoding="utf-8")
    (tmp_path / "odd.sql").write_text(text.replace("html_path TEXT NOT NULL", "html_path VARCHAR NOT NULL"))
    folder = old_folder(tmp_path / "data", tmp_path / "odd.sql")
    before = _content(folder.database)

    with pytest.raises(StoreError, match="not as lienworker made them"):
        open_store(folder.root)

    assert schema_version() == 7
    with pytest.raises(Exception, match="may not be modified"), write("test"):
        execute("UPDATE sqlite_schema SET sql = '' WHERE name = 'tasks'")
    close()
    assert _content(folder.database) == before


def test_a_failure_after_the_edits_undoes_them(old: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _ROOM._replace(sql=_ROOM.sql.rstrip() + "\n;;\nINSERT INTO nowhere VALUES (1)")
    others = [item for item in known_migrations() if item.version < 8]
    before = _content(old.database)
    with monkeypatch.context() as then:
        then.setattr(migrations, "known_migrations", lambda: [*others, broken])
        with pytest.raises(StoreError, match="nowhere"):
            open_store(old.root)
        assert schema_version() == 7

    open_store(old.root)

    assert schema_version() == known_migrations()[-1].version
    close()
    assert _content(old.database) == before


def test_there_is_room_for_new_words_rows_without_a_task_and_several_pages(folder: DataFolder) -> None:
    add_tasks("t")
    with write("test"):
        execute("INSERT INTO outbox (topic, generation, queue, priority, state, due_at, created_at)"
                " VALUES ('notify', 1, 'default', 3, 'resting', 0, 0)")  # fmt: skip
        execute("UPDATE tasks SET source = 'pool'")
        for part in ("page", "history"):
            execute(_PAGE, ("t", 1))
            execute("UPDATE pages SET part = ? WHERE part = 'page'", (part,))
    with write("test"):
        execute(_PAGE, ("t", 1))
    assert sorted(all_rows("SELECT generation, part FROM pages")) == [(1, "history"), (1, "page")]
    with pytest.raises(Exception, match="UNIQUE"), write("test"):
        execute("UPDATE pages SET part = 'page'")
    store_result("t")
    with write("test"):
        execute("UPDATE results SET html_path = NULL")


def test_words_that_damage_made_are_found_and_mended(folder: DataFolder) -> None:
    add_tasks("p-" + "0" * 32, "the-hubs")
    with write("test"):
        add_outbox_row("the-hubs")
        add_outbox_row("the-hubs", "upload_raw", state="waitinh")
        add_outbox_row("the-hubs", "fftch")
        execute("UPDATE tasks SET source = 'clj'")
    assert unusable_rows() == 4

    with write("test"):
        rebuild_tasks()

    assert unusable_rows() == 0
    assert all_rows("SELECT topic, state FROM outbox") == [("fetch", "waiting")]
    assert sorted(all_rows("SELECT source FROM tasks")) == [("gateway",), ("local_file",)]
