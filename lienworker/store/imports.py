"""Imports: which file added which tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from lienworker.data_folder import together, try_lock
from lienworker.db.clock import rfc3339
from lienworker.db.database import current_folder, execute, write
from lienworker.db.models import Import, dicts


@contextmanager
def running_import(
    name: str,
    options: Mapping[str, Any] | None = None,
    due_by: int | None = None,
    auction: str | None = None,
) -> Iterator[int]:
    """Start an import and yield its number. It holds a lock while it runs, so that a killed one is recognized.

    `options` is how it was asked for, for people; `due_by` its deadline, ms, and `auction` what that is for.
    """
    nobody_else = not _is_anybody_importing()
    about = {"name": name, "options": json.dumps(options or {}), "due_by": due_by, "auction": auction}
    with together(_lock()):
        yield _start_import(about, nobody_else)


def _lock() -> Path:
    return current_folder().root / "import.lock"


def _is_anybody_importing() -> bool:
    lock = try_lock(_lock())
    if lock is None:
        return True
    lock.close()
    return False


def _start_import(about: Mapping[str, Any], nobody_else: bool) -> int:
    with write("import_start"):
        if nobody_else:  # what is still marked as running was killed
            Import.update(status="stopped").where(Import.status == "running").execute()
        return int(Import.insert(**about, status="running", started_at=rfc3339()).execute())


class Progress(Protocol):
    """The counts of an import."""

    rows: int
    added: int
    known: int
    refreshed: int
    rejected: int


def record_progress(import_id: int, so_far: Progress) -> None:
    """Store the counts so far. Part of the transaction that adds the rows, so that they survive a kill."""
    execute(
        "UPDATE imports SET rows = ?, added = ?, known = ?, refreshed = ?, rejected = ? WHERE id = ?",
        (so_far.rows, so_far.added, so_far.known, so_far.refreshed, so_far.rejected, import_id),
    )


def finish_import(import_id: int, status: str, rejects_path: str | None) -> None:
    with write("import_end"):
        ended = Import.update(status=status, rejects_path=rejects_path, finished_at=rfc3339())
        ended.where(Import.id == import_id).execute()


def imports(limit: int = 50, *, since: str = "", oldest_first: bool = False) -> list[dict[str, Any]]:
    """Return imports that began from then on, newest first unless told otherwise; a killed one counts as stopped."""
    order = Import.id if oldest_first else Import.id.desc()
    return _seen_alive(list(dicts(Import.select().where(Import.started_at >= since).order_by(order).limit(limit))))


def import_numbered(import_id: int) -> dict[str, Any] | None:
    return next(iter(_seen_alive(list(dicts(Import.select().where(Import.id == import_id))))), None)


def count_imports(since: str = "") -> int:
    return int(Import.select().where(Import.started_at >= since).count())


def _seen_alive(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in found:
        row["options"] = _loaded(row["options"])
    if any(row["status"] == "running" for row in found) and not _is_anybody_importing():
        for row in found:
            row["status"] = "stopped" if row["status"] == "running" else row["status"]
    return found


def _loaded(options: str) -> dict[str, Any]:
    """Return the options; none where a damaged database has lost them."""
    try:
        found = json.loads(options)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
