"""Results: what the pages said, and whether the Gateway has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import dict_rows, execute, execute_many, storable
from lienworker.errors import StoreError
from lienworker.store.columns import note_columns

_SAVE = """
INSERT INTO results (task_id, generation, parcel_id, platform, state, county, data, json_path, html_path, raw_sha256,
                     fetched_at, parser_version, scraped_at, parse_duration_ms, stays_here, doubts, source_task,
                     source_index)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (task_id) DO UPDATE SET
    generation = excluded.generation, parcel_id = excluded.parcel_id, platform = excluded.platform,
    state = excluded.state, county = excluded.county, data = excluded.data, json_path = excluded.json_path,
    html_path = excluded.html_path, raw_sha256 = excluded.raw_sha256, fetched_at = excluded.fetched_at,
    confirmed_at = NULL, parser_version = excluded.parser_version, scraped_at = excluded.scraped_at,
    parse_duration_ms = excluded.parse_duration_ms, synced = 0, sync_attempts = 0, last_error = NULL,
    stays_here = excluded.stays_here, doubts = excluded.doubts, source_task = excluded.source_task,
    source_index = excluded.source_index
"""

SYNCED = "UPDATE results SET synced = 1, sync_attempts = sync_attempts + 1, last_error = NULL"


@dataclass(frozen=True, slots=True)
class NewResult:
    """A result as the scrape step made it. Paths are relative to the data folder.

    A list is not delivered: it is no parcel itself, so it has no file for people to ship (`json_path`).
    """

    task_id: str
    generation: int
    parcel_id: str | None
    platform: str
    state: str | None
    county: str | None
    data: dict[str, Any]
    json_path: str | None
    html_path: str
    raw_sha256: str
    fetched_at: str
    parser_version: str
    scraped_at: str
    parse_duration_ms: int
    stays_here: bool = False
    doubts: Sequence[Mapping[str, str]] = ()
    """What a person would doubt in the data; it stays here."""
    source_task: str | None = None
    """The task of the source page that it was read from, and its place there."""
    source_index: int | None = None

    def as_row(self) -> dict[str, Any]:
        """Return the result as the table holds it, with the data itself, not a copy."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def save_result(*results: NewResult) -> None:
    """Store results, each in place of its task's older one. Part of a larger transaction."""
    execute_many(_SAVE, map(_values, results))
    note_columns(results)


def _values(result: NewResult) -> tuple[Any, ...]:
    return (
        result.task_id, result.generation, result.parcel_id, result.platform, result.state, result.county,
        json.dumps(result.data), result.json_path, result.html_path, result.raw_sha256,
        result.fetched_at, result.parser_version, result.scraped_at, result.parse_duration_ms, result.stays_here,
        json.dumps(result.doubts) if result.doubts else None, result.source_task, result.source_index,
    )  # fmt: skip


def confirm_result(task_id: str) -> None:
    """Record that the page has not changed: the stored result is current and nothing is delivered."""
    execute("UPDATE results SET confirmed_at = ? WHERE task_id = ?", (rfc3339(), task_id))


def mark_synced(task_id: str, generation: int) -> bool:
    """Record that the Gateway has this result; return False where a newer one has replaced it meanwhile."""
    return execute(f"{SYNCED} WHERE task_id = ? AND generation = ?", (task_id, generation)).rowcount == 1


def record_sync_failure(task_id: str, generation: int, error: str, *, tries: int) -> None:
    """Record that the Gateway refused it, or (with `tries=0`) was not even asked. Part of a larger transaction."""
    execute(
        "UPDATE results SET sync_attempts = sync_attempts + ?, last_error = ? WHERE task_id = ? AND generation = ?",
        (tries, storable(error)[:2000], task_id, generation),
    )


def get_unsynced_results(limit: int = -1) -> Iterator[dict[str, Any]]:
    """Return results that are still to be delivered to the Gateway, oldest first, with `data` as an object."""
    sql = "SELECT * FROM results WHERE synced = 0 AND stays_here = 0 ORDER BY scraped_at LIMIT ?"
    return map(with_data, dict_rows(sql, (limit,)))


def result(task_id: str) -> dict[str, Any] | None:
    row = next(dict_rows("SELECT * FROM results WHERE task_id = ?", (task_id,)), None)
    return with_data(row) if row else None


def with_data(row: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**row, "data": json.loads(row["data"]), "doubts": json.loads(row.get("doubts") or "[]")}
    except ValueError:
        words = f"The result of task {row['task_id']} is damaged in the database."
        raise StoreError(f"{words} `lienworker doctor --repair` has it made again.") from None


def forget_pending(paths: list[str]) -> None:
    """Forget the pending files that are in an archive now. Part of a larger transaction."""
    sql = "UPDATE results SET json_path = NULL WHERE json_path IN (SELECT value FROM json_each(?))"
    execute(sql, (json.dumps(paths),))


def forget_pending_of(task_id: str, generation: int) -> None:
    """Forget the pending file of a result that a newer one of its parcel replaced: it must not be shipped by hand."""
    execute("UPDATE results SET json_path = NULL WHERE task_id = ? AND generation = ?", (task_id, generation))
