"""The backlog by age, as Postfix's qshape shows its queues: hosts and counties against how long they have waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lienworker.queries import waiting
from lienworker.queries.formatting import number, seconds
from lienworker.store.rollups import this_minute

#: Upper bounds of age, minutes, as far apart as qshape's.
AGES = (5, 15, 30, 60, 180, 360, 720, 1440, 4320)


def backlog() -> dict[str, Any]:
    """`rows` by lane and host, `counties` by platform and county; `ages`: how many under each bound, and over all."""
    hosts, counties = waiting.by_host_and_county(AGES, this_minute())
    return {"bounds": list(AGES), "rows": hosts, "counties": counties}


def heads() -> list[str]:
    """The columns of ages in words."""
    return [*(f"<{seconds(60 * bound)}" for bound in AGES), "older"]


def in_lines(rows: Iterable[dict[str, Any]], most: int) -> Iterator[list[str]]:
    """For a terminal: who, how many, and by age; nothing where nothing is."""
    for row in list(rows)[:most]:
        yield [name_of(row), number(row["n"]), *(number(n) if n else "·" for n in row["ages"])]


def name_of(row: dict[str, Any]) -> str:
    if "county" in row:
        where = ", ".join(part for part in (row["county"], row["state"]) if part) or "no county"
        return f"{where} ({row['platform'] or 'any platform'})"
    return str(row["host"] if row["topic"] == "fetch" else row["topic"])
