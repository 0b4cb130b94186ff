"""Restoring a backup: checked as a whole beside the data folder's files before any of it is put in place."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lienworker.data_folder import DataFolder, fsync_folder, make_private, rename
from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import all_rows, connection_to, write
from lienworker.db.migrations import known_migrations
from lienworker.db.usage import OPEN_LOCK, USE_LOCK, owning
from lienworker.errors import InputError, StoreError
from lienworker.maintenance.backup import ABOUT, DATABASE, FORMAT, Counting, check_database, read_members
from lienworker.maintenance.tar_reader import Member
from lienworker.outbox import transitions
from lienworker.outbox.leases import free
from lienworker.store.audit import record_action
from lienworker.store.raw_files import is_raw_path
from lienworker.trust import trust_data_folder

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, and where the old content was moved (None where there was none)."""

    about: dict[str, Any]
    files: int
    old: Path | None


def restore_files(path: Path, root: Path, *, force: bool) -> Restored:
    """Restore a backup into a data folder that is empty, or (with force) whose content is moved aside first."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    folder = DataFolder(root)
    trust_data_folder(root)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with owning(folder):
        _check_target(folder, force)
        return _restore(path, folder)


def _restore(path: Path, folder: DataFolder) -> Restored:
    # Inside the folder: it may be a volume, which nothing can be moved onto as a whole.
    stage = folder.root / f".restore-{secrets.token_hex(4)}"
    stage.mkdir(mode=0o700)
    try:
        files = _unpack(path, stage)
        about = _check(stage, path)
        old = _move_aside(folder, stage)
        _put_in_place(stage, folder.root)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return Restored(about, files, old)


def _check_target(folder: DataFolder, force: bool) -> None:
    if _content(folder.root) and not force:
        raise InputError(
            f"{folder.root} is not empty. Name a new folder with LIENWORKER_DATA_DIR, or use --force: then its content "
            "is moved aside, not deleted."
        )


def _content(root: Path, *but: Path) -> list[Path]:
    ours = {"lost+found", OPEN_LOCK, USE_LOCK}
    return [path for path in root.iterdir() if path.name not in ours and path not in but]


def _unpack(path: Path, stage: Path) -> int:
    """Unpack every file and compare its checksum; the list must name each of them and no other. Return how many."""
    try:
        files, wrong = read_members(path, lambda name, content: _write_file(stage, name, content))
    except OSError as problem:
        raise StoreError(f"{path} cannot be unpacked into {stage.parent}: {problem.strerror}.") from None
    if wrong:
        raise StoreError(f"{path} is damaged, for example at {wrong}; nothing was restored.")
    return files


def _write_file(stage: Path, name: str, content: Member) -> bytes:
    if content.size > shutil.disk_usage(stage).free:
        raise StoreError(f"There is no room for {name}, which has {content.size:,} bytes; nothing was restored.")
    place = stage / name
    make_private(place.parent)
    counting = Counting(content)
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while chunk := counting.read(_CHUNK):
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return counting.sha256.digest()


def _check(stage: Path, path: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((stage / ABOUT).read_bytes())
        version, form = int(about["schema_version"]), int(about["format"])
        about["made_at"] = rfc3339(to_ms(about["made_at"]))  # shown to people: nothing but a time gets through
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise StoreError(f"{path} is not a lienworker backup: it does not say what it is.") from None
    newest = known_migrations()[-1].version
    if form > FORMAT or version > newest:
        raise StoreError(
            f"{path} was made by a newer lienworker (schema version {version}, this program knows {newest}): "
            "install that version."
        )
    if not (stage / DATABASE).is_file():
        raise StoreError(f"{path} holds no database.")
    check_database(stage / DATABASE)
    _refuse_paths_outside(stage / DATABASE, path)
    return about


def _refuse_paths_outside(database: Path, path: Path) -> None:
    """Refuse a page outside `raw/`, whose file would be moved, sent or shown: no backup of ours names one."""
    with contextlib.closing(connection_to(database, read_only=True)) as copy:
        named = "SELECT path FROM pages UNION ALL SELECT html_path FROM results WHERE html_path IS NOT NULL"
        for (place,) in copy.execute(named):
            if not is_raw_path(place):
                raise StoreError(f"{path} is not a lienworker backup: a page in it is at {str(place)[:200]!r}.")


def _move_aside(folder: DataFolder, stage: Path) -> Path | None:
    there = _content(folder.root, stage)
    if not there:
        return None
    old = folder.root / f"before-restore-{rfc3339(now_ms()).replace(':', '')}"
    old.mkdir(mode=0o700)
    # The database first: without it nobody mistakes what is left for a complete folder.
    for path in sorted(there, key=lambda path: not path.name.startswith(DATABASE)):
        rename(path, old / path.name, "restore_old")
    return old


def _put_in_place(stage: Path, root: Path) -> None:
    """Move the files into place, the database last: a folder with a database is complete."""
    (stage / ABOUT).unlink()
    for path in sorted(stage.iterdir(), key=lambda path: path.name == DATABASE):
        rename(path, root / path.name, "restore")
    for place in (root, *(path for path in root.rglob("*") if path.is_dir())):
        fsync_folder(place)


# What a restored database needs before workers continue: the world has moved on since it was copied.


#: Why uploads are held after a restore.
RESTORED = "restored"


def settle_in(what: str, *, hold_uploads: bool) -> int:
    """Free what the processes of that time held, without blame; return how many uploads are held.

    The Gateway may have received newer results since, and it would let an older one overwrite them. So what was still
    to be sent waits for a person, unless the backup is known to be the last state.
    """
    holders = {row[0] for row in all_rows("SELECT holder FROM workers UNION SELECT holder FROM turns")}
    tokens = all_rows("SELECT DISTINCT lease_token FROM outbox WHERE state = 'leased'")
    for holder in holders | {token.partition(".")[0] for (token,) in tokens}:
        free(holder, blame=False)
    with write("restored"):
        held = 0
        if hold_uploads:
            held = transitions.hold_all_uploads(RESTORED)
        # Delays of hosts and breakers are of that time, too: they expire.
        record_action("restore", what, held)
    return held
