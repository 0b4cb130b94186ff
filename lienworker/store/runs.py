"""Runs: one pass of the parsers over stored pages, with the outcome of each page."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute, write
from lienworker.db.models import Run, dicts
from lienworker.db.models import RunPage as StoredPage

#: How many runs are kept: each stores one record per page.
KEPT_RUNS = 20


@dataclass(frozen=True, slots=True)
class RunPage:
    """The outcome of one page in a run: a record, or the reason why it has none."""

    task_id: str
    platform: str | None
    state: str | None
    county: str | None
    parcel_id: str | None
    reason: str | None
    data: dict[str, Any] | None


def start_run(kind: str, what: str) -> int:
    with write("run_start"):
        run_id = int(Run.insert(kind=kind, what=what, started_at=rfc3339()).execute())
        Run.delete().where(Run.id <= run_id - KEPT_RUNS).execute()
    return run_id


def add_page(run_id: int, page: RunPage) -> None:
    """Add the outcome of a page. Part of the transaction that stores it."""
    data = zlib.compress(json.dumps(page.data).encode()) if page.data is not None else None
    values = (run_id, page.task_id, page.platform, page.state, page.county, page.parcel_id, page.reason, data)
    execute("INSERT OR REPLACE INTO run_pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def record_counts(run_id: int, counts: Mapping[str, int], versions: Mapping[str, str]) -> None:
    """Store the progress of a run. Part of the same transaction, so that it survives a kill."""
    sql = "UPDATE runs SET versions = ?, pages = ?, changed = ?, unchanged = ?, failed = ? WHERE id = ?"
    values = [counts[name] for name in ("pages", "changed", "unchanged", "failed")]
    execute(sql, (json.dumps(versions), *values, run_id))


def finish_run(run_id: int) -> None:
    with write("run_end"):
        Run.update(finished_at=rfc3339()).where(Run.id == run_id).execute()


def runs(limit: int = KEPT_RUNS) -> list[dict[str, Any]]:
    rows = dicts(Run.select().order_by(Run.id.desc()).limit(limit))
    return [{**row, "versions": json.loads(row["versions"])} for row in rows]


def run(run_id: int) -> dict[str, Any] | None:
    return next((row for row in runs() if row["id"] == run_id), None)


def pages_of(run_id: int) -> Iterator[RunPage]:
    """Yield the pages of a run in the order of their tasks, so that two runs can be walked side by side."""
    it = StoredPage
    query = it.select(it.task_id, it.platform, it.state, it.county, it.parcel_id, it.reason, it.data)
    for found in dicts(query.where(it.run_id == run_id).order_by(it.task_id)):
        packed = found.pop("data")
        yield RunPage(**found, data=None if packed is None else json.loads(zlib.decompress(packed)))


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which stored pages to choose; a criterion that is None is ignored."""

    platform: str | None = None
    county: str | None = None
    since: str | None = None
    #: No more than this many, the newest; for a trial.
    newest: int | None = None

    def in_words(self) -> str:
        said = [f"{name}={value}" for name in ("platform", "county", "since") if (value := getattr(self, name))]
        return " ".join(said) or "all"


def tasks_with_pages(wanted: PageFilter) -> list[str]:
    """Return tasks that have ended with a stored page: completed ones, and those that failed because of their page.

    Parcels of a source have no page of their own: the source's page is one of these tasks.
    """
    order = "t.task_id" if wanted.newest is None else "coalesce(r.fetched_at, t.updated_at) DESC"
    sql = (
        "SELECT t.task_id FROM tasks t LEFT JOIN results r ON r.task_id = t.task_id WHERE"
        " r.source_task IS NULL AND"
        " (r.task_id IS NOT NULL AND t.status = 'completed' OR t.status = 'failed' AND EXISTS ("
        "  SELECT 1 FROM pages p WHERE p.task_id = t.task_id AND p.generation = t.generation))"
        " AND NOT EXISTS (SELECT 1 FROM pages p WHERE p.task_id = t.task_id AND p.purged_at IS NOT NULL"
        "  AND p.generation = CASE t.status WHEN 'completed' THEN r.generation ELSE t.generation END)"
        " AND (? IS NULL OR coalesce(r.platform, iif(t.platform_learned, NULL, t.platform), '') IN (?, ''))"
        " AND (? IS NULL OR coalesce(r.county, t.county) = ? COLLATE NOCASE)"
        f" AND (? IS NULL OR coalesce(r.fetched_at, t.updated_at) >= ?) ORDER BY {order} LIMIT ?"
    )
    pairs = [value for value in (wanted.platform, wanted.county, wanted.since) for _ in (0, 1)]
    return [row[0] for row in all_rows(sql, (*pairs, -1 if wanted.newest is None else wanted.newest))]
