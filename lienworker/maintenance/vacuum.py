"""Returning to the disk what deleted rows have left in the database: bit by bit, or the whole file at once."""

from __future__ import annotations

import shutil
import time

from lienworker.data_folder import DataFolder
from lienworker.db.database import database, execute, one_row, write
from lienworker.errors import StoreError
from lienworker.maintenance.disk_limits import database_size, free_mb

#: Free pages that stay: giving everything back would mean taking it again a moment later.
_SLACK_PAGES = 2000
_SLACK_SHARE = 0.1
#: How long a step may keep other writers waiting, s.
_STEP_SECONDS = 0.02
_INCREMENTAL = 2
_MB = 1_000_000


def can_shrink() -> bool:
    """Whether this file gives space back bit by bit; one from before that was so needs one full vacuum."""
    return bool(one_row("PRAGMA auto_vacuum")[0] == _INCREMENTAL)


def free_pages() -> tuple[int, int]:
    """Pages that hold nothing, and pages in all."""
    return int(one_row("PRAGMA freelist_count")[0]), int(one_row("PRAGMA page_count")[0])


def shrink_a_bit() -> bool:
    """Gives some free pages back to the disk, in a transaction of milliseconds; True when there is more to give."""
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
    """Brings the log into the file as far as nobody is in the way; waits for nobody."""
    execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def vacuum(folder: DataFolder) -> tuple[int, int]:
    """Writes the whole file anew, as small as it can be; gives its size before and after. Nobody else may be at it."""
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
