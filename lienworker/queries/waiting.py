"""What waits, by age: kept by triggers in the transactions that change it (see 0006_places.sql)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from peewee import fn

from lienworker.db.database import all_rows
from lienworker.db.models import WaitingSince, tuples
from lienworker.queries.formatting import number, seconds
from lienworker.store.counts import this_minute

#: Rows of the table to show; the largest first.
MOST = 100


def by_host_and_county(bounds: tuple[int, ...], now_minute: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what waits by lane and host, and fetches by county: under each bound of age (minutes), and over the last.

    This is one pass in the order of the table, since it may have a row for each minute of each county.
    """
    cases = ", ".join(
        f"sum(CASE WHEN minute > {low} AND minute <= {high} THEN n ELSE 0 END)"
        for low, high in _spans(bounds, now_minute)
    )
    sql = (
        f"SELECT topic, host, place, sum(n), min(minute), {cases} FROM waiting_since WHERE n > 0"
        " GROUP BY topic, host, place"
    )
    hosts: dict[tuple[str, str], _Waiting] = {}
    counties: dict[str, _Waiting] = {}
    for topic, host, place, n, since, *ages in all_rows(sql):
        hosts.setdefault((topic, host), _Waiting(len(ages))).add(n, since, ages)
        if topic == "fetch":
            counties.setdefault(place, _Waiting(len(ages))).add(n, since, ages)
    by_host = [{"topic": topic, "host": host, **found.shown(now_minute)} for (topic, host), found in hosts.items()]
    by_county = [{**in_parts(place), **found.shown(now_minute)} for place, found in counties.items()]
    return _largest(by_host), _largest(by_county)


def _spans(bounds: tuple[int, ...], now_minute: int) -> list[tuple[int, int]]:
    """Return the ranges of minutes for ages under each bound, and for those over all."""
    edges = [1 << 40, *(now_minute - bound for bound in bounds), -(1 << 40)]
    return list(zip(edges[1:], edges, strict=False))


class _Waiting:
    """Waiting rows by age, added up."""

    def __init__(self, spans: int) -> None:
        self.n, self.since, self.ages = 0, 1 << 40, [0] * spans

    def add(self, n: int, since: int, ages: list[int]) -> None:
        self.n += n
        self.since = min(self.since, since)
        self.ages = [mine + more for mine, more in zip(self.ages, ages, strict=True)]

    def shown(self, now_minute: int) -> dict[str, Any]:
        return {"n": self.n, "oldest_minutes": max(0, now_minute - self.since), "ages": self.ages}


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: -int(row["n"]))[:MOST]


def places_waiting() -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return for each platform, state and county how many fetches wait, and the minute since when the oldest does."""
    it = WaitingSince
    query = it.select(it.place, fn.SUM(it.n), fn.MIN(it.minute)).where(it.topic == "fetch", it.n > 0).group_by(it.place)
    return {_parts(place): (n, minute) for place, n, minute in tuples(query)}


def oldest_by_topic(now_minute: int) -> dict[str, int]:
    """Return how long the oldest row of each lane has waited, minutes."""
    it = WaitingSince
    query = it.select(it.topic, fn.MIN(it.minute)).where(it.n > 0).group_by(it.topic)
    return {topic: max(0, now_minute - minute) for topic, minute in tuples(query)}


def in_parts(place: str) -> dict[str, str]:
    return dict(zip(("platform", "state", "county"), _parts(place), strict=True))


def _parts(place: str) -> tuple[str, str, str]:
    platform, state, county = [*place.split("|", 2), "", ""][:3]
    return platform, state, county


# The backlog by age, as Postfix's qshape shows its queues: hosts and counties against how long they have waited.


#: Upper bounds of age, minutes, spaced like qshape's.
AGES = (5, 15, 30, 60, 180, 360, 720, 1440, 4320)


def backlog() -> dict[str, Any]:
    """Return `rows` by lane and host and `counties` by platform and county, each with counts by `ages`."""
    hosts, counties = by_host_and_county(AGES, this_minute())
    return {"bounds": list(AGES), "rows": hosts, "counties": counties}


def heads() -> list[str]:
    """Return the headings of the age columns."""
    return [*(f"<{seconds(60 * bound)}" for bound in AGES), "older"]


def in_lines(rows: Iterable[dict[str, Any]], most: int) -> Iterator[list[str]]:
    """Yield lines for a terminal: name, count, and count by age; empty where there is none."""
    for row in list(rows)[:most]:
        yield [name_of(row), number(row["n"]), *(number(n) if n else "·" for n in row["ages"])]


def name_of(row: dict[str, Any]) -> str:
    if "county" in row:
        where = ", ".join(part for part in (row["county"], row["state"]) if part) or "no county"
        return f"{where} ({row['platform'] or 'any platform'})"
    return str(row["host"] if row["topic"] == "fetch" else row["topic"])
