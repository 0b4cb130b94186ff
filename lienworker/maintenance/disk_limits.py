"""Disk limits: what is free on the disk, how large the data folder is, and what stops when there is too little room.

First there is a warning, then no new work is accepted, then fetching stops; each resumes when there is room. Nothing is
ever dropped to make room.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.database import fact, set_fact, write
from lienworker.errors import OperatorError
from lienworker.outbox.pauses import is_paused_for, set_pause
from lienworker.settings import Settings

#: How large the data folder was when it was last measured.
SIZE = "data_folder_size"
_MB = 1_000_000

#: Shares of LIENWORKER_DATA_MAX_MB.
_WARN, _STOP_INTAKE, _STOP_FETCH = 0.8, 0.9, 1.0
#: Files that can still be created: each page needs one, and one more for people until it is delivered.
_FILES_WARN, _FILES_STOP_INTAKE, _FILES_STOP_FETCH = 5_000, 2_000, 1_000
#: A stopped lane resumes when there is this much more room than when it stopped, so that it does not flap.
_MORE_FREE = 1.1
_LESS_FULL = 0.05

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of the data folder, by kind of content."""

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
    """Return the size of the file and its write-ahead log."""
    return sum(_size(folder.root / f"{folder.database.name}{end}") for end in ("", "-wal", "-shm"))


def measure(folder: DataFolder) -> Size:
    """Measure the folder by walking through it."""
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
            with contextlib.suppress(OSError):  # it may just have been removed
                yield path, path.lstat()


def remember_size(size: Size) -> None:
    with write("size"):
        set_fact(SIZE, json.dumps(asdict(size)))


def known_size(folder: DataFolder) -> Size | None:
    """Return the size as last measured, with the current size of the database."""
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
    """Return the free megabytes of the fuller disk: `raw/` may be a link to another one."""
    return min(free_mb(place) for place in (folder.root, folder.raw) if place.exists())


def free_files(place: Path) -> int | None:
    """Return how many more files can be created on a disk; None where it has no such limit, or does not say."""
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


@dataclass(frozen=True, slots=True)
class Room:
    """Megabytes free on the disk, used by the folder (as last measured; None if never), and the limits."""

    free_mb: int
    data_mb: int | None
    settings: Settings
    #: How many more files can be created where raw pages are; None where the file system has no such limit.
    free_files: int | None = None

    def warnings(self) -> list[str]:
        """Return what a person should know before anything stops."""
        words = []
        if self.free_mb < self.settings.disk_warn_mb:
            words.append(f"only {self.free_mb:,} MB are free on the disk")
        if self._has_fewer_files_than(_FILES_WARN):
            words.append(f"only {self.free_files:,} more files can be created on the disk")
        if self._is_over(_WARN):
            words.append(f"the data folder takes {self.data_mb:,} of {self.settings.data_max_mb:,} MB")
        return words

    def shortage(self, lane: str, *, is_paused: bool) -> str | None:
        """Return why a lane must stop, or stay stopped; None where there is room for it."""
        settings = self.settings
        free = settings.disk_stop_intake_mb if lane == "intake" else settings.disk_stop_fetch_mb
        share = _STOP_INTAKE if lane == "intake" else _STOP_FETCH
        enough = int(free * _MORE_FREE)
        if self.free_mb < (enough if is_paused else free):
            return f"only {self.free_mb:,} MB are free on the disk; it resumes at {enough:,} MB"
        files = _FILES_STOP_INTAKE if lane == "intake" else _FILES_STOP_FETCH
        if self._has_fewer_files_than(int(files * _MORE_FREE) if is_paused else files):
            return f"only {self.free_files:,} more files can be created on the disk; it resumes at {files:,}"
        if self._is_over(share - (_LESS_FULL if is_paused else 0)):
            resumes_at = f"{int((share - _LESS_FULL) * settings.data_max_mb):,} MB"
            return f"the data folder takes {self.data_mb:,} of {settings.data_max_mb:,} MB; it resumes at {resumes_at}"
        return None

    def _has_fewer_files_than(self, files: int) -> bool:
        return self.free_files is not None and self.free_files < files

    def _is_over(self, share: float) -> bool:
        most = self.settings.data_max_mb
        return bool(most) and self.data_mb is not None and self.data_mb >= share * most


def room_in(folder: DataFolder, settings: Settings) -> Room:
    """Return the room that there is now."""
    return Room(free_where_pages_lie(folder), known_mb(folder), settings, free_files(folder.raw))


def watch_disk(folder: DataFolder, settings: Settings) -> None:
    """Pause intake, then fetching, while there is too little room; both resume automatically."""
    room = room_in(folder, settings)
    for lane in ("intake", "fetch"):
        shortage = room.shortage(lane, is_paused=is_paused_for(lane, "disk"))
        if set_pause(lane, "disk", shortage is not None, shortage or ""):
            words = f"is paused: {shortage}" if shortage else "resumes: there is room again"
            logger.log(logging.WARNING if shortage else logging.INFO, "%s %s", lane, words, extra={"action": "disk"})


def refuse_new_work(folder: DataFolder, settings: Settings) -> None:
    """Refuse new work that a person brings, with the reason, where there is no room for it."""
    if shortage := room_in(folder, settings).shortage("intake", is_paused=False):
        words = shortage.partition(";")[0]
        raise OperatorError(
            f"No new work is accepted: {words} (LIENWORKER_DISK_STOP_INTAKE_MB, LIENWORKER_DATA_MAX_MB). Make room "
            "first: `lienworker purge` removes what is old and delivered."
        )


def watch_import(folder: DataFolder, settings: Settings) -> Callable[[], None]:
    """Refuse new work now where there is no room; return a check to call between the transactions of an import.

    A folder that no worker has ever measured is measured first: otherwise its limit would go unnoticed.
    """
    if settings.data_max_mb and known_mb(folder) is None:
        remember_size(measure(folder))
    refuse_new_work(folder, settings)
    return lambda: refuse_new_work(folder, settings)
