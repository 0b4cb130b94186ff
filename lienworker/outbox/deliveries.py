"""The rows that bring something to the Gateway, and whether they may go or are held.

In standalone mode what would have been sent is held, also for tasks that came from the Gateway earlier. The mode is
set once a process; until then nothing is sent.
"""

from __future__ import annotations

import hashlib
import json

from lienworker.outbox.entries import BLOCKED, Claimed, Entry, add_entries
from lienworker.store.database import one_row

_policy = {"held": True}


def configure(mode: str) -> None:
    """Says once a process in which mode it works."""
    _policy["held"] = mode != "ondemand"


def parcel_key(platform: str | None, state: str | None, county: str | None, parcel_id: str | None) -> str | None:
    """What the Gateway stores by; None where a part is missing, since such a result is never sent."""
    parts = (platform, state, county, parcel_id)
    if not all(parts):
        return None
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:32]


def deliver_result(row: Claimed, key: str | None) -> None:
    """Raw file and result. The result waits until the raw file is acknowledged."""
    state, reason = _state()
    common = {"queue": row.queue, "priority": row.priority, "state": state, "reason": reason}
    add_entries(
        [
            Entry("upload_raw", row.task_id, row.generation, **common),  # type: ignore[arg-type]
            Entry("upload_result", row.task_id, row.generation, **common, due_at=BLOCKED, parcel_key=key),  # type: ignore[arg-type]
        ]
    )


def report_failure(task_id: str, reason: str, error: str) -> None:
    """A task from the Gateway has failed for good: the Gateway is told, through the outbox like all else."""
    _report(task_id, "fail", f"{reason}: {error}"[:1000])


def report_completion(task_id: str) -> None:
    """A task whose result was overtaken by a newer one of the same parcel: only the task is closed."""
    _report(task_id, "complete", "")


def _report(task_id: str, verb: str, words: str) -> None:
    row = one_row("SELECT source, generation, queue, priority FROM tasks WHERE task_id = ?", (task_id,))
    if row is None or row[0] != "gateway":
        return
    _, generation, queue, priority = row
    there = one_row(
        "SELECT 1 FROM outbox WHERE task_id = ? AND topic = 'report_failure' AND generation = ?", (task_id, generation)
    )
    if there is None:
        state, reason = _state()
        payload = {"verb": verb, "words": words}
        add_entries(
            [Entry("report_failure", task_id, generation, queue, priority, payload=payload, state=state, reason=reason)]
        )


def _state() -> tuple[str, str | None]:
    return ("held", "standalone") if _policy["held"] else ("waiting", None)
