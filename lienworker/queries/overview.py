"""The state of a data folder in one object: what `status` shows and what machines read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from peewee import fn

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.models import Backlog, tuples
from lienworker.queries.health import judge
from lienworker.queries.hosts import hosts
from lienworker.queries.lists import failures_by_reason
from lienworker.queries.snapshot import facts_of
from lienworker.queries.waiting import backlog
from lienworker.settings import Settings
from lienworker.store.tasks import QUEUES


def overview(settings: Settings, folder: DataFolder) -> dict[str, Any]:
    """Return the overview, counted from tallies, so that it costs the same at a million tasks."""
    facts = facts_of(settings, folder)
    return {
        "health": asdict(judge(settings, facts)),
        "name": settings.name,
        "mode": settings.mode,
        "at": rfc3339(),
        "data_dir": str(folder.root),
        "queues": queue_counts(),
        "failures": failures_by_reason(),
        "hosts": hosts(settings),
        "backlog": backlog(),
        **facts,
    }


def queue_counts() -> dict[str, dict[str, int]]:
    """Return what waits in each queue, by step."""
    counts: dict[str, dict[str, int]] = {queue: {"fetch": 0, "scrape": 0} for queue in QUEUES}
    steps = Backlog.select(Backlog.topic, Backlog.rank, fn.SUM(Backlog.waiting)).group_by(Backlog.topic, Backlog.rank)
    for topic, rank, waiting in tuples(steps):
        queue = "urgent" if rank < 10 else "default"
        counts[queue][topic] = counts[queue].get(topic, 0) + waiting
    return counts
