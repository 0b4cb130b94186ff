"""Who has a node's database open, and by which locks: as the kernel sees it.

A process that uses a database in WAL mode shares a lock on the file itself and one on byte 128 of its shared memory.
Without them, another process takes itself for the last user and deletes the log.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_DATABASE = "lienworker.db"
#: Where SQLite locks a file that is read.
_SHARED_BYTES = 0x40000002
_LOCK = re.compile(r"POSIX +ADVISORY +(?:READ|WRITE) (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) (\d+) ")

needs_proc = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="there is no /proc/locks on this system")

#: Put into a file `sitecustomize.py`: writes down every time that Python itself opens a file of a database.
SPY = """
import os, sys, traceback

_log = os.open(os.environ["OPENED_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def _spy(event, arguments):
    if event == "open":
        try:
            name = os.fsdecode(arguments[0])
        except TypeError:
            return  # a descriptor that is there already
        # A restore writes its copy into a folder of its own, where no SQLite has it open.
        if "/.restore-" not in name and name.endswith(("lienworker.db", "lienworker.db-wal", "lienworker.db-shm")):
            stack = "".join(traceback.format_stack(limit=4))
            os.write(_log, f"{os.getpid()} {' '.join(sys.argv)} opened {name}\\n{stack}\\n".encode())

sys.addaudithook(_spy)
"""


def spied(folder: Path) -> dict[str, str]:
    """Settings under which each process of ours writes to `opened(folder)` what it opens past SQLite."""
    (folder / "spy").mkdir(exist_ok=True)
    (folder / "spy" / "sitecustomize.py").write_text(SPY)
    return {"PYTHONPATH": str(folder / "spy"), "OPENED_LOG": str(folder / "opened.log")}


def opened(folder: Path) -> str:
    log = folder / "opened.log"
    return log.read_text() if log.exists() else "the spy did not run"


def lost_locks(data: Path) -> list[str]:
    """Processes that have the database open and not locked, or a deleted file of it open. Looks twice at each.

    A process that opens or closes the database just now has no locks for a moment, so only what is seen three times is
    believed.
    """
    wrong = set(_wrong(data))
    for _ in range(2):
        if wrong:
            time.sleep(0.05)
            wrong &= set(_wrong(data))
    return sorted(wrong)


def _wrong(data: Path) -> Iterator[str]:
    locked = _locks()
    for pid, names in _open_files(data):
        yield from (f"process {pid} uses {name}" for name in names if name.endswith("(deleted)"))
        for suffix, start in (("", _SHARED_BYTES), ("-shm", 128)):
            path = data / f"{_DATABASE}{suffix}"
            if str(path) in names and f"{data / _DATABASE}-shm" in names:
                with contextlib.suppress(FileNotFoundError):
                    if not any(_covers(lock, pid, path.stat().st_ino, start) for lock in locked):
                        yield f"process {pid} has {path} open without a lock"


def _locks() -> list[tuple[int, int, int]]:
    """Process, inode and first byte of each POSIX lock."""
    found = _LOCK.findall(Path("/proc/locks").read_text())
    return [(int(pid), int(inode), int(start)) for pid, inode, start in found]


def _covers(lock: tuple[int, int, int], pid: int, inode: int, start: int) -> bool:
    return lock == (pid, inode, start)


def _open_files(data: Path) -> Iterator[tuple[int, set[str]]]:
    for process in Path("/proc").glob("[0-9]*"):
        names = set()
        with contextlib.suppress(OSError):
            for handle in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    names.add(os.readlink(handle))
        ours = {name for name in names if name.startswith(str(data / _DATABASE))}
        if ours:
            yield int(process.name), ours
