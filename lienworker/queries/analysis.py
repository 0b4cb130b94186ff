"""What was collected: counts, failures by reason, how often each field was present, how long things took."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peewee import JOIN, Field, fn

from lienworker.db.models import Page, Result, Task, tuples
from lienworker.queries.counties import joined
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


def analyze_results(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The same, as far as results alone tell: what failed, and how long fetches took, is only in a data folder."""
    places: Counter[tuple[str | None, ...]] = Counter()
    fields = _FillRates()
    parse_ms: list[int] = []
    for item in results:
        places[tuple(item.get(name) for name in ("platform", "state", "county"))] += 1
        fields.count(str(item.get("platform") or "unknown"), item["data"])
        if isinstance(item.get("parse_duration_ms"), int):
            parse_ms.append(item["parse_duration_ms"])
    names = ("platform", "state", "county")
    counties = [
        {**dict(zip(names, place, strict=True)), "tasks": n, "completed": n, "failed": 0}
        for place, n in places.most_common()
    ]
    return {
        "tasks": {"completed": places.total()},
        "failures": [],
        "counties": counties,
        "fields": fields.shares(),
        "timings": {"parse_ms": _spread_of(sorted(parse_ms))},
    }


def _counties() -> list[dict[str, Any]]:
    place = [fn.COALESCE(getattr(Result, name), getattr(Task, name)) for name in ("platform", "state", "county")]
    completed, failed = fn.SUM(Task.status == "completed"), fn.SUM(Task.status.in_(["failed", "expired"]))
    query = Task.select(*place, fn.COUNT("*"), completed, failed).join(
        Result, JOIN.LEFT_OUTER, on=(Result.task_id == Task.task_id)
    )
    names = ("platform", "state", "county", "tasks", "completed", "failed")
    rows = tuples(query.group_by(*place).order_by(fn.COUNT("*").desc()))
    return joined([dict(zip(names, row, strict=True)) for row in rows], names[3:])


def _fill_rates() -> dict[str, dict[str, float]]:
    """Return for each platform the share of its results in which each canonical field was present."""
    rates = _FillRates()
    for platform, data in tuples(Result.select(Result.platform, Result.data)):
        rates.count(platform, json.loads(data))
    return rates.shares()


class _FillRates:
    """How often each field was there, by platform."""

    def __init__(self) -> None:
        self._there: dict[str, Counter[str]] = defaultdict(Counter)
        self._totals: Counter[str] = Counter()

    def count(self, platform: str, data: Mapping[str, Any]) -> None:
        self._totals[platform] += 1
        self._there[platform].update(name for name, value in data.items() if value not in (None, "", [], {}))

    def shares(self) -> dict[str, dict[str, float]]:
        return {
            platform: {name: round(n / self._totals[platform], 4) for name, n in counter.most_common(_SHOWN_FIELDS)}
            for platform, counter in sorted(self._there.items())
        }


def _spread(field: Field) -> dict[str, int] | None:
    return _spread_of([value for (value,) in tuples(field.model.select(field).order_by(field))])


def _spread_of(values: Sequence[int]) -> dict[str, int] | None:
    """Of values in their order."""
    if not values:
        return None
    shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: values[min(len(values) - 1, int(share * len(values)))] for name, share in shares.items()}
