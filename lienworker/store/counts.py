"""Counts of tasks and rows, read from the tallies, so that their cost does not grow with the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from peewee import fn

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute, execute_many, one_row, write
from lienworker.db.models import Rollup, Tally, Task, tuples
from lienworker.store.tasks import STATUSES

OUTBOX_STATES = ("waiting", "leased", "held", "delivered", "superseded", "parked", "discarded")
#: The reason of tasks whose host was given up.
_DEAD = "host_down"
_FAILED = "SELECT coalesce(reason, 'unknown'), count(*), max(rowid) FROM tasks WHERE status IN ('failed', 'expired')"


def task_counts() -> dict[str, int]:
    found = dict(tuples(Tally.select(Tally.state, Tally.n).where(Tally.kind == "task")))
    return {status: found.get(status, 0) for status in STATUSES}


def outbox_counts(topic: str | None = None) -> dict[str, int]:
    query = Tally.select(Tally.state, fn.SUM(Tally.n)).where(Tally.kind == "outbox").group_by(Tally.state)
    found = dict(tuples(query if topic is None else query.where(Tally.topic == topic)))
    return {state: found.get(state, 0) for state in OUTBOX_STATES}


def ended_since(status: str, ms: int) -> int:
    """Return how many tasks have ended with this status since `ms`."""
    sql = "SELECT count(*) FROM tasks INDEXED BY tasks_by_end WHERE completed_at > ? AND status = ?"
    return int(one_row(sql, (rfc3339(ms), status))[0])


def import_counts(import_id: int) -> dict[str, int]:
    """Return the tasks of an import, counted by status."""
    query = Task.select(Task.status, fn.COUNT("*")).where(Task.import_id == import_id).group_by(Task.status)
    found = dict(tuples(query))
    return {status: found.get(status, 0) for status in STATUSES}


def failures(import_id: int | None = None) -> list[tuple[str, int, str | None]]:
    """Return failed tasks by reason, most frequent first, each with the newest one's error; dead hosts one by one."""
    condition, values = ("", ()) if import_id is None else (" AND import_id = ?", (import_id,))
    found = all_rows(f"{_FAILED}{condition} GROUP BY reason", values)
    if any(reason == _DEAD for reason, _, _ in found):
        # Only these are looked at one by one; the others are counted from an index.
        hosts = all_rows(f"{_FAILED}{condition} AND reason = '{_DEAD}' GROUP BY last_error", values)
        found = [row for row in found if row[0] != _DEAD] + hosts
    error = "SELECT last_error FROM tasks WHERE rowid = ?"
    ordered = sorted(found, key=lambda row: (-row[1], row[0]))
    return [(reason, n, one_row(error, (newest,))[0]) for reason, n, newest in ordered]


# What happened, by minute: the source of charts, rates and metrics. Triggers keep it (see 0004_monitor.sql).


#: Minutes are kept this long, then folded into hours; the day's chart needs 24 hours of them.
_MINUTES_KEPT = 26 * 60
#: Hours are kept this long, then folded into minute 0, "ever": counters never go back.
_HOURS_KEPT = 90 * 24 * 60
#: Kept by the day already; never folded into hours.
_DAILY = "('county')"


def this_minute() -> int:
    return now_ms() // 60_000


def by_minute(name: str, since: int) -> dict[str, dict[int, int]]:
    """Return how often something happened, by key and minute, from the minute `since` on."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    query = Rollup.select(Rollup.key, Rollup.minute, Rollup.n).where(Rollup.name == name, Rollup.minute >= since)
    for key, minute, n in tuples(query.order_by(Rollup.minute)):
        found[key][minute] = n
    return found


def values_by_minute(name: str, key: str, since: int) -> dict[int, int]:
    """Return a recorded level (not a count) by minute."""
    chosen = (Rollup.name == name, Rollup.key == key, Rollup.minute >= since)
    return dict(tuples(Rollup.select(Rollup.minute, Rollup.n).where(*chosen).order_by(Rollup.minute)))


def sums(name: str, since: int = 0) -> dict[str, tuple[int, int]]:
    """Return the number of events and their total, by key."""
    query = Rollup.select(Rollup.key, fn.SUM(Rollup.n), fn.SUM(Rollup.total))
    query = query.where(Rollup.name == name, Rollup.minute >= since).group_by(Rollup.key)
    return {key: (n, total) for key, n, total in tuples(query)}


def add_counts(name: str, counts: Mapping[str, int]) -> None:
    """Add counts of this minute, by key, that the caller has collected."""
    minute = this_minute()
    with write("rollup_counts"):
        execute_many(
            "INSERT INTO rollups VALUES (?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            ((name, key, minute, n) for key, n in counts.items()),
        )


def record_level(name: str, key: str, value: int) -> bool:
    """Record a level once a minute; return False where another process has done so. Look before writing."""
    minute = this_minute()
    if one_row("SELECT 1 FROM rollups WHERE name = ? AND key = ? AND minute = ?", (name, key, minute)):
        return False
    with write("rollup_level"):
        execute("INSERT OR IGNORE INTO rollups VALUES (?, ?, ?, ?, 0)", (name, key, minute, value))
    return True


def fold_old() -> None:
    """Fold old minutes into hours and old hours into "ever", and remove emptied groups."""
    now = this_minute()
    with write("rollup_fold"):
        _fold("minute / 60 * 60", now - _MINUTES_KEPT, f"minute % 60 <> 0 AND name NOT IN {_DAILY}")
        _fold("0", now - _HOURS_KEPT, "minute > 0")
        execute("DELETE FROM waiting_since WHERE n <= 0 AND minute < ?", (now - 2,))
        execute("DELETE FROM set_aside WHERE n <= 0")


def fold_counties(before: int) -> None:
    """Fold the days of counties before a minute into "ever", too: nothing is compared with them any more."""
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
    # A level is not a sum: the one recorded on the full hour stands for the hour.
    execute(
        f"INSERT INTO rollups SELECT name, key, {target}, sum(n), sum(total) FROM rollups"
        f" WHERE {condition} AND name NOT IN ('disk_free_mb', 'data_mb') GROUP BY 1, 2, 3"
        " ON CONFLICT DO UPDATE SET n = n + excluded.n, total = total + excluded.total",
        (before,),
    )
    execute(f"DELETE FROM rollups WHERE {condition}", (before,))
