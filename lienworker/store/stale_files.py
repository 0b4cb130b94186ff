"""What a kill leaves behind: temporary files that were never renamed, and locks that nobody holds."""

from __future__ import annotations

import glob
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lienworker.data_folder import DataFolder, rename, try_lock
from lienworker.db.database import refuse_database

#: Longer than anybody takes to rename a temporary file, or to record whose a lock file is; s.
_SURELY_DEAD = 3600.0


def remove_stale_files(folder: DataFolder) -> int:
    """Remove what a kill left behind, once it is old enough; return how many files."""
    old = find_stale_files(folder)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def find_stale_files(folder: DataFolder) -> list[Path]:
    return [*_asides(folder), *_free_locks(folder)]


@contextmanager
def users_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that the user named, whole or not at all. A device or a pipe is written to, never replaced."""
    path = path.resolve()
    refuse_database(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as out:
            yield out
        return
    aside = aside_of(path)
    try:
        with aside.open("wb") as out:
            yield out
        rename(aside, path, "export")
    finally:
        aside.unlink(missing_ok=True)


def aside_of(path: Path) -> Path:
    """Return the temporary name of a user's file, and remove what killed processes left under such names."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if is_old(old):
            old.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def _asides(folder: DataFolder) -> Iterator[Path]:
    for place in (folder.aside, folder.pending, folder.archive, folder.root):
        yield from (path for path in place.glob(".*.part") if is_old(path))


def _free_locks(folder: DataFolder) -> Iterator[Path]:
    """Yield locks of processes that died before they were in the database; others are removed with their leases."""
    for path in folder.holders.iterdir():
        if is_old(path) and (lock := try_lock(path)):
            lock.close()
            yield path


def is_old(path: Path) -> bool:
    """Return whether a file was left by a kill: its writer renames it and records it within seconds."""
    try:
        return time.time() - path.stat().st_mtime > _SURELY_DEAD
    except FileNotFoundError:  # another process removed it first
        return False
