"""The search box: what a person types may be a parcel, a task, an address, or an owner.

Parcels, tasks, owners and addresses are found by an index, wherever they are, by how they begin. Words in the middle of
a record are looked for among the newest results for a fiftieth of a second; the list of results searches further back.
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
#: As the indexes have them.
_OWNER = "CASE WHEN json_valid(data) THEN json_extract(data, '$.owner_name') END"
_ADDRESS = "CASE WHEN json_valid(data) THEN json_extract(data, '$.property_address') END"
_SAID = f"task_id, parcel_id, platform, state, county, {_OWNER} AS owner_name, {_ADDRESS} AS property_address"
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


def results_that_begin(text: str, most: int = _MOST) -> list[dict[str, Any]]:
    """Return results whose owner or property address begins with the text, each with both; by an index."""
    if not text:
        return []
    parts = [
        f"SELECT * FROM (SELECT {_SAID} FROM results WHERE stays_here = 0 AND {name} COLLATE NOCASE >= ?1"
        f" AND {name} COLLATE NOCASE < ?2 ORDER BY {name} COLLATE NOCASE LIMIT ?3)"
        for name in (_OWNER, _ADDRESS)
    ]
    sql = " UNION ".join(parts) + " ORDER BY owner_name, property_address LIMIT ?3"
    return list(dict_rows(sql, (text, text + _LAST, most)))


def results_that_say(text: str) -> Listing:
    """Return the newest results that have the text in their record, as far as the time reaches."""
    return list_results(TaskFilter(text=text), limit=_MOST) if text else Listing([], None, True)
