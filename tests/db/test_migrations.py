"""The schema's versions: an old file opens with a new program, a newer one is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db import migrations
from lienworker.db.database import all_rows, close, execute, open_store, write
from lienworker.db.migrations import Migration, applied_versions, known_migrations, schema_version
from lienworker.errors import StoreError
from tests.harness.store_rows import race


def test_an_empty_folder_gets_every_table_and_notes_every_version(folder: DataFolder) -> None:
    tables = {name for (name,) in all_rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    assert {"tasks", "results", "pages", "outbox", "hosts", "workers", "turns", "pauses", "audit"} <= tables
    assert [row[0] for row in applied_versions()] == [item.version for item in known_migrations()]


def test_an_empty_database_file_is_brought_up_to_date(tmp_path: Path) -> None:
    root = tmp_path / "data"
    DataFolder(root).create().database.touch()

    open_store(root)

    assert schema_version() == known_migrations()[-1].version
    close()


def test_opening_a_file_again_changes_nothing(folder: DataFolder) -> None:
    before = applied_versions()
    schema = all_rows("SELECT name, sql FROM sqlite_master ORDER BY name")
    close()

    open_store(folder.root)

    assert applied_versions() == before
    assert all_rows("SELECT name, sql FROM sqlite_master ORDER BY name") == schema


def test_processes_that_open_an_empty_folder_at_once_all_find_a_whole_database(tmp_path: Path) -> None:
    """Twenty folders, five processes: a few of them meet at each step of making a database."""
    imports = """
from lienworker.db.database import open_store
from lienworker.db.migrations import applied_versions

def versions(place):
    open_store(place)
    return [row[0] for row in applied_versions()]
"""
    answers = race(5, tmp_path, imports, "[at(k * 0.06, lambda: versions(root / str(k))) for k in range(20)]")

    wanted = [item.version for item in known_migrations()]
    assert answers == [[wanted] * 20] * 5


def test_a_newer_file_is_refused_with_a_sentence_that_says_what_to_do(folder: DataFolder) -> None:
    close()
    with sqlite3.connect(folder.database) as direct:
        direct.execute("INSERT INTO schema_versions VALUES (9999, 'from_the_future', '2099-01-01')")
    direct.close()

    with pytest.raises(StoreError, match=r"schema version 9999, this program knows \d+.*newer lienworker.*Install"):
        open_store(folder.root)


def test_an_old_file_gets_only_the_migrations_that_it_lacks(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = Migration(9998, "more", "CREATE TABLE more (n INTEGER)\n;;\nINSERT INTO more VALUES (7)")
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known_migrations(), more])

    open_store(folder.root)
    open_store(folder.root)

    assert all_rows("SELECT n FROM more") == [(7,)]
    assert schema_version() == 9998


@pytest.mark.parametrize("version", [item.version for item in known_migrations()])
def test_a_file_of_any_version_is_brought_up_to_date_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    open_store(tmp_path / "new")
    wanted = sorted(all_rows("SELECT type, name FROM sqlite_master"))
    migrations_then = [item for item in known_migrations() if item.version <= version]
    with monkeypatch.context() as then:
        then.setattr(migrations, "known_migrations", lambda: migrations_then)
        open_store(tmp_path / "old")
    with write("test"):
        execute(
            "INSERT INTO tasks (task_id, source, url, created_at, received_at, updated_at)"
            " VALUES ('t', 'cli', 'http://a', '', '', '')"
        )

    open_store(tmp_path / "old")

    assert sorted(all_rows("SELECT type, name FROM sqlite_master")) == wanted
    assert all_rows("SELECT task_id, status FROM tasks") == [("t", "pending")]
    assert all_rows("SELECT n FROM tally") == [(1,)]


def test_a_migration_that_fails_leaves_nothing_behind(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Migration(9998, "broken", "CREATE TABLE half (n INTEGER)\n;;\nINSERT INTO nowhere VALUES (1)")
    before = schema_version()
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known_migrations(), broken])

    with pytest.raises(StoreError, match="cannot be used"):
        open_store(folder.root)

    assert schema_version() == before
    assert all_rows("SELECT name FROM sqlite_master WHERE name = 'half'") == []


def test_a_file_that_is_no_database_is_a_store_error_with_its_name(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data").create()
    data.database.write_bytes(b"this is a letter, not a database" * 100)

    with pytest.raises(StoreError, match=r"lienworker\.db cannot be used"):
        open_store(data.root)
    close()
