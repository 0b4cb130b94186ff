"""Tasks whose next step, result or delivery is lost: found, and queued again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute
from lienworker.hostnames import route_of
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import as_row, begin_generation, deliveries_of, parcel_key, report_failure
from lienworker.outbox.rows import NEVER_DUE, Entry
from lienworker.outbox.states import State, Topic
from lienworker.store import tasks
from lienworker.store.damage import failure_of
from lienworker.store.pages import PageRecord, latest_page, page_of, pages_of
from lienworker.store.results import result

_STRANDED = """
SELECT t.task_id FROM tasks t WHERE t.url <> '' AND (
    t.status IN ('pending', 'processing') AND NOT EXISTS (
        SELECT 1 FROM outbox o WHERE o.task_id = t.task_id AND o.topic IN ('fetch', 'scrape')
        AND o.state IN ('waiting', 'leased', 'held'))
    OR t.status = 'completed' AND NOT EXISTS (SELECT 1 FROM results r WHERE r.task_id = t.task_id)
)
"""
_UNDELIVERED = """
SELECT r.task_id FROM results r JOIN tasks t ON t.task_id = r.task_id
WHERE r.synced = 0 AND r.generation = t.generation AND t.status = 'completed'
AND r.stays_here = 0
AND (
    NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = r.task_id AND o.generation = r.generation
                AND o.topic = 'upload_result')
    OR EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = r.task_id AND o.generation = r.generation
               AND o.topic = 'upload_result' AND o.state IN ('waiting', 'held') AND o.due_at = ? AND o.raw_id IS NULL)
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = r.task_id AND o.generation = r.generation
                    AND o.topic = 'upload_raw'))
"""
_UNREPORTED = """
SELECT task_id, coalesce(reason, 'unknown') FROM tasks t WHERE source = 'gateway' AND status IN ('failed', 'expired')
AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = t.task_id AND o.topic = 'report_failure'
                AND o.generation = t.generation)
"""
_BACK_IN_THE_QUEUE = (
    "UPDATE tasks SET status = 'pending', attempts = 0, completed_at = NULL, updated_at = ? WHERE task_id = ?"
)


def stranded_tasks() -> list[str]:
    """Return tasks that wait without a step to do them, and completed ones without a result."""
    return [row[0] for row in all_rows(_STRANDED)]


def undelivered_results() -> list[str]:
    """Return results that the Gateway does not have and that no row would deliver. Lists are never delivered."""
    return [row[0] for row in all_rows(_UNDELIVERED, (NEVER_DUE,))]


def requeue(root: Path, task_ids: Iterable[str], *, refetch: bool = False) -> None:
    """Add the step that each task lacks: a scrape of its stored page where that is intact, otherwise a fetch.

    With `refetch` its site is asked in any case. Part of a larger transaction.
    """
    for task_id in task_ids:
        found = as_row(task_id)
        if found is None:
            continue
        row, status = found
        # The page of the round that was interrupted; for a completed task the last one, whose result is lost.
        page = latest_page(task_id) if status == "completed" else page_of(task_id, row.generation)
        if page and not refetch and _are_intact(root, pages_of(task_id, page.generation)):
            generation = begin_generation(task_id, page.generation)
            execute(_BACK_IN_THE_QUEUE, (rfc3339(), task_id))
            topic, host = Topic.SCRAPE, ""
        else:
            generation = tasks.start_generation(task_id)
            topic, host = Topic.FETCH, route_of(row.url, row.proxy)
        transitions.add([Entry(topic, task_id, generation, row.queue, row.priority, host=host)])


def _are_intact(root: Path, pages: list[PageRecord]) -> bool:
    return all(failure_of(root, page.path, page.sha256) is None for page in pages)


def redeliver(task_ids: Iterable[str]) -> None:
    """Add the missing ones of the two rows that deliver a result. Part of a larger transaction."""
    for task_id in task_ids:
        found, stored = as_row(task_id), result(task_id)
        if found is None or stored is None:
            continue
        row = replace(found[0], generation=stored["generation"])
        sql = "SELECT topic, state FROM outbox WHERE task_id = ? AND generation = ?"
        there = dict(all_rows(sql, (task_id, row.generation)))
        key = parcel_key(stored["platform"], stored["state"], stored["county"], stored["parcel_id"])
        missing = [entry for entry in deliveries_of(row, key) if entry.topic not in there]
        if there.get(Topic.UPLOAD_RAW) == State.DELIVERED:
            missing = [replace(entry, due_at=now_ms()) for entry in missing]
        transitions.add(missing)


def report_again() -> None:
    """Report failures of the Gateway's tasks that no row would report. Part of a larger transaction."""
    for task_id, reason in all_rows(_UNREPORTED):
        report_failure(task_id, reason)
