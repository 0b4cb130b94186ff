"""The figures behind the report for people, gathered in one pass over the results."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from peewee import SQL, fn

from lienworker.db.models import Page, Result, Task, dicts, tuples
from lienworker.store.results import with_data

#: The amounts to examine: a field of the record, or one of the entries of a list.
AMOUNTS = {
    "market_value": "market_value", "assessed_value": "assessed_value", "tax_amount": "tax_amount",
    "total_due": "total_due", "lien face amount": "liens.face_amount", "sale price": "sales.price",
}  # fmt: skip
DATES = {"year built": "year_built", "sale": "sales.date", "lien sale": "liens.sale_date", "tax year": "tax_year"}
_EXTREMES = 20
#: An amount this many times the median deviation away from the median, on a logarithmic scale, stands out.
_FAR = 6.0
_FEWEST = 30


@dataclass(slots=True)
class Amount:
    """One kind of amount over all results."""

    values: array[float] = field(default_factory=lambda: array("d"))
    highest: list[tuple[float, str, str]] = field(default_factory=list)
    lowest: list[tuple[float, str, str]] = field(default_factory=list)
    zero_or_less: int = 0

    def take(self, value: float, parcel: str, task_id: str) -> None:
        if value <= 0:
            self.zero_or_less += 1
            return
        self.values.append(value)
        for heap, item in ((self.highest, (value, parcel, task_id)), (self.lowest, (-value, parcel, task_id))):
            if len(heap) < _EXTREMES:
                heapq.heappush(heap, item)
            else:
                heapq.heappushpop(heap, item)

    def by_size(self) -> dict[str, int]:
        """Return how many are between two steps of 1, 3, 10, 30 and so on."""
        bins: Counter[int] = Counter(math.floor(2 * math.log10(value)) for value in self.values)
        if not bins:
            return {}
        return {_size(n): bins[n] for n in range(min(bins), max(bins) + 1)}

    def outliers(self) -> Iterator[tuple[float, str, str]]:
        if len(self.values) < _FEWEST:
            return
        logs = [math.log(value) for value in self.values]
        middle = median(logs)
        spread = max(median(abs(value - middle) for value in logs), 0.1)
        extremes = [*self.highest, *((-value, parcel, task) for value, parcel, task in self.lowest)]
        for value, parcel, task_id in sorted(set(extremes), reverse=True):
            if abs(math.log(value) - middle) > _FAR * spread:
                yield value, parcel, task_id


class Figures:
    """Everything that is counted over the results."""

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self.amounts = {name: Amount() for name in AMOUNTS}
        self.years: dict[str, Counter[int]] = {name: Counter() for name in DATES}
        self.results: Counter[tuple[str, str]] = Counter()
        self.there: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for row in records:
            self._take(row)

    def _take(self, row: dict[str, Any]) -> None:
        data = row["data"]
        place = (row["platform"], " ".join(filter(None, (row["county"], row["state"]))) or "(unknown)")
        self.results[place] += 1
        self.there[place].update(data.keys())
        parcel = str(row["parcel_id"] or data.get("parcel_id") or "")
        for name, path in AMOUNTS.items():
            for value in _at(data, path):
                if isinstance(value, int | float) and math.isfinite(value):
                    self.amounts[name].take(float(value), parcel, row["task_id"])
        for name, path in DATES.items():
            self.years[name].update(year for value in _at(data, path) if (year := _year(value)))


def _at(data: dict[str, Any], path: str) -> Iterator[Any]:
    name, _, inner = path.partition(".")
    value = data.get(name)
    if inner and isinstance(value, list):
        yield from (entry[inner] for entry in value if isinstance(entry, dict) and inner in entry)
    elif value is not None and not inner:
        yield value


def _year(value: Any) -> int | None:
    head = str(value)[:4]
    return int(head) if head.isascii() and head.isdigit() and 1600 <= int(head) <= 2100 else None


def _size(n: int) -> str:
    low = 10 ** (n / 2)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if low >= limit:
            return f"{low / limit:.0f}{unit}"
    return f"{low:.2g}"


def slowest_hosts(times: Iterable[tuple[str, int]], limit: int = 15) -> list[dict[str, Any]]:
    by_host: dict[str, array[int]] = defaultdict(lambda: array("q"))
    for url, ms in times:
        by_host[urlsplit(url).netloc.rpartition("@")[2]].append(ms)
    rows = [_host_times(host, sorted(all_ms)) for host, all_ms in by_host.items()]
    return sorted(rows, key=lambda row: row["median_ms"], reverse=True)[:limit]


def _host_times(host: str, ordered: list[int]) -> dict[str, Any]:
    n = len(ordered)
    return {"host": host, "pages": n, "median_ms": ordered[n // 2], "p90_ms": ordered[int(0.9 * n)]}


# What reports are made of: results and pages one at a time, never all in memory.


def stored_records() -> Iterator[dict[str, Any]]:
    """Yield every result with what it belongs to, `data` as an object."""
    it = Result
    columns = (it.task_id, it.parcel_id, it.platform, it.state, it.county, it.fetched_at, it.data)
    yield from map(with_data, dicts(it.select(*columns)))


def page_times() -> Iterator[tuple[str, int]]:
    """Yield the address of each page and how long its fetch took, in ms."""
    yield from tuples(Page.select(Page.url, Page.fetch_ms))


def failed_tasks_of(reason: str, limit: int) -> list[dict[str, Any]]:
    """Return some tasks that failed for a reason, the newest first."""
    query = Task.select(Task.task_id, Task.url, Task.county, Task.last_error).where(
        Task.status.in_(["failed", "expired"]), fn.COALESCE(Task.reason, "unknown") == reason
    )
    return list(dicts(query.order_by(SQL("rowid DESC")).limit(limit)))
