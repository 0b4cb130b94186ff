"""What can still be read of a damaged database, copied into a new one, table by table.

SQLite says "malformed" for a whole statement, however small the damage is. So each table is read in ranges of its
row ids, and a range that cannot be read is halved until the unreadable rows are alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lienworker.repair.orphans import MadeAgain, make_pages_again, mend_rows
from lienworker.store.database import (
    DATABASE_TROUBLE,
    all_rows,
    begin_file,
    close,
    connect,
    connection_to,
    database,
    execute,
    execute_many,
    one_row,
    write,
)
from lienworker.store.migrations import migrate

if TYPE_CHECKING:
    import sqlite3

#: Ranges in a row that cannot be read; after that many the rest of a table is given up.
_MOST_FAILURES = 20_000
#: Row ids that are asked for at a time.
_RANGE = 5_000
#: Processes of the past: leases and turns that nobody holds any more.
_NOT_COPIED = frozenset({"workers", "turns", "schema_versions", "sqlite_sequence", "sqlite_stat1"})


@dataclass(slots=True)
class Salvaged:
    """What became of the tables: rows saved, and where rows were lost."""

    rows: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    #: How many tasks there were, by the old file's own count; None where that cannot be read.
    tasks_before: int | None = None
    made_again: MadeAgain = field(default_factory=MadeAgain)


def integrity_problems(most: int = 5) -> list[str]:
    """What SQLite itself finds wrong with the open file; nothing where all is well."""
    try:
        words = [str(row[0]) for row in all_rows(f"PRAGMA integrity_check({most:d})")]
    except DATABASE_TROUBLE as problem:
        words = [str(problem)]
    return [] if words == ["ok"] else words


def unusable_rows() -> int:
    """Rows whose task is not there, and rows whose JSON is none: SQLite itself does not see these."""
    (results,) = one_row("SELECT count(*) FROM results WHERE NOT json_valid(data)")
    (targets,) = one_row("SELECT count(*) FROM tasks WHERE NOT json_valid(target_json)")
    return len(all_rows("PRAGMA foreign_key_check")) + int(results) + int(targets)


def rebuild_indexes() -> bool:
    """True where the damage was in indexes only, which are made again from their tables."""
    try:
        with write("reindex"):
            execute("REINDEX")
    except DATABASE_TROUBLE:
        return False
    return not integrity_problems(1)


def salvage_into(broken: Path, new: Path, leave_out: Collection[str]) -> Salvaged:
    """Makes `new` with all that can be read of `broken`, and with what that tells of the rest.

    Tables to leave out are counted again by the caller. The broken file is read over a connection of its own: its
    errors would spoil a transaction that it is part of.
    """
    new.unlink(missing_ok=True)
    close()
    begin_file(new)
    connect(new)
    migrate()
    saved = Salvaged()
    with contextlib.closing(connection_to(broken)) as source, write("salvage"):
        execute("PRAGMA defer_foreign_keys = 1")
        triggers = all_rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in triggers:
            execute(f"DROP TRIGGER {name}")
        _copy_tables(source, saved, leave_out)
        saved.tasks_before = _tasks_before(source)
        saved.made_again = mend_rows()
        saved.made_again.pages = make_pages_again(broken.parent)
        for _, sql in triggers:
            execute(sql)
    return saved


def _copy_tables(source: sqlite3.Connection, saved: Salvaged, leave_out: Collection[str]) -> None:
    tables = [row[0] for row in all_rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    for table in tables:
        if table not in _NOT_COPIED and table not in leave_out:
            copier = _Copier(source, table, _shared_columns(source, table))
            copier.copy()
            saved.rows[table] = copier.rows
            saved.damaged += [table] * copier.is_damaged
    _keep_sequences(source)
    execute("UPDATE outbox SET state = 'waiting', lease_token = NULL, lease_until = NULL WHERE state = 'leased'")
    execute("UPDATE tasks SET status = 'pending' WHERE status = 'processing'")


def _shared_columns(source: sqlite3.Connection, table: str) -> list[str]:
    """What both files have; generated columns make themselves. None where the old file has no such table."""
    sql = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0"
    theirs = {row[0] for row in _read(source, sql, table) or ()}
    return [name for (name,) in all_rows(sql, (table,)) if name in theirs]


def _read(source: sqlite3.Connection, sql: str, *params: object) -> list[tuple[object, ...]] | None:
    """The rows; None where the damage is in the way."""
    try:
        return source.execute(sql, params).fetchall()
    except (*DATABASE_TROUBLE, UnicodeDecodeError):
        return None


@dataclass(slots=True)
class _Copier:
    source: sqlite3.Connection
    table: str
    names: list[str]
    rows: int = 0
    is_damaged: bool = False
    _failures: int = 0

    def copy(self) -> None:
        if not self.names:  # a file of an older version has no such table, which is no damage
            self.is_damaged = _read(self.source, "SELECT 1 FROM sqlite_master WHERE name = ?", self.table) != []
        elif self._has_rowid():
            lowest, highest = self._ends()
            for low in range(lowest, highest + 1, _RANGE):
                self._copy_range(low, min(low + _RANGE - 1, highest))
        else:
            self._copy_from_both_ends()

    @property
    def columns(self) -> str:
        return ", ".join(self.names)

    def _has_rowid(self) -> bool:
        found = one_row("SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (self.table,))
        return not (found and found[0])

    def _copy_range(self, low: int, high: int) -> None:
        ranges = [(low, high)]
        while ranges and self._failures < _MOST_FAILURES:
            low, high = ranges.pop()
            found = _read(
                self.source, f"SELECT {self.columns} FROM {self.table} WHERE rowid BETWEEN ? AND ?", low, high
            )
            if found is not None:
                self._keep(found)
                self._failures = 0
                continue
            self.is_damaged = True
            self._failures += 1
            middle = (low + high) // 2
            if low < high:
                ranges += [(middle + 1, high), (low, middle)]

    def _ends(self) -> tuple[int, int]:
        """The row ids to look at. Where an end of the table is the damage, its counter of ids knows more."""
        for sql in (
            f"SELECT coalesce(min(rowid), 0), coalesce(max(rowid), -1) FROM {self.table}",
            f"SELECT 0, max(seq, 0) FROM sqlite_sequence WHERE name = '{self.table}'",
        ):
            found = _read(self.source, sql)
            if found:
                low, high = found[0]
                assert isinstance(low, int)
                assert isinstance(high, int)
                return low, high
            self.is_damaged = True
        return 0, _MOST_FAILURES

    def _copy_from_both_ends(self) -> None:
        """Such tables have no row ids to go by, and are small."""
        for order in ("ASC", "DESC"):
            try:
                for row in self.source.execute(f"SELECT {self.columns} FROM {self.table} ORDER BY 1 {order}"):
                    self._keep([row])
                return
            except DATABASE_TROUBLE:
                self.is_damaged = True

    def _keep(self, rows: list[tuple[object, ...]]) -> None:
        """A row that breaks a rule of the schema is part of the damage."""
        marks = ", ".join("?" * len(self.names))
        kept = execute_many(f"INSERT OR IGNORE INTO {self.table} ({self.columns}) VALUES ({marks})", rows)
        self.rows += max(kept, 0)


def _keep_sequences(source: sqlite3.Connection) -> None:
    """An id that was given once is never given again, also where its row is lost."""
    for name, seq in _read(source, "SELECT name, seq FROM sqlite_sequence") or ():
        execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (seq, name))


def _tasks_before(source: sqlite3.Connection) -> int | None:
    found = _read(source, "SELECT sum(n) FROM tally WHERE kind = 'task'")
    n = found[0][0] if found else None
    return n if isinstance(n, int) else None


def close_for_good() -> None:
    """Empty the log into the file, flush that and close it, so that the file alone is the database.

    SQLite flushes it: nobody else opens the file, not even for that.
    """
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
