"""Files of a data folder that are damaged, missing or unreferenced: finding them, and putting them into quarantine."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder, aside_name, fsync_folder, make_private, rename
from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute
from lienworker.errors import StoreError
from lienworker.maintenance.tar_reader import ArchiveError, tar_members
from lienworker.store.damage import failure_of
from lienworker.store.raw_files import is_inside, is_raw_path
from lienworker.store.stale_files import is_old

#: A result of a parcel has some kilobytes.
_ORDINARY_RESULT = 4 << 20


@dataclass(frozen=True, slots=True)
class LostPage:
    """A page whose raw file is missing or is not what was stored."""

    task_id: str
    path: str
    is_missing: bool
    has_ended: bool


def lost_pages(folder: DataFolder, most_read: int | None) -> Iterator[LostPage]:
    """Yield every missing raw file; damaged ones among the newest `most_read` (None: among all), undelivered first.

    Of a task only the newest page counts, and the one behind its result: nothing reads the others.
    """
    sql = (
        "SELECT p.task_id, p.path, p.sha256, t.status IN ('completed', 'failed', 'expired')"
        " FROM pages p JOIN tasks t ON t.task_id = p.task_id LEFT JOIN results r ON r.task_id = p.task_id"
        " WHERE p.purged_at IS NULL AND (p.generation = r.generation"
        "  OR p.generation = (SELECT max(generation) FROM pages WHERE task_id = p.task_id))"
        " ORDER BY coalesce(r.synced, 0), p.rowid DESC"
    )
    for n, (task_id, path, sha256, has_ended) in enumerate(execute(sql)):
        # A path outside raw/ is not ours, whatever is there: the page is missing, and the file is not touched.
        if not is_raw_path(path) or not (folder.root / path).is_file():
            yield LostPage(task_id, path, True, bool(has_ended))
        elif (most_read is None or n < most_read) and failure_of(folder.root, path, sha256):
            yield LostPage(task_id, path, False, bool(has_ended))


def unnamed_raw_files(folder: DataFolder) -> list[Path]:
    """Return raw files that no row names: left by a kill between file and row, or their rows were lost."""
    named = {row[0] for row in all_rows("SELECT path FROM pages UNION SELECT path FROM doomed_files")}
    found = (path for path in folder.raw.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [path for path in found if str(path.relative_to(folder.root)) not in named and is_old(path)]


def damaged_archives(folder: DataFolder) -> list[tuple[Path, str]]:
    """Return archives that cannot be read to their end, each with the reason."""
    return [(path, words) for path in sorted(folder.archive.glob("*.tar*")) if (words := _archive_trouble(path))]


def _archive_trouble(path: Path) -> str | None:
    """Read every result to its end; return what is wrong. Huge ones are not parsed: objects need far more memory."""
    try:
        for name, content in tar_members(path):
            if content.size > _ORDINARY_RESULT:
                continue
            try:
                json.loads(content.read())
            except (ValueError, RecursionError):
                return f"{name} in it is not a result"
    except ArchiveError as problem:
        return str(problem)
    return None


def time_stamp() -> str:
    """Return the time as the name of a folder in quarantine."""
    return rfc3339().replace(":", "").replace("-", "").replace(".", "")


def put_into_quarantine(folder: DataFolder, path: Path, stamp: str) -> Path:
    """Move a file, keeping its path within the folder, so that a person finds and understands it."""
    # Any of these folders may be a link to another disk.
    if not any(is_inside(place, path) for place in (folder.root, folder.raw, folder.archive, folder.pending)):
        raise StoreError(f"{path} does not lie in {folder.root}: it was left where it is.")
    place = folder.quarantine / stamp / path.relative_to(folder.root)
    make_private(place.parent)
    try:
        rename(path, place, "quarantine")
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        if path.parent == folder.root:  # the database: nothing but SQLite opens it, not even to copy it
            place = path.with_name(f"{path.name}.{stamp}")
            rename(path, place, "quarantine")
        else:
            _move_across(path, place)
    fsync_folder(path.parent)
    return place


def _move_across(path: Path, place: Path) -> None:
    """Move from another file system, such as a `raw/` that is a link: remove the original once the copy is complete."""
    aside = place.with_name(aside_name())
    with path.open("rb") as old, os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())
    rename(aside, place, "quarantine")
    fsync_folder(place.parent)
    path.unlink()
