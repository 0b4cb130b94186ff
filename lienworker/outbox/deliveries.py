"""The rows that bring something to the Gateway, and whether they may go or are held.

In standalone mode what would have been sent is held, also for tasks that came from the Gateway earlier. The mode is
set once a process; until then nothing is sent.
"""

from __future__ import annotations

import hashlib
import json

from lienworker.db.database import one_row
from lienworker.outbox import transitions
from lienworker.outbox.report_messages import report_words
from lienworker.outbox.rows import NEVER_DUE, Claimed, Entry
from lienworker.outbox.states import State, Topic

_policy = {"held": True}

#: A result on its way (or set aside) closes its task when it arrives; so does one of an earlier round.
_RESULT_TO_COME = """
SELECT 1 FROM outbox WHERE task_id = ? AND topic = 'upload_result' AND state IN ('waiting', 'leased', 'held', 'parked')
"""


def configure(mode: str) -> None:
    """Says once a process in which mode it works."""
    _policy["held"] = mode != "ondemand"


def parcel_key(platform: str | None, state: str | None, county: str | None, parcel_id: str | None) -> str | None:
    """What the Gateway stores by; None where a part is missing, since such a result is never sent."""
    parts = (platform, state, county, parcel_id)
    if not all(parts):
        return None
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:32]


def deliver_result(*rows: tuple[Claimed, str | None]) -> None:
    """The rows that bring each result to the Gateway, with the result's key."""
    transitions.add([entry for row, key in rows for entry in deliveries_of(row, key)])


def deliveries_of(row: Claimed, key: str | None) -> tuple[Entry, Entry]:
    """Raw file and result. The result waits until its raw file is acknowledged."""
    state, reason = held_or_waiting()
    step = (row.task_id, row.generation, row.queue, row.priority)
    return (
        Entry(Topic.UPLOAD_RAW, *step, state=state, reason=reason),
        Entry(Topic.UPLOAD_RESULT, *step, state=state, due_at=NEVER_DUE, reason=reason, parcel_key=key),
    )


def report_failure(task_id: str, reason: str) -> None:
    """A task from the Gateway has failed for good: the Gateway is told, through the outbox like all else.

    It is told the reason. The sentence for people stays here, since it may name what is inside our network.
    """
    _report(task_id, "fail", report_words(reason))


def report_completion(task_id: str) -> None:
    """A task whose result was overtaken by a newer one of the same parcel: only the task is closed."""
    _report(task_id, "complete", "")


def close_again(task_id: str) -> None:
    """The Gateway handed out a task that has ended here: over there it is open, so it is told the end once more.

    A task that is still on its way, or whose result is, will be closed by what is to come.
    """
    status, reason = one_row("SELECT status, reason FROM tasks WHERE task_id = ?", (task_id,))
    if status in {"failed", "expired"}:
        _report(task_id, "fail", report_words(reason or ""), again=True)
    elif status == "completed" and one_row(_RESULT_TO_COME, (task_id,)) is None:
        _report(task_id, "complete", "", again=True)


def _report(task_id: str, verb: str, words: str, *, again: bool = False) -> None:
    row = one_row("SELECT source, generation, queue, priority FROM tasks WHERE task_id = ?", (task_id,))
    if row is None or row[0] != "gateway":
        return
    _, generation, queue, priority = row
    state, reason = held_or_waiting()
    payload = {"verb": verb, "words": words}
    sql = "SELECT id FROM outbox WHERE task_id = ? AND topic = 'report_failure' AND generation = ?"
    there = one_row(sql, (task_id, generation))
    if there is None:
        transitions.add(
            [
                Entry(
                    Topic.REPORT_FAILURE,
                    task_id,
                    generation,
                    queue,
                    priority,
                    payload=payload,
                    state=state,
                    reason=reason,
                )
            ]
        )
    elif again:
        transitions.reopen_report(there[0], state, reason, json.dumps(payload))


def held_or_waiting() -> tuple[State, str | None]:
    """The state in which rows to the Gateway begin, and the reason for it."""
    return (State.HELD, "standalone") if _policy["held"] else (State.WAITING, None)
