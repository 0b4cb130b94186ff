"""The data folder: where everything is, and names that are safe to use as file names."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import re
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lienworker.errors import StoreError
from lienworker.failpoints import failpoint

_PLAIN = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9 ._-]{0,78}[A-Za-z0-9_-])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_LARGE_LOG = 10_000_000
#: Redis truncates longer socket paths silently (the kernel accepts 107 bytes).
_LONGEST_SOCKET = 100
_GLANCE_SECONDS = 0.002


@dataclass(frozen=True)
class DataFolder:
    """The paths in one data folder. One node is one data folder."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "lienworker.db"

    @property
    def raw(self) -> Path:
        return self.root / "raw"

    @property
    def aside(self) -> Path:
        """Where pages are written before they are renamed: one folder, so that what a kill leaves is found."""
        return self.raw / ".aside"

    @property
    def pending(self) -> Path:
        return self.root / "pending"

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def rejects(self) -> Path:
        return self.root / "rejects"

    @property
    def sources(self) -> Path:
        """What is known of where to look for parcels."""
        return self.root / "sources"

    @property
    def holders(self) -> Path:
        """A locked file for each living process that holds leases; the kernel releases the lock when it dies."""
        return self.root / "holders"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def lock(self) -> Path:
        """Held by the stack that runs on this folder: exclusively by a whole stack, shared by the parts of one."""
        return self.root / "stack.lock"

    @property
    def quarantine(self) -> Path:
        """Where a repair puts what is damaged or unreferenced; nothing reads it."""
        return self.root / "quarantine"

    @property
    def salvaged(self) -> Path:
        """A repaired database that is complete and not yet in its place (see `repair/salvage.py`)."""
        return self.root / "lienworker.db.salvaged"

    @property
    def damage_note(self) -> Path:
        """Exists while the database is known to be damaged: no stack starts on it until it is repaired."""
        return self.root / "damaged"

    @property
    def redis_socket(self) -> Path:
        """The private Redis's socket: in the folder, or in a short private path where that is too long."""
        near = self.redis / "redis.sock"
        if len(os.fsencode(near)) <= _LONGEST_SOCKET:
            return near
        mark = hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"lienworker-{os.getuid()}-{mark}" / "redis.sock"

    def create(self) -> DataFolder:
        """Create the folder, private to its owner, with the folders inside."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            for place in (self.raw, self.aside, self.pending, self.archive, self.logs, self.holders, self.redis):
                place.mkdir(exist_ok=True, mode=0o700)
        except OSError as problem:
            raise StoreError(f"The data folder {self.root} cannot be made: {problem.strerror}.") from None
        return self

    def worker_id(self) -> str:
        """Return the worker's name, made once: the Gateway assigns tasks to it."""
        machine = socket.gethostname()[:40] or "worker"
        return self._made_once("worker_id", lambda: f"{machine}-{secrets.token_hex(4)}")[0]

    def web_token(self) -> tuple[str, bool]:
        """Return the token that visitors of the monitor need, and whether it was just made."""
        return self._made_once(self.web_token_file.name, lambda: secrets.token_urlsafe(24))

    @property
    def web_token_file(self) -> Path:
        return self.root / "web_token"

    def _made_once(self, name: str, make: Callable[[], str]) -> tuple[str, bool]:
        """Return a value of this folder that stays the same from then on, and whether it is new."""
        place = self.root / name
        with one_at_a_time(self.root / "open.lock"):
            word = place.read_text().strip() if place.exists() else ""
            if word:
                return word, False
            word = make()
            write_durably(place, word + "\n")
            return word, True


def safe_part(text: str, plain: Callable[[str], str] = str.upper) -> str:
    """Return a file name for any text, different for different texts, even on a file system that ignores case.

    Exactly one spelling of a text is used as it is: the one that `plain` does not change, if it has only harmless
    characters. Every other is cleaned and marked with a hash of itself.
    """
    if _PLAIN.fullmatch(text) and plain(text) == text and not _RESERVED.fullmatch(text):
        return text
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:60].strip("_-") or "x"
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{cleaned}~{mark}"


#: Different in every process, even where several machines or containers share a folder; then a number each.
_process = {"pid": 0, "name": ""}
_numbers = itertools.count()


def aside_name() -> str:
    """Return the name of a temporary file beside its final place: unique, and cheap."""
    if _process["pid"] != os.getpid():  # forked workers must not share a name
        _process.update(pid=os.getpid(), name=secrets.token_hex(8))
    return f".{_process['name']}-{next(_numbers)}.part"


def try_lock(path: Path, *, shared: bool = False) -> IO[str] | None:
    """Lock a file for as long as the returned object is open; return None when another process has it.

    Several may hold a shared lock, but none beside an exclusive one.
    """
    handle = open_lock(path)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def lock_within(path: Path, seconds: float) -> IO[str] | None:
    """Try for `seconds` to lock a file exclusively."""
    deadline = time.monotonic() + seconds
    while (lock := try_lock(path)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return lock


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait for the exclusive lock on a file among all processes that use it here."""
    with open_lock(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def together(path: Path) -> Iterator[None]:
    """Share a file with any number of processes; wait while one of them has it exclusively."""
    with open_lock(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield


def open_lock(path: Path) -> IO[str]:
    """Open a lock file, readable by its owner only: anybody who may read it could lock it and stall the others."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    about = os.fstat(handle)
    if about.st_uid == os.getuid() and about.st_mode & 0o077:
        os.fchmod(handle, 0o600)
    return os.fdopen(handle, "r+")


def make_private(place: Path) -> None:
    """Create a folder and its missing parents, each for its owner only: `mkdir` sets the mode of the last one only."""
    if not place.is_dir():
        make_private(place.parent)
        place.mkdir(exist_ok=True, mode=0o700)


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read, unless it exists.

    It is created under a temporary name and renamed: nobody ever gets a descriptor of the file itself (see
    `db/usage.py`).
    """
    if not path.exists():
        aside = path.with_name(aside_name())
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        rename(aside, path, "new_database")


def write_durably(path: Path, text: str) -> None:
    """Write a small file, whole or not at all, even across a power loss; readable by its owner only."""
    aside = path.with_name(aside_name())
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    rename(aside, path, "small_file")
    fsync_folder(path.parent)


def rename(aside: Path, path: Path, name: str) -> None:
    """Rename a temporary file into place: the only way in which that happens.

    `name` is the name of the failpoints right before and right after it.
    """
    failpoint(name, "before_rename")
    aside.replace(path)
    failpoint(name, "after_rename")


def rotated(log: Path) -> Path:
    """Return a log to append to: a large one is rotated first, and the one before it removed."""
    if log.exists() and log.stat().st_size > _LARGE_LOG:
        log.replace(log.with_name(f"{log.name}.1"))
    return log


def fsync_folder(path: Path) -> None:
    """Make a rename in a folder survive a power loss."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_stack_running(folder: DataFolder) -> bool:
    """Return whether a stack runs. Look twice: another process that looks holds the lock for a moment."""
    for pause in (_GLANCE_SECONDS, 0):
        if lock := try_lock(folder.lock):
            lock.close()
            return False
        time.sleep(pause)
    return True
