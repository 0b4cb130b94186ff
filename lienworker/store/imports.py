"""Imports: which file brought what."""

from __future__ import annotations

from typing import Any, Protocol

from lienworker.store.clock import rfc3339
from lienworker.store.database import dict_rows, execute, write


def start_import(name: str) -> int:
    with write("import_start"):
        sql = "INSERT INTO imports (name, status, started_at) VALUES (?, 'running', ?)"
        row_id = execute(sql, (name, rfc3339())).lastrowid
    assert row_id is not None
    return row_id


class Progress(Protocol):
    """What an import counts."""

    rows: int
    added: int
    known: int
    refreshed: int
    rejected: int


def note_progress(import_id: int, so_far: Progress) -> None:
    """The counts so far. Part of the transaction that adds the rows, so they are true after a kill too."""
    execute(
        "UPDATE imports SET rows = ?, added = ?, known = ?, refreshed = ?, rejected = ? WHERE id = ?",
        (so_far.rows, so_far.added, so_far.known, so_far.refreshed, so_far.rejected, import_id),
    )


def finish_import(import_id: int, status: str, rejects_path: str | None) -> None:
    with write("import_end"):
        execute(
            "UPDATE imports SET status = ?, rejects_path = ?, finished_at = ? WHERE id = ?",
            (status, rejects_path, rfc3339(), import_id),
        )


def imports(limit: int = 50) -> list[dict[str, Any]]:
    return list(dict_rows("SELECT * FROM imports ORDER BY id DESC LIMIT ?", (limit,)))
