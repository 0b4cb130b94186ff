"""What reports are made of: results and pages one by one, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lienworker.store.database import dict_rows, execute
from lienworker.store.results import with_data


def stored_records() -> Iterator[dict[str, Any]]:
    """Every result with what it is of, `data` as an object."""
    for row in dict_rows("SELECT task_id, parcel_id, platform, state, county, fetched_at, data FROM results"):
        yield with_data(row)


def page_times() -> Iterator[tuple[str, int]]:
    """The address of each page and how long its fetch took, in ms."""
    yield from execute("SELECT url, fetch_ms FROM pages")


def failed_tasks_of(reason: str, limit: int) -> list[dict[str, Any]]:
    """Some tasks that failed for a reason, the newest first."""
    sql = (
        "SELECT task_id, url, county, last_error FROM tasks WHERE status IN ('failed', 'expired')"
        " AND coalesce(reason, 'unknown') = ? ORDER BY rowid DESC LIMIT ?"
    )
    return list(dict_rows(sql, (reason, limit)))
