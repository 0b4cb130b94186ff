"""Runs: one pass of the parsers over stored pages, with what each page gave."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lienworker.store.clock import rfc3339
from lienworker.store.database import all_rows, dict_rows, execute, write

#: Older runs than this many are forgotten: each keeps a record a page.
KEPT_RUNS = 20


@dataclass(frozen=True, slots=True)
class RunPage:
    """What one page gave in a run: a record, or the reason why it has none."""

    task_id: str
    platform: str | None
    state: str | None
    county: str | None
    parcel_id: str | None
    reason: str | None
    data: dict[str, Any] | None


def start_run(kind: str, what: str) -> int:
    with write("run_start"):
        sql = "INSERT INTO runs (kind, what, started_at) VALUES (?, ?, ?)"
        run_id = execute(sql, (kind, what, rfc3339())).lastrowid
        execute("DELETE FROM runs WHERE id <= ?", ((run_id or 0) - KEPT_RUNS,))
    assert run_id is not None
    return run_id


def add_page(run_id: int, page: RunPage) -> None:
    """Part of the transaction that stores what the page gave."""
    data = zlib.compress(json.dumps(page.data).encode()) if page.data is not None else None
    values = (run_id, page.task_id, page.platform, page.state, page.county, page.parcel_id, page.reason, data)
    execute("INSERT OR REPLACE INTO run_pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def note_counts(run_id: int, counts: Mapping[str, int], versions: Mapping[str, str]) -> None:
    """How far the run is. Part of the same transaction, so it is true after a kill too."""
    sql = "UPDATE runs SET versions = ?, pages = ?, changed = ?, unchanged = ?, failed = ? WHERE id = ?"
    values = [counts[name] for name in ("pages", "changed", "unchanged", "failed")]
    execute(sql, (json.dumps(versions), *values, run_id))


def finish_run(run_id: int) -> None:
    with write("run_end"):
        execute("UPDATE runs SET finished_at = ? WHERE id = ?", (rfc3339(), run_id))


def runs(limit: int = KEPT_RUNS) -> list[dict[str, Any]]:
    rows = dict_rows("SELECT * FROM runs ORDER BY id DESC LIMIT ?", (limit,))
    return [{**row, "versions": json.loads(row["versions"])} for row in rows]


def run(run_id: int) -> dict[str, Any] | None:
    return next((row for row in runs() if row["id"] == run_id), None)


def pages_of(run_id: int) -> Iterator[RunPage]:
    """In the order of their tasks, so that two runs can be walked side by side."""
    columns = "task_id, platform, state, county, parcel_id, reason, data"
    for row in execute(f"SELECT {columns} FROM run_pages WHERE run_id = ? ORDER BY task_id", (run_id,)):
        found = dict(zip(columns.split(", "), row, strict=True))
        packed = found.pop("data")
        yield RunPage(**found, data=None if packed is None else json.loads(zlib.decompress(packed)))


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which stored pages are meant; what is None does not count."""

    platform: str | None = None
    county: str | None = None
    since: str | None = None

    def in_words(self) -> str:
        said = [f"{name}={value}" for name in ("platform", "county", "since") if (value := getattr(self, name))]
        return " ".join(said) or "all"


def tasks_with_pages(wanted: PageFilter) -> list[str]:
    """Tasks that have ended and whose page is stored: completed ones, and those that failed over their page."""
    sql = (
        "SELECT t.task_id FROM tasks t LEFT JOIN results r ON r.task_id = t.task_id WHERE"
        " (r.task_id IS NOT NULL AND t.status = 'completed' OR t.status = 'failed' AND EXISTS ("
        "  SELECT 1 FROM pages p WHERE p.task_id = t.task_id AND p.generation = t.generation))"
        " AND NOT EXISTS (SELECT 1 FROM pages p WHERE p.task_id = t.task_id AND p.purged_at IS NOT NULL"
        "  AND p.generation = CASE t.status WHEN 'completed' THEN r.generation ELSE t.generation END)"
        " AND (? IS NULL OR coalesce(r.platform, t.platform, '') IN (?, ''))"
        " AND (? IS NULL OR coalesce(r.county, t.county) = ? COLLATE NOCASE)"
        " AND (? IS NULL OR coalesce(r.fetched_at, t.updated_at) >= ?) ORDER BY t.task_id"
    )
    pairs = [value for value in (wanted.platform, wanted.county, wanted.since) for _ in (0, 1)]
    return [row[0] for row in all_rows(sql, pairs)]
