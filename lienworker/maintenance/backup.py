"""A backup: everything that is needed to continue, in one file that can be checked with `tar` and `sha256sum` alone.

`backup.json` describes it, `lienworker.db` is the database at one moment, `raw/` and the rest are the files that it
names, `SHA256SUMS` is the list of all. Raw pages never change and are stored before a row names them, so the database
is copied first and its pages afterwards, while workers continue; only a purge must wait. Files in `pending/` are a view
and are rebuilt. Settings, tokens, logs and Redis are not part of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from lienworker import __version__
from lienworker.data_folder import DataFolder, create_private, fsync_folder, rename
from lienworker.db.clock import rfc3339
from lienworker.db.database import DATABASE_TROUBLE, connection_to
from lienworker.errors import InputError, StoreError
from lienworker.maintenance.tar_reader import ArchiveError, Member, tar_members
from lienworker.store.stale_files import aside_of

ABOUT, DATABASE, SUMS = "backup.json", "lienworker.db", "SHA256SUMS"
#: The version of this layout.
FORMAT = 1
#: Folders whose files are included as they are.
_FOLDERS = ("archive", "rejects", "sources")
_CHUNK = 1 << 20
#: Small files are read at once; ours have a few hundred bytes.
_MOST_BYTES = {ABOUT: 1 << 20, "worker_id": 4096}
_LONGEST_LINE = 16 * 1024
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Backup:
    """What was written. `missing` are raw pages that the database names but that do not exist."""

    path: Path
    files: int
    size: int
    missing: list[str]


def write_backup(folder: DataFolder, path: Path, progress: Callable[[int, int], None]) -> Backup:
    """Write the archive to a temporary file, read it back, and rename it only if it holds what it should."""
    if path.exists():
        raise InputError(f"{path} exists already; a backup never overwrites. Name another file.")
    if not path.parent.is_dir():
        raise InputError(f"The folder {path.parent} does not exist.")
    _check_room(folder, path.parent)
    aside, copy = aside_of(path), aside_of(path.with_name(f"{path.name}.db"))
    try:
        copy_database(folder.database, copy)
        _forget_secrets(copy)
        missing = _write(folder, copy, aside, _is_compressed(path), progress)
        files = verify(aside)
        if path.exists():
            raise InputError(f"{path} was created meanwhile; a backup never overwrites.")
        rename(aside, path, "backup")
        fsync_folder(path.parent)
    except OSError as problem:
        raise StoreError(f"The backup cannot be written to {path}: {problem.strerror}.") from None
    finally:
        for file in (aside, copy):
            file.unlink(missing_ok=True)
    return Backup(path, files, path.stat().st_size, missing)


def _check_room(folder: DataFolder, place: Path) -> None:
    needed = 2 * folder.database.stat().st_size
    if shutil.disk_usage(place).free < needed:
        raise StoreError(f"{place} has less than {needed // _MB:,} MB free, which the database alone needs.")


def _is_compressed(path: Path) -> bool:
    return path.suffix in {".gz", ".tgz"}


def copy_database(source: Path, target: Path) -> None:
    """Copy the database as of one moment, and check it. Writers continue: in WAL mode a reader blocks nobody."""
    create_private(target)
    reading = connection_to(source, read_only=True)
    with contextlib.closing(reading) as live, contextlib.closing(connection_to(target)) as copy:
        live.backup(copy)
        copy.execute("PRAGMA journal_mode = delete").fetchall()
    check_database(target)


def _forget_secrets(copy: Path) -> None:
    """Take sessions at sites and tokens of sources out of a copy, without a trace: a backup outlives them."""
    with contextlib.closing(connection_to(copy)) as database, database:
        database.execute("PRAGMA secure_delete = ON").fetchall()
        database.execute("DELETE FROM sessions WHERE true")  # without a condition, SQLite would only free its pages
        database.execute("UPDATE harvests SET secret = NULL WHERE secret IS NOT NULL")


def check_database(path: Path) -> None:
    """Raise StoreError unless the file is intact."""
    try:
        with contextlib.closing(connection_to(path, read_only=True)) as database:
            words = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
            strays = database.execute("PRAGMA foreign_key_check").fetchmany(3)
    except DATABASE_TROUBLE as problem:
        raise StoreError(f"The database is damaged: {problem}. `lienworker doctor` says more.") from None
    if words != ["ok"] or strays:
        raise StoreError(f"The database is damaged: {'; '.join(words)}. `lienworker doctor` says more.")


def _write(
    folder: DataFolder, copy: Path, aside: Path, is_compressed: bool, progress: Callable[[int, int], None]
) -> list[str]:
    names: list[str] = []
    missing: list[str] = []
    for name in _files_of(folder, copy):
        # A path that leads out of the folder is not one of our pages: its file is not included.
        (names if is_ours(name) and (folder.root / name).is_file() else missing).append(name)
    sums: list[str] = []
    with _private(aside) as out:
        with tarfile.open(fileobj=out, mode="w:gz" if is_compressed else "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, ABOUT, io.BytesIO(_about(copy, len(names), missing)), sums)
            with copy.open("rb") as content:
                _add(archive, DATABASE, content, sums)
            for n, name in enumerate(names, 1):
                with (folder.root / name).open("rb") as content:
                    _add(archive, name, content, sums)
                progress(n, len(names))
            _add(archive, SUMS, io.BytesIO("".join(sums).encode("utf-8", "surrogateescape")), [])
        out.flush()
        os.fsync(out.fileno())
    return missing


@contextlib.contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that only its owner can read: tasks may carry proxies with passwords."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        yield out


def _about(copy: Path, files: int, missing: list[str]) -> bytes:
    with contextlib.closing(connection_to(copy)) as database:
        version = database.execute("SELECT max(version) FROM schema_versions").fetchone()[0]
        tasks = dict(database.execute("SELECT status, count(*) FROM tasks GROUP BY 1"))
    about = {
        "format": FORMAT,
        "made_at": rfc3339(),
        "program": __version__,
        "schema_version": version,
        "files": files,
        "missing": len(missing),
        "tasks": tasks,
    }
    return (json.dumps(about, indent=1) + "\n").encode()


def _files_of(folder: DataFolder, copy: Path) -> Iterator[str]:
    """Yield the names of the files to include, relative to the data folder."""
    if (folder.root / "worker_id").is_file():
        yield "worker_id"
    with contextlib.closing(connection_to(copy)) as database:
        for (path,) in database.execute("SELECT DISTINCT path FROM pages WHERE purged_at IS NULL ORDER BY path"):
            yield path
    for place in _FOLDERS:
        for file in sorted((folder.root / place).rglob("*")):
            if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
                yield str(file.relative_to(folder.root))


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes], sums: list[str]) -> None:
    """Add one file, with its checksum as it was added."""
    about = tarfile.TarInfo(name)
    about.size = content.seek(0, os.SEEK_END)
    about.mode = 0o600
    content.seek(0)
    counting = Counting(content)
    archive.addfile(about, counting)
    sums.append(f"{counting.sha256.hexdigest()}  {name}\n")


class Reading(Protocol):
    """Anything that can be read piece by piece."""

    def read(self, size: int = -1, /) -> bytes: ...


class Counting:
    """A stream that counts what is read from it."""

    def __init__(self, content: Reading) -> None:
        self._content = content
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self._content.read(size)
        self.sha256.update(chunk)
        return chunk


def verify(path: Path) -> int:
    """Read an archive from beginning to end; every file must be there, intact, once. Return how many there are."""
    files, wrong = read_members(path, lambda name, content: sum_of(content))
    if wrong:
        raise StoreError(f"{path} does not match its list of files: it is damaged.")
    return files


def sum_of(content: Reading) -> bytes:
    counting = Counting(content)
    while counting.read(_CHUNK):
        pass
    return counting.sha256.digest()


def read_members(path: Path, take: Callable[[str, Member], bytes]) -> tuple[int, str | None]:
    """Pass every file of an archive to `take` and compare its hash with the list, which is the last file.

    Return how many there are, and the first that does not match. The list is read line by line, and what it confirms is
    dropped, so a backup of a million pages needs little memory.
    """
    try:
        return _compared(path, take)
    except ArchiveError as problem:
        raise StoreError(f"{path} cannot be read as a backup: {problem}.") from None


def _compared(path: Path, take: Callable[[str, Member], bytes]) -> tuple[int, str | None]:
    found: dict[str, bytes] = {}
    files = 0
    for name, content in _members(path):
        if name != SUMS:
            found[name] = take(name, content)
            files += 1
            continue
        for digest, listed in _sums(content):
            if found.pop(listed, None) != digest:
                return files, listed
        return files, next(iter(found), None)
    return files, SUMS


def _sums(content: Member) -> Iterator[tuple[bytes, str]]:
    lines = io.BufferedReader(_Raw(content))
    while line := lines.readline(_LONGEST_LINE):
        digest, _, name = line.removesuffix(b"\n").partition(b"  ")
        try:
            yield bytes.fromhex(digest.decode("ascii")), name.decode("utf-8", "surrogateescape")
        except ValueError:
            raise StoreError("The list of a backup's files is damaged.") from None


class _Raw(io.RawIOBase):
    """A file of an archive, as Python's own readers expect it."""

    def __init__(self, content: Member) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._content.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _members(path: Path) -> Iterator[tuple[str, Member]]:
    """Yield the files of an archive one after the other; refuse anything in it that no backup has."""
    seen: set[str] = set()
    for name, content in tar_members(path):
        if name in seen or not is_ours(name):
            raise StoreError(f"{path} is not a lienworker backup: it holds {name[:200]!r}.")
        if content.size > _MOST_BYTES.get(name, content.size):
            raise StoreError(f"{path} is not a lienworker backup: its {name} has {content.size:,} bytes.")
        seen.add(name)
        yield name, content


def is_ours(name: str) -> bool:
    """Return whether backups have files of this name: nothing absolute, nothing that leads out of the folder."""
    if name in {ABOUT, DATABASE, SUMS, "worker_id"}:
        return True
    top, *rest = name.split("/")
    return top in {"raw", *_FOLDERS} and bool(rest) and not {"", ".", ".."} & set(rest) and "\0" not in name
