"""Keeps a data folder in good order: chores every second or so, and now and then a round that may take minutes.

The round purges what is old and delivered, returns space and measures the folder. It runs in its own thread: relay,
heartbeat and uploads must always find a free worker thread.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from dataclasses import dataclass, field

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms
from lienworker.db.database import DATABASE_TROUBLE, close, fact, set_fact, write
from lienworker.errors import BusyError
from lienworker.maintenance.clocks import forgive_clock_jumps
from lienworker.maintenance.deadlines import sort_in_retries
from lienworker.maintenance.disk_limits import known_mb, measure, remember_size, watch_disk
from lienworker.maintenance.hosts import give_up_dead_hosts
from lienworker.maintenance.paces import look_at_paces
from lienworker.maintenance.retention import Keep, Pace, purge
from lienworker.outbox.clock_jumps import notice_clock_jump
from lienworker.outbox.leases import WorkerLease, is_held_by, turn
from lienworker.outbox.sessions import forget_ended_sessions
from lienworker.outbox.storage_watch import watch_storage
from lienworker.settings import Settings
from lienworker.store import counts
from lienworker.store.pending import heal, show_undelivered

#: When the last purge ran, ms.
LAST_PURGE = "purge_at"
_PURGE_EVERY_MS = 55 * 60_000
#: A purge that is not finished after this long resumes at the next round, s.
_LONGEST = 240.0
#: Measuring a large folder takes a while: at most this share of the time is spent on it.
_SHARE = 0.02

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Chores:
    """What has to be checked every second or so; one set per process."""

    folder: DataFolder
    settings: Settings
    _last_minute: int = 0
    _shown_until: str = ""

    def do(self) -> None:
        self.record_disk_usage()
        notice_clock_jump()  # first: a clock that was set ahead must not make a host look dead
        forgive_clock_jumps()
        sort_in_retries()
        give_up_dead_hosts(self.settings.host_give_up)
        look_at_paces()
        watch_disk(self.folder, self.settings)
        watch_storage(self.folder)
        if self.settings.mode == "ondemand":
            self._shown_until = show_undelivered(self.folder, self._shown_until)

    def record_disk_usage(self) -> None:
        """Record how full the disk is and how large we are, once a minute for all processes; fold once an hour."""
        minute = counts.this_minute()
        if minute == self._last_minute:
            return
        free_mb = shutil.disk_usage(self.folder.root).free // 1_000_000
        is_first = counts.record_level("disk_free_mb", "", free_mb)
        if is_first and (data_mb := known_mb(self.folder)) is not None:
            counts.record_level("data_mb", "", data_mb)
        self._last_minute = minute
        if is_first and minute % 60 == 0:
            counts.fold_old()


@dataclass(slots=True)
class Upkeep:
    """The long rounds of one process; in all processes together one runs at a time."""

    folder: DataFolder
    settings: Settings
    holder: WorkerLease
    stopping: threading.Event
    _at_work: threading.Lock = field(default_factory=threading.Lock)
    _next_measure: float = 0.0

    def start(self) -> None:
        """Start a round in its own thread, unless one is still running."""
        if not self._at_work.locked():
            threading.Thread(target=self._work, name="upkeep", daemon=True).start()

    def _work(self) -> None:
        if not self._at_work.acquire(blocking=False):
            return
        try:
            with turn("upkeep", self.holder.id) as mine:
                if mine:
                    self.tidy()
        except (OSError, *DATABASE_TROUBLE) as problem:
            logger.warning("upkeep was not possible: %s", problem, extra={"action": "upkeep"})
        finally:
            close()
            self._at_work.release()

    def tidy(self) -> None:
        """Run one round: purge about once an hour, tidy `pending/` after kills, measure while that is cheap."""
        if _is_purge_due():
            end = time.monotonic() + _LONGEST

            def is_over() -> bool:
                is_late = time.monotonic() > end
                return self.stopping.is_set() or is_late or not is_held_by("upkeep", self.holder.id)

            _purge(self.folder, self.settings, Pace(is_over=is_over))
        heal(self.folder, lambda: True)
        self._measure()

    def _measure(self) -> None:
        began = time.monotonic()
        if began < self._next_measure:
            return
        remember_size(measure(self.folder))
        self._next_measure = time.monotonic() + (time.monotonic() - began) / _SHARE


def _is_purge_due() -> bool:
    last = fact(LAST_PURGE)
    return last is None or not 0 <= now_ms() - int(last) < _PURGE_EVERY_MS


def _purge(folder: DataFolder, settings: Settings, pace: Pace) -> None:
    try:
        purged = purge(Keep.of(settings), folder, pace, remembering=True)
    except BusyError:  # a backup, or a purge by hand: the next round will do
        return
    with write("purge_noted"):
        set_fact(LAST_PURGE, str(now_ms()))
        forget_ended_sessions()
    if purged.rows or purged.files:
        logger.info(
            "purged %d tasks, %d steps and %d raw pages, %.1f MB of files",
            purged.tasks,
            purged.steps,
            purged.pages,
            purged.size / 1_000_000,
            extra={"action": "purge"},
        )
