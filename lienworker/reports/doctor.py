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
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lienworker.errors import LienworkerError
from lienworker.logs import Blotter
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.housekeeping import pauses
from lienworker.outbox.mending import stranded_tasks, undelivered_results
from lienworker.outbox.storage_watch import CAUSE, words_of
from lienworker.settings import Settings
from lienworker.store import damage
from lienworker.store.database import database, open_store
from lienworker.store.folder import DataFolder
from lienworker.store.leftovers import old_leftovers
from lienworker.store.migrations import schema_version
from lienworker.store.pending import differences
from lienworker.store.refusal import try_storage
from lienworker.store.room import Room, room_in
from lienworker.store.salvage import integrity_problems, unusable_rows
from lienworker.store.space import free_mb

#: Raw pages that are read without `--deep`; reading a million takes many minutes.
READ_BY_DEFAULT = 2_000
#: How long a Redis of one's own may take to answer, s.
_REDIS_SECONDS = 2.0
_REPAIR = "`lienworker doctor --repair` puts it right"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    is_well: bool
    words: str


def examine(settings: Settings, find_redis: Callable[[], Path], *, deep: bool = False) -> Iterator[Finding]:
    """All checks, in the order in which trouble usually starts."""
    yield _environment()
    yield Finding("settings", True, f"mode {settings.mode}, {settings.process_count} x {settings.threads} threads")
    yield _redis(settings, find_redis)
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
    words = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {sys.platform}"
    is_well = sys.version_info >= (3, 11) and sqlite3.sqlite_version_info >= (3, 35)
    return Finding("environment", is_well, words if is_well else f"{words}: Python 3.11 and SQLite 3.35 are needed")


def _redis(settings: Settings, find_redis: Callable[[], Path]) -> Finding:
    if settings.redis_url:
        return _own_redis(settings, settings.redis_url)
    try:
        return Finding("redis", True, f"private server: {find_redis()}")
    except LienworkerError as problem:
        return Finding("redis", False, str(problem))


def _own_redis(settings: Settings, url: str) -> Finding:
    try:
        once = Retry(NoBackoff(), 0)
        client = redis.Redis.from_url(
            url, socket_connect_timeout=_REDIS_SECONDS, socket_timeout=_REDIS_SECONDS, retry=once
        )
        with client:
            client.ping()
    except (redis.RedisError, OSError, ValueError, TypeError, AttributeError) as problem:  # the last three: an option
        words = " ".join(Blotter(settings)(str(problem)).split())
        return Finding("redis", False, f"REDIS_URL cannot be used: {words}; start that Redis, or mend REDIS_URL")
    return Finding("redis", True, "REDIS_URL answers")


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
    return Finding("pending files", not wrong, f"{len(wrong)} differ from the database; {_REPAIR}" if wrong else "ok")
