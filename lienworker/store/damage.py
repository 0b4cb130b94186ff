"""Damage as a running process meets it: a raw page that is not what was stored, a database that SQLite calls broken.

Finding all of it, and fixing it, is what `repair/` does.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path

from lienworker.data_folder import DataFolder, aside_name, fsync_folder, rename, write_durably
from lienworker.db.database import DATABASE_TROUBLE, connection_to, is_damage, one_row
from lienworker.errors import RefusedError, StoreError
from lienworker.store.pages import PageRecord
from lienworker.store.raw_files import check_page_file, raw_place

logger = logging.getLogger(__name__)


def failure_of(root: Path, path: str, sha256: str) -> str | None:
    """Return what is wrong with a page's raw file, as a sentence; None where it is intact."""
    try:
        check_page_file(raw_place(root, path), sha256)
    except StoreError as problem:
        return str(problem)
    return None


def is_lost(folder: DataFolder, page: PageRecord) -> bool:
    """Return whether a page that the site need not send again is missing here; a purged one is not missing."""
    if failure_of(folder.root, page.path, page.sha256) is None:
        return False
    sql = "SELECT purged_at FROM pages WHERE task_id = ? AND generation = ? AND part = ?"
    return bool(one_row(sql, (page.task_id, page.generation, page.part)) == (None,))


class Look(Enum):
    """The outcome of a second look at a database that reported damage."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"  # the storage cannot be read: that says nothing about the file


def integrity_problems(path: Path, most: int = 5) -> list[str]:
    """Return what SQLite itself finds wrong with a database over a fresh connection; empty if nothing."""
    try:
        return _problems(path, most)
    except DATABASE_TROUBLE as problem:
        return [str(problem)]


def look_again(folder: DataFolder) -> Look:
    """Check the whole file over a fresh connection: a single bad read is not damage."""
    try:
        return Look.DAMAGED if _problems(folder.database, 1) else Look.WHOLE
    except DATABASE_TROUBLE as problem:
        return Look.DAMAGED if is_damage(problem) else Look.UNREADABLE


def _problems(path: Path, most: int) -> list[str]:
    with closing(connection_to(path)) as fresh:
        words = [str(row[0]) for row in fresh.execute(f"PRAGMA integrity_check({most:d})")]
    return [] if words == ["ok"] else words


def record_damage(folder: DataFolder, message: str) -> bool:
    """Record that the database is broken, if a second look agrees.

    The supervisor then stops the stack, and none starts before the file is repaired.
    """
    if folder.damage_note.exists():
        return True
    look = look_again(folder)
    if look is not Look.DAMAGED:
        logger.warning(
            "the database reported %s; on a second look it is %s", message, look.value, extra={"action": "damage"}
        )
        return False
    with suppress(OSError):  # a full disk, perhaps: the next process that meets the damage tries again
        write_durably(folder.damage_note, message + "\n")
    return True


def known_damage(folder: DataFolder) -> str | None:
    try:
        return folder.damage_note.read_text(encoding="utf-8").strip() or "damaged"
    except FileNotFoundError:
        return None


def confirmed_damage(folder: DataFolder) -> str | None:
    """Return the note of damage that is still there; remove a note that a check of the whole file refutes."""
    words = known_damage(folder)
    if words and look_again(folder) is Look.WHOLE:
        logger.warning("%s says %s, but the database is whole: the note is removed", folder.damage_note, words)
        folder.damage_note.unlink(missing_ok=True)
        return None
    return words


# How a broken database reads in the log.


class DamageFilter(logging.Filter):
    """Log a broken database as one sentence, not as a stack trace for each message that met it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and is_damage(record.exc_info[1]):
            record.msg, record.args = (
                "the database reports damage (%s); `lienworker doctor` says more",
                (record.exc_info[1],),
            )
            record.exc_info = None
        return True


# Storage that refuses files: no inodes, a quota, a full disk behind a link, a disk that became read-only.
#
# Free megabytes do not show it, so it is tried: a file of the size that was refused is written, flushed, renamed into
# the same folder and removed again, exactly as a page would be.


_PROBE = ".probe"
#: A larger probe would not tell more.
_LARGEST_PROBE = 16_000_000


def try_storage(folder: DataFolder, place: str = "raw", size: int = 1) -> RefusedError | None:
    """Store something like a page under `place` (relative to the data folder); return why that failed, or None."""
    target = folder.root / place
    aside = folder.aside / aside_name()
    final = target / f"{_PROBE}{aside.name}"
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in target.glob(f"{_PROBE}*"):  # left by a process that was killed in the middle
            _remove(old)
        _write(aside, os.urandom(min(max(1, size), _LARGEST_PROBE)))
        rename(aside, final, "storage_probe")
        fsync_folder(target)
    except OSError as problem:
        return RefusedError.because(problem, place, size)
    finally:
        for path in (aside, final):
            _remove(path)
    return None


def _write(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a disk that refuses writes may refuse removals, too
        return
