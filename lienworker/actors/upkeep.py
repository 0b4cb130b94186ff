"""upkeep: purging what is old and delivered, giving space back, measuring the data folder; in a thread of its own.

Not on a worker's thread: it may take minutes, and relay, heartbeat and uploads must always find one.
"""

from __future__ import annotations

import logging
import threading
import time

import dramatiq
from periodiq import cron

from lienworker.actors.app import broker, runtime
from lienworker.actors.runtime import Runtime
from lienworker.broker import BEAT
from lienworker.errors import BusyError
from lienworker.maintenance.disk_limits import measure, remember_size
from lienworker.maintenance.retention import Keep, Pace, purge
from lienworker.outbox.turns import is_held_by, turn
from lienworker.store.clock import now_ms
from lienworker.store.database import DATABASE_TROUBLE, close, write
from lienworker.store.facts import fact, set_fact
from lienworker.store.pending import heal

#: When the last purge ran, ms.
LAST_PURGE = "purge_at"
_PURGE_EVERY_MS = 55 * 60_000
#: A purge that is not through after so long goes on at the next time, s.
_LONGEST = 240.0
#: Measuring a large folder takes a while: at most this share of the time is spent on it.
_SHARE = 0.02

logger = logging.getLogger(__name__)
_at_work = threading.Lock()
_next_measure = 0.0


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=20, periodic=cron("*/10 * * * *"))
def upkeep() -> None:
    """Starts the thread, unless it is still at work."""
    if not _at_work.locked():
        threading.Thread(target=_work, args=(runtime(),), name="upkeep", daemon=True).start()


def _work(here: Runtime) -> None:
    if not _at_work.acquire(blocking=False):
        return
    try:
        with turn("upkeep", here.holder.id) as mine:
            if mine:
                tidy(here)
    except (OSError, *DATABASE_TROUBLE) as problem:
        logger.warning("upkeep was not possible: %s", problem, extra={"action": "upkeep"})
    finally:
        close()
        _at_work.release()


def tidy(here: Runtime) -> None:
    """One round: the purge about once an hour, what kills left in `pending/`, the folder's size while it is cheap."""
    if _is_due():
        end = time.monotonic() + _LONGEST

        def is_over() -> bool:
            return here.stopping.is_set() or time.monotonic() > end or not is_held_by("upkeep", here.holder.id)

        _purge(here, Pace(is_over=is_over))
    heal(here.folder, lambda: True)
    _measure(here)


def _is_due() -> bool:
    last = fact(LAST_PURGE)
    return last is None or not 0 <= now_ms() - int(last) < _PURGE_EVERY_MS


def _purge(here: Runtime, pace: Pace) -> None:
    try:
        purged = purge(Keep.of(here.settings), here.folder, pace, remembering=True)
    except BusyError:  # a backup, or a person's own purge: the next time will do
        return
    with write("purge_noted"):
        set_fact(LAST_PURGE, str(now_ms()))
    if purged.rows or purged.files:
        logger.info(
            "purged %d tasks, %d steps and %d raw pages, %.1f MB of files",
            purged.tasks,
            purged.steps,
            purged.pages,
            purged.size / 1_000_000,
            extra={"action": "purge"},
        )


def _measure(here: Runtime) -> None:
    global _next_measure
    began = time.monotonic()
    if began < _next_measure:
        return
    remember_size(measure(here.folder))
    _next_measure = time.monotonic() + (time.monotonic() - began) / _SHARE
