"""Ending a row, trying it again later, or giving it back. Always inside the transaction that stores what it made.

Each of these works only while the caller's lease still holds, and says so: a False means that somebody else has the
row, and that the product must be thrown away.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, execute, storable, write
from lienworker.logs import about_task
from lienworker.outbox import transitions
from lienworker.outbox.deliveries import report_failure
from lienworker.outbox.rows import Claimed
from lienworker.outbox.states import Topic
from lienworker.store import tasks

logger = logging.getLogger(__name__)


def try_again(row: Claimed, after_ms: int, reason: str, error: str) -> bool:
    """The row has lost an attempt and waits for its next one."""
    mine = transitions.retry_later(row, now_ms() + after_ms, reason, fingerprint(error))
    if mine:
        note_try(row.id, row.task_id, row.topic, reason, error)
        tasks.note_attempt(row.task_id, reason, error)
        if row.topic == Topic.FETCH:
            tasks.mark_pending([row.task_id])
    return mine


def fail(row: Claimed, reason: str, error: str) -> bool:
    """The task ends here, failed. The row's outcome is stored, so the row is over."""
    if not transitions.end(row, reason=reason):
        return False
    note_try(row.id, row.task_id, row.topic, reason, error)
    tasks.note_attempt(row.task_id, reason, error)
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


def note_try(outbox_id: int, task_id: str, topic: str, reason: str, error: str) -> None:
    """Keeps what went wrong in a try, for whoever asks about the task later."""
    execute(
        "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error) VALUES (?, ?, ?, ?, ?, ?)",
        (outbox_id, task_id, topic, rfc3339(), reason, storable(error)[:2000]),
    )


def fingerprint(error: str) -> str:
    """The same error on many rows has one fingerprint: numbers, hashes and quoted values do not count."""
    shape = re.sub(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", error.lower())
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:12]
