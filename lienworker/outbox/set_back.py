"""A wall clock that was set back: what waits for a time goes on waiting as long as it should, and no longer.

The schedule is kept in wall-clock time, so that it survives a restart. When the clock is set back by an hour, a host
that cools for a minute would cool for an hour and a minute. The steady clock tells: it counts from the machine's start,
for all processes alike, and nobody sets it.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from pathlib import Path

from lienworker.outbox.entries import BLOCKED
from lienworker.store.clock import now_ms
from lienworker.store.database import execute, write
from lienworker.store.facts import fact, set_fact

#: The wall clock's lead over the steady one, in ms, with the machine's start that it is counted from.
CLOCK = "clock"
#: Less than this is what clocks do when they are put right bit by bit.
_NOTEWORTHY_MS = 2_000
_BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


def notice_clock_set_back() -> int:
    """Puts the schedule right after the clock was set back; gives by how many ms. Writes only after a change."""
    lead = now_ms() - int(1000 * time.monotonic())
    boot, _, known = (fact(CLOCK) or "").partition(" ")
    if boot == _boot() and abs(lead - int(known)) < _NOTEWORTHY_MS:
        return 0
    back = int(known) - lead if boot == _boot() else 0
    with write("clock_set_back"):
        if back > 0:
            _bring_forward(now_ms(), back)
        set_fact(CLOCK, f"{_boot()} {lead}")
    if back > 0:
        logger.warning(
            "the clock was set back by %d s; what waits is put right", back // 1000, extra={"action": "clock"}
        )
    return max(0, back)


def _bring_forward(now: int, back: int) -> None:
    """Everything that lies ahead comes sooner by what the clock has lost, but not before now."""
    execute(
        "UPDATE outbox SET due_at = max(?, due_at - ?) WHERE state = 'waiting' AND due_at > ? AND due_at < ?",
        (now, back, now, BLOCKED),
    )
    for table, column in (("hosts", "next_allowed_at"), ("hosts", "cooling_until"), ("breakers", "retry_at")):
        execute(f"UPDATE {table} SET {column} = max(?, {column} - ?) WHERE {column} > ?", (now, back, now))
    sql = "UPDATE facts SET value = max(?, value - ?) WHERE name = 'collect_next_poll' AND CAST(value AS INTEGER) > ?"
    execute(sql, (now, back, now))


@lru_cache(maxsize=1)
def _boot() -> str:
    """Names the machine's start; where the system does not tell, nothing is ever compared."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"unknown-{time.time_ns()}"
