"""The checks of `lienworker doctor`: each is one line that says what was checked, its state, and what to do."""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import peewee

from lienworker.data_folder import DataFolder
from lienworker.db.database import SQLITE_VERSION, database, open_store
from lienworker.db.migrations import schema_version
from lienworker.errors import LienworkerError
from lienworker.maintenance.disk_limits import Room, free_mb, room_in
from lienworker.outbox.pauses import pauses
from lienworker.outbox.storage_watch import CAUSE, refusal_message
from lienworker.repair.checks import Scope, file_checks, raw_page_check, row_checks
from lienworker.repair.redis_check import redis_finding
from lienworker.repair.report import Finding
from lienworker.settings import Settings, unknown_settings
from lienworker.store.damage import integrity_problems, known_damage, try_storage

_FIXES_IT = "`lienworker doctor --repair` fixes it"
_FETCHES_THEM = "`lienworker doctor --repair --refetch` fetches them again"


def examine(settings: Settings, find_redis: Callable[[], str], *, deep: bool = False) -> Iterator[Finding]:
    """Yield all checks, in the order in which problems usually start."""
    yield _environment()
    yield _settings(settings)
    yield redis_finding(settings, find_redis)
    if not settings.data_dir.exists():
        words = f"there is none at {settings.data_dir} yet; `lienworker init` or the first import makes one"
        yield Finding("data folder", True, words)
        return
    try:
        folder = open_store(settings.data_dir)
    except (LienworkerError, peewee.DatabaseError) as problem:
        yield Finding("database", False, str(problem))
        yield from _disk_alone(settings)
        return
    yield _permissions(folder)
    yield _disk(settings, folder)
    yield _storage(folder)
    integrity = _integrity(folder)
    yield integrity
    yield from _damage_note(folder, is_whole=integrity.is_well)
    if not integrity.is_well:
        return  # nothing else in it can be trusted
    scope = Scope(folder, deep=deep)
    with database.atomic("DEFERRED"):  # one view of the data, while workers continue
        yield from map(_with_hint, row_checks(folder))
        yield _with_hint(raw_page_check(scope), _FETCHES_THEM)
    yield from map(_with_hint, file_checks(scope))


def _with_hint(finding: Finding, hint: str = _FIXES_IT) -> Finding:
    return finding if finding.is_well else replace(finding, words=f"{finding.words}; {hint}")


def _settings(settings: Settings) -> Finding:
    words = f"mode {settings.mode}, {settings.process_count} x {settings.threads} threads"
    unknown = unknown_settings()
    return Finding("settings", not unknown, "; ".join([words, *unknown]))


def _environment() -> Finding:
    words = f"Python {platform.python_version()}, SQLite {SQLITE_VERSION}, {sys.platform}"
    is_well = sys.version_info >= (3, 11) and tuple(map(int, SQLITE_VERSION.split("."))) >= (3, 35)
    return Finding("environment", is_well, words if is_well else f"{words}: Python 3.11 and SQLite 3.35 are needed")


def _permissions(folder: DataFolder) -> Finding:
    mode = stat.S_IMODE(folder.root.stat().st_mode)
    if not os.access(folder.root, os.W_OK):
        return Finding("data folder", False, f"{folder.root} cannot be written")
    if mode & 0o022:
        return Finding("data folder", False, f"others can write to {folder.root} (mode {mode:o}); chmod go-w")
    if mode & 0o055 and stat.S_IMODE(folder.database.stat().st_mode) & 0o077:
        words = f"others can read {folder.database}, which holds the passwords of proxies; chmod 600"
        return Finding("data folder", False, words)
    return Finding("data folder", True, f"{folder.root}, schema version {schema_version()}")


def _disk(settings: Settings, folder: DataFolder) -> Finding:
    room = room_in(folder, settings)
    warnings = room.warnings()
    return Finding(
        "disk", not warnings, f"{'; '.join(warnings)}: make room" if warnings else f"{room.free_mb:,} MB free"
    )


def _storage(folder: DataFolder) -> Finding:
    """Try to store a file: free bytes say nothing about inodes, quotas and folders without write permission."""
    problem = try_storage(folder)
    if problem is not None:
        return Finding("storage", False, f"{refusal_message(folder, problem).partition(';')[0]}; fetching waits for it")
    paused = [words for lane, cause, _, words in pauses() if (lane, cause) == ("fetch", CAUSE)]
    return Finding("storage", not paused, f"fetch is paused: {paused[0]}" if paused else "accepts pages")


def _disk_alone(settings: Settings) -> Iterator[Finding]:
    """Yield what a full disk explains: it keeps the database from being opened, so this is what to fix first."""
    if settings.data_dir.is_dir():
        warnings = Room(free_mb(settings.data_dir), None, settings).warnings()
        yield from (Finding("disk", False, f"{words}: make room") for words in warnings)


def _integrity(folder: DataFolder) -> Finding:
    words = integrity_problems(folder.database)
    if not words:
        return Finding("database", True, "ok")
    lines = "; ".join(line for word in words for line in word.splitlines())  # some messages have several lines
    return Finding("database", False, f"damaged ({lines}): stop everything, then {_FIXES_IT}")


def _damage_note(folder: DataFolder, *, is_whole: bool) -> Iterator[Finding]:
    """Yield the note that keeps the stack from starting; remove it where the database turns out to be intact."""
    words = known_damage(folder)
    if words and not is_whole:
        yield Finding("damage note", False, f"{folder.damage_note} says {words}: no stack starts before the repair")
    elif words:
        folder.damage_note.unlink(missing_ok=True)
        yield Finding("damage note", True, f"said {words}, but the database is whole: removed, the stack may start")
