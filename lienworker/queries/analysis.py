"""What was collected: counts, failures by reason, how often each field was present, how long things took."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from peewee import JOIN, Field, fn

from lienworker.db.models import Page, Result, Task, tuples
from lienworker.store.counts import failures, task_counts

_SHOWN_FIELDS = 60


def analyze() -> dict[str, Any]:
    """Read every result once, one at a time."""
    return {
        "tasks": task_counts(),
        "failures": [{"reason": reason, "n": n, "sample": sample} for reason, n, sample in failures()],
        "counties": _counties(),
        "fields": _fill_rates(),
        "timings": {
            "fetch_ms": _spread(Page.fetch_ms),
            "parse_ms": _spread(Result.parse_duration_ms),
            "page_bytes": _spread(Page.size),
        },
    }


def _counties() -> list[dict[str, Any]]:
    place = [fn.COALESCE(getattr(Result, name), getattr(Task, name)) for name in ("platform", "state", "county")]
    completed, failed = fn.SUM(Task.status == "completed"), fn.SUM(Task.status.in_(["failed", "expired"]))
    query = Task.select(*place, fn.COUNT("*"), completed, failed).join(
        Result, JOIN.LEFT_OUTER, on=(Result.task_id == Task.task_id)
    )
    names = ("platform", "state", "county", "tasks", "completed", "failed")
    rows = tuples(query.group_by(*place).order_by(fn.COUNT("*").desc()))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _fill_rates() -> dict[str, dict[str, float]]:
    """Return for each platform the share of its results in which each canonical field was present."""
    there: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for platform, data in tuples(Result.select(Result.platform, Result.data)):
        totals[platform] += 1
        there[platform].update(name for name, value in json.loads(data).items() if value not in (None, "", [], {}))
    return {
        platform: {name: round(n / totals[platform], 4) for name, n in counter.most_common(_SHOWN_FIELDS)}
        for platform, counter in sorted(there.items())
    }


def _spread(field: Field) -> dict[str, int] | None:
    values = [value for (value,) in tuples(field.model.select(field).order_by(field))]
    if not values:
        return None
    shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: values[min(len(values) - 1, int(share * len(values)))] for name, share in shares.items()}
