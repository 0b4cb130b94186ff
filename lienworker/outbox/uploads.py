"""The lanes to the Gateway: claiming within what the breakers allow, and ending rows as the Gateway took them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.outbox import breaker
from lienworker.outbox.breaker import Gate, Trouble
from lienworker.outbox.claims import Rules, claim_in_transaction, claim_these, claimable, next_due
from lienworker.outbox.closing import end, fingerprint, note_try
from lienworker.outbox.deliveries import report_completion
from lienworker.outbox.entries import Claimed
from lienworker.outbox.relay import Lane
from lienworker.store import results
from lienworker.store.clock import now_ms
from lienworker.store.database import all_rows, dict_rows, execute, one_row, write

#: The lanes to the Gateway, in the order in which they are worked, each with the endpoint that it goes to.
ENDPOINTS = {"upload_raw": "raw", "upload_result": "results", "report_failure": "tasks"}
#: How often a row may fail while others go through, before it is parked.
MOST_BLAME = 3

_PUT_OFF = """
UPDATE outbox SET state = 'waiting', due_at = ?, reason = ?, fingerprint = ?, blame = blame + ?, seen_successes = ?,
    lease_token = NULL, lease_until = NULL
WHERE id = ? AND lease_token = ? AND state = 'leased'
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """How rows are claimed: for whom, by which rules, and (for a person's replay) which ones only."""

    token: str
    rules: Rules
    message_id: str | None = None
    only: tuple[int, ...] | None = None


def claim_uploads(topic: str, limit: int, how: Claim) -> list[Claimed]:
    """Rows that may go out now; one, where the breaker wants a probe."""
    with write("claim_upload"):
        gate = breaker.gate(ENDPOINTS[topic])
        if gate is Gate.OPEN:
            return []
        limit = 1 if gate is Gate.PROBE else limit
        if how.only is None:
            rows = claim_in_transaction(topic, limit, how.token, how.rules, suspects=True, message_id=how.message_id)
        else:
            rows = claim_these(topic, limit, how.token, how.only)
        if rows and gate is Gate.PROBE:
            breaker.start_probe(ENDPOINTS[topic])
    return rows


def put_off(row: Claimed, trouble: Trouble, due_at: int, *, perhaps_the_row: bool) -> bool:
    """The destination's fault, so the row loses no attempt; it waits, behind others.

    It is blamed only if it failed again after others had gone through; having failed so several times, it is parked.
    True when it was parked.
    """
    seen, blame = one_row("SELECT seen_successes, blame FROM outbox WHERE id = ?", (row.id,))
    now_seen = breaker.successes(ENDPOINTS[row.topic])
    blamed = perhaps_the_row and seen is not None and now_seen > seen
    if blamed and blame + 1 >= MOST_BLAME:
        park(row, trouble.kind, trouble.words)
        return True
    execute(
        _PUT_OFF,
        (due_at, trouble.kind, fingerprint(trouble.words), int(blamed), now_seen, row.id, row.token),
    )
    note_try(row.id, row.task_id, row.topic, trouble.kind, trouble.words)
    return False


def blame(row: Claimed, kind: str, words: str, due_at: int) -> bool:
    """It failed by itself while others were stored: one count against it. True when that was one too many."""
    (count,) = one_row("SELECT blame FROM outbox WHERE id = ?", (row.id,))
    if count + 1 >= MOST_BLAME:
        park(row, kind, words)
        return True
    seen = breaker.successes(ENDPOINTS[row.topic])
    execute(_PUT_OFF, (due_at, kind, fingerprint(words), 1, seen, row.id, row.token))
    note_try(row.id, row.task_id, row.topic, kind, words)
    return False


def park(row: Claimed, reason: str, words: str) -> None:
    """The row's own fault: it is set aside with its reason, and its neighbours go through."""
    if not end(row, "parked", reason):
        return
    execute("UPDATE outbox SET fingerprint = ? WHERE id = ?", (fingerprint(words), row.id))
    note_try(row.id, row.task_id, row.topic, reason, words)
    if row.topic == "upload_raw":
        execute(
            "UPDATE outbox SET reason = 'raw_parked' WHERE task_id = ? AND generation = ? AND topic = 'upload_result'"
            " AND state = 'waiting'",
            (row.task_id, row.generation),
        )


def raw_delivered(row: Claimed) -> None:
    """The Gateway has the raw file: now its result may go."""
    if end(row):
        execute(
            "UPDATE outbox SET due_at = ?, reason = CASE reason WHEN 'raw_parked' THEN NULL ELSE reason END"
            " WHERE task_id = ? AND generation = ? AND topic = 'upload_result'"
            " AND state IN ('waiting', 'held', 'parked')",
            (now_ms(), row.task_id, row.generation),
        )


def release_result(row: Claimed) -> None:
    """The raw file will not go: its result, which was replaced too, may end by itself at its next claim."""
    execute(
        "UPDATE outbox SET due_at = ? WHERE task_id = ? AND generation = ? AND topic = 'upload_result'",
        (now_ms(), row.task_id, row.generation),
    )


def result_delivered(row: Claimed) -> bool:
    """The Gateway has the result; True when it is still the task's newest."""
    found = one_row("SELECT fetched_at, generation FROM results WHERE task_id = ?", (row.task_id,))
    if not end(row):
        return False
    if found and row.parcel_key:
        execute(
            "INSERT INTO delivered_parcels VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET task_id = excluded.task_id,"
            " fetched_at = excluded.fetched_at, generation = excluded.generation"
            " WHERE (excluded.fetched_at, excluded.generation) > (fetched_at, generation)",
            (row.parcel_key, row.task_id, *found),
        )
    return results.mark_synced(row.task_id, row.generation)


def result_rows(rows: Iterable[Claimed]) -> dict[str, dict[str, Any]]:
    """The stored results of claimed rows, by task."""
    ids = json.dumps([row.task_id for row in rows])
    found = dict_rows("SELECT * FROM results WHERE task_id IN (SELECT value FROM json_each(?))", (ids,))
    return {row["task_id"]: results.with_data(row) for row in found}


def keep_order(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> list[Claimed]:
    """Those that may be sent together now: the newest of each parcel, and none that a newer one has overtaken."""
    if not rows:
        return []
    sendable = []
    with write("keep_order"):
        newest = _newest_by_parcel(rows, stored)
        for row in rows:
            found = stored.get(row.task_id)
            if found is None or found["generation"] != row.generation or _is_overtaken(row, found):
                _supersede(row)
            elif newest.get(row.parcel_key or "", row) is not row or _newer_waits(row, found):
                _step_back(row)
            else:
                sendable.append(row)
    return sendable


def _newest_by_parcel(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> dict[str, Claimed]:
    newest: dict[str, Claimed] = {}
    for row in sorted(rows, key=lambda row: _age(stored.get(row.task_id))):
        if row.parcel_key:
            newest[row.parcel_key] = row
    return newest


def _age(found: dict[str, Any] | None) -> tuple[str, int]:
    return (found["fetched_at"], found["generation"]) if found else ("", 0)


def _is_overtaken(row: Claimed, found: dict[str, Any]) -> bool:
    sql = "SELECT 1 FROM delivered_parcels WHERE parcel_key = ? AND (fetched_at, generation) > (?, ?) AND task_id <> ?"
    return one_row(sql, (row.parcel_key, found["fetched_at"], found["generation"], row.task_id)) is not None


def _newer_waits(row: Claimed, found: dict[str, Any]) -> bool:
    """Whether a newer result of the parcel is on its way: a kill may have hidden that the Gateway has it already."""
    sql = (
        "SELECT 1 FROM outbox o JOIN results r ON r.task_id = o.task_id AND r.generation = o.generation"
        " WHERE o.topic = 'upload_result' AND o.state IN ('waiting', 'leased') AND o.parcel_key = ? AND o.id <> ?"
        " AND coalesce(o.reason, '') <> 'raw_parked' AND (r.fetched_at, r.generation) > (?, ?)"
    )
    return one_row(sql, (row.parcel_key, row.id, found["fetched_at"], found["generation"])) is not None


def _supersede(row: Claimed) -> None:
    if end(row, "superseded", "newer_result"):
        report_completion(row.task_id)


def _step_back(row: Claimed) -> None:
    """Behind the newer one, for a moment; nothing was tried."""
    execute(
        "UPDATE outbox SET state = 'waiting', due_at = ?, lease_token = NULL, lease_until = NULL"
        " WHERE id = ? AND lease_token = ? AND state = 'leased'",
        (now_ms() + 1000, row.id, row.token),
    )


class UploadLane(Lane):
    """The three lanes to the Gateway as one: one worker of each process works them in their order."""

    def due(self, rules: Rules, most: int) -> int:
        return sum(_sendable(topic, rules, most) for topic in ENDPOINTS)

    def next_due(self) -> int | None:
        times = [due for topic in ENDPOINTS if (due := _next_due(topic)) is not None]
        return min(times, default=None)

    def capacity(self) -> int:
        return max(1, int(one_row("SELECT count(*) FROM workers WHERE kind = 'worker'")[0]))


def _sendable(topic: str, rules: Rules, most: int) -> int:
    gate = breaker.gate(ENDPOINTS[topic])
    if gate is Gate.OPEN:
        return 0
    return claimable(topic, rules, 1 if gate is Gate.PROBE else most)


def _next_due(topic: str) -> int | None:
    """When a lane has something to do next: its earliest row, or its breaker's probe if that is later."""
    due = next_due(topic)
    return None if due is None else max(due, breaker.next_probe(ENDPOINTS[topic]) or 0)


def groups_of_failures(state: str = "parked") -> list[dict[str, Any]]:
    """The same error on many rows is one line: count, first and last seen, a sample."""
    rows = all_rows(
        "SELECT o.topic, o.reason, o.fingerprint, count(*), min(coalesce(o.finished_at, o.created_at)),"
        " max(coalesce(o.finished_at, o.created_at)), max(o.id) FROM outbox o WHERE o.state = ?"
        " GROUP BY 1, 2, 3 ORDER BY 4 DESC",
        (state,),
    )
    names = ("topic", "reason", "fingerprint", "n", "first_at", "last_at", "sample_id")
    groups = [dict(zip(names, row, strict=True)) for row in rows]
    for group in groups:
        sample = one_row(
            "SELECT error FROM attempts WHERE outbox_id = ? ORDER BY id DESC LIMIT 1", (group["sample_id"],)
        )
        group["sample"] = sample[0] if sample else None
    return groups
