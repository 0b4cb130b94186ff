"""Small regular chores of the outbox: hosts that never answer, clocks that were wrong, disks that fill up."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lienworker.outbox.backoff import LONGEST_RETRY_AFTER
from lienworker.outbox.closing import note_try
from lienworker.outbox.deliveries import report_failure
from lienworker.outbox.pacing import forgive_absurd_times, hosts_given_up
from lienworker.store import tasks
from lienworker.store.audit import note_action
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import all_rows, execute, one_row, write

#: Rows that a chore ends in one transaction.
_CHUNK = 500
_LONGEST_WAIT_MS = int(1000 * LONGEST_RETRY_AFTER) + 3_600_000


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
            execute(
                "UPDATE outbox SET state = 'delivered', reason = 'host_down', finished_at = ? WHERE id = ?",
                (now_ms(), row_id),
            )
            note_try(row_id, task_id, "fetch", "host_down", words)
            tasks.mark_failed(task_id, "host_down", words)
            report_failure(task_id, "host_down", words)
    return len(rows)


def forgive_clock_jumps() -> None:
    """After the wall clock was set back, nothing waits for a time that only the wrong clock knew."""
    now = now_ms()
    limit = now + _LONGEST_WAIT_MS
    absurd = one_row(
        "SELECT 1 FROM backlog WHERE waiting > 0 AND not_before BETWEEN ? AND ?", (limit, limit * 2)
    ) or one_row("SELECT 1 FROM hosts WHERE next_allowed_at > ? OR cooling_until > ?", (limit, limit))
    if not absurd:
        return
    with write("clock"):
        forgive_absurd_times(now, _LONGEST_WAIT_MS)
        execute(
            "UPDATE outbox SET due_at = ? WHERE state = 'waiting' AND due_at BETWEEN ? AND ?",
            (now, limit, limit * 2),
        )


def watch_disk(root: Path, stop_intake_mb: int, stop_fetch_mb: int) -> None:
    """Pauses intake, then fetching, while the disk is nearly full; both resume by themselves."""
    free_mb = shutil.disk_usage(root).free // 1_000_000
    for lane, limit in (("intake", stop_intake_mb), ("fetch", stop_fetch_mb)):
        set_pause(lane, "disk", free_mb < limit, f"only {free_mb} MB are free on the disk; it resumes at {limit} MB")


def set_pause(lane: str, cause: str, paused: bool, words: str) -> None:
    """Writes only where something changes: this is looked at every second."""
    there = one_row("SELECT 1 FROM pauses WHERE lane = ? AND cause = ?", (lane, cause)) is not None
    if there == paused:
        return
    with write("pause"):
        if paused:
            execute("INSERT OR REPLACE INTO pauses VALUES (?, ?, ?, ?)", (lane, cause, rfc3339(), words))
        else:
            execute("DELETE FROM pauses WHERE lane = ? AND cause = ?", (lane, cause))


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
