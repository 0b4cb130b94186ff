"""The regular work: the relay, and the chores that go with it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

import dramatiq
import redis
from periodiq import cron

from lienworker.actors.app import broker, calmly, runtime
from lienworker.actors.chronicle import chronicle
from lienworker.actors.heartbeat import heartbeat, is_due
from lienworker.actors.runtime import Runtime
from lienworker.broker import BEAT, QueueTokens
from lienworker.maintenance.clocks import forgive_clock_jumps, notice_clock_jump
from lienworker.maintenance.disk_limits import watch_disk
from lienworker.maintenance.hosts import give_up_dead_hosts
from lienworker.outbox.relay import Lane, Relay
from lienworker.outbox.storage_watch import watch_storage
from lienworker.outbox.turns import is_held_by, turn
from lienworker.outbox.uploads import UploadLane

#: How long a turn lasts before it is handed on through Redis, s. periodiq's minute is the safety net.
_TURN_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=0, periodic=cron("* * * * *"))
@calmly
def relay() -> None:
    """A turn of the relay: keeps tokens in Redis for what is due. One at a time; a further message is a no-op."""
    here = runtime()
    with turn("relay", here.holder.id) as mine:
        if not mine:
            return
        lanes: list[Lane] = [Lane(topic, here.settings.batch) for topic in ("fetch", "scrape")]
        if here.settings.mode == "ondemand":
            lanes.append(UploadLane("upload", here.settings.batch))
        Relay(lanes, QueueTokens(broker), here.rules, lambda: chores(here)).run(here.stopping, _end_of_turn(here))
    if not here.stopping.is_set():
        # Handed on at once: a turn that only periodiq started again would leave a gap.
        with contextlib.suppress(redis.RedisError):
            relay.send()


def _end_of_turn(runtime: Runtime) -> Callable[[], bool]:
    """A turn ends after its time, once Redis can take the hand-over; or when it was taken from us."""
    end = time.monotonic() + _TURN_SECONDS

    def is_over() -> bool:
        if not is_held_by("relay", runtime.holder.id):
            return True
        if time.monotonic() < end:
            return False
        try:
            return bool(broker.client.ping())
        except redis.RedisError:
            return False

    return is_over


def chores(runtime: Runtime) -> None:
    """What has to be looked at every second or so."""
    settings = runtime.settings
    if settings.mode == "ondemand" and is_due(settings.heartbeat):
        with contextlib.suppress(redis.RedisError):
            heartbeat.send()
    chronicle(runtime)
    notice_clock_jump()  # first: a clock that was set ahead makes no host dead
    forgive_clock_jumps()
    give_up_dead_hosts(settings.host_give_up)
    watch_disk(runtime.folder, settings)
    watch_storage(runtime.folder)
