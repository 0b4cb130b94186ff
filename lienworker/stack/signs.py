"""Signs of life of the parts, for health checks of containers and service managers: cheap, and one part each."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, to_ms
from lienworker.db.database import DATABASE_TROUBLE, fact, set_fact, write
from lienworker.outbox.leases import living
from lienworker.settings import Settings

#: When the schedule last sent a message, in ms.
_LAST_TICK = "schedule_at"
#: A worker beats every three seconds; one that has been silent this long hangs.
_SILENT_SECONDS = 30
#: The schedule ticks once a minute; it may miss one.
_NO_TICK_SECONDS = 150
_ASK_SECONDS = 5.0

logger = logging.getLogger(__name__)


def record_tick() -> None:
    """Record the schedule's sign of life."""
    try:
        with write("schedule"):
            set_fact(_LAST_TICK, str(now_ms()))
    except DATABASE_TROUBLE as problem:  # the schedule continues: its messages are what matters
        logger.warning("the schedule cannot record its sign of life: %s", problem, extra={"action": "schedule"})


def workers(_settings: Settings, folder: DataFolder) -> tuple[bool, str]:
    """Return whether workers live on this folder and beat."""
    there = living(folder, "worker")
    awake = [worker for worker in there if now_ms() - to_ms(worker["seen_at"]) < 1000 * _SILENT_SECONDS]
    return bool(awake), f"{len(awake)} of {len(there)} worker processes give a sign of life"


def schedule(_settings: Settings, _folder: DataFolder) -> tuple[bool, str]:
    """Return whether the schedule has sent its messages lately."""
    last = fact(_LAST_TICK)
    if last is None:
        return False, "no schedule has run on this folder yet"
    silent = (now_ms() - int(last)) / 1000
    return silent < _NO_TICK_SECONDS, f"the schedule's last sign of life is {silent:.0f} s old"


def web(settings: Settings, _folder: DataFolder) -> tuple[bool, str]:
    """Return whether the monitor answers on this machine."""
    address = f"http://127.0.0.1:{settings.web_port or 5555}/healthz"
    try:
        # The address is ours, with a number in it that the settings checked.
        with urllib.request.urlopen(address, timeout=_ASK_SECONDS) as reply:  # nosec B310
            return reply.status == 200, f"the monitor answers {reply.status}"
    except (OSError, urllib.error.URLError) as problem:
        return False, f"the monitor does not answer on {address}: {problem}"


SIGNS = {"workers": workers, "schedule": schedule, "web": web}
