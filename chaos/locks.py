"""Watch a node's processes from outside: do they hold their locks on the database, and are its files still there?

A process that has the database open in WAL mode holds two POSIX locks for as long as a connection lives, and
`/proc/locks` shows both: a shared one on byte 128 of the `-shm` file ("I use this log") and a shared one on the bytes
from 0x40000002 of the database file. If either is gone while the file is open, another process may take itself for the
last user and delete the log under our hands; then `/proc/<pid>/fd` shows a deleted file in use.

Opening, closing and deleting take a moment each, so a finding counts only when it is still there `PATIENCE` seconds
later, in the same process.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds that a finding must last before it is believed: a process at its start or end is between two states.
PATIENCE = 0.6
_INTERVAL = 0.25
_DMS_BYTE = 128
_SHARED_FIRST = 0x40000002
_LOCK = re.compile(r"\d+: POSIX +ADVISORY +(?:READ|WRITE) +(-?\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) +(\d+) +(\d+|EOF)")

Inode = tuple[int, int]
Held = dict[tuple[int, Inode], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong in one process; the same one again is the same finding."""

    pid: int
    started: int
    what: str


@dataclass
class Looks:
    """What the watcher has seen so far."""

    taken: int = 0
    #: Processes that had the database open at some time. A watcher that never saw one has proved nothing.
    pids: set[int] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)


def can_watch() -> bool:
    """Whether this system shows locks and open files (Linux does)."""
    return Path("/proc/locks").exists() and Path("/proc/self/fd").is_dir()


class LockWatch:
    """Looks at the processes that have one database open, again and again."""

    def __init__(self, database: Path, pids: Callable[[], Iterable[int]]) -> None:
        self._database = str(database)
        self._pids = pids
        self._since: dict[Finding, float] = {}
        self._told: set[Finding] = set()
        self.looks = Looks()

    @contextmanager
    def watching(self) -> Iterator[Looks]:
        """Look from a thread of its own for as long as the block lasts."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), name="lock-watch", daemon=True)
        thread.start()
        try:
            yield self.looks
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(_INTERVAL):
            self.look()

    def look(self) -> None:
        now = time.monotonic()
        found = set(self._findings())
        self._since = {finding: self._since.get(finding, now) for finding in found}
        for finding in found - self._told:
            if now - self._since[finding] >= PATIENCE:
                self._told.add(finding)
                self.looks.sentences.append(f"process {finding.pid} ({_command(finding.pid)}): {finding.what}")
        self.looks.taken += 1

    @property
    def suspicions(self) -> bool:
        """Whether something was seen at the last look that has not lasted long enough to be believed."""
        return bool(set(self._since) - self._told)

    def _findings(self) -> Iterator[Finding]:
        opened = {pid: files for pid in self._pids() if (files := self._files(pid))}
        held = _held()  # after the files: whoever has opened one since is not asked for its lock yet
        for pid, files in opened.items():
            about = _about(pid)
            if about is None or about[0] in "TtZ":  # stopped in the middle of something, or dead
                continue
            self.looks.pids.add(pid)
            for what in self._wrong(pid, files, held):
                yield Finding(pid, about[1], what)

    def _files(self, pid: int) -> dict[str, set[Inode]]:
        """The node's database files that a process has open: by name, with " (deleted)" where they are."""
        found: dict[str, set[Inode]] = {}
        with contextlib.suppress(OSError):
            for handle in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    name = os.readlink(handle.path)
                    if name.removesuffix(" (deleted)") in self._names():
                        about = os.stat(handle.path)
                        found.setdefault(name, set()).add((about.st_dev, about.st_ino))
        return found

    def _names(self) -> tuple[str, str, str]:
        return self._database, f"{self._database}-wal", f"{self._database}-shm"

    def _wrong(self, pid: int, files: dict[str, set[Inode]], held: Held) -> Iterator[str]:
        for name, inodes in files.items():
            base = os.path.basename(name)
            if name.endswith(" (deleted)"):
                yield f"{base} is in use"
            elif name == self._database:
                yield from (f"{base} is open without its lock" for i in inodes if not _has(held, pid, i, _SHARED_FIRST))
            elif name == f"{self._database}-shm":
                yield from (f"{base} is open without its lock" for i in inodes if not _has(held, pid, i, _DMS_BYTE))


def _has(held: Held, pid: int, inode: Inode, byte: int) -> bool:
    return any(first <= byte <= last for first, last in held.get((pid, inode), ()))


def _held() -> Held:
    """All POSIX locks of the machine."""
    held: Held = {}
    for line in Path("/proc/locks").read_text().splitlines():
        if match := _LOCK.match(line):
            pid, major, minor, inode, first, last = match.groups()
            device = os.makedev(int(major, 16), int(minor, 16))
            end = 1 << 63 if last == "EOF" else int(last)
            held.setdefault((int(pid), (device, int(inode))), []).append((int(first), end))
    return held


def _about(pid: int) -> tuple[str, int] | None:
    """A process's state and when it was started; None if it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[19])


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "gone"
    return words.strip()[-60:]
