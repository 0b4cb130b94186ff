"""A sign of life for the Gateway, and what it asks for in return."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psutil

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms
from lienworker.db.database import fact, set_fact, write
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.outcomes import Accepted
from lienworker.hubs.gateway.wire import heartbeat_body
from lienworker.maintenance.disk_limits import room_in
from lienworker.outbox.pauses import pauses, set_pause
from lienworker.platforms import Registry
from lienworker.settings import Settings
from lienworker.steps.in_flight import OnLoop
from lienworker.store.counts import ended_since, outbox_counts, task_counts
from lienworker.store.heartbeats import ACKNOWLEDGED, BEAT_OUTCOME, BEAT_WELL, COMMANDS, LAST_BEAT
from lienworker.store.history import paused_places

#: What a pause by the Gateway stops: results that we have are still delivered.
_PAUSED_BY_GATEWAY = ("intake", "fetch")

logger = logging.getLogger(__name__)


class CpuSampler:
    """How busy the machine is, since this process looked last.

    psutil keeps what it saw last by thread and says 0 to a thread that asks for the first time. Beats are sent by
    whichever thread is free, so most of them would say 0.
    """

    def __init__(self, look: Callable[[], tuple[float, float]] | None = None) -> None:
        self._look = look or _cpu_seconds
        self._lock = threading.Lock()
        self._last = self._look()
        self._percent = 0.0

    def percent(self) -> float:
        """Return the share of time in which the processors were busy; of no time at all, what it was before."""
        with self._lock:
            busy, total = self._look()
            was_busy, was_total = self._last
            if total > was_total:
                self._percent = min(max(100 * (busy - was_busy) / (total - was_total), 0.0), 100.0)
                self._last = busy, total
            return round(self._percent, 1)


def _cpu_seconds() -> tuple[float, float]:
    """Return the seconds that all processors were busy, and all their seconds, since the machine started."""
    times = psutil.cpu_times()
    # A guest's time is counted as its user's, too.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - times.idle - getattr(times, "iowait", 0.0), total


_cpu = CpuSampler()


def is_due(seconds: float) -> bool:
    """Whether it is time for the next one; it looks at the store, so restarts and several processes do not matter."""
    last = fact(LAST_BEAT)
    return last is None or not 0 <= now_ms() - int(last) < 1000 * seconds


def book_heartbeat(seconds: float) -> bool:
    """Book the time of the next one; False where it is not due: one process sends it, the one that books."""
    with write("heartbeat_booking"):
        if not is_due(seconds - 1):
            return False
        set_fact(LAST_BEAT, str(now_ms()))
    return True


def send_heartbeat(gateway: OnLoop[GatewayClient], said: dict[str, object], seconds: float) -> None:
    """Send `said`, store what it came to, and do what the Gateway asks for; one goes out every `seconds`."""
    outcome = gateway.wait_for(gateway.open().heartbeat(said))
    is_well = isinstance(outcome, Accepted)
    words = ACKNOWLEDGED if isinstance(outcome, Accepted) else outcome.words
    with write("heartbeat"):
        set_fact(BEAT_OUTCOME, words)
        if is_well:
            set_fact(BEAT_WELL, "")
        else:  # half the time until the next: one lost beat must not make a gap of two
            set_fact(LAST_BEAT, str(now_ms() - int(500 * seconds)))
        if isinstance(outcome, Accepted) and outcome.reply.command_names:
            set_fact(COMMANDS, " ".join(outcome.reply.command_names))
    if isinstance(outcome, Accepted):
        for command in outcome.reply.command_names:
            obey(command)
    if not is_well:
        logger.warning("heartbeat failed: %s", words, extra={"action": "heartbeat"})


def obey(command: str) -> None:
    """Does what the Gateway asks for, where that is known; shows it in any case."""
    logger.info("the Gateway asks: %s", command, extra={"action": "command"})
    if command in {"pause", "resume"}:
        for lane in _PAUSED_BY_GATEWAY:
            set_pause(lane, "gateway", command == "pause", "the Gateway asked for it")


def heartbeat_of(folder: DataFolder, settings: Settings, registry: Registry) -> dict[str, object]:
    """Return the fields of the contract, and the queue depths beside them."""
    tasks, results, outbox = task_counts(), outbox_counts("upload_result"), outbox_counts()
    a_minute_ago = now_ms() - 60_000
    room = room_in(folder, settings)
    return heartbeat_body(
        active_tasks=tasks["processing"],
        completed_last_minute=ended_since("completed", a_minute_ago),
        failed_last_minute=ended_since("failed", a_minute_ago),
        platforms=registry.names(),
        cpu_percent=_cpu.percent(),
        memory_percent=psutil.virtual_memory().percent,
        extra={
            "queue_depth": {
                "pending": tasks["pending"],
                "processing": tasks["processing"],
                "completed": tasks["completed"],
                "failed": tasks["failed"],
                "unsynced": results["waiting"] + results["leased"] + results["held"],
                "parked": outbox["parked"],
            },
            "drift": [place["words"] for place in paused_places()],
            "paused": [f"{lane}: {words}" for lane, _, _, words in pauses()],
            "disk": {"free_mb": room.free_mb, "data_mb": room.data_mb, "warnings": room.warnings()},
        },
    )
