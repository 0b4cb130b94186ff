"""Raw files to delete. First the rows drop a file, then it is removed.

The rows and a note of the file are one transaction, so a kill at any point leaves neither a row whose file is gone nor
a file that nobody knows: the next purge continues with what is noted. Two rows may name one file (the same page twice),
and a worker may store the same page again at any moment; so a file is removed only in a transaction that has seen that
no row names it, and only if it is not so young that its row may still be written.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder, rename
from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute_many, one_row, write
from lienworker.failpoints import failpoint
from lienworker.store.raw_files import is_inside, is_raw_path

#: A worker writes a page's file moments before its row; within this many seconds the row may still come.
_YOUNG_SECONDS = 120.0
#: A file's name is made from a parcel's or a task's id: only tasks with that id can name it.
_NAMED = """
SELECT 1 FROM pages WHERE task_id = ? AND path = ? AND purged_at IS NULL
UNION ALL
SELECT 1 FROM tasks t JOIN pages p ON p.task_id = t.task_id
WHERE t.parcel_id = ? COLLATE NOCASE AND p.path = ? AND p.purged_at IS NULL
"""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """What one round has done. `last` is the path that it reached, "" after the last one."""

    files: int
    size: int
    last: str


def add_pending_deletes(files: Iterable[tuple[str, str]]) -> None:
    """Note files (path, and the id that it is named after) for removal. Part of the transaction that drops them."""
    execute_many("INSERT OR IGNORE INTO doomed_files (path, name) VALUES (?, ?)", files)


def count_pending_deletes() -> int:
    return int(one_row("SELECT count(*) FROM doomed_files")[0])


def delete_pending_files(folder: DataFolder, after: str, limit: int) -> Removal:
    """Remove some of the noted files. A file that is still young stays noted for the next round."""
    noted = all_rows("SELECT path, name FROM doomed_files WHERE path > ? ORDER BY path LIMIT ?", (after, limit))
    with write("purge_files"):
        done = [path for path, name in noted if _is_settled(folder, path, name)]
    failpoint("purge_files.before_unlink")
    sizes = [_unlink(_aside(folder.root / path)) for path in done if _is_page(folder, path)]
    if done:
        with write("purge_files_done"):
            execute_many("DELETE FROM doomed_files WHERE path = ?", ((path,) for path in done))
    removed = [size for size in sizes if size is not None]
    return Removal(len(removed), sum(removed), noted[-1][0] if len(noted) == limit else "")


def _is_settled(folder: DataFolder, path: str, name: str) -> bool:
    """Move a file that no row names out of its place. Return False where it must be looked at again later.

    This runs in a write transaction, so no row can come to name the file meanwhile.
    """
    if not _is_page(folder, path):
        logger.error("%s is not a raw page: it was left where it is", path, extra={"action": "purge"})
        return True
    if one_row(_NAMED, (name, path, name, path)):
        return True  # another row names it, too
    place = folder.root / path
    try:
        before = place.stat()
        if abs(now_ms() / 1000 - before.st_mtime) < _YOUNG_SECONDS:
            return False
        rename(place, _aside(place), "purge_file")
        if _aside(place).stat().st_ino != before.st_ino:  # a worker stored the page again in between: it stays
            with contextlib.suppress(FileExistsError):
                os.link(_aside(place), place)
            return False
    except FileNotFoundError:
        pass
    return True


def _aside(place: Path) -> Path:
    """Return where a file waits for its removal; the same name each time, so that none is forgotten."""
    return place.with_name(f".{place.name[-200:]}.purged")


def _is_page(folder: DataFolder, path: str) -> bool:
    """Return whether a path is a file in `raw/`: nothing else is ever removed, wherever links lead."""
    return is_raw_path(path) and is_inside(folder.raw, folder.root / path)


def _unlink(place: Path) -> int | None:
    """Remove a file; return its size on disk, None where there was none."""
    try:
        size = place.stat().st_size
        place.unlink()
    except FileNotFoundError:
        return None
    return size
