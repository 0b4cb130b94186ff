"""Order within a parcel: the newest result goes, and none that a newer one has overtaken.

Newer is whose page was fetched later, then the later generation. One upload a parcel at a time.

The wall clock may have been set back since. Where one of two pages was fetched in what is now the future, the later of
their uploads is the newer: rows are numbered in the order in which they came, whatever the clock said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.outbox import transitions
from lienworker.outbox.deliveries import report_completion
from lienworker.outbox.entries import Claimed
from lienworker.outbox.states import State
from lienworker.store import results
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import all_rows, dict_rows, write

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


@dataclass(frozen=True, slots=True)
class Ordered:
    """Claimed results, by what may happen to them now."""

    sendable: list[Claimed]
    superseded: list[Claimed]
    stepped_back: list[Claimed]


def result_rows(rows: Sequence[Claimed]) -> dict[str, dict[str, Any]]:
    """The stored results of claimed rows, by task, with their data as it is stored."""
    found = dict_rows(f"SELECT r.* FROM {_MINE}", (None, json.dumps([row.id for row in rows])))
    return {row["task_id"]: row for row in found}


def keep_order(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> Ordered:
    """Who of the claimed rows may go now. Whoever looks after his own claim sees the claims that came before it."""
    ordered = Ordered([], [], [])
    if not rows:
        return ordered
    ids, now = json.dumps([row.id for row in rows]), rfc3339()
    overtaken = {found[0] for found in all_rows(_OVERTAKEN, (now, ids))}
    not_first = {found[0] for found in all_rows(_NOT_FIRST, (now, ids, rows[0].token))}
    newest = _newest_by_parcel(rows, stored, now)
    for row in rows:
        found = stored.get(row.task_id)
        if found is None or found["generation"] != row.generation or row.id in overtaken:
            ordered.superseded.append(row)
        elif newest.get(row.parcel_key or "", row) is not row or row.id in not_first:
            ordered.stepped_back.append(row)
        else:
            ordered.sendable.append(row)
    if ordered.superseded or ordered.stepped_back:
        with write("keep_order"):
            for row in ordered.superseded:
                _supersede(row)
            for row in ordered.stepped_back:
                transitions.step_back(row, now_ms() + _STEP_BACK_MS)
    return ordered


def _newest_by_parcel(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]], now: str) -> dict[str, Claimed]:
    newest: dict[str, Claimed] = {}
    for row in rows:
        if row.parcel_key and row.task_id in stored:
            rival = newest.get(row.parcel_key)
            if rival is None or _is_newer(row, rival, stored, now):
                newest[row.parcel_key] = row
    return newest


def _is_newer(row: Claimed, rival: Claimed, stored: dict[str, dict[str, Any]], now: str) -> bool:
    mine, other = stored[row.task_id], stored[rival.task_id]
    if (mine["fetched_at"] > now) != (other["fetched_at"] > now):
        return row.id > rival.id
    return (mine["fetched_at"], mine["generation"]) > (other["fetched_at"], other["generation"])


def _supersede(row: Claimed) -> None:
    if transitions.end(row, State.SUPERSEDED, "newer_result"):
        report_completion(row.task_id)
        results.forget_pending_of(row.task_id, row.generation)
