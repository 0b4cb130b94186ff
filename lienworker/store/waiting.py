"""What waits, by age: kept by triggers in the transactions that it speaks of (see 0006_places.sql)."""

from __future__ import annotations

from typing import Any

from lienworker.store.database import all_rows

#: Rows of the table that are shown; the largest first.
MOST = 100


def by_host(bounds: tuple[int, ...], now_minute: int) -> list[dict[str, Any]]:
    """By lane and host, counted by age: under each bound (minutes), and over the last one."""
    return [
        {"topic": topic, "host": host, **ages} for (topic, host), ages in _by(("topic", "host"), "", bounds, now_minute)
    ]


def by_county(bounds: tuple[int, ...], now_minute: int) -> list[dict[str, Any]]:
    """What waits to be fetched, by platform and county."""
    found = _by(("place",), "AND topic = 'fetch'", bounds, now_minute)
    return [{**in_parts(place), **ages} for (place,), ages in found]


def _by(
    names: tuple[str, ...], condition: str, bounds: tuple[int, ...], now_minute: int
) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    cases = ", ".join(
        f"sum(CASE WHEN age >= {low} AND age < {high} THEN n ELSE 0 END)"
        for low, high in zip((-(1 << 40), *bounds), (*bounds, 1 << 40), strict=True)
    )
    columns = ", ".join(names)
    sql = (
        f"SELECT {columns}, sum(n), max(age), {cases} FROM (SELECT {columns}, ? - minute AS age, n"
        f" FROM waiting_since WHERE n > 0 {condition}) GROUP BY {columns} ORDER BY sum(n) DESC LIMIT {MOST}"
    )
    n = len(names)
    return [
        (row[:n], {"n": row[n], "oldest_minutes": max(0, row[n + 1]), "ages": list(row[n + 2 :])})
        for row in all_rows(sql, (now_minute,))
    ]


def places_waiting() -> dict[tuple[str, str, str], tuple[int, int]]:
    """For each platform, state and county how many fetches wait, and the minute since when the oldest does."""
    sql = "SELECT place, sum(n), min(minute) FROM waiting_since WHERE topic = 'fetch' AND n > 0 GROUP BY place"
    return {_parts(place): (n, minute) for place, n, minute in all_rows(sql)}


def oldest_by_topic(now_minute: int) -> dict[str, int]:
    """How long the oldest row of each lane has waited, minutes."""
    sql = "SELECT topic, min(minute) FROM waiting_since WHERE n > 0 GROUP BY topic"
    return {topic: max(0, now_minute - minute) for topic, minute in all_rows(sql)}


def in_parts(place: str) -> dict[str, str]:
    return dict(zip(("platform", "state", "county"), _parts(place), strict=True))


def _parts(place: str) -> tuple[str, str, str]:
    platform, state, county = [*place.split("|", 2), "", ""][:3]
    return platform, state, county
