"""A salvaged database takes the place of the broken one, whenever the process may die.

The salvaged file gets its name only when it is whole. From then on it is the truth: whoever finds it finishes the swap.
"""

from __future__ import annotations

from pathlib import Path

from lienworker.store.damage import put_into_quarantine
from lienworker.store.database import files_of
from lienworker.store.folder import DataFolder, fsync_folder, rename


def part_of(folder: DataFolder) -> Path:
    """Where the new file grows."""
    return folder.root / ".lienworker.db.part"


def declare_whole(folder: DataFolder) -> None:
    """SQLite has flushed the file when it emptied its log (see `close_for_good`)."""
    rename(part_of(folder), folder.salvaged, "salvaged")
    fsync_folder(folder.root)


def finish_swap(folder: DataFolder, stamp: str) -> None:
    """The broken file goes to quarantine with its log, and the new one takes its name."""
    for path in reversed(files_of(folder.database)):  # a log without its file harms nobody; beside another it would
        if path.exists():
            put_into_quarantine(folder, path, stamp)
    rename(folder.salvaged, folder.database, "swap")
    fsync_folder(folder.root)
