"""The lanes to the Gateway: claiming within what the breakers allow, and ending rows as the Gateway took them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.outbox import breaker
from lienworker.outbox.breaker import Gate, Trouble
from lienworker.outbox.claims import (
    Rules,
    claim_in_transaction,
    claim_probe,
    claim_these,
    claimable,
    is_paused,
    next_due,
)
from lienworker.outbox.closing import end, fingerprint, note_try
from lienworker.outbox.deliveries import block_result, report_completion
from lienworker.outbox.entries import Claimed
from lienworker.outbox.relay import Lane
from lienworker.store import results
from lienworker.store.clock import now_ms
from lienworker.store.database import all_rows, dict_rows, execute, one_row, write

#: The lanes to the Gateway, in the order in which they are worked, each with the endpoint that it goes to.
ENDPOINTS = {"upload_raw": "raw", "upload_result": "results", "report_failure": "tasks"}

_PUT_OFF = """
UPDATE outbox SET state = 'waiting', due_at = ?, reason = ?,
    fingerprint = CASE WHEN ? OR blame = 0 THEN ? ELSE fingerprint END, blame = blame + ?, seen_successes = ?,
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
        if gate is Gate.OPEN or is_paused(topic):
            return []
        if gate is Gate.PROBE:
            rows = claim_probe(topic, how.token, how.only)
        elif how.only is None:
            rows = claim_in_transaction(topic, limit, how.token, how.rules, suspects=True, message_id=how.message_id)
        else:
            rows = claim_these(topic, limit, how.token, how.only)
        if rows and gate is Gate.PROBE:
            breaker.start_probe(ENDPOINTS[topic])
    return rows


def put_off(row: Claimed, trouble: Trouble, due_at: int, *, perhaps_the_row: bool) -> bool:
    """The destination's fault, so the row loses no attempt; it waits, behind others.

    It is blamed only if it failed again after others had gone through; having failed so too often for chance, it is
    parked. True when it was parked.
    """
    endpoint = ENDPOINTS[row.topic]
    seen, _, _ = _record_of(row)
    if perhaps_the_row and seen is None:
        breaker.note_first_failure(endpoint)
    if perhaps_the_row and seen is not None and breaker.successes(endpoint) > seen:
        return blame(row, trouble.kind, trouble.words, due_at, most=breaker.most_blame(endpoint))
    _wait(row, trouble.kind, trouble.words, due_at, blame=0)
    return False


def blame(row: Claimed, kind: str, words: str, due_at: int, *, most: int = breaker.LEAST_BLAME) -> bool:
    """It failed by itself while others were stored: one count against it. True when that was one too many."""
    _, count, _ = _record_of(row)
    if count + 1 >= most:
        park(row, kind, words)
        return True
    _wait(row, kind, words, due_at, blame=1)
    return False


def is_the_same_again(row: Claimed, words: str) -> bool:
    """Whether it failed with the very words that it got while others were stored beside it: then it is not the day."""
    _, count, known = _record_of(row)
    return bool(count) and known == fingerprint(words)


def _record_of(row: Claimed) -> tuple[int | None, int, str | None]:
    seen, count, known = one_row("SELECT seen_successes, blame, fingerprint FROM outbox WHERE id = ?", (row.id,))
    return seen, count, known


def _wait(row: Claimed, kind: str, words: str, due_at: int, *, blame: int) -> None:
    seen = breaker.successes(ENDPOINTS[row.topic])
    if execute(_PUT_OFF, (due_at, kind, blame, fingerprint(words), blame, seen, row.id, row.token)).rowcount:
        note_try(row.id, row.task_id, row.topic, kind, words)


def park(row: Claimed, reason: str, words: str) -> None:
    """The row's own fault: it is set aside with its reason, and its neighbours go through."""
    if not end(row, "parked", reason):
        return
    execute("UPDATE outbox SET fingerprint = ? WHERE id = ?", (fingerprint(words), row.id))
    note_try(row.id, row.task_id, row.topic, reason, words)
    if row.topic == "upload_raw":
        block_result(row.task_id, row.generation)


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


@dataclass(frozen=True, slots=True)
class Ordered:
    """Claimed results, by what may happen to them now."""

    sendable: list[Claimed]
    superseded: list[Claimed]
    stepped_back: list[Claimed]


def keep_order(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> Ordered:
    """The newest of each parcel may be sent, and none that a newer one has overtaken."""
    ordered = Ordered([], [], [])
    if not rows:
        return ordered
    with write("keep_order"):
        newest = _newest_by_parcel(rows, stored)
        for row in rows:
            found = stored.get(row.task_id)
            if found is None or found["generation"] != row.generation or _is_overtaken(row, found):
                _supersede(row)
                ordered.superseded.append(row)
            elif newest.get(row.parcel_key or "", row) is not row or _another_comes_first(row, found):
                _step_back(row)
                ordered.stepped_back.append(row)
            else:
                ordered.sendable.append(row)
    return ordered


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


def _another_comes_first(row: Claimed, found: dict[str, Any]) -> bool:
    """Whether one of the same parcel is in the air elsewhere, or a newer one is on its way.

    One upload a parcel at a time; and a kill may have hidden that the Gateway has the newer one already.
    """
    sql = (
        "SELECT 1 FROM outbox o JOIN results r ON r.task_id = o.task_id AND r.generation = o.generation"
        " WHERE o.topic = 'upload_result' AND o.state IN ('waiting', 'leased') AND o.parcel_key = ? AND o.id <> ?"
        " AND ((o.state = 'leased' AND o.lease_token <> ?) OR (coalesce(o.reason, '') <> 'raw_parked'"
        " AND (r.fetched_at, r.generation) > (?, ?)))"
    )
    return one_row(sql, (row.parcel_key, row.id, row.token, found["fetched_at"], found["generation"])) is not None


def _supersede(row: Claimed) -> None:
    if end(row, "superseded", "newer_result"):
        report_completion(row.task_id)
        results.forget_pending_of(row.task_id, row.generation)


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
