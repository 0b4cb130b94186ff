"""A salvage copies what can be read around the broken pages of a database, wherever in a table they are."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, close, connect, execute, execute_many, open_store, write
from lienworker.repair.salvage import salvage

_PAGE = 4096
#: Ids do not begin with 1 where the oldest tasks were purged.
_FIRST_ID, _N = 1_000_000, 6_000


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of tasks as SQLite leaves it on disk."""
    folder = open_store(tmp_path_factory.mktemp("stocked"))
    with write("test"):
        execute_many(
            "INSERT INTO tasks (rowid, task_id, source, url, created_at, received_at, updated_at)"
            " VALUES (?, ?, 'cli', 'http://example.com/', '', '', '')",
            ((_FIRST_ID + n, f"t{n:05}") for n in range(_N)),
        )
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    close()
    return folder.database.read_bytes()


@pytest.fixture
def folder(stocked: bytes, tmp_path: Path) -> Iterator[DataFolder]:
    folder = DataFolder(tmp_path / "data").create()
    folder.database.write_bytes(stocked)
    yield folder
    close()


def leaves(folder: DataFolder) -> list[tuple[int, int]]:
    """The pages that the tasks lie on, in the order of their rows, each with how many it has."""
    with contextlib.closing(sqlite3.connect(folder.database)) as connection:
        sql = "SELECT pageno, ncell FROM dbstat WHERE name = 'tasks' AND pagetype = 'leaf' ORDER BY path"
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not tell where its pages are")


@pytest.mark.parametrize("broken", [[0], [-1], [50], [20, 21, 40], [0, 30, 31], [10, 60, -1]], ids=str)
def test_only_the_rows_of_broken_pages_are_lost(folder: DataFolder, broken: list[int]) -> None:
    pages = leaves(folder)
    lost = 0
    with folder.database.open("r+b") as file:
        for place in broken:
            number, rows = pages[place]
            lost += rows
            file.seek((number - 1) * _PAGE)
            file.write(bytes(_PAGE))
    connect(folder.database)
    saved = salvage(folder, frozenset())
    assert saved.rows["tasks"] == _N - lost
    assert saved.damaged == ["tasks"]
    rows = all_rows("SELECT rowid, task_id FROM tasks")
    assert all(rowid == _FIRST_ID + int(task_id[1:]) for rowid, task_id in rows), "rows keep their order"


def test_a_whole_database_is_copied_whole(folder: DataFolder) -> None:
    connect(folder.database)
    saved = salvage(folder, frozenset())
    assert (saved.rows["tasks"], saved.damaged) == (_N, [])
    assert saved.in_words().startswith("database: nothing was lost; saved 6,000 tasks")
