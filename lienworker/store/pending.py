"""`pending/*.json`: one file for each result that is not delivered, for people to look at and ship by hand.

It is a view: the database is the truth, and `rebuild` makes the folder again from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from lienworker.store.database import dict_rows
from lienworker.store.folder import DataFolder, aside_name, rename, safe_part
from lienworker.store.results import with_data

_YOUNG_SECONDS = 60.0


def pending_path(task_id: str) -> str:
    """Where a task's file lies, relative to the data folder."""
    return f"pending/{safe_part(task_id, str.lower)}.json"


def item(row: dict[str, Any]) -> dict[str, Any]:
    """A result in the shape in which the Gateway takes it."""
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
    """A field a line: readable, and without `indent`, which costs four times as much."""
    content = {**item(row), "raw_file": row["html_path"]}
    lines = (f' "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in content.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "replace")


def write_pending(folder: DataFolder, row: dict[str, Any]) -> None:
    """Writes a result's file, whole or not at all. Not flushed: a power loss costs a rebuild, not a result."""
    path = folder.root / pending_path(row["task_id"])
    aside = path.parent / aside_name()
    aside.write_bytes(_content(row))
    rename(aside, path, "pending")


def remove_pending(folder: DataFolder, task_id: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder.root}/{pending_path(task_id)}")  # a day's results are many, and paths are slow


def clear_away(folder: DataFolder) -> int:
    """Removes files whose results were delivered or overtaken, left by a kill between commit and removal."""
    there = {entry.name: entry for entry in os.scandir(folder.pending) if entry.name.endswith(".json")}
    wanted = dict_rows("SELECT json_path FROM results WHERE synced = 0 AND json_path IS NOT NULL")
    for row in wanted:
        there.pop(row["json_path"].rpartition("/")[2], None)
    # A worker writes the file a moment before it commits the row: a young one is left alone.
    old = [name for name, entry in there.items() if time.time() - entry.stat().st_mtime > _YOUNG_SECONDS]
    for name in old:
        (folder.pending / name).unlink(missing_ok=True)
    return len(old)


def differences(folder: DataFolder, most_read: int | None = None) -> set[str]:
    """Names of files that are missing, too much, or not what the database says; the newest `most_read` are read."""
    wrong = {entry.name for entry in os.scandir(folder.pending) if entry.name.endswith(".json")}
    rows = dict_rows("SELECT * FROM results WHERE synced = 0 AND json_path IS NOT NULL ORDER BY rowid DESC")
    for n, row in enumerate(rows):
        path = folder.pending / PurePath(row["json_path"]).name
        is_read = most_read is None or n < most_read
        if path.name in wrong and (not is_read or _is_as_stored(path, row)):
            wrong.discard(path.name)
        else:
            wrong.add(path.name)
    return wrong


def _is_as_stored(path: Path, row: dict[str, Any]) -> bool:
    try:
        return path.read_bytes() == _content(with_data(row))
    except FileNotFoundError:
        return False


def rebuild(folder: DataFolder, put_away: Callable[[Path], object] = Path.unlink) -> tuple[int, int]:
    """Makes the folder match the database; gives how many files were made and how many were put away.

    Those are of results that were delivered or archived. After a damage they may be all that is left of one.
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
