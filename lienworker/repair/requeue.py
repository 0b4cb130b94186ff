"""Tasks whose step, result or delivery is not there any more, after a damage: found, and set going again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lienworker.hostnames import route_of
from lienworker.outbox.deliveries import deliveries_of, parcel_key, report_failure
from lienworker.outbox.entries import BLOCKED, Entry, add_entries
from lienworker.outbox.reparsed import as_row, begin_generation
from lienworker.store import tasks
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.damage import trouble_of
from lienworker.store.database import all_rows, execute
from lienworker.store.pages import PageRecord, latest_page, page_of
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
               AND o.topic = 'upload_result' AND o.state IN ('waiting', 'held') AND o.due_at = ?)
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = r.task_id AND o.generation = r.generation
                    AND o.topic = 'upload_raw'))
"""


def stranded_tasks() -> list[str]:
    """Tasks that wait without a step that would do them, and completed ones without a result."""
    return [row[0] for row in all_rows(_STRANDED)]


def undelivered_results() -> list[str]:
    """Results that the Gateway does not have and that no row would bring there. Lists stay here anyway."""
    return [row[0] for row in all_rows(_UNDELIVERED, (BLOCKED,))]


def send_round_again(task_ids: list[str]) -> None:
    """Another round for each, beginning with a request to its site. Part of a larger transaction."""
    for task_id in task_ids:
        found = as_row(task_id)
        if found is not None:
            row, _ = found
            generation = tasks.start_generation(task_id)
            route = route_of(row.url, row.proxy)
            add_entries([Entry("fetch", task_id, generation, row.queue, row.priority, host=route)])


def do_again(root: Path, task_ids: list[str]) -> None:
    """The steps that tasks lack: from the stored page on where that is whole, else from the site on.

    Part of a larger transaction.
    """
    stored = {task_id: page for task_id in task_ids if (page := _page_to_read(root, task_id))}
    for task_id, page in stored.items():
        _read_again(task_id, page)
    send_round_again([task_id for task_id in task_ids if task_id not in stored])


def _page_to_read(root: Path, task_id: str) -> PageRecord | None:
    """The page of the round that was cut short; of a completed task the last, whose result is lost. Whole, or none."""
    found = as_row(task_id)
    if found is None:
        return None
    row, status = found
    page = latest_page(task_id) if status == "completed" else page_of(task_id, row.generation)
    return page if page and trouble_of(root, page.path, page.sha256) is None else None


def _read_again(task_id: str, page: PageRecord) -> None:
    generation = begin_generation(task_id, page.generation)
    sql = (
        "UPDATE tasks SET status = 'pending', attempts = 0, completed_at = NULL, updated_at = ? WHERE task_id = ?"
        " RETURNING queue, priority"
    )
    queue, priority = execute(sql, (rfc3339(), task_id)).fetchone()
    add_entries([Entry("scrape", task_id, generation, queue, priority)])


def deliver_again(task_ids: list[str]) -> None:
    """What is missing of the two rows that bring a result to the Gateway. Part of a larger transaction."""
    for task_id in task_ids:
        found, stored = as_row(task_id), result(task_id)
        if found is None or stored is None:
            continue
        row = replace(found[0], generation=stored["generation"])
        there = dict(
            all_rows("SELECT topic, state FROM outbox WHERE task_id = ? AND generation = ?", (task_id, row.generation))
        )
        key = parcel_key(stored["platform"], stored["state"], stored["county"], stored["parcel_id"])
        wanted = [entry for entry in deliveries_of(row, key) if entry.topic not in there]
        if there.get("upload_raw") == "delivered":
            wanted = [replace(entry, due_at=now_ms()) for entry in wanted]
        add_entries(wanted)


def report_again() -> int:
    """Failures of tasks of the Gateway that no row would report; gives their number. Part of a larger transaction."""
    rows = all_rows(
        "SELECT task_id, coalesce(reason, 'unknown') FROM tasks t WHERE source = 'gateway'"
        " AND status IN ('failed', 'expired') AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = t.task_id"
        " AND o.topic = 'report_failure' AND o.generation = t.generation)"
    )
    for task_id, reason in rows:
        report_failure(task_id, reason)
    return len(rows)
