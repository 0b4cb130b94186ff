"""Returning the space of deleted rows to the disk: bit by bit, or by rewriting the whole file."""

from __future__ import annotations

import shutil
import time

from lienworker.data_folder import DataFolder
from lienworker.db.database import database, execute, one_row, write
from lienworker.errors import StoreError
from lienworker.maintenance.disk_limits import database_size, free_mb

#: Free pages to keep: returning all of them would mean allocating them again a moment later.
_SLACK_PAGES = 2000
_SLACK_SHARE = 0.1
#: How long a step may keep other writers waiting, s.
_STEP_SECONDS = 0.02
_INCREMENTAL = 2
_MB = 1_000_000


def can_shrink() -> bool:
    """Return whether this file can shrink bit by bit; one from an old version needs one full vacuum first."""
    return bool(one_row("PRAGMA auto_vacuum")[0] == _INCREMENTAL)


def free_pages() -> tuple[int, int]:
    """Return the number of free pages, and of all pages."""
    return int(one_row("PRAGMA freelist_count")[0]), int(one_row("PRAGMA page_count")[0])


def shrink_a_bit() -> bool:
    """Return some free pages to the disk, in a transaction of milliseconds; return whether there are more."""
    free, total = free_pages()
    if not can_shrink() or free <= max(_SLACK_PAGES, total * _SLACK_SHARE):
        return False
    with write("shrink"):
        end = time.monotonic() + _STEP_SECONDS
        # One page a statement: sqlite3 stops a pragma after its first row.
        while free > max(_SLACK_PAGES, total * _SLACK_SHARE) and time.monotonic() < end:
            execute("PRAGMA incremental_vacuum(1)")
            free, total = free - 1, total - 1
    return free > max(_SLACK_PAGES, total * _SLACK_SHARE)


def checkpoint() -> None:
    """Move the log into the file as far as nobody is in the way; do not wait."""
    execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def vacuum(folder: DataFolder) -> tuple[int, int]:
    """Rewrite the whole file as small as possible; return its size before and after. Nobody else may be using it."""
    before = database_size(folder)
    if shutil.disk_usage(folder.root).free < 2 * before:
        raise StoreError(
            f"A full vacuum needs {2 * before // _MB:,} MB free on the disk for a while; there are "
            f"{free_mb(folder.root):,}. `lienworker purge` without --vacuum needs none."
        )
    database.execute_sql("PRAGMA auto_vacuum = incremental")
    database.execute_sql("VACUUM")
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return before, database_size(folder)
