"""When the wall clock is set: what waits for a time still waits as long as it should, no longer and no shorter.

The schedule is kept in wall-clock time, so that it survives a restart. When the clock is set back by an hour, a host
that cools for a minute would cool for an hour and a minute; when it is set ahead, the host would be asked too soon, and
one that has failed for a minute would count as dead for an hour. The monotonic clock detects this: it counts from the
start of the machine, for all processes alike, and nobody sets it.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from pathlib import Path

from lienworker.db.clock import now_ms
from lienworker.db.database import execute, fact, one_row, set_fact, write
from lienworker.maintenance.hosts import LONGEST_WAIT_MS, heal_hosts
from lienworker.outbox import breaker, transitions
from lienworker.outbox.rows import NEVER_DUE
from lienworker.outbox.states import STEPS, UPLOADS, Topic

#: The wall clock's lead over the monotonic one, in ms, with the start of the machine that it is counted from.
CLOCK = "clock"
#: Less than this is ordinary clock adjustment.
_NOTEWORTHY_MS = 2_000
#: The longest that a row of a topic can have reason to wait; more means that a clock was wrong.
_LONGEST_WAITS = {
    **dict.fromkeys(STEPS, 600_000),
    **dict.fromkeys(UPLOADS, LONGEST_WAIT_MS),
}
#: Rows that are brought forward in one transaction.
_CHUNK = 5_000
_BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


def notice_clock_jump() -> int:
    """Correct the schedule after the clock was set; return by how many ms, ahead or (negative) back.

    Write only after a change.
    """
    lead = now_ms() - int(1000 * time.monotonic())
    boot, _, known = (fact(CLOCK) or "").partition(" ")
    if boot == _boot() and abs(lead - int(known)) < _NOTEWORTHY_MS:
        return 0
    jump = lead - int(known) if boot == _boot() else 0
    with write("clock_jump"):
        if jump:
            _shift_hosts(now_ms(), jump)
        if jump < 0:
            _bring_forward(now_ms(), -jump)
        set_fact(CLOCK, f"{_boot()} {lead}")
    if jump:
        way = "ahead" if jump > 0 else "back"
        words = "the clock was set %s by %d s; the schedule is corrected"
        logger.warning(words, way, abs(jump) // 1000, extra={"action": "clock"})
    return jump


def _shift_hosts(now: int, jump: int) -> None:
    """Keep how long a host has failed and how long it is left alone; neither may be absurdly far ahead."""
    execute("UPDATE hosts SET failing_since = min(?, failing_since + ?) WHERE failing_since IS NOT NULL", (now, jump))
    for column in ("next_allowed_at", "cooling_until"):
        # What was past by the old clock is over; a request that was booked by the new one is not moved again.
        sql = f"UPDATE hosts SET {column} = max(?, {column} + ?) WHERE {column} > ? AND {column} <= ?"
        execute(sql, (now, jump, now - jump, now) if jump > 0 else (now, jump, now, NEVER_DUE))


def _bring_forward(now: int, back: int) -> None:
    """Bring everything else that is ahead forward by what the clock has lost, but not before now.

    After a clock that was set ahead it comes a little early, which does no harm.
    """
    transitions.bring_forward(now, back)
    execute("UPDATE breakers SET retry_at = max(?, retry_at - ?) WHERE retry_at > ?", (now, back, now))
    sql = "UPDATE facts SET value = max(?, value - ?) WHERE name = 'collect_next_poll' AND CAST(value AS INTEGER) > ?"
    execute(sql, (now, back, now))


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


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return an id of the machine's start; where the system does not tell, nothing is ever compared."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"unknown-{time.time_ns()}"
