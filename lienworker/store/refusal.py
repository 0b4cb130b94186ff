"""Storage that takes no files: no inodes, a quota, a full disk behind a link, a disk that became read-only.

Free megabytes say nothing of it, so it is tried: a file of the size that was refused is written, flushed, renamed into
the very folder and removed again, exactly as a page would be.
"""

from __future__ import annotations

import os
from pathlib import Path

from lienworker.data_folder import DataFolder, aside_name, fsync_folder, rename
from lienworker.errors import RefusedError

_PROBE = ".probe"
#: A probe needs not be larger to tell.
_LARGEST_PROBE = 16_000_000


def try_storage(folder: DataFolder, place: str = "raw", size: int = 1) -> RefusedError | None:
    """Store something like a page under `place` (as seen from the data folder); return why that cannot be done."""
    target = folder.root / place
    aside = folder.aside / aside_name()
    final = target / f"{_PROBE}{aside.name}"
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in target.glob(f"{_PROBE}*"):  # of somebody who was killed just then
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
    except OSError:  # a disk that takes nothing may not give anything away either
        return
