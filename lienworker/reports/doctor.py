"""Is everything as it should be? Each check is one line: what was looked at, how it is, what to do."""

from __future__ import annotations

import os
import platform
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import peewee

from lienworker.errors import LienworkerError
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.settings import Settings
from lienworker.store.database import all_rows, database, open_store
from lienworker.store.folder import DataFolder
from lienworker.store.migrations import schema_version
from lienworker.store.pending import pending_path
from lienworker.store.room import room_in


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    is_well: bool
    words: str


def examine(settings: Settings, find_redis: Callable[[], Path]) -> Iterator[Finding]:
    """All checks, in the order in which trouble usually starts."""
    yield _environment()
    yield Finding("settings", True, f"mode {settings.mode}, {settings.process_count} x {settings.threads} threads")
    yield _redis(settings, find_redis)
    try:
        folder = open_store(settings.data_dir)
    except (LienworkerError, peewee.DatabaseError) as problem:
        yield Finding("database", False, str(problem))
        return
    yield _permissions(folder)
    yield _disk(settings, folder)
    with database.atomic("DEFERRED"):  # one view of the data, while workers go on
        yield _integrity()
        yield _references()
        yield from _balance()
        yield _tallies()
        yield _raw_files(folder)
    yield _pending(folder)


def _environment() -> Finding:
    words = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {sys.platform}"
    is_well = sys.version_info >= (3, 11) and sqlite3.sqlite_version_info >= (3, 35)
    return Finding("environment", is_well, words if is_well else f"{words}: Python 3.11 and SQLite 3.35 are needed")


def _redis(settings: Settings, find_redis: Callable[[], Path]) -> Finding:
    if settings.redis_url:
        return Finding("redis", True, "REDIS_URL is set")
    try:
        return Finding("redis", True, f"private server: {find_redis()}")
    except LienworkerError as problem:
        return Finding("redis", False, str(problem))


def _permissions(folder: DataFolder) -> Finding:
    mode = stat.S_IMODE(folder.root.stat().st_mode)
    if not os.access(folder.root, os.W_OK):
        return Finding("data folder", False, f"{folder.root} cannot be written")
    if mode & 0o022:
        return Finding("data folder", False, f"others can write to {folder.root} (mode {mode:o}); chmod go-w")
    return Finding("data folder", True, f"{folder.root}, schema version {schema_version()}")


def _disk(settings: Settings, folder: DataFolder) -> Finding:
    room = room_in(folder, settings)
    warnings = room.warnings()
    return Finding(
        "disk", not warnings, f"{'; '.join(warnings)}: make room" if warnings else f"{room.free_mb:,} MB free"
    )


def _integrity() -> Finding:
    try:
        words = [row[0] for row in all_rows("PRAGMA integrity_check(5)")]
    except peewee.DatabaseError as problem:
        words = [str(problem)]
    return Finding("database", words == ["ok"], "; ".join(words))


def _references() -> Finding:
    broken = all_rows("PRAGMA foreign_key_check")
    return Finding("references", not broken, f"{len(broken)} rows without their task" if broken else "ok")


def _balance() -> Iterator[Finding]:
    for side in balances():
        words = f"{side.topic}: added {side.added:,} = {side.there:,} there + {side.purged:,} purged"
        yield Finding("outbox balance", side.holds, words if side.holds else words.replace(" = ", " IS NOT "))


def _tallies() -> Finding:
    wrong = wrong_tallies()
    return Finding("tallies", not wrong, "; ".join(wrong[:3]) if wrong else "ok")


def _raw_files(folder: DataFolder) -> Finding:
    kept = all_rows("SELECT path FROM pages WHERE purged_at IS NULL")
    missing = [path for (path,) in kept if not (folder.root / path).is_file()]
    words = f"{len(missing)} raw pages are missing, such as {missing[0]}" if missing else "every page has its file"
    return Finding("raw pages", not missing, words)


def _pending(folder: DataFolder) -> Finding:
    """Files come a moment before their rows: only what differs twice is wrong."""
    wrong = _pending_differences(folder)
    if wrong:
        time.sleep(0.5)
        wrong &= _pending_differences(folder)
    return Finding("pending files", not wrong, f"{len(wrong)} differ from the database" if wrong else "ok")


def _pending_differences(folder: DataFolder) -> set[str]:
    rows = all_rows("SELECT task_id FROM results WHERE synced = 0 AND json_path IS NOT NULL")
    wanted = {pending_path(task_id) for (task_id,) in rows}
    return wanted ^ {f"pending/{path.name}" for path in folder.pending.glob("*.json")}
