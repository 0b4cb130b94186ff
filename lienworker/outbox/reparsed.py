"""Rows for results that came from a page that was there already."""

from __future__ import annotations

from lienworker.outbox.entries import Claimed
from lienworker.store.clock import now_ms
from lienworker.store.database import execute, one_row

_TASK = (
    "SELECT generation, queue, priority, url, platform, state, county, parcel_id, source, target_json, proxy,"
    " expires_at, status FROM tasks WHERE task_id = ?"
)


def as_row(task_id: str) -> tuple[Claimed, str] | None:
    """The task in the shape in which steps know it, though no row of it was claimed, and its status."""
    found = one_row(_TASK, (task_id,))
    if found is None:
        return None
    generation, queue, priority, *about, status = found
    row = Claimed(0, "scrape", task_id, generation, "", queue, priority, 0, None, 0, *about, None, "", 0)  # type: ignore[call-arg]
    return row, status


def begin_generation(task_id: str, page_generation: int) -> int:
    """The number of the new result, for which the stored page now stands; older uploads of the task are overtaken."""
    sql = "UPDATE tasks SET generation = generation + 1 WHERE task_id = ? RETURNING generation"
    generation = int(execute(sql, (task_id,)).fetchone()[0])
    execute(
        "UPDATE pages SET generation = ? WHERE task_id = ? AND generation = ?", (generation, task_id, page_generation)
    )
    execute(
        "UPDATE outbox SET state = 'superseded', reason = 'newer_result', finished_at = ? WHERE task_id = ?"
        " AND topic IN ('upload_raw', 'upload_result', 'report_failure') AND generation < ?"
        " AND state IN ('waiting', 'held')",
        (now_ms(), task_id, generation),
    )
    return generation
