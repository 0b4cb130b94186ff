"""The versions of the schema. An old file opens with a new program; a newer file is refused, not guessed at.

Each migration is a file `schema/NNNN_name.sql`, applied once, in order, each in one transaction: a kill in the middle
of one leaves the file as it was, and the next start applies it. A process that opens a store holds `open.lock`, so
newcomers wait for an upgrade; a process of an older version that has the file open waits for the transaction as it
would for any other.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.errors import StoreError
from lienworker.failpoints import failpoint

#: The beginning of a statement that edits the text of a table in SQLite's own schema table.
_EDIT = "UPDATE sqlite_schema"


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


def known_migrations() -> list[Migration]:
    """Return the migrations that this program carries, oldest first."""
    files = [file for file in resources.files("lienworker.db.schema").iterdir() if file.name.endswith(".sql")]
    found = []
    for file in sorted(files, key=lambda item: item.name):
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return found


def schema_version() -> int:
    """Return the version of the open file; 0 for an empty one."""
    there = one_row("SELECT 1 FROM sqlite_master WHERE name = 'schema_versions'")
    return int(one_row("SELECT coalesce(max(version), 0) FROM schema_versions")[0]) if there else 0


def migrate() -> None:
    """Upgrade the open file to this program's version."""
    migrations = known_migrations()
    newest = migrations[-1].version
    current = schema_version()
    if current > newest:
        raise StoreError(
            f"The database has schema version {current}, this program knows {newest}: "
            "it was written by a newer lienworker. Install that version, or use another data folder."
        )
    for migration in migrations:
        if migration.version > current:
            _apply(migration)


def _apply(migration: Migration) -> None:
    with write("migration"):
        # Another process may have been first: check again, now that nobody else can write.
        if schema_version() >= migration.version:
            return
        try:
            for statement in _statements(migration.sql):
                _run(statement)
        finally:
            # Switched on by an edit of the schema; switched off also where that edit fails halfway.
            execute("PRAGMA writable_schema = RESET")
        execute(
            "INSERT INTO schema_versions (version, name, applied_at) VALUES (?, ?, ?)",
            (migration.version, migration.name, rfc3339()),
        )


def _run(statement: str) -> None:
    changed = execute(statement).rowcount
    failpoint("migration.statement")
    if _EDIT in statement and changed != 1:
        raise StoreError(
            "The tables of this database are not as lienworker made them, so it was not upgraded. Restore a backup, or"
            " use another data folder."
        )


def _statements(sql: str) -> list[str]:
    """Split a script at lines that hold only `;;`, since triggers contain semicolons."""
    return [part.strip() for part in sql.split("\n;;\n") if part.strip()]


def applied_versions() -> list[tuple[int, str, str]]:
    return all_rows("SELECT version, name, applied_at FROM schema_versions ORDER BY version")
