"""What a step's outcome does to its row and task: rows that deliver it, rows tried again, rows given back.

In standalone mode whatever would have been sent is held, also for tasks that came from the Gateway earlier. The mode is
set once per process; until then nothing is sent.
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
_UNTOLD = {State.WAITING, State.LEASED, State.HELD}

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
    """Set the mode of this process."""
    _policy["held"] = mode != "ondemand"


def parcel_key(platform: str | None, state: str | None, county: str | None, parcel_id: str | None) -> str | None:
    """Return the key that the Gateway stores a parcel by; None where a part is missing: such a result is never sent."""
    parts = (platform, state, county, parcel_id)
    if not all(parts):
        return None
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:32]


def deliver_result(*rows: tuple[Claimed, str | None]) -> None:
    """Add the rows that bring each result, given with its parcel key, to the Gateway."""
    transitions.add([entry for row, key in rows for entry in deliveries_of(row, key)])


def deliveries_of(row: Claimed, key: str | None) -> tuple[Entry, Entry]:
    """Return the rows of a raw file and of its result, which waits until the raw file is acknowledged."""
    state, reason = held_or_waiting()
    step = (row.task_id, row.generation, row.queue, row.priority)
    return (
        Entry(Topic.UPLOAD_RAW, *step, state=state, reason=reason),
        Entry(Topic.UPLOAD_RESULT, *step, state=state, due_at=NEVER_DUE, reason=reason, parcel_key=key),
    )


def report_failure(task_id: str, reason: str) -> None:
    """Tell the Gateway, through the outbox, that one of its tasks has failed for good.

    It is told the reason. The sentence for people stays here, since it may name what is inside our network.
    """
    _report(task_id, "fail", report_words(reason))


def report_given_up(task_id: str, generation: int, reason: str) -> None:
    """A result that will never go: its task is failed at the Gateway, unless a newer result is to close it."""
    if one_row("SELECT 1 FROM tasks WHERE task_id = ? AND generation = ?", (task_id, generation)):
        _report(task_id, "fail", report_words(reason))


def report_completion(task_id: str) -> None:
    """Close a task whose result was overtaken by a newer one of the same parcel: only the task is reported."""
    _report(task_id, "complete", "")


def close_again(task_id: str) -> None:
    """Close a booking of a task that the Gateway handed out once more; it books a task each time it hands it out.

    The end of a task that has ended here is reported again. A task in progress, or whose result is still to be
    delivered, is closed by what is to come, and this booking by a report of its own.
    """
    status, reason = one_row("SELECT status, reason FROM tasks WHERE task_id = ?", (task_id,))
    if status in {"failed", "expired"}:
        _report(task_id, "fail", report_words(reason or ""), again=True)
    elif status == "completed" and one_row(_RESULT_TO_COME, (task_id,)) is None:
        given_up = one_row(_GIVEN_UP, (task_id,))
        verb, words = ("fail", report_words(_reason_of(*given_up))) if given_up else ("complete", "")
        _report(task_id, verb, words, again=True)
    else:
        _report(task_id, "complete", "", again=True, is_extra=True)


def _reason_of(state: str, reason: str | None) -> str:
    """Return what the Gateway is told of a result that will not go; why a person discarded it is not its business."""
    return reason or "" if state == State.PARKED else "discarded"


def _report(task_id: str, verb: str, words: str, *, again: bool = False, is_extra: bool = False) -> None:
    """Add a report, or change the one that is there. `is_extra`: for a booking, before the task's own end is known.

    Each generation has one row. A closing that it still owes is kept: the row then closes the task `times` times.
    """
    row = one_row("SELECT source, generation, queue, priority FROM tasks WHERE task_id = ?", (task_id,))
    if row is None or row[0] != "gateway":
        return
    _, generation, queue, priority = row
    state, reason = held_or_waiting()
    payload = {"verb": verb, "words": words, "times": 1, "extra": is_extra}
    sql = "SELECT id, state, payload FROM outbox WHERE task_id = ? AND topic = 'report_failure' AND generation = ?"
    there = one_row(sql, (task_id, generation))
    if there is None:
        step = (task_id, generation, queue, priority)
        transitions.add([Entry(Topic.REPORT_FAILURE, *step, payload=payload, state=state, reason=reason)])
        return
    row_id, known_state, known = there[0], there[1], json.loads(there[2] or "{}")
    if again or known.get("extra"):
        untold = known.get("times", 1) if known_state in _UNTOLD else 0
        payload |= {"times": untold + 1, "extra": is_extra and bool(known.get("extra"))}
        transitions.renew_report(row_id, state, reason, json.dumps(payload))


def held_or_waiting() -> tuple[State, str | None]:
    """Return the state in which rows to the Gateway begin, and the reason for it."""
    return (State.HELD, "standalone") if _policy["held"] else (State.WAITING, None)


# Rows for results that were made from a page stored earlier.


#: The token of a row that nobody has claimed: no statement fenced by it changes anything.
_UNCLAIMED = ""
_TASK = (
    "SELECT task_id, generation, queue, priority, url, platform, platform_learned, state, county, parcel_id, source,"
    " target_json, proxy, expires_at, status FROM tasks WHERE task_id = ?"
)


def as_row(task_id: str) -> tuple[Claimed, str] | None:
    """Return the task in the shape that steps expect, though no row of it was claimed, and its status."""
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
    """Start the generation of a new result of a stored page and return its number; older uploads are superseded."""
    sql = "UPDATE tasks SET generation = generation + 1 WHERE task_id = ? RETURNING generation"
    generation = int(execute(sql, (task_id,)).fetchone()[0])
    execute(
        "UPDATE pages SET generation = ? WHERE task_id = ? AND generation = ?", (generation, task_id, page_generation)
    )
    transitions.supersede_uploads(task_id, generation)
    return generation


# Ending a row, trying it again later, or giving it back: always inside the transaction that stores what it made.
#
# Each of these takes effect only while the caller's lease holds, and returns whether it did: False means that another
# worker has the row, and that the product must be thrown away.


logger = logging.getLogger(__name__)


def try_again(row: Claimed, after_ms: int, reason: str, error: str) -> bool:
    """Let the row wait for its next try, at the cost of an attempt; return whether it was still ours."""
    mine = transitions.retry_later(row, now_ms() + after_ms, reason, fingerprint(error))
    if mine:
        record_try(row.id, row.task_id, row.topic, reason, error)
        tasks.record_attempt(row.task_id, reason, error)
        if row.topic == Topic.FETCH:
            tasks.mark_pending([row.task_id])
    return mine


def fail(row: Claimed, reason: str, error: str) -> bool:
    """End the task as failed and the row with it, its outcome stored; return whether the row was still ours."""
    if not transitions.end(row, reason=reason):
        return False
    record_try(row.id, row.task_id, row.topic, reason, error)
    tasks.record_attempt(row.task_id, reason, error)
    tasks.mark_failed(row.task_id, reason, error)
    report_failure(row.task_id, reason)
    return True


def expire(row: Claimed) -> bool:
    """End a task that came too late to be worth a page, and tell the Gateway; return whether the row was still ours."""
    words = f"The task expired at {row.expires_at}."
    if not transitions.end(row, reason="expired"):
        return False
    tasks.mark_failed(row.task_id, "expired", words, status="expired")
    report_failure(row.task_id, "expired")
    say_failed(row.task_id, row.topic, "expired")
    return True


def say_failed(task_id: str, topic: str, reason: str) -> None:
    """Log the one line that a task without a result gets."""
    extra = about_task("expired" if reason == "expired" else "failed", task_id, topic, reason=reason)
    after_commit(lambda: logger.info("failed %s: %s", task_id, reason, extra=extra))


def give_back(rows: Iterable[Claimed]) -> None:
    """Give back rows that were not tried (a stop, a full disk), so they lose nothing."""
    rows = list(rows)
    if not rows:
        return
    with write("give_back"):
        give_back_in_transaction(rows)


def put_off(rows: Sequence[Claimed], after_ms: int) -> None:
    """Give back rows that were not tried, for later."""
    if not rows:
        return
    with write("put_off"):
        give_back_in_transaction(rows, not_before=now_ms() + after_ms)


def give_back_in_transaction(rows: Iterable[Claimed], *, not_before: int = 0) -> None:
    """Give back rows inside the caller's transaction; see `give_back`."""
    mine = transitions.give_back(rows, not_before=not_before)
    tasks.mark_pending([row.task_id for row in mine if row.topic == Topic.FETCH])


def record_try(outbox_id: int, task_id: str, topic: str, reason: str, error: str) -> None:
    """Store what went wrong in a try, for people who ask about the task later."""
    execute(
        "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error) VALUES (?, ?, ?, ?, ?, ?)",
        (outbox_id, task_id, topic, rfc3339(), reason, storable(error)[:2000]),
    )


def fingerprint(error: str) -> str:
    """Return one fingerprint for the same error on many rows: numbers, hashes and quoted values are ignored."""
    shape = re.sub(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", error.lower())
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:12]
