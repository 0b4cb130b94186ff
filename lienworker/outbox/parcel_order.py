"""What the database knows of the order within a parcel; `steps.upload.order` has the rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, dict_rows
from lienworker.outbox import transitions
from lienworker.outbox.deliveries import report_completion
from lienworker.outbox.rows import Claimed
from lienworker.outbox.states import State
from lienworker.store import results

#: How long a result waits behind a newer one of its parcel before it is looked at again.
_STEP_BACK_MS = 1000
_MINE = "json_each(?2) wanted JOIN outbox o ON o.id = wanted.value JOIN results r ON r.task_id = o.task_id"
_OVERTAKEN = f"""
SELECT o.id FROM {_MINE} JOIN delivered_parcels d ON d.parcel_key = o.parcel_key
LEFT JOIN outbox other ON other.task_id = d.task_id AND other.topic = o.topic AND other.generation = d.generation
WHERE d.task_id <> o.task_id AND CASE WHEN (d.fetched_at > ?1) <> (r.fetched_at > ?1) THEN coalesce(other.id, 0) > o.id
    ELSE (d.fetched_at, d.generation) > (r.fetched_at, r.generation) END
"""
# One of the same parcel is in the air elsewhere, or a newer one is on its way: a kill may have hidden that the Gateway
# has the newer one already.
_NOT_FIRST = f"""
SELECT o.id FROM {_MINE}
JOIN outbox other ON other.parcel_key = o.parcel_key AND other.topic = 'upload_result'
    AND other.state IN ('waiting', 'leased') AND other.id <> o.id
JOIN results s ON s.task_id = other.task_id AND s.generation = other.generation
WHERE (other.state = 'leased' AND other.lease_token <> ?3) OR (coalesce(other.reason, '') <> 'raw_parked'
    AND CASE WHEN (s.fetched_at > ?1) <> (r.fetched_at > ?1) THEN other.id > o.id
    ELSE (s.fetched_at, s.generation) > (r.fetched_at, r.generation) END)
"""


def result_rows(rows: Sequence[Claimed]) -> dict[str, dict[str, Any]]:
    """The stored results of claimed rows, by task, with their data as it is stored."""
    found = dict_rows(f"SELECT r.* FROM {_MINE}", (None, json.dumps([row.id for row in rows])))
    return {row["task_id"]: row for row in found}


def overtaken(rows: Sequence[Claimed], now: str) -> set[int]:
    """Return the ids of claimed rows whose parcel has a newer result at the Gateway."""
    return {found[0] for found in all_rows(_OVERTAKEN, (now, json.dumps([row.id for row in rows])))}


def not_first(rows: Sequence[Claimed], now: str) -> set[int]:
    """Return the ids of claimed rows (under one lease) that must let another one of their parcel go first."""
    return {found[0] for found in all_rows(_NOT_FIRST, (now, json.dumps([row.id for row in rows]), rows[0].token))}


def supersede(row: Claimed) -> None:
    """End a row that a newer result has overtaken."""
    if transitions.end(row, State.SUPERSEDED, "newer_result"):
        report_completion(row.task_id)
        results.forget_pending_of(row.task_id, row.generation)


def step_back(row: Claimed) -> None:
    """Let a row wait a moment behind the newer one; nothing was tried."""
    transitions.step_back(row, now_ms() + _STEP_BACK_MS)
