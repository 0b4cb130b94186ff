"""The search box: what a person types may be a parcel, a task, an address, or an owner.

Parcels, tasks and addresses of pages are found by an index, wherever they are. Owners and other words of a record are
looked for among the newest results for a fiftieth of a second; the list of results searches further back.
"""

from __future__ import annotations

from typing import Any

from lienworker.db.database import dict_rows
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import Listing, list_results
from lienworker.store.tasks import local_task_id

#: What one search shows of each kind.
_MOST = 20
_LAST = "\U0010ffff"
_FOUND = "rowid AS position, task_id, parcel_id, platform, state, county, status, updated_at"


def tasks_that_begin(text: str, most: int = _MOST) -> list[dict[str, Any]]:
    """Return tasks whose id, parcel id or page address it is, or whose ids begin with it; each way by an index."""
    if not text:
        return []
    sql = (
        f"SELECT {_FOUND} FROM tasks WHERE task_id IN (?, ?) UNION SELECT * FROM ("
        f"SELECT {_FOUND} FROM tasks WHERE parcel_id IS NOT NULL AND parcel_id COLLATE NOCASE >= ?"
        f" AND parcel_id COLLATE NOCASE < ? LIMIT ?) UNION SELECT * FROM ("
        f"SELECT {_FOUND} FROM tasks WHERE task_id >= ? AND task_id < ? LIMIT ?) LIMIT ?"
    )
    end = text + _LAST
    return list(dict_rows(sql, (text, local_task_id(text), text, end, most, text, end, most, most)))


def results_that_say(text: str) -> Listing:
    """Return the newest results that have the text in their record, as far as the time reaches."""
    return list_results(TaskFilter(text=text), limit=_MOST) if text else Listing([], None, True)
