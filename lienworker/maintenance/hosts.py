"""Hosts that never answer, and hosts as older versions and wrong clocks have stored them.

Absurd numbers, times that only a wrong clock knew and odd spellings of names are fixed in place.
"""

from __future__ import annotations

import logging

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.outbox import transitions
from lienworker.outbox.backoff import LONGEST_RETRY_AFTER
from lienworker.outbox.outcomes import record_try, report_failure, say_failed
from lienworker.outbox.pacing import (
    LONGEST_DELAY,
    MOST_OPEN,
    hosts_given_up,
    open_at_most,
    seconds_of,
    try_afresh,
    whole,
)
from lienworker.outbox.states import Topic
from lienworker.store import tasks

#: No host has reason to wait longer; more means that a clock was wrong.
LONGEST_WAIT_MS = int(1000 * LONGEST_RETRY_AFTER) + 3_600_000
#: Tasks of a dead host that end in one transaction.
_ENDED_AT_ONCE = 500
_WRONG = """
SELECT host, delay, robots_delay, operator_delay, concurrency, operator_concurrency, next_allowed_at, cooling_until
FROM hosts WHERE
    delay IS NOT NULL AND NOT (typeof(delay) IN ('integer', 'real') AND delay BETWEEN 0 AND ?)
    OR robots_delay IS NOT NULL AND NOT (typeof(robots_delay) IN ('integer', 'real')
        AND robots_delay BETWEEN 0 AND ?)
    OR operator_delay IS NOT NULL AND NOT (typeof(operator_delay) IN ('integer', 'real')
        AND operator_delay BETWEEN 0 AND ?)
    OR concurrency IS NOT NULL AND NOT (typeof(concurrency) = 'integer' AND concurrency BETWEEN 1 AND ?)
    OR operator_concurrency IS NOT NULL AND NOT (typeof(operator_concurrency) = 'integer'
        AND operator_concurrency BETWEEN 1 AND ?)
    OR NOT (typeof(next_allowed_at) = 'integer' AND next_allowed_at <= ?)
    OR NOT (typeof(cooling_until) = 'integer' AND cooling_until <= ?)
"""
_HEAL = (
    "UPDATE hosts SET delay = ?, robots_delay = ?, operator_delay = ?, concurrency = ?, operator_concurrency = ?,"
    " next_allowed_at = ?, cooling_until = ? WHERE host = ?"
)
logger = logging.getLogger(__name__)


def give_up_dead_hosts(give_up: float) -> int:
    """Fail the waiting tasks of hosts that have not answered once for `give_up` seconds."""
    return sum(_fail_waiting(host, reason, give_up) for host, reason in hosts_given_up(now_ms(), give_up))


def _fail_waiting(host: str, reason: str, give_up: float) -> int:
    words = (
        f"{host} has not answered once in {_minutes(give_up)} ({reason}); `lienworker tasks retry --reason host_down`"
    )
    with write("host_down"):
        rows = all_rows(
            "SELECT id, task_id FROM outbox WHERE state = 'waiting' AND topic = 'fetch' AND host = ? LIMIT ?",
            (host, _ENDED_AT_ONCE),
        )
        for row_id, task_id in rows:
            transitions.end_waiting(row_id, "host_down")
            record_try(row_id, task_id, Topic.FETCH, "host_down", words)
            tasks.mark_failed(task_id, "host_down", words)
            report_failure(task_id, "host_down")
            say_failed(task_id, Topic.FETCH, "host_down")
        if len(rows) < _ENDED_AT_ONCE:
            try_afresh(host)
    return len(rows)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"


def heal_hosts(now: int) -> None:
    """Correct stored values that no host can have. Called every second, so it writes only where something is wrong."""
    latest = now + LONGEST_WAIT_MS
    bounds = (LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY, MOST_OPEN, MOST_OPEN, latest, latest)
    if not one_row(_WRONG, bounds):
        return
    with write("heal_hosts"):
        for host, *stored, next_allowed_at, cooling_until in all_rows(_WRONG, bounds):
            delays, most_open = stored[:3], stored[3:]
            healed = (*map(seconds_of, delays), *(open_at_most(most, 0) or None for most in most_open))
            times = (_moment(next_allowed_at, now), _moment(cooling_until, now))
            execute(_HEAL, (*healed, *times, host))
            logger.warning("the stored pace of %s was absurd and has been corrected", host, extra={"action": "hosts"})


def _moment(stored: object, now: int) -> int:
    """Return a stored moment, but no later than any host has reason to wait: the wall clock may have been set back."""
    moment = whole(stored, 0, 2**53, now)
    return moment if moment <= now + LONGEST_WAIT_MS else now
