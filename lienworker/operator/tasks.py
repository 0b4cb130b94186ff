"""What people do to tasks by hand: retry and cancel. Each action is in the audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lienworker.db.database import all_rows, write
from lienworker.hostnames import route_of
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import report_failure
from lienworker.outbox.pacing import try_afresh
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import Topic
from lienworker.store import tasks
from lienworker.store.audit import record_action

#: Tasks in one transaction, so that workers can write in between.
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Done:
    """How many tasks an action changed, and how many it had to leave as they are."""

    changed: int
    left: int


def retry_tasks(task_ids: Sequence[str], what: str) -> Done:
    """Start failed and expired tasks again; others are left. Saved pages and those of a file are never fetched."""
    return _in_chunks(task_ids, "retry", what, _retry)


def cancel_tasks(task_ids: Sequence[str], what: str) -> Done:
    """End waiting tasks. One that a worker holds is left alone: its page is being fetched."""
    return _in_chunks(task_ids, "cancel", what, _cancel)


def _in_chunks(task_ids: Sequence[str], action: str, what: str, act: Callable[[str], bool]) -> Done:
    changed = 0
    for start in range(0, len(task_ids), _CHUNK):
        with write("by_hand"):
            n = sum(act(task_id) for task_id in task_ids[start : start + _CHUNK])
            if n:
                record_action(action, what, n)
        changed += n
    return Done(changed, len(task_ids) - changed)


def _retry(task_id: str) -> bool:
    row = all_rows(
        "SELECT url, proxy, queue, priority, due_by FROM tasks"
        " WHERE task_id = ? AND status IN ('failed', 'expired') AND url <> '' AND source <> 'saved'"
        " AND url NOT LIKE 'roll:%'",
        (task_id,),
    )
    if not row:
        return False
    url, proxy, queue, priority, due_by = row[0]
    generation = tasks.start_generation(task_id)
    transitions.supersede_reports(task_id)
    host = route_of(url, proxy)
    # A person asks for it: a host that was given up gets another chance.
    try_afresh(host)
    transitions.add([Entry(Topic.FETCH, task_id, generation, queue, priority, host=host, due_by=due_by)])
    return True


def _cancel(task_id: str) -> bool:
    cancelled = transitions.cancel_steps(task_id)
    if cancelled:
        tasks.mark_failed(task_id, "cancelled", "Cancelled by hand.")
        report_failure(task_id, "cancelled")
    return bool(cancelled)
