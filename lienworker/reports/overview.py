"""The state of a data folder in one object: what `status` shows and what machines read."""

from __future__ import annotations

from typing import Any

from lienworker.reports.backlog import backlog
from lienworker.reports.health import facts_of
from lienworker.settings import Settings
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import all_rows, dict_rows
from lienworker.store.folder import DataFolder
from lienworker.store.monitor import failures_by_reason
from lienworker.store.tasks import QUEUES


def overview(settings: Settings, folder: DataFolder) -> dict[str, Any]:
    """Counts from tallies, so it costs the same at a million tasks."""
    return {
        "mode": settings.mode,
        "at": rfc3339(),
        "data_dir": str(folder.root),
        "queues": queue_counts(),
        "failures": failures_by_reason(),
        "hosts": busy_hosts(),
        "backlog": backlog(),
        **facts_of(folder),
    }


def queue_counts() -> dict[str, dict[str, int]]:
    """What waits in each queue, by step."""
    counts: dict[str, dict[str, int]] = {queue: {"fetch": 0, "scrape": 0} for queue in QUEUES}
    for topic, rank, waiting in all_rows("SELECT topic, rank, sum(waiting) FROM backlog GROUP BY topic, rank"):
        queue = "urgent" if rank < 10 else "default"
        counts[queue][topic] = counts[queue].get(topic, 0) + waiting
    return counts


def busy_hosts(limit: int = 20) -> list[dict[str, Any]]:
    """Hosts with work, those in trouble first."""
    sql = (
        "SELECT h.host, sum(b.waiting) AS waiting, h.delay, h.cooling_until, h.failures_in_a_row, h.reason"
        " FROM hosts h JOIN backlog b ON b.host = h.host AND b.topic = 'fetch'"
        " GROUP BY h.host HAVING sum(b.waiting) > 0 ORDER BY h.failures_in_a_row DESC, 2 DESC LIMIT ?"
    )
    now = now_ms()
    rows = dict_rows(sql, (limit,))
    return [{**row, "cooling_seconds": max(0, row.pop("cooling_until") - now) // 1000} for row in rows]
