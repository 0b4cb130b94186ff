"""Harvests: sources of many parcels, how far each is read, and what was stored of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, dict_rows, execute, one_row

#: Sentences that are kept of one harvest.
_MOST_NOTES = 20


@dataclass(frozen=True, slots=True)
class HarvestRecord:
    """A harvest, as the steps need it. `county` is empty where a column says it."""

    id: int
    kind: str
    url: str
    platform: str
    state: str
    county: str
    plan: str
    secret: str | None = field(repr=False)


@dataclass(slots=True)
class Counts:
    """What became of rows of a source."""

    read: int = 0
    added: int = 0
    refreshed: int = 0
    unchanged: int = 0
    rejected: int = 0


_COUNTED = tuple(item.name for item in fields(Counts))
_ADD_COUNTS = ", ".join(f"{name} = {name} + ?" for name in _COUNTED)
_RECORD = ", ".join(item.name for item in fields(HarvestRecord))


def add_harvest(new: HarvestRecord, announced: int | None) -> int:
    """Add a harvest (whose id is ignored) and return its number. Part of a larger transaction."""
    values = (new.kind, new.url, new.platform, new.state, new.county, new.plan, new.secret, announced, rfc3339())
    sql = (
        "INSERT INTO harvests (kind, url, platform, state, county, plan, secret, announced, started_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
    )
    return int(execute(sql, values).fetchone()[0])


def harvest(harvest_id: int) -> HarvestRecord | None:
    row = one_row(f"SELECT {_RECORD} FROM harvests WHERE id = ?", (harvest_id,))
    return HarvestRecord(*row) if row else None


def unfinished_harvest(url: str, state: str, county: str) -> int | None:
    """Return the newest harvest of a source that is not over."""
    sql = "SELECT max(id) FROM harvests WHERE url = ? AND state = ? AND county = ? AND finished_at IS NULL"
    found = one_row(sql, (url, state, county))[0]
    return int(found) if found is not None else None


def page_added(harvest_id: int, page_task: str | None, n: int = 1) -> None:
    """Count pages that are to be read; the newest is the cursor. Part of a larger transaction."""
    sql = (
        "UPDATE harvests SET pages = pages + ?, open_pages = open_pages + ?, page_task = coalesce(?, page_task)"
        " WHERE id = ?"
    )
    execute(sql, (n, n, page_task, harvest_id))


def keep_open(harvest_id: int) -> None:
    """Keep a harvest from being over while its pages are still being added. Part of a larger transaction."""
    execute("UPDATE harvests SET open_pages = open_pages + 1 WHERE id = ?", (harvest_id,))


def set_announced(harvest_id: int, rows: int) -> None:
    """Record how many rows a source has, once all of its pages are added. Part of a larger transaction."""
    execute("UPDATE harvests SET announced = ? WHERE id = ?", (rows, harvest_id))


def is_complete(harvest_id: int) -> bool:
    """Return whether all pages of a harvest are added."""
    return one_row("SELECT 1 FROM harvests WHERE id = ? AND announced IS NOT NULL", (harvest_id,)) is not None


def page_read(harvest_id: int) -> bool:
    """Count a page that is read to its end; return whether the whole source is. Part of a larger transaction."""
    sql = "UPDATE harvests SET open_pages = open_pages - 1 WHERE id = ? RETURNING open_pages"
    if int(execute(sql, (harvest_id,)).fetchone()[0]) > 0:
        return False
    # What opened the source is not needed any more.
    execute("UPDATE harvests SET finished_at = ?, secret = NULL WHERE id = ?", (rfc3339(), harvest_id))
    return True


def count_rows_read(harvest_id: int, counts: Counts) -> None:
    """Add to what is counted. Part of the transaction that stores the rows."""
    values = tuple(getattr(counts, name) for name in _COUNTED)
    execute(f"UPDATE harvests SET {_ADD_COUNTS} WHERE id = ?", (*values, harvest_id))


def add_notes(harvest_id: int, notes: Sequence[str]) -> None:
    """Keep what a person should know; the same sentence once. Part of a larger transaction."""
    if not notes:
        return
    known = json.loads(one_row("SELECT notes FROM harvests WHERE id = ?", (harvest_id,))[0])
    kept = [*known, *(note for note in dict.fromkeys(notes) if note not in known)][:_MOST_NOTES]
    execute("UPDATE harvests SET notes = ? WHERE id = ?", (json.dumps(kept), harvest_id))


@dataclass(frozen=True, slots=True)
class StoredParcel:
    """What is known of a parcel that comes again. `data` is None where its result is lost."""

    data: str | None
    source_task: str | None
    synced: int


def stored_parcels(task_ids: Sequence[str]) -> dict[str, StoredParcel]:
    """Return those of these tasks that exist, with the records that are stored of them."""
    sql = (
        "SELECT t.task_id, r.data, r.source_task, r.synced FROM json_each(?) wanted"
        " JOIN tasks t ON t.task_id = wanted.value LEFT JOIN results r ON r.task_id = t.task_id"
    )
    return {task_id: StoredParcel(*rest) for task_id, *rest in all_rows(sql, (json.dumps(list(task_ids)),))}


def results_of_page(page_task: str) -> dict[int, tuple[str, str]]:
    """Return the results that were read from a page: place to task and record."""
    sql = "SELECT source_index, task_id, data FROM results WHERE source_task = ? ORDER BY source_index"
    return {index: (task_id, data) for index, task_id, data in all_rows(sql, (page_task,))}


def count_harvests() -> int:
    return int(one_row("SELECT count(*) FROM harvests")[0])


def list_harvests(limit: int, *, oldest_first: bool = False) -> list[dict[str, Any]]:
    """Return harvests, newest first, each with its status: done, running, or failed with the reason of its page."""
    order = "ASC" if oldest_first else "DESC"
    sql = (
        "SELECT h.id, h.url, h.platform, h.state, h.county, h.announced, h.pages, h.read, h.added, h.refreshed,"
        " h.unchanged, h.rejected, h.notes, h.started_at, h.finished_at, h.page_task,"
        " CASE WHEN h.finished_at IS NOT NULL THEN 'done' WHEN t.status IN ('failed', 'expired') THEN 'failed'"
        " ELSE 'running' END AS status, t.reason, t.last_error"
        f" FROM harvests h LEFT JOIN tasks t ON t.task_id = h.page_task ORDER BY h.id {order} LIMIT ?"
    )
    return [{**row, "notes": json.loads(row["notes"])} for row in dict_rows(sql, (limit,))]
