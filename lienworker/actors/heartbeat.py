"""heartbeat: a sign of life for the Gateway, and what it asks for in return."""

from __future__ import annotations

import asyncio
import logging

import dramatiq
import psutil

from lienworker.actors.app import broker, calmly, runtime
from lienworker.actors.runtime import Runtime
from lienworker.broker import BEAT
from lienworker.gateway.outcomes import Accepted
from lienworker.gateway.wire import heartbeat_body
from lienworker.maintenance.disk_limits import room_in
from lienworker.outbox.pauses import pauses, set_pause
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.counts import outbox_counts, task_counts
from lienworker.store.database import one_row, write
from lienworker.store.facts import fact, set_fact
from lienworker.store.heartbeats import ACKNOWLEDGED, BEAT_OUTCOME, BEAT_WELL, COMMANDS, LAST_BEAT
from lienworker.store.history import paused_places

#: What a pause by the Gateway stops: results that we have are still delivered.
_PAUSED_BY_GATEWAY = ("intake", "fetch")

logger = logging.getLogger(__name__)


def is_due(seconds: float) -> bool:
    """Whether it is time for the next one; it looks at the store, so restarts and several processes do not matter."""
    last = fact(LAST_BEAT)
    return last is None or not 0 <= now_ms() - int(last) < 1000 * seconds


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=0)
@calmly
def heartbeat() -> None:
    """Sent by the relay when it is due; never waits for pages or uploads."""
    here = runtime()
    if here.settings.mode != "ondemand" or not _book(here.settings.heartbeat):
        return
    here.open_gateway()
    send_heartbeat(here)


def _book(seconds: float) -> bool:
    """One process sends it: whoever books the time."""
    with write("heartbeat_booking"):
        if not is_due(seconds - 1):
            return False
        set_fact(LAST_BEAT, str(now_ms()))
    return True


def send_heartbeat(here: Runtime) -> None:
    errand = here.gateway_on_loop.heartbeat(body(here))
    outcome = asyncio.run_coroutine_threadsafe(errand, here.loop).result()
    is_well = isinstance(outcome, Accepted)
    words = ACKNOWLEDGED if isinstance(outcome, Accepted) else outcome.words
    with write("heartbeat"):
        set_fact(BEAT_OUTCOME, words)
        if is_well:
            set_fact(BEAT_WELL, "")
        else:  # half the time until the next: one lost beat must not make a gap of two
            set_fact(LAST_BEAT, str(now_ms() - int(500 * here.settings.heartbeat)))
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


def body(here: Runtime) -> dict[str, object]:
    """The fields of the contract, and the queue depths beside them."""
    tasks, results, outbox = task_counts(), outbox_counts("upload_result"), outbox_counts()
    room = room_in(here.folder, here.settings)
    return heartbeat_body(
        active_tasks=tasks["processing"],
        completed_last_minute=_ended("completed"),
        failed_last_minute=_ended("failed"),
        platforms=here.registry.names(),
        cpu_percent=psutil.cpu_percent(),
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


def _ended(status: str) -> int:
    since = rfc3339(now_ms() - 60_000)
    sql = "SELECT count(*) FROM tasks INDEXED BY tasks_by_end WHERE completed_at > ? AND status = ?"
    return int(one_row(sql, (since, status))[0])
