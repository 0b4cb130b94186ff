"""What reports are made of: results and pages one by one, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peewee import SQL, fn

from lienworker.db.models import Page, Result, Task, dicts, tuples
from lienworker.store.results import with_data


def stored_records() -> Iterator[dict[str, Any]]:
    """Every result with what it is of, `data` as an object."""
    it = Result
    columns = (it.task_id, it.parcel_id, it.platform, it.state, it.county, it.fetched_at, it.data)
    yield from map(with_data, dicts(it.select(*columns)))


def page_times() -> Iterator[tuple[str, int]]:
    """The address of each page and how long its fetch took, in ms."""
    yield from tuples(Page.select(Page.url, Page.fetch_ms))


def failed_tasks_of(reason: str, limit: int) -> list[dict[str, Any]]:
    """Some tasks that failed for a reason, the newest first."""
    query = Task.select(Task.task_id, Task.url, Task.county, Task.last_error).where(
        Task.status.in_(["failed", "expired"]), fn.COALESCE(Task.reason, "unknown") == reason
    )
    return list(dicts(query.order_by(SQL("rowid DESC")).limit(limit)))
