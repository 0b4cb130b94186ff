"""Files of a data folder that are damaged, missing or nobody's: finding them, and putting them into quarantine."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lienworker.errors import StoreError
from lienworker.maintenance.tar_reader import ArchiveError, tar_members
from lienworker.store.database import DATABASE_TROUBLE, all_rows, connection_to, execute, is_damage, one_row
from lienworker.store.folder import DataFolder, aside_name, fsync_folder, make_private, rename, write_durably
from lienworker.store.pages import PageRecord
from lienworker.store.raw_files import check_page_file
from lienworker.store.stored_paths import is_inside, is_raw_path, raw_place

#: A file on its way is renamed within seconds; one that is this old was left by a kill.
_OLD_SECONDS = 3600.0
#: A result of a parcel has some kilobytes.
_ORDINARY_RESULT = 4 << 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LostPage:
    """A page whose raw file is missing or is not what was stored."""

    task_id: str
    path: str
    is_missing: bool
    has_ended: bool


def lost_pages(folder: DataFolder, most_read: int | None) -> Iterator[LostPage]:
    """Every missing raw file; damaged ones among the newest `most_read` (None: among all), undelivered first.

    Of a task only the newest page counts, and the one behind its result: nothing reads those before.
    """
    sql = (
        "SELECT p.task_id, p.path, p.sha256, t.status IN ('completed', 'failed', 'expired')"
        " FROM pages p JOIN tasks t ON t.task_id = p.task_id LEFT JOIN results r ON r.task_id = p.task_id"
        " WHERE p.purged_at IS NULL AND (p.generation = r.generation"
        "  OR p.generation = (SELECT max(generation) FROM pages WHERE task_id = p.task_id))"
        " ORDER BY coalesce(r.synced, 0), p.rowid DESC"
    )
    for n, (task_id, path, sha256, has_ended) in enumerate(execute(sql)):
        # A path out of raw/ is none of ours, whatever lies there: the page is missing, and the file is not touched.
        if not is_raw_path(path) or not (folder.root / path).is_file():
            yield LostPage(task_id, path, True, bool(has_ended))
        elif (most_read is None or n < most_read) and trouble_of(folder.root, path, sha256):
            yield LostPage(task_id, path, False, bool(has_ended))


def trouble_of(root: Path, path: str, sha256: str) -> str | None:
    """What is wrong with a page's raw file, in words; None where it is whole."""
    try:
        check_page_file(raw_place(root, path), sha256)
    except StoreError as problem:
        return str(problem)
    return None


def is_lost(folder: DataFolder, page: PageRecord) -> bool:
    """Whether a page that the site need not send again is one that we do not have; a purged one is not missed."""
    if trouble_of(folder.root, page.path, page.sha256) is None:
        return False
    sql = "SELECT purged_at FROM pages WHERE task_id = ? AND generation = ?"
    return bool(one_row(sql, (page.task_id, page.generation)) == (None,))


def unnamed_raw_files(folder: DataFolder) -> list[Path]:
    """Raw files that no row speaks of: a kill between file and row, or rows that were lost."""
    named = {row[0] for row in all_rows("SELECT path FROM pages UNION SELECT path FROM doomed_files")}
    young = time.time() - _OLD_SECONDS
    found = (path for path in folder.raw.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [path for path in found if str(path.relative_to(folder.root)) not in named and _modified(path) < young]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it has just got its name
        return time.time()


def damaged_archives(folder: DataFolder) -> list[tuple[Path, str]]:
    """Archives that cannot be read to their end, each with the reason."""
    return [(path, words) for path in sorted(folder.archive.glob("*.tar*")) if (words := _archive_trouble(path))]


def _archive_trouble(path: Path) -> str | None:
    """Every result is read to its end. Only one of an ordinary size is also parsed: objects take many times more."""
    try:
        for name, content in tar_members(path):
            if content.size > _ORDINARY_RESULT:
                continue
            try:
                json.loads(content.read())
            except (ValueError, RecursionError):
                return f"{name} in it is no result"
    except ArchiveError as problem:
        return str(problem)
    return None


def put_into_quarantine(folder: DataFolder, path: Path, stamp: str) -> Path:
    """Moves a file, keeping its place within the folder, so that a person finds and understands it."""
    # Any of them may be a link to another disk.
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
    """From another file system, such as a `raw/` that is a link: the original goes when the copy is whole and named."""
    aside = place.with_name(aside_name())
    with path.open("rb") as old, os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())
    rename(aside, place, "quarantine")
    fsync_folder(place.parent)
    path.unlink()


class Look(Enum):
    """What a second look at a database that reported damage comes to."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"  # the storage does not let us look: that says nothing about the file


def look_again(folder: DataFolder) -> Look:
    """Check the whole file over a fresh connection: a single bad read is not damage."""
    try:
        with closing(connection_to(folder.database)) as fresh:
            words = [str(row[0]) for row in fresh.execute("PRAGMA integrity_check(1)")]
    except DATABASE_TROUBLE as problem:
        return Look.DAMAGED if is_damage(problem) else Look.UNREADABLE
    return Look.WHOLE if words == ["ok"] else Look.DAMAGED


def note_damage(folder: DataFolder, message: str) -> bool:
    """Note that the database is broken, if a second look agrees; then whoever runs the stack stops it.

    Nobody starts one before the file is repaired.
    """
    if folder.damage_note.exists():
        return True
    look = look_again(folder)
    if look is not Look.DAMAGED:
        logger.warning(
            "the database reported %s; on a second look it is %s", message, look.value, extra={"action": "damage"}
        )
        return False
    with suppress(OSError):  # a full disk, perhaps: the next one who meets the damage tries again
        write_durably(folder.damage_note, message + "\n")
    return True


def known_damage(folder: DataFolder) -> str | None:
    try:
        return folder.damage_note.read_text(encoding="utf-8").strip() or "damaged"
    except FileNotFoundError:
        return None


def confirmed_damage(folder: DataFolder) -> str | None:
    """Return the note of a damage that is still there; a note that a check of the whole file refutes is removed."""
    words = known_damage(folder)
    if words and look_again(folder) is Look.WHOLE:
        logger.warning("%s says %s, but the database is whole: the note is removed", folder.damage_note, words)
        folder.damage_note.unlink(missing_ok=True)
        return None
    return words
