"""Small regular chores of the outbox: hosts that never answer, clocks that were wrong, disks that fill up."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lienworker.outbox import breaker, transitions
from lienworker.outbox.backoff import LONGEST_RETRY_AFTER
from lienworker.outbox.closing import note_try, say_failed
from lienworker.outbox.deliveries import report_failure
from lienworker.outbox.entries import NEVER_DUE
from lienworker.outbox.host_healing import heal_hosts
from lienworker.outbox.pacing import hosts_given_up, try_afresh
from lienworker.outbox.states import STEPS, UPLOADS, Topic
from lienworker.settings import Settings
from lienworker.store import tasks
from lienworker.store.audit import note_action
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import all_rows, execute, one_row, write
from lienworker.store.folder import DataFolder
from lienworker.store.room import room_in

logger = logging.getLogger(__name__)

#: Rows that a chore ends in one transaction.
_CHUNK = 500
_LONGEST_WAIT_MS = int(1000 * LONGEST_RETRY_AFTER) + 3_600_000
#: The longest that a row of a topic can have reason to wait; more is a clock that was wrong.
_LONGEST_WAITS = {
    **dict.fromkeys(STEPS, 600_000),
    **dict.fromkeys(UPLOADS, _LONGEST_WAIT_MS),
}


def give_up_dead_hosts(give_up: float) -> int:
    """Fails the waiting tasks of hosts that have not answered once for `give_up` seconds."""
    return sum(_fail_waiting(host, reason, give_up) for host, reason in hosts_given_up(now_ms(), give_up))


def _fail_waiting(host: str, reason: str, give_up: float) -> int:
    words = f"{host} has not answered for {give_up:g} seconds ({reason}); `lienworker tasks retry --reason host_down`"
    with write("host_down"):
        rows = all_rows(
            "SELECT id, task_id FROM outbox WHERE state = 'waiting' AND topic = 'fetch' AND host = ? LIMIT ?",
            (host, _CHUNK),
        )
        for row_id, task_id in rows:
            transitions.end_waiting(row_id, "host_down")
            note_try(row_id, task_id, Topic.FETCH, "host_down", words)
            tasks.mark_failed(task_id, "host_down", words)
            report_failure(task_id, "host_down")
            say_failed(task_id, Topic.FETCH, "host_down")
        if len(rows) < _CHUNK:
            try_afresh(host)
    return len(rows)


def forgive_clock_jumps() -> None:
    """After the wall clock was set back, nothing waits for a time that only the wrong clock knew."""
    now = now_ms()
    for topic, limit_ms in _LONGEST_WAITS.items():
        sql = "SELECT 1 FROM backlog WHERE topic = ? AND waiting > 0 AND not_before > ? AND not_before < ?"
        if one_row(sql, (topic, now + limit_ms, NEVER_DUE)):
            _forgive_rows(topic, now, limit_ms)
    if one_row("SELECT 1 FROM breakers WHERE is_open = 1 AND retry_at > ?", (now + _LONGEST_WAIT_MS,)):
        with write("clock_breakers"):
            breaker.forgive_absurd_times(now, _LONGEST_WAIT_MS)
    heal_hosts(now)


def _forgive_rows(topic: Topic, now: int, limit_ms: int) -> None:
    """A chunk at a time: there may be a million, and workers want their turn."""
    with write("clock"):
        transitions.make_due(topic, now, now + limit_ms, 10 * _CHUNK)


def watch_disk(folder: DataFolder, settings: Settings) -> None:
    """Pauses intake, then fetching, while there is too little room; both resume by themselves."""
    room = room_in(folder, settings)
    for lane in ("intake", "fetch"):
        shortage = room.shortage(lane, is_paused=is_paused_for(lane, "disk"))
        if set_pause(lane, "disk", shortage is not None, shortage or ""):
            words = f"is paused: {shortage}" if shortage else "goes on: there is room again"
            logger.log(logging.WARNING if shortage else logging.INFO, "%s %s", lane, words, extra={"action": "disk"})


def is_paused_for(lane: str, cause: str) -> bool:
    return one_row("SELECT 1 FROM pauses WHERE lane = ? AND cause = ?", (lane, cause)) is not None


def set_pause(lane: str, cause: str, paused: bool, words: str) -> bool:
    """Writes only where something changes, and says whether it did: this is looked at every second."""
    if is_paused_for(lane, cause) == paused:
        return False
    with write("pause"):
        set_pause_in_transaction(lane, cause, words if paused else None)
    return True


def set_pause_in_transaction(lane: str, cause: str, words: str | None) -> None:
    """Pause a lane, with the words for it, or end its pause. Part of a larger transaction."""
    if words is None:
        execute("DELETE FROM pauses WHERE lane = ? AND cause = ?", (lane, cause))
        return
    execute(
        "INSERT INTO pauses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET words = excluded.words",
        (lane, cause, rfc3339(), words),
    )


def set_pause_by_hand(lanes: Sequence[str], *, paused: bool) -> None:
    """A person pauses or resumes. A resume also ends what the Gateway asked for; a full disk stays what it is."""
    with write("pause_by_hand"):
        for lane in lanes:
            if paused:
                values = (lane, "operator", rfc3339(), "an operator paused it")
                execute("INSERT OR REPLACE INTO pauses VALUES (?, ?, ?, ?)", values)
            else:
                execute("DELETE FROM pauses WHERE lane = ? AND cause IN ('operator', 'gateway')", (lane,))
        note_action("pause" if paused else "resume", " ".join(lanes), len(lanes))


def pauses() -> list[tuple[str, str, str, str]]:
    return all_rows("SELECT lane, cause, since, words FROM pauses ORDER BY lane, cause")
