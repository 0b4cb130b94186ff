"""`pending/*.json`: one file for each undelivered result, for people to look at and ship by hand.

The folder is a view: the database is authoritative, and `rebuild` makes the folder again from it. In standalone mode a
result has its file at once. On demand most results are delivered within seconds, and only the others get one
(`show_undelivered`): a file that is made and removed again costs as much as delivering its result.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

from lienworker.data_folder import DataFolder, aside_name, rename, safe_part
from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import all_rows, dict_rows
from lienworker.store.results import with_data

#: A file without its row is still being written for less than this, s.
_YOUNG_SECONDS = 60.0
#: A file this much older than the newest one has been flushed by the system, s.
_UNFLUSHED_SECONDS = 600.0
#: How far the clocks of files and rows may differ, s.
_CLOCK_SECONDS = 5.0
#: A result on demand that is not delivered after so long gets its file, s.
_LATE_SECONDS = 10.0
#: Those that are older than this got theirs before, or get it by `heal`, s.
_LATELY_SECONDS = 600.0
#: How many results are looked at in one go.
_MOST_AT_ONCE = 500

logger = logging.getLogger(__name__)


def pending_path(task_id: str) -> str:
    """Return where a task's file is, relative to the data folder."""
    return f"pending/{safe_part(task_id, str.lower)}.json"


def item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a result in the shape that the Gateway accepts."""
    return {
        "task_id": row["task_id"],
        "parcel_id": row["parcel_id"],
        "platform": row["platform"],
        "state": row["state"],
        "county": row["county"],
        "data": row["data"],
        "scraped_at": row["scraped_at"],
        "parse_duration_ms": row["parse_duration_ms"],
        "raw_html_hash": row["raw_sha256"],
    }


def _content(row: dict[str, Any]) -> bytes:
    """Return the file with one field a line: readable, and without `indent`, which costs four times as much."""
    content = {**item(row), "raw_file": row["html_path"]}
    lines = (f' "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in content.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "replace")


def write_pending(folder: DataFolder, row: dict[str, Any]) -> None:
    """Write a result's file, whole or not at all. It is not flushed: a power loss costs a rebuild, not a result."""
    path = folder.root / pending_path(row["task_id"])
    aside = path.parent / aside_name()
    aside.write_bytes(_content(row))
    rename(aside, path, "pending")


def remove_pending(folder: DataFolder, task_id: str) -> None:
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(f"{folder.root}/{pending_path(task_id)}")  # there are many results a day, and `Path` is slow


def show_undelivered(folder: DataFolder, since: str, *, is_last: bool = False) -> str:
    """Make the files of results that were scraped since then and are late; return the time to go on from.

    `is_last`: the process ends, so whatever is not delivered now is late.
    """
    now = now_ms()
    since = max(since, rfc3339(now - int(1000 * _LATELY_SECONDS)))
    until = rfc3339(now if is_last else now - int(1000 * _LATE_SECONDS))
    sql = (
        "SELECT task_id, json_path, scraped_at FROM results WHERE synced = 0 AND json_path IS NOT NULL"
        " AND scraped_at >= ? AND scraped_at < ? ORDER BY scraped_at LIMIT ?"
    )
    rows = all_rows(sql, (since, until, -1 if is_last else _MOST_AT_ONCE))
    for task_id, json_path, scraped_at in rows:
        if not _is_newer(folder.root / json_path, scraped_at):
            _try_to_make(folder, task_id)
    return str(rows[-1][2]) if len(rows) == _MOST_AT_ONCE else max(since, until)


def _try_to_make(folder: DataFolder, task_id: str) -> None:
    """Write a file, if that works: whoever looks after the others must not stop for one, and `heal` tries again."""
    try:
        _make_again(folder, task_id)
    except OSError as problem:
        logger.warning("the file of %s cannot be written: %s", task_id, problem, extra={"action": "pending"})


def _is_newer(path: Path, scraped_at: str) -> bool:
    """Return whether a file is there and not that of an earlier result of its task."""
    try:
        return _is_of(path.stat(), scraped_at)
    except FileNotFoundError:
        return False


def _is_of(about: os.stat_result, scraped_at: str) -> bool:
    """A file older than its result is one whose successor was never renamed into place."""
    return about.st_mtime > to_ms(scraped_at) / 1000 - _CLOCK_SECONDS


def heal(folder: DataFolder, anybody_works: Callable[[], bool]) -> tuple[int, int]:
    """Make files again that a power cut took or emptied, and remove those of results that are gone.

    The files are not flushed, since they are only a view; this is the price, paid at a worker's start and now and then.
    Return how many were made again and how many were removed.
    """
    there = dict(_files(folder))
    # A worker writes a file a moment before it commits the row, so a young file is left alone, unless every process
    # that could have written it is dead.
    young = time.time() - _YOUNG_SECONDS if anybody_works() else float("inf")
    flushed = max((about.st_mtime for about in there.values()), default=0.0) - _UNFLUSHED_SECONDS
    sql = "SELECT task_id, json_path, scraped_at FROM results WHERE synced = 0 AND json_path IS NOT NULL"
    made = 0
    for task_id, json_path, scraped_at in all_rows(sql):
        about = there.pop(json_path.rpartition("/")[2], None)
        is_sound = (
            about is not None
            and _is_of(about, scraped_at)
            and (about.st_mtime < flushed or _looks_whole(folder.root / json_path))
        )
        if not is_sound:
            made += _make_again(folder, task_id)
    old = [name for name, about in there.items() if about.st_mtime < young]
    for name in old:
        (folder.pending / name).unlink(missing_ok=True)
    return made, len(old)


def _files(folder: DataFolder) -> Iterator[tuple[str, os.stat_result]]:
    for entry in os.scandir(folder.pending):
        if entry.name.endswith(".json") and not entry.is_dir():
            with contextlib.suppress(FileNotFoundError):  # delivered just now
                yield entry.name, entry.stat()


def _looks_whole(path: Path) -> bool:
    """Return whether a file has its end: a power cut leaves it empty, cut off, or filled with zeros."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return content.startswith(b"{\n") and content.endswith(b"\n}\n") and b"\0" not in content


def _make_again(folder: DataFolder, task_id: str) -> bool:
    """Write a file again unless its result was delivered meanwhile: delivery commits first, then removes the file."""
    unsynced = "SELECT * FROM results WHERE task_id = ? AND synced = 0 AND json_path IS NOT NULL"
    row = next(dict_rows(unsynced, (task_id,)), None)
    if row is None:
        return False
    write_pending(folder, with_data(row))
    if next(dict_rows(unsynced, (task_id,)), None) is None:
        remove_pending(folder, task_id)
    return True


def files_of_delivered(folder: DataFolder) -> set[str]:
    """Return the files whose results are delivered or were never stored: a kill left them, a stack removes them."""
    rows = all_rows("SELECT json_path FROM results WHERE synced = 0 AND json_path IS NOT NULL")
    return {name for name, _ in _files(folder)} - {path.rpartition("/")[2] for (path,) in rows}


def differences(folder: DataFolder, most_read: int | None = None) -> set[str]:
    """Return the files that are missing, extra, or not what the database says; read only the newest `most_read`.

    One that is missing for a result of this minute is none of them: it may be delivered any moment.
    """
    fresh = rfc3339(now_ms() - int(1000 * (_LATE_SECONDS + _YOUNG_SECONDS)))
    wrong = {entry.name for entry in os.scandir(folder.pending) if entry.name.endswith(".json")}
    rows = dict_rows("SELECT * FROM results WHERE synced = 0 AND json_path IS NOT NULL ORDER BY rowid DESC")
    for n, row in enumerate(rows):
        path = folder.pending / PurePath(row["json_path"]).name
        is_read = most_read is None or n < most_read
        if path.name in wrong and (not is_read or _is_as_stored(path, row)):
            wrong.discard(path.name)
        elif path.name in wrong or row["scraped_at"] < fresh:
            wrong.add(path.name)
    return wrong


def _is_as_stored(path: Path, row: dict[str, Any]) -> bool:
    try:
        return path.read_bytes() == _content(with_data(row))
    except FileNotFoundError:
        return False


def rebuild(folder: DataFolder, put_away: Callable[[Path], object] = Path.unlink) -> tuple[int, int]:
    """Make the folder match the database; return how many files were made and how many were put away.

    A file is put away when its result was delivered or archived. After damage it may be all that is left of a result.
    """
    there = {entry.name for entry in os.scandir(folder.pending) if entry.name.endswith(".json")}
    made = 0
    for row in dict_rows("SELECT * FROM results WHERE synced = 0 AND json_path IS NOT NULL"):
        path = folder.pending / PurePath(row["json_path"]).name
        there.discard(path.name)
        whole = with_data(row)
        if not _is_as_stored(path, row):
            write_pending(folder, whole)
            made += 1
    for name in there:
        with contextlib.suppress(FileNotFoundError):
            put_away(folder.pending / name)
    return made, len(there)
