"""Storage that fails: a tmpfs that takes no more files, and a library in the node's processes that makes calls fail.

What fails how:

- no room, no inodes: for real; the tmpfs is filled, or is told to hold no more files than it has.
- EIO, read-only: by a library (`storage_faults.c`) in the node's processes. The kernel refuses to turn a file system
  read-only under open files, and a device that fails (dm-error) ends ext4's journal for good, so neither is over after
  a minute; what a process sees is the same. Needs a C compiler.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("storage_faults.c")
MODES = {"eio_writes": 1, "eio": 2, "read_only": 3}
_BYTES = 64


def allow_no_more_files(disk: Path) -> bool:
    """Let our tmpfs hold as many files as it has and no more."""
    about = os.statvfs(disk)
    if about.f_ffree == 0:
        return True
    return _remount(disk, f"nr_inodes={max(1, about.f_files - about.f_ffree)}")


def allow_files(disk: Path) -> bool:
    return _remount(disk, "nr_inodes=1000000")


def _remount(disk: Path, option: str) -> bool:
    return subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], capture_output=True).returncode == 0


class FailingDisk:
    """The switch of the library. `environment` is what the node's processes need; empty where it cannot be built."""

    def __init__(self, place: Path, folder: Path, preload: str = "") -> None:
        """`place` is for the library and its switch, `folder` is what fails, `preload` what is loaded already."""
        self.why_not = ""
        self.environment: dict[str, str] = {}
        self._active: dict[int, int] = {}
        self._keys = 0
        library, switch = place / "storage_faults.so", place / "storage_switch"
        switch.write_bytes(bytes(_BYTES))
        with switch.open("r+b") as file:
            self._board = mmap.mmap(file.fileno(), _BYTES)
        self.why_not = _build(library)
        if not self.why_not:
            self.environment = {
                "LD_PRELOAD": ":".join(filter(None, (str(library), preload))),
                "CHAOS_STORAGE_FOLDER": str(folder),
                "CHAOS_STORAGE_SWITCH": str(switch),
            }

    def begin(self, kind: str) -> int:
        """The newest of several faults counts; gives the key that ends this one."""
        self._keys += 1
        self._active[self._keys] = MODES[kind]
        self._turn()
        return self._keys

    def end(self, key: int) -> None:
        self._active.pop(key, None)
        self._turn()

    def struck(self, kind: str) -> int:
        """How many calls have failed so."""
        place = 8 * MODES[kind]
        return int(struct.unpack("=Q", self._board[place : place + 8])[0])

    def _turn(self) -> None:
        self._board[:8] = struct.pack("=Q", next(reversed(self._active.values()), 0))


def _build(library: Path) -> str:
    """Why there is no library; an empty word where there is one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "no C compiler is installed"
    command = [compiler, "-shared", "-fPIC", "-O2", "-w", "-o", str(library), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"the library cannot be built: {done.stderr[-200:]}"
