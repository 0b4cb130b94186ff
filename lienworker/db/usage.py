"""Who has the database of a data folder open: locks beside it that last as long as a process uses it.

A repair and a restore replace the database file. SQLite in a process that still had the old one open would then
delete the new one's log, by its name, when it closes. So each process that opens a store shares `in_use.lock` for as
long as it lives; a process that replaces the file takes that lock exclusively, and `open.lock` with it, so that
newcomers wait.

Both are `flock` locks on files that SQLite never opens. They belong to a descriptor. The POSIX locks that SQLite takes
on the database belong to the process: all of them are dropped when the process closes *any* descriptor of the file.
That is why nothing but SQLite ever opens the database, its log or its shared memory: not to read, copy, hash or flush
it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from lienworker.data_folder import DataFolder, open_lock
from lienworker.errors import BusyError

OPEN_LOCK, USE_LOCK = "open.lock", "in_use.lock"
#: How long a newcomer waits for a repair, restore or upgrade of the database, s.
_NEWCOMER_SECONDS = 60.0
#: How long a process that needs the database exclusively waits for those that only read it, s.
_LOOKERS_SECONDS = 5.0
_POLL_SECONDS = 0.02


@dataclass
class _Usage:
    """What this process holds: its share of one folder's database, and the folders that it owns exclusively."""

    root: Path | None = None
    share: IO[str] | None = None
    owned: set[Path] = field(default_factory=set)


_mine = _Usage()


@contextmanager
def opening(folder: DataFolder) -> Iterator[None]:
    """Let one process at a time create, upgrade or open a database; this process shares it from then on."""
    if folder.root in _mine.owned:
        yield
        return
    with _locked(folder.root / OPEN_LOCK, fcntl.LOCK_EX, _NEWCOMER_SECONDS) as lock:
        if lock is None:
            raise BusyError(
                f"{folder.root} is being repaired, restored or upgraded by another process: try again when that is"
                " done."
            )
        _share(folder)
        yield


def _share(folder: DataFolder) -> None:
    if _mine.root == folder.root:
        return
    release()
    handle = open_lock(folder.root / USE_LOCK)
    fcntl.flock(handle, fcntl.LOCK_SH)  # never blocks: an exclusive owner holds the open lock, which we hold now
    _mine.root, _mine.share = folder.root, handle


def release() -> None:
    """Give up this process's share; the caller has closed the database."""
    if _mine.share:
        _mine.share.close()
    _mine.root = _mine.share = None


@contextmanager
def owning(folder: DataFolder) -> Iterator[None]:
    """Own the database exclusively for the block: no other process has it open or can open it."""
    release()
    with ExitStack() as locks:
        for name in (OPEN_LOCK, USE_LOCK):
            lock = locks.enter_context(_locked(folder.root / name, fcntl.LOCK_EX, _LOOKERS_SECONDS))
            if lock is None:
                raise BusyError(
                    f"Another lienworker process has {folder.database} open: stop the stack, the monitor and other"
                    " commands on this folder first."
                )
        others = _who_has_open(folder.database)
        if others:
            raise BusyError(f"{folder.database} is in use by {', '.join(others)}: stop that first.")
        _mine.owned.add(folder.root)
        try:
            yield
        finally:
            _mine.owned.discard(folder.root)


def _who_has_open(path: Path) -> list[str]:
    """Return the programs outside our locks that have the file open, as far as the system tells."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(file.path == str(path.resolve()) for file in process.open_files()):
                found.append(f"process {process.pid} ({process.name()})")
        except (psutil.Error, OSError):
            continue
    return found


@contextmanager
def _locked(path: Path, kind: int, patience: float) -> Iterator[IO[str] | None]:
    """Yield the locked file, or None where another process held it the whole time."""
    deadline = time.monotonic() + patience
    with open_lock(path) as handle:
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    yield None
                    return
                time.sleep(_POLL_SECONDS)
        yield handle
