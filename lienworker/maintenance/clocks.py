"""Times that only a wrong clock knew: what waits for one of them is due."""

from __future__ import annotations

from lienworker.db.clock import now_ms
from lienworker.db.database import one_row, write
from lienworker.maintenance.hosts import LONGEST_WAIT_MS, heal_hosts
from lienworker.outbox import breaker, transitions
from lienworker.outbox.rows import NEVER_DUE
from lienworker.outbox.states import STEPS, UPLOADS, Topic

#: The longest that a row of a topic can have reason to wait; more means that a clock was wrong.
_LONGEST_WAITS = {
    **dict.fromkeys(STEPS, 600_000),
    **dict.fromkeys(UPLOADS, LONGEST_WAIT_MS),
}
#: Rows that are brought forward in one transaction.
_CHUNK = 5_000


def forgive_clock_jumps() -> None:
    """Make rows due that wait for a time that only a wrong clock knew, after the wall clock was set back."""
    now = now_ms()
    for topic, limit_ms in _LONGEST_WAITS.items():
        sql = "SELECT 1 FROM backlog WHERE topic = ? AND waiting > 0 AND not_before > ? AND not_before < ?"
        if one_row(sql, (topic, now + limit_ms, NEVER_DUE)):
            _forgive_rows(topic, now, limit_ms)
    if one_row("SELECT 1 FROM breakers WHERE is_open = 1 AND retry_at > ?", (now + LONGEST_WAIT_MS,)):
        with write("clock_breakers"):
            breaker.forgive_absurd_times(now, LONGEST_WAIT_MS)
    heal_hosts(now)


def _forgive_rows(topic: Topic, now: int, limit_ms: int) -> None:
    """Make rows of a topic due a chunk at a time: there may be a million, and other writers need their turn."""
    with write("clock"):
        transitions.make_due(topic, now, now + limit_ms, _CHUNK)
