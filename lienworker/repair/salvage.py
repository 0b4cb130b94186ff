"""A damaged database: what can still be read of it is copied into a new file, which then replaces it.

SQLite reports "malformed" for a whole statement, however small the damage is. So each table is read from its beginning
and from its end up to the damage. What is in between is read by ranges of row ids, and a range that cannot be read is
halved until the unreadable rows are isolated.

The new file grows as `.lienworker.db.part` and is renamed to `lienworker.db.salvaged` only when it is complete. From
then on it is authoritative: a repair that finds it finishes the swap, so a kill at any point loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lienworker.data_folder import DataFolder, fsync_folder, rename
from lienworker.db.database import (
    DATABASE_TROUBLE,
    all_rows,
    begin_file,
    close,
    connect,
    connection_to,
    execute,
    execute_many,
    files_of,
    one_row,
    write,
)
from lienworker.db.migrations import migrate
from lienworker.outbox import transitions
from lienworker.repair.quarantine import put_into_quarantine
from lienworker.repair.rebuild import rebuild_pages, rebuild_tasks
from lienworker.repair.report import Salvaged
from lienworker.store import columns

if TYPE_CHECKING:
    import sqlite3

#: Reads in a row that failed; after that many the rest of a table is given up.
_MOST_FAILURES = 20_000
_HIGHEST_ID = 2**63 - 1
#: Leases and turns of dead processes, and tables that the new file has already.
_NOT_COPIED = frozenset({"workers", "turns", "schema_versions", "sqlite_schema", "sqlite_sequence", "sqlite_stat1"})
_COLUMNS = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0"  # generated ones fill themselves


def part_of(folder: DataFolder) -> Path:
    """Return the path of the growing new file."""
    return folder.root / ".lienworker.db.part"


def salvage(folder: DataFolder, leave_out: Collection[str]) -> Salvaged:
    """Open a new database with all that can be read of the broken one, and with what that tells of the rest.

    Tables to leave out are filled by the caller. The broken file is read over a separate connection: its errors would
    spoil a transaction that it is part of.
    """
    part_of(folder).unlink(missing_ok=True)
    close()
    begin_file(part_of(folder))
    connect(part_of(folder))
    migrate()
    saved = Salvaged()
    with closing(connection_to(folder.database)) as broken, write("salvage"):
        execute("PRAGMA defer_foreign_keys = 1")
        triggers = all_rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in triggers:
            execute(f"DROP TRIGGER {name}")
        for table, wr in all_rows("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"):
            if table not in _NOT_COPIED and table not in leave_out:
                _copy_table(broken, table, not wr, saved)
        for name, seq in _read(broken, "SELECT name, seq FROM sqlite_sequence") or ():  # no id is ever used twice
            execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (seq, name))
        transitions.free_all_leases()
        execute("UPDATE tasks SET status = 'pending' WHERE status = 'processing'")
        counted = _read(broken, "SELECT sum(n) FROM tally WHERE kind = 'task'")
        saved.tasks_before = counted[0][0] if counted else None
        saved.tasks_rebuilt, saved.addresses_lost = rebuild_tasks()
        saved.pages_rebuilt = rebuild_pages(folder)
        columns.forget("since a repair")
        for _, sql in triggers:
            execute(sql)
    return saved


def _copy_table(broken: sqlite3.Connection, table: str, has_rowid: bool, saved: Salvaged) -> None:
    theirs = _read(broken, _COLUMNS, table) or []
    names = [row[0] for row in all_rows(_COLUMNS, (table,)) if row in theirs]
    if names:
        copier = _Copier(broken, table, ["rowid", *names] if has_rowid else names)
        is_whole = copier.copy_rows(has_rowid)
    else:  # a file of an older version has no such table, which is not damage
        is_whole = _read(broken, "SELECT 1 FROM sqlite_master WHERE name = ?", table) == []
    saved.rows[table] = one_row(f"SELECT count(*) FROM {table}")[0]
    saved.damaged += [] if is_whole else [table]


def _read(broken: sqlite3.Connection, sql: str, *params: object) -> list[tuple[Any, ...]] | None:
    """Return the rows; None where damage prevents it."""
    try:
        return broken.execute(sql, params).fetchall()
    except (*DATABASE_TROUBLE, UnicodeDecodeError):
        return None


class _Copier:
    """Copies the rows of one table. Their first column is the key that they are read by."""

    def __init__(self, broken: sqlite3.Connection, table: str, names: list[str]) -> None:
        columns, marks = ", ".join(names), ", ".join("?" * len(names))
        self._broken = broken
        self._select = f"SELECT {columns} FROM {table} "
        # A row that breaks a rule of the schema is part of the damage.
        self._insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
        self._last: Any = None
        self._is_whole = True

    def copy_rows(self, has_rowid: bool) -> bool:
        """Copy what can be read; return whether that was everything."""
        if self._take("ORDER BY 1"):
            return True
        first, self._last = self._last, None
        is_over = self._take("ORDER BY 1 DESC")  # a single bad read, perhaps
        if has_rowid and not is_over:
            self._take_between(first, self._last)
        return False

    def _take_between(self, after: int | None, before: int | None) -> None:
        """Copy the rows between two ids, starting at a known one: ids that were never used fail as well."""
        low, high = -1 if after is None else after, _HIGHEST_ID if before is None else before
        ranges, failures = [(low + 1, high - 1)], 0
        while ranges and failures < _MOST_FAILURES:
            low, high = ranges.pop()
            # With a limit SQLite does not look for a further row, which may be on a broken page.
            if self._take("WHERE rowid BETWEEN ?1 AND ?2 ORDER BY 1 LIMIT 1 + ?2 - ?1", low, high):
                failures = 0
                continue
            failures += 1
            middle = (low + high) // 2
            halves = [(low, middle), (middle + 1, high)] if low < high else []
            ranges += halves if after is None else reversed(halves)

    def _take(self, which: str, *params: int) -> bool:
        """Copy rows up to the first that cannot be read; return whether there was none."""
        self._is_whole = True
        execute_many(self._insert, self._rows(which, params))
        return self._is_whole

    def _rows(self, which: str, params: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield rows of the broken file. Only its errors are caught: those of the new file are the caller's."""
        try:
            for row in self._broken.execute(self._select + which, params):
                self._last = row[0]
                yield row
        except (*DATABASE_TROUBLE, UnicodeDecodeError):
            self._is_whole = False


def declare_whole(folder: DataFolder) -> None:
    """Give the new file the name that makes it authoritative. SQLite flushes it: nothing else ever opens it."""
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    close()
    rename(part_of(folder), folder.salvaged, "salvaged")
    fsync_folder(folder.root)


def finish_swap(folder: DataFolder, stamp: str) -> None:
    """Move the broken file with its log to quarantine and the new one into its place."""
    for path in reversed(files_of(folder.database)):  # a log without its file is harmless; beside another it is not
        if path.exists():
            put_into_quarantine(folder, path, stamp)
    rename(folder.salvaged, folder.database, "swap")
    fsync_folder(folder.root)
