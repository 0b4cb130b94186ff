"""Is there room? By what is free on the disk, and by how large the data folder may grow.

First it warns, then no new work is taken, then fetching stops; each goes on by itself when there is room. Never is
anything dropped to make room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lienworker.errors import OperatorError
from lienworker.settings import Settings
from lienworker.store.folder import DataFolder
from lienworker.store.space import free_files, free_where_pages_lie, known_mb, measure, remember_size

#: Shares of LIENWORKER_DATA_MAX_MB.
_WARN, _STOP_INTAKE, _STOP_FETCH = 0.8, 0.9, 1.0
#: Files that can still be made: each page takes one, and one more for people while it is not delivered.
_FILES_WARN, _FILES_STOP_INTAKE, _FILES_STOP_FETCH = 5_000, 2_000, 1_000
#: A stopped lane goes on when there is this much more room than it was stopped at: no going to and fro.
_MORE_FREE = 1.1
_LESS_FULL = 0.05


@dataclass(frozen=True, slots=True)
class Room:
    """Megabytes free on the disk, taken by the folder (as last measured; None if never), and the limits."""

    free_mb: int
    data_mb: int | None
    settings: Settings
    #: How many more files can be made where raw pages lie; None where the file system has no such limit.
    free_files: int | None = None

    def warnings(self) -> list[str]:
        """What a person should know before anything stops."""
        words = []
        if self.free_mb < self.settings.disk_warn_mb:
            words.append(f"only {self.free_mb:,} MB are free on the disk")
        if self._has_fewer_files_than(_FILES_WARN):
            words.append(f"only {self.free_files:,} more files can be made on the disk")
        if self._is_over(_WARN):
            words.append(f"the data folder takes {self.data_mb:,} of {self.settings.data_max_mb:,} MB")
        return words

    def shortage(self, lane: str, *, is_paused: bool) -> str | None:
        """Why a lane must stop, or stay stopped; None where there is room for it."""
        settings = self.settings
        free = settings.disk_stop_intake_mb if lane == "intake" else settings.disk_stop_fetch_mb
        share = _STOP_INTAKE if lane == "intake" else _STOP_FETCH
        enough = int(free * _MORE_FREE)
        if self.free_mb < (enough if is_paused else free):
            return f"only {self.free_mb:,} MB are free on the disk; it goes on by itself at {enough:,} MB"
        files = _FILES_STOP_INTAKE if lane == "intake" else _FILES_STOP_FETCH
        if self._has_fewer_files_than(int(files * _MORE_FREE) if is_paused else files):
            return f"only {self.free_files:,} more files can be made on the disk; it goes on by itself at {files:,}"
        if self._is_over(share - (_LESS_FULL if is_paused else 0)):
            goes_on = int((share - _LESS_FULL) * settings.data_max_mb)
            return (
                f"the data folder takes {self.data_mb:,} of {settings.data_max_mb:,} MB; "
                f"it goes on by itself at {goes_on:,} MB"
            )
        return None

    def _has_fewer_files_than(self, files: int) -> bool:
        return self.free_files is not None and self.free_files < files

    def _is_over(self, share: float) -> bool:
        most = self.settings.data_max_mb
        return bool(most) and self.data_mb is not None and self.data_mb >= share * most


def room_in(folder: DataFolder, settings: Settings) -> Room:
    """How it is now."""
    return Room(free_where_pages_lie(folder), known_mb(folder), settings, free_files(folder.raw))


def refuse_new_work(folder: DataFolder, settings: Settings) -> None:
    """Somebody brings new work by hand: he is told at once."""
    if shortage := room_in(folder, settings).shortage("intake", is_paused=False):
        words = shortage.partition(";")[0]
        raise OperatorError(
            f"No new work is taken: {words} (LIENWORKER_DISK_STOP_INTAKE_MB, LIENWORKER_DATA_MAX_MB). Make room first: "
            "`lienworker purge` lets go of what is old and delivered."
        )


def watch_import(folder: DataFolder, settings: Settings) -> Callable[[], None]:
    """Refuse new work now where there is no room; return what is to be asked between the transactions of an import.

    A folder that no worker has ever measured is measured first: else its limit would not be known to be reached.
    """
    if settings.data_max_mb and known_mb(folder) is None:
        remember_size(measure(folder))
    refuse_new_work(folder, settings)
    return lambda: refuse_new_work(folder, settings)
