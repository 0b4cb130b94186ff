"""What becomes of a row and of its task: the rows that deliver an outcome, and rows that are tried again or given back.

In standalone mode what would have been sent is held, also for tasks that came from the Gateway earlier. The mode is
set once a process; until then nothing is sent.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, dict_rows, execute, one_row, storable, write
from lienworker.logs import about_task
from lienworker.outbox import transitions
from lienworker.outbox.report_messages import report_words
from lienworker.outbox.rows import NEVER_DUE, Claimed, Entry
from lienworker.outbox.states import NEVER_SENDABLE, State, Topic, sql_list
from lienworker.store import tasks

_policy = {"held": True}

_NEVER_SENDABLE = sql_list(NEVER_SENDABLE)
#: A result on its way (or set aside) closes its task when it arrives; so does one of an earlier round.
_RESULT_TO_COME = f"""
SELECT 1 FROM outbox WHERE task_id = ? AND topic = 'upload_result' AND (state IN ('waiting', 'leased', 'held')
    OR state = 'parked' AND coalesce(reason, '') NOT IN {_NEVER_SENDABLE})
"""
#: Why the result of a task's last round will never go; none where it went, or another took its place.
_GIVEN_UP = """
SELECT o.state, o.reason FROM outbox o JOIN tasks t ON t.task_id = o.task_id AND t.generation = o.generation
WHERE o.task_id = ? AND o.topic = 'upload_result' AND o.state IN ('parked', 'discarded')
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


def report_given_up(task_id: str, generation: int, reason: str) -> None:
    """A result that will never go: its task is failed at the Gateway, unless a newer result is to close it."""
    if one_row("SELECT 1 FROM tasks WHERE task_id = ? AND generation = ?", (task_id, generation)):
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
        given_up = one_row(_GIVEN_UP, (task_id,))
        verb, words = ("fail", report_words(_reason_of(*given_up))) if given_up else ("complete", "")
        _report(task_id, verb, words, again=True)


def _reason_of(state: str, reason: str | None) -> str:
    """What the Gateway is told of a result that will not go; why a person has discarded it is not its business."""
    return reason or "" if state == State.PARKED else "discarded"


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


# Rows for results that came from a page that was there already.


#: The token of a row that nobody has claimed: no statement that is fenced by it changes anything.
_UNCLAIMED = ""
_TASK = (
    "SELECT task_id, generation, queue, priority, url, platform, state, county, parcel_id, source, target_json, proxy,"
    " expires_at, status FROM tasks WHERE task_id = ?"
)


def as_row(task_id: str) -> tuple[Claimed, str] | None:
    """The task in the shape in which steps know it, though no row of it was claimed, and its status."""
    found = next(dict_rows(_TASK, (task_id,)), None)
    if found is None:
        return None
    status = found.pop("status")
    unclaimed: dict[str, Any] = {
        "id": 0, "topic": Topic.SCRAPE, "host": "", "attempts": 0, "payload": None, "alone": 0, "parcel_key": None,
        "start_at": 0,
    }  # fmt: skip
    return Claimed(**found, **unclaimed, token=_UNCLAIMED), status


def begin_generation(task_id: str, page_generation: int) -> int:
    """The number of the new result, for which the stored page now stands; older uploads of the task are overtaken."""
    sql = "UPDATE tasks SET generation = generation + 1 WHERE task_id = ? RETURNING generation"
    generation = int(execute(sql, (task_id,)).fetchone()[0])
    execute(
        "UPDATE pages SET generation = ? WHERE task_id = ? AND generation = ?", (generation, task_id, page_generation)
    )
    transitions.supersede_uploads(task_id, generation)
    return generation


# Ending a row, trying it again later, or giving it back. Always inside the transaction that stores what it made.
#
# Each of these works only while the caller's lease still holds, and says so: a False means that somebody else has the
# row, and that the product must be thrown away.


logger = logging.getLogger(__name__)


def try_again(row: Claimed, after_ms: int, reason: str, error: str) -> bool:
    """The row has lost an attempt and waits for its next one."""
    mine = transitions.retry_later(row, now_ms() + after_ms, reason, fingerprint(error))
    if mine:
        record_try(row.id, row.task_id, row.topic, reason, error)
        tasks.record_attempt(row.task_id, reason, error)
        if row.topic == Topic.FETCH:
            tasks.mark_pending([row.task_id])
    return mine


def fail(row: Claimed, reason: str, error: str) -> bool:
    """The task ends here, failed. The row's outcome is stored, so the row is over."""
    if not transitions.end(row, reason=reason):
        return False
    record_try(row.id, row.task_id, row.topic, reason, error)
    tasks.record_attempt(row.task_id, reason, error)
    tasks.mark_failed(row.task_id, reason, error)
    report_failure(row.task_id, reason)
    return True


def expire(row: Claimed) -> bool:
    """The task came too late to be worth a page: it ends, and the Gateway is told."""
    words = f"The task expired at {row.expires_at}."
    if not transitions.end(row, reason="expired"):
        return False
    tasks.mark_failed(row.task_id, "expired", words, status="expired")
    report_failure(row.task_id, "expired")
    say_failed(row.task_id, row.topic, "expired")
    return True


def say_failed(task_id: str, topic: str, reason: str) -> None:
    """The one line that a task which ends without a result has in the log."""
    extra = about_task("expired" if reason == "expired" else "failed", task_id, topic, reason=reason)
    after_commit(lambda: logger.info("failed %s: %s", task_id, reason, extra=extra))


def give_back(rows: Iterable[Claimed]) -> None:
    """Puts rows back untouched: they were not tried (a stop, a full disk), so they lose nothing."""
    rows = list(rows)
    if not rows:
        return
    with write("give_back"):
        give_back_in_transaction(rows)


def put_off(rows: Sequence[Claimed], after_ms: int) -> None:
    """Puts rows back untried, for later."""
    if not rows:
        return
    with write("put_off"):
        give_back_in_transaction(rows, not_before=now_ms() + after_ms)


def give_back_in_transaction(rows: Iterable[Claimed], *, not_before: int = 0) -> None:
    """The same inside the caller's transaction."""
    mine = transitions.give_back(rows, not_before=not_before)
    tasks.mark_pending([row.task_id for row in mine if row.topic == Topic.FETCH])


def record_try(outbox_id: int, task_id: str, topic: str, reason: str, error: str) -> None:
    """Keeps what went wrong in a try, for whoever asks about the task later."""
    execute(
        "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error) VALUES (?, ?, ?, ?, ?, ?)",
        (outbox_id, task_id, topic, rfc3339(), reason, storable(error)[:2000]),
    )


def fingerprint(error: str) -> str:
    """The same error on many rows has one fingerprint: numbers, hashes and quoted values do not count."""
    shape = re.sub(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", error.lower())
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:12]
