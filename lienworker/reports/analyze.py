"""What was collected: counts, failures by reason, how often each field was there, how long things took."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from lienworker.store.counts import failures, task_counts
from lienworker.store.database import all_rows, dict_rows

_SHOWN_FIELDS = 60


def analyze() -> dict[str, Any]:
    """Reads every result once, one at a time."""
    return {
        "tasks": task_counts(),
        "failures": [{"reason": reason, "n": n, "sample": sample} for reason, n, sample in failures()],
        "counties": _counties(),
        "fields": _fill_rates(),
        "timings": {
            "fetch_ms": _spread("SELECT fetch_ms FROM pages ORDER BY 1"),
            "parse_ms": _spread("SELECT parse_duration_ms FROM results ORDER BY 1"),
            "page_bytes": _spread("SELECT size FROM pages ORDER BY 1"),
        },
    }


def _counties() -> list[dict[str, Any]]:
    sql = (
        "SELECT coalesce(r.platform, t.platform) AS platform, coalesce(r.state, t.state) AS state,"
        " coalesce(r.county, t.county) AS county, count(*) AS tasks, sum(t.status = 'completed') AS completed,"
        " sum(t.status IN ('failed', 'expired')) AS failed"
        " FROM tasks t LEFT JOIN results r ON r.task_id = t.task_id GROUP BY 1, 2, 3 ORDER BY 4 DESC"
    )
    return list(dict_rows(sql))


def _fill_rates() -> dict[str, dict[str, float]]:
    """For each platform, in what share of its results each canonical field was there."""
    there: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for row in dict_rows("SELECT platform, data FROM results"):
        totals[row["platform"]] += 1
        there[row["platform"]].update(
            name for name, value in json.loads(row["data"]).items() if value not in (None, "", [], {})
        )
    return {
        platform: {name: round(n / totals[platform], 4) for name, n in counter.most_common(_SHOWN_FIELDS)}
        for platform, counter in sorted(there.items())
    }


def _spread(sql: str) -> dict[str, int] | None:
    values = [row[0] for row in all_rows(sql)]
    if not values:
        return None
    shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: values[min(len(values) - 1, int(share * len(values)))] for name, share in shares.items()}
