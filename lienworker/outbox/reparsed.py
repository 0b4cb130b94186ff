"""Rows for results that came from a page that was there already."""

from __future__ import annotations

from typing import Any

from lienworker.db.database import dict_rows, execute
from lienworker.outbox import transitions
from lienworker.outbox.rows import Claimed
from lienworker.outbox.states import Topic

#: The token of a row that nobody has claimed: no statement that is fenced by it changes anything.
_UNCLAIMED = ""
_TASK = (
    "SELECT task_id, generation, queue, priority, url, platform, state, county, parcel_id, source, target_json, proxy,"
    " expires_at, status FROM tasks WHERE task_id = ?"
)


def as_row(task_id: str) -> tuple[Claimed, str] | None:
    """The task in the shape in which steps know it, though no row of it was claimed, and its status."""
    found = next(dict_rows(_TASK, (task_id,)), None)
    if found is None:
        return None
    status = found.pop("status")
    unclaimed: dict[str, Any] = {
        "id": 0, "topic": Topic.SCRAPE, "host": "", "attempts": 0, "payload": None, "alone": 0, "parcel_key": None,
        "start_at": 0,
    }  # fmt: skip
    return Claimed(**found, **unclaimed, token=_UNCLAIMED), status


def begin_generation(task_id: str, page_generation: int) -> int:
    """The number of the new result, for which the stored page now stands; older uploads of the task are overtaken."""
    sql = "UPDATE tasks SET generation = generation + 1 WHERE task_id = ? RETURNING generation"
    generation = int(execute(sql, (task_id,)).fetchone()[0])
    execute(
        "UPDATE pages SET generation = ? WHERE task_id = ? AND generation = ?", (generation, task_id, page_generation)
    )
    transitions.supersede_uploads(task_id, generation)
    return generation
