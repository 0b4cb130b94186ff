"""How much of what there is: from the tallies, so at no cost that grows with the tables."""

from __future__ import annotations

from lienworker.store.clock import rfc3339
from lienworker.store.database import all_rows, one_row
from lienworker.store.tasks import STATUSES

OUTBOX_STATES = ("waiting", "leased", "held", "delivered", "superseded", "parked", "discarded")


def task_counts() -> dict[str, int]:
    found = dict(all_rows("SELECT state, n FROM tally WHERE kind = 'task'"))
    return {status: found.get(status, 0) for status in STATUSES}


def outbox_counts(topic: str | None = None) -> dict[str, int]:
    found = dict(
        all_rows(
            "SELECT state, sum(n) FROM tally WHERE kind = 'outbox' AND topic = coalesce(?, topic) GROUP BY state",
            (topic,),
        )
    )
    return {state: found.get(state, 0) for state in OUTBOX_STATES}


def ended_since(status: str, ms: int) -> int:
    """Return how many tasks have ended with this status since then."""
    sql = "SELECT count(*) FROM tasks INDEXED BY tasks_by_end WHERE completed_at > ? AND status = ?"
    return int(one_row(sql, (rfc3339(ms), status))[0])


def import_counts(import_id: int) -> dict[str, int]:
    """The tasks that an import answers for, by status."""
    sql = "SELECT status, count(*) FROM tasks WHERE import_id = ? GROUP BY status"
    found = dict(all_rows(sql, (import_id,)))
    return {status: found.get(status, 0) for status in STATUSES}


def failures(import_id: int | None = None) -> list[tuple[str, int, str]]:
    """Failed tasks by reason, most frequent first, each with one error as a sample."""
    sql = (
        "SELECT coalesce(reason, 'unknown'), count(*), max(last_error) FROM tasks WHERE status IN ('failed', 'expired')"
    )
    if import_id is None:
        return all_rows(sql + " GROUP BY 1 ORDER BY 2 DESC, 1")
    return all_rows(sql + " AND import_id = ? GROUP BY 1 ORDER BY 2 DESC, 1", (import_id,))
