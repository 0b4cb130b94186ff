"""How much of what there is: from the tallies, so at no cost that grows with the tables."""

from __future__ import annotations

from peewee import fn

from lienworker.db.clock import rfc3339
from lienworker.db.database import one_row
from lienworker.db.models import Tally, Task, tuples
from lienworker.store.tasks import STATUSES

OUTBOX_STATES = ("waiting", "leased", "held", "delivered", "superseded", "parked", "discarded")


def task_counts() -> dict[str, int]:
    found = dict(tuples(Tally.select(Tally.state, Tally.n).where(Tally.kind == "task")))
    return {status: found.get(status, 0) for status in STATUSES}


def outbox_counts(topic: str | None = None) -> dict[str, int]:
    query = Tally.select(Tally.state, fn.SUM(Tally.n)).where(Tally.kind == "outbox").group_by(Tally.state)
    found = dict(tuples(query if topic is None else query.where(Tally.topic == topic)))
    return {state: found.get(state, 0) for state in OUTBOX_STATES}


def ended_since(status: str, ms: int) -> int:
    """Return how many tasks have ended with this status since then."""
    sql = "SELECT count(*) FROM tasks INDEXED BY tasks_by_end WHERE completed_at > ? AND status = ?"
    return int(one_row(sql, (rfc3339(ms), status))[0])


def import_counts(import_id: int) -> dict[str, int]:
    """The tasks that an import answers for, by status."""
    query = Task.select(Task.status, fn.COUNT("*")).where(Task.import_id == import_id).group_by(Task.status)
    found = dict(tuples(query))
    return {status: found.get(status, 0) for status in STATUSES}


def failures(import_id: int | None = None) -> list[tuple[str, int, str]]:
    """Failed tasks by reason, most frequent first, each with one error as a sample."""
    reason, n = fn.COALESCE(Task.reason, "unknown"), fn.COUNT("*")
    query = Task.select(reason, n, fn.MAX(Task.last_error)).where(Task.status.in_(["failed", "expired"]))
    query = query if import_id is None else query.where(Task.import_id == import_id)
    return list(tuples(query.group_by(reason).order_by(n.desc(), reason)))
