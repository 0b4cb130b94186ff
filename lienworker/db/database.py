"""The one database of a process, and the one way to write to it.

Peewee keeps a connection (and its transaction) per thread. So all database work is done in plain synchronous code on
the thread that needs it, never in a coroutine: two coroutines on one thread would share one transaction.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import peewee

from lienworker.data_folder import DataFolder, create_private
from lienworker.db.clock import rfc3339
from lienworker.db.usage import opening
from lienworker.errors import InputError, StoreError
from lienworker.failpoints import failpoint
from lienworker.trust import trust_data_folder

if TYPE_CHECKING:
    import sqlite3
else:
    # The library that Peewee itself uses (it prefers `pysqlite3` where that is installed): a second copy of SQLite in
    # one process would know nothing of the first one's locks, and drop them. So nothing else imports `sqlite3`.
    sqlite3 = peewee.sqlite3


SQLITE_VERSION: str = sqlite3.sqlite_version
#: Seconds that a writer waits for another one. Our own transactions take milliseconds; a foreign one may take longer.
BUSY_TIMEOUT = 30
#: What the database itself can raise: locked, full, damaged. `executemany` raises sqlite3's own errors.
DATABASE_TROUBLE = (peewee.DatabaseError, sqlite3.Error)

#: A file that was opened while its disk was read-only stays read-only for that connection; after an I/O error, too, a
#: new connection is the safe choice.
_STALE = ("readonly database", "disk I/O error")
_DAMAGE = ("malformed", "not a database", "corrupt")


class Database(peewee.SqliteDatabase):
    def rollback(self) -> None:
        """Skip what a full disk has already rolled back, so that the first error is the one reported."""
        if self.connection().in_transaction:  # type: ignore[no-untyped-call]
            super().rollback()


class _Thread(threading.local):
    """What a thread will call once its transaction is committed."""

    def __init__(self) -> None:
        self.afterwards: list[Callable[[], None]] = []


database: peewee.SqliteDatabase = Database(None)
_writing = threading.Lock()
_thread = _Thread()


def open_store(root: Path) -> DataFolder:
    """Open the database of a data folder, creating both and upgrading an old file."""
    trust_data_folder(root)
    folder = DataFolder(root).create()
    try:
        with opening(folder):  # switching to WAL does not wait for other processes
            _open(folder)
    except DATABASE_TROUBLE as problem:
        raise StoreError(f"{folder.database} cannot be used: {problem}. `lienworker doctor` says more.") from None
    except OSError as problem:
        raise StoreError(f"The data folder {root} cannot be used: {problem.strerror}.") from None
    return folder


def _open(folder: DataFolder) -> None:
    from lienworker.db.migrations import migrate

    if folder.salvaged.exists():
        raise StoreError(f"A repair of {folder.database} was interrupted: `lienworker doctor --repair` finishes it.")
    begin_file(folder.database)
    connect(folder.database)
    migrate()


def begin_file(path: Path) -> None:
    """Create a database that only its owner can read (it holds the passwords of proxies), unless it exists.

    A file must be empty to be set to release deleted pages bit by bit, so that happens here. It is not a pragma of each
    connection: on a file that has it already, SQLite would write it again, and wait for all writers.
    """
    create_private(path)
    if path.stat().st_size == 0:
        with closing(connection_to(path)) as new:
            new.execute("PRAGMA auto_vacuum = incremental")
            new.execute("PRAGMA journal_mode = wal")


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a database file and the files that SQLite keeps beside it."""
    return path, Path(f"{path}-wal"), Path(f"{path}-shm")


def connection_to(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection besides the one that Peewee keeps for this thread."""
    mode = "?mode=ro" if read_only else ""
    return sqlite3.connect(f"file:{quote(str(path))}{mode}", uri=True, timeout=BUSY_TIMEOUT)


def refuse_database(path: Path) -> None:
    """Refuse our own database as a file to read or write: opening and closing it would drop SQLite's locks."""
    try:
        about = path.stat()
        is_ours = database.database and any(os.path.samestat(about, file.stat()) for file in _existing())
    except (OSError, ValueError):  # no such file, or no path at all: the caller's open reports it
        return
    if is_ours:
        raise InputError(f"{path} is lienworker's own database; name another file.")


def _existing() -> list[Path]:
    return [file for file in files_of(Path(database.database)) if file.exists()]


def is_damage(problem: BaseException | None) -> bool:
    """Return whether SQLite says that the file itself is broken, so that another try is pointless."""
    return isinstance(problem, DATABASE_TROUBLE) and any(word in str(problem) for word in _DAMAGE)


def connect(path: Path) -> None:
    """Point this process at a database file."""
    if database.database != str(path):
        close()
        database.init(
            str(path),
            timeout=BUSY_TIMEOUT,
            cached_statements=256,
            pragmas={
                "journal_mode": "wal",
                # Durable across a power loss: FULL flushes the log at each commit. Commits are grouped for speed.
                "synchronous": "full",
                "foreign_keys": 1,
                "temp_store": "memory",
                "cache_size": -16_000,
                "journal_size_limit": 64 * 1024 * 1024,
            },
        )


def current_folder() -> DataFolder:
    """Return the data folder whose database this process has open."""
    return DataFolder(Path(database.database).parent)


def close() -> None:
    """Close this thread's connection; the next use opens a new one."""
    if not database.is_closed():
        database.close()


@contextmanager
def write(name: str) -> Iterator[None]:
    """Write in one IMMEDIATE transaction: the only way to write. No network call and no waiting inside.

    `name` is the name of the failpoints right before and right after the commit.
    """
    if database.in_transaction():
        raise RuntimeError("a write inside a write: pass the work to the outer transaction instead")
    _thread.afterwards = []
    try:
        with _in_turn(), database.atomic("IMMEDIATE"):
            yield
            failpoint(name, "before_commit")
    except DATABASE_TROUBLE as problem:
        if any(word in str(problem) for word in _STALE):
            close()
        raise
    failpoint(name, "after_commit")
    acts, _thread.afterwards = _thread.afterwards, []  # kept no longer than needed: they may hold records of 16 MB
    for act in acts:
        act()


def after_commit(act: Callable[[], None]) -> None:
    """Call `act` once the current transaction is committed, and never if it is rolled back.

    Log lines belong here: inside the transaction they would report what may yet be undone, and a slow reader of the log
    would block all writers.
    """
    if not database.in_transaction():
        raise RuntimeError("there is no transaction to follow")
    _thread.afterwards.append(act)


@contextmanager
def _in_turn() -> Iterator[None]:
    """Queue the writers of this process: SQLite would let them sleep, longer each time, while the file is free again.

    This is only a courtesy: a writer that waits too long continues and lets SQLite report that the database is locked.
    """
    mine = _writing.acquire(timeout=BUSY_TIMEOUT)
    try:
        yield
    finally:
        if mine:
            _writing.release()


def storable(text: str) -> str:
    """Return text that SQLite accepts: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def execute(sql: str, params: Sequence[Any] = ()) -> sqlite3.Cursor:
    """Run one statement as it is. Hot paths use this: building a query object costs more than running it."""
    cursor: sqlite3.Cursor = database.execute_sql(sql, params)
    return cursor


def execute_many(sql: str, rows: Iterable[Sequence[Any]]) -> int:
    """Run one statement for many rows; return how many rows it changed in all."""
    cursor: sqlite3.Cursor = database.connection().cursor()
    cursor.executemany(sql, rows)
    return cursor.rowcount


def all_rows(sql: str, params: Sequence[Any] = ()) -> list[Any]:
    return execute(sql, params).fetchall()


def one_row(sql: str, params: Sequence[Any] = ()) -> Any:
    return execute(sql, params).fetchone()


def dict_rows(sql: str, params: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield rows as dictionaries, one at a time: for listings and exports of any length."""
    cursor = execute(sql, params)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


# Small values that must survive a restart, by name: the last heartbeat, what the Gateway asked for.


def set_fact(name: str, value: str) -> None:
    """Store a small value by name. Part of a larger transaction."""
    execute(
        "INSERT INTO facts (name, value, at) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value, at = excluded.at",
        (name, storable(value), rfc3339()),
    )


def fact(name: str) -> str | None:
    row = one_row("SELECT value FROM facts WHERE name = ?", (name,))
    return str(row[0]) if row else None
