"""What happened, by minute: what charts, rates and metrics are made of. Triggers keep it (see 0004_monitor.sql)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from peewee import fn

from lienworker.db.clock import now_ms
from lienworker.db.database import execute, execute_many, one_row, write
from lienworker.db.models import Rollup, tuples

#: Minutes are kept this long, then folded into hours; the day's chart needs 24 hours of them.
_MINUTES_KEPT = 26 * 60
#: Hours are kept this long, then folded into minute 0, "ever": counters never go back.
_HOURS_KEPT = 90 * 24 * 60
#: What is kept by the day already; never folded into hours.
_DAILY = "('county')"


def this_minute() -> int:
    return now_ms() // 60_000


def by_minute(name: str, since: int) -> dict[str, dict[int, int]]:
    """How often, by key and minute, from a minute on."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    query = Rollup.select(Rollup.key, Rollup.minute, Rollup.n).where(Rollup.name == name, Rollup.minute >= since)
    for key, minute, n in tuples(query.order_by(Rollup.minute)):
        found[key][minute] = n
    return found


def values_by_minute(name: str, key: str, since: int) -> dict[int, int]:
    """A level that was noted (not a count), by minute."""
    chosen = (Rollup.name == name, Rollup.key == key, Rollup.minute >= since)
    return dict(tuples(Rollup.select(Rollup.minute, Rollup.n).where(*chosen).order_by(Rollup.minute)))


def sums(name: str, since: int = 0) -> dict[str, tuple[int, int]]:
    """How often in all and the total, by key."""
    query = Rollup.select(Rollup.key, fn.SUM(Rollup.n), fn.SUM(Rollup.total))
    query = query.where(Rollup.name == name, Rollup.minute >= since).group_by(Rollup.key)
    return {key: (n, total) for key, n, total in tuples(query)}


def add_counts(name: str, counts: Mapping[str, int]) -> None:
    """Counts of this minute, by key, that somebody has kept meanwhile."""
    minute = this_minute()
    with write("rollup_counts"):
        execute_many(
            "INSERT INTO rollups VALUES (?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            ((name, key, minute, n) for key, n in counts.items()),
        )


def note_level(name: str, key: str, value: int) -> bool:
    """Notes a level once a minute; False where somebody has done it already. Looks before it writes."""
    minute = this_minute()
    if one_row("SELECT 1 FROM rollups WHERE name = ? AND key = ? AND minute = ?", (name, key, minute)):
        return False
    with write("rollup_level"):
        execute("INSERT OR IGNORE INTO rollups VALUES (?, ?, ?, ?, 0)", (name, key, minute, value))
    return True


def fold_old() -> None:
    """Old minutes become hours, old hours become "ever", and emptied groups go."""
    now = this_minute()
    with write("rollup_fold"):
        _fold("minute / 60 * 60", now - _MINUTES_KEPT, f"minute % 60 <> 0 AND name NOT IN {_DAILY}")
        _fold("0", now - _HOURS_KEPT, "minute > 0")
        execute("DELETE FROM waiting_since WHERE n <= 0 AND minute < ?", (now - 2,))
        execute("DELETE FROM set_aside WHERE n <= 0")


def fold_counties(before: int) -> None:
    """Days of counties before a minute become "ever", too: nobody compares with them any more."""
    condition = f"name IN {_DAILY} AND minute > 0 AND minute < ?"
    if not one_row(f"SELECT 1 FROM rollups WHERE {condition} LIMIT 1", (before,)):
        return
    with write("rollup_fold"):
        execute(
            f"INSERT INTO rollups SELECT name, key, 0, sum(n), sum(total) FROM rollups WHERE {condition} GROUP BY 1, 2"
            " ON CONFLICT DO UPDATE SET n = n + excluded.n, total = total + excluded.total",
            (before,),
        )
        execute(f"DELETE FROM rollups WHERE {condition}", (before,))


def _fold(target: str, before: int, which: str) -> None:
    condition = f"minute < ? AND {which}"
    # A level is not a sum: the one that was noted on the full hour stands for it.
    execute(
        f"INSERT INTO rollups SELECT name, key, {target}, sum(n), sum(total) FROM rollups"
        f" WHERE {condition} AND name <> 'disk_free_mb' GROUP BY 1, 2, 3"
        " ON CONFLICT DO UPDATE SET n = n + excluded.n, total = total + excluded.total",
        (before,),
    )
    execute(f"DELETE FROM rollups WHERE {condition}", (before,))
