"""Is everything as it should be? Each check is one line: what was looked at, how it is, what to do."""

from __future__ import annotations

import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Iterator

import peewee

from lienworker.errors import LienworkerError
from lienworker.maintenance.disk_limits import Room, free_mb, room_in
from lienworker.maintenance.stale_files import old_leftovers
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.pauses import pauses
from lienworker.outbox.storage_watch import CAUSE, words_of
from lienworker.repair.finding import Finding
from lienworker.repair.redis_check import redis_finding
from lienworker.repair.requeue import stranded_tasks, undelivered_results
from lienworker.repair.salvage import integrity_problems, unusable_rows
from lienworker.settings import Settings
from lienworker.store import damage
from lienworker.store.database import SQLITE_VERSION, database, open_store
from lienworker.store.folder import DataFolder, is_stack_running
from lienworker.store.migrations import schema_version
from lienworker.store.pending import differences, leftovers
from lienworker.store.refusal import try_storage

#: Raw pages that are read without `--deep`; reading a million takes many minutes.
READ_BY_DEFAULT = 2_000
_REPAIR = "`lienworker doctor --repair` puts it right"


def examine(settings: Settings, find_redis: Callable[[], str], *, deep: bool = False) -> Iterator[Finding]:
    """All checks, in the order in which trouble usually starts."""
    yield _environment()
    yield Finding("settings", True, f"mode {settings.mode}, {settings.process_count} x {settings.threads} threads")
    yield redis_finding(settings, find_redis)
    try:
        folder = open_store(settings.data_dir)
    except (LienworkerError, peewee.DatabaseError) as problem:
        yield Finding("database", False, str(problem))
        yield from _disk_alone(settings)
        return
    yield _permissions(folder)
    yield _disk(settings, folder)
    yield _storage(folder)
    integrity = _integrity()
    yield integrity
    if not integrity.is_well:
        return  # nothing else that it says can be believed
    yield from _damage_note(folder)
    with database.atomic("DEFERRED"):  # one view of the data, while workers go on
        yield _references()
        yield _stranded()
        yield from _balance()
        yield _tallies()
        yield _raw_files(folder, deep)
    yield _nobodys_files(folder)
    yield _archives(folder)
    yield _pending(folder, deep)


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
    """Bytes that are free say nothing of inodes, quotas and folders that nobody may write to: it is tried."""
    problem = try_storage(folder)
    if problem is not None:
        return Finding("storage", False, f"{words_of(folder, problem).partition(';')[0]}; fetching waits for it")
    paused = [words for lane, cause, _, words in pauses() if (lane, cause) == ("fetch", CAUSE)]
    return Finding("storage", not paused, f"fetch is paused: {paused[0]}" if paused else "takes pages")


def _disk_alone(settings: Settings) -> Iterator[Finding]:
    """A full disk keeps the database from being opened: then this is what is to be done about."""
    if settings.data_dir.is_dir():
        warnings = Room(free_mb(settings.data_dir), None, settings).warnings()
        yield from (Finding("disk", False, f"{words}: make room") for words in warnings)


def _integrity() -> Finding:
    words = integrity_problems()
    if not words:
        return Finding("database", True, "ok")
    lines = "; ".join(line for word in words for line in word.splitlines())  # SQLite says some in several
    return Finding("database", False, f"damaged ({lines}): stop everything, then {_REPAIR}")


def _damage_note(folder: DataFolder) -> Iterator[Finding]:
    """The database has just been found whole: a note that says otherwise keeps the stack from starting for nothing."""
    words = damage.known_damage(folder)
    if words:
        folder.damage_note.unlink(missing_ok=True)
        yield Finding("damage note", True, f"said {words}, but the database is whole: removed, the stack may start")


def _references() -> Finding:
    n = unusable_rows()
    return Finding("references", not n, f"{n} rows without their task, or unreadable; {_REPAIR}" if n else "ok")


def _balance() -> Iterator[Finding]:
    for side in balances():
        words = f"{side.topic}: added {side.added:,} = {side.there:,} there + {side.purged:,} purged"
        yield Finding("outbox balance", side.holds, words if side.holds else words.replace(" = ", " IS NOT "))


def _tallies() -> Finding:
    wrong = wrong_tallies()
    return Finding("tallies", not wrong, f"{'; '.join(wrong[:3])}; {_REPAIR}" if wrong else "ok")


def _stranded() -> Finding:
    n = len(stranded_tasks()) + len(undelivered_results())
    return Finding("steps", not n, f"{n} tasks lack their next step; {_REPAIR}" if n else "ok")


def _raw_files(folder: DataFolder, deep: bool) -> Finding:
    lost = list(damage.lost_pages(folder, None if deep else READ_BY_DEFAULT))
    if not lost:
        read = "all" if deep else f"the newest {READ_BY_DEFAULT:,}"
        return Finding("raw pages", True, f"every page has its file; {read} were read")
    kind = "missing" if lost[0].is_missing else "damaged"
    words = f"{len(lost)} raw pages are missing or damaged, such as {lost[0].path} ({kind})"
    return Finding("raw pages", False, f"{words}; `lienworker doctor --repair --refetch` fetches them again")


def _nobodys_files(folder: DataFolder) -> Finding:
    n, parts = len(damage.unnamed_raw_files(folder)), len(old_leftovers(folder))
    if not n and not parts:
        return Finding("raw files", True, "none that no row names")
    return Finding("raw files", False, f"{n} that no row names, {parts} half-written ones; {_REPAIR}")


def _archives(folder: DataFolder) -> Finding:
    damaged = damage.damaged_archives(folder)
    if not damaged:
        return Finding("archives", True, "ok")
    path, words = damaged[0]
    return Finding("archives", False, f"{len(damaged)} damaged, such as {path} ({words}); {_REPAIR}")


def _pending(folder: DataFolder, deep: bool) -> Finding:
    """Files come a moment before their rows: only what differs twice is wrong."""
    most_read = None if deep else READ_BY_DEFAULT
    wrong = differences(folder, most_read)
    if wrong:
        time.sleep(0.5)
        wrong &= differences(folder, most_read)
    if wrong and is_stack_running(folder):
        left = wrong & leftovers(folder)
        wrong -= left
        if left and not wrong:
            return Finding("pending files", True, f"ok; {len(left)} of delivered results go within minutes")
    return Finding("pending files", not wrong, f"{len(wrong)} differ from the database; {_REPAIR}" if wrong else "ok")
