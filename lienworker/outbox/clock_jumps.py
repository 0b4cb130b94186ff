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
from lienworker.db.database import after_commit, execute, fact, set_fact, write
from lienworker.outbox import transitions
from lienworker.outbox.rows import NEVER_DUE

#: The wall clock's lead over the monotonic one, in ms, with the start of the machine that it is counted from.
CLOCK = "clock"
#: Less than this is ordinary clock adjustment.
_NOTEWORTHY_MS = 2_000
_BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


def notice_clock_jump() -> int:
    """Correct the schedule after the clock was set; return by how many ms, ahead or (negative) back.

    Write only after a change. Several processes may see it at the same moment; the first one corrects.
    """
    if _jump(_lead()) is None:
        return 0
    with write("clock_jump"):
        return correct_clock_jump()


def correct_clock_jump() -> int:
    """Correct the schedule before a request is booked by a clock that was just set. Part of a larger transaction.

    Inside of it, since one that waits for others to write may begin by one clock and book by another. And by what is
    stored, not by what this process has seen: whoever books by a clock that is not the one of the schedule would leave
    a host alone for as long as the two are apart.
    """
    lead = _lead()
    jump = _jump(lead)
    if jump is None:
        return 0
    if jump:
        _shift_hosts(now_ms(), jump)
        after_commit(lambda: _report(jump))
    if jump < 0:
        _bring_forward(now_ms(), -jump)
    set_fact(CLOCK, f"{_boot()} {lead}")
    return jump


def _report(jump: int) -> None:
    way = "ahead" if jump > 0 else "back"
    words = "the clock was set %s by %d s; the schedule is corrected"
    logger.warning(words, way, abs(jump) // 1000, extra={"action": "clock"})


def _jump(lead: int) -> int | None:
    """Return by how much the clock was set since somebody looked; None for nothing, 0 after a start of the machine."""
    boot, _, known = (fact(CLOCK) or "").partition(" ")
    if boot != _boot():
        return 0
    return lead - int(known) if abs(lead - int(known)) >= _NOTEWORTHY_MS else None


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


def _lead() -> int:
    return now_ms() - int(1000 * time.monotonic())


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return an id of the machine's start; where the system does not tell, nothing is ever compared."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"unknown-{time.time_ns()}"
