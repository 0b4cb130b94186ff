"""Space on disk: how much the data folder takes, and giving back what deleted rows have left in the database."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lienworker.errors import StoreError
from lienworker.store.clock import rfc3339
from lienworker.store.database import database, execute, one_row, write
from lienworker.store.facts import fact, set_fact
from lienworker.store.folder import DataFolder

#: How large the data folder was when it was last measured.
SIZE = "data_folder_size"
#: Free pages that stay: giving everything back would mean taking it again a moment later.
_SLACK_PAGES = 2000
_SLACK_SHARE = 0.1
#: How long a step may keep other writers waiting, s.
_STEP_SECONDS = 0.02
_INCREMENTAL = 2
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of the data folder, by what takes them."""

    database: int
    raw: int
    pending: int
    other: int
    at: str

    @property
    def total(self) -> int:
        return self.database + self.raw + self.pending + self.other

    @property
    def mb(self) -> int:
        return self.total // _MB


def database_size(folder: DataFolder) -> int:
    """The file with its write-ahead log."""
    return sum(_size(folder.root / f"{folder.database.name}{end}") for end in ("", "-wal", "-shm"))


def measure(folder: DataFolder) -> Size:
    """Walks through the folder."""
    parts = {"raw": 0, "pending": 0, "other": 0}
    for path, about in _files(folder.root):
        top = path.relative_to(folder.root).parts[0]
        if top.startswith(folder.database.name):
            continue
        parts[top if top in parts else "other"] += (
            about.st_blocks * 512 if hasattr(about, "st_blocks") else about.st_size
        )
    return Size(database_size(folder), **parts, at=rfc3339())


def _files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for place, _, names in os.walk(root):
        for name in names:
            path = Path(place, name)
            with contextlib.suppress(OSError):  # it may just have gone
                yield path, path.lstat()


def remember_size(size: Size) -> None:
    with write("size"):
        set_fact(SIZE, json.dumps(asdict(size)))


def known_size(folder: DataFolder) -> Size | None:
    """As last measured, with the database as it is now."""
    text = fact(SIZE)
    if text is None:
        return None
    return Size(**{**json.loads(text), "database": database_size(folder)})


def known_mb(folder: DataFolder) -> int | None:
    size = known_size(folder)
    return size.mb if size else None


def free_mb(root: Path) -> int:
    return shutil.disk_usage(root).free // _MB


def free_where_pages_lie(folder: DataFolder) -> int:
    """Free megabytes where there are fewest: `raw/` may be a link to another disk."""
    return min(free_mb(place) for place in (folder.root, folder.raw) if place.exists())


def free_files(place: Path) -> int | None:
    """How many more files can be made on a disk; None where it has no such limit, or does not say."""
    try:
        about = os.statvfs(place)
    except OSError:
        return None
    return about.f_favail if about.f_files > 0 else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


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
