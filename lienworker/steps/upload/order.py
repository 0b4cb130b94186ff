"""Order within a parcel: the newest result goes, and none that a newer one has overtaken.

Newer is whose page was fetched later, then the later generation. One upload a parcel at a time.

The wall clock may have been set back since. Where one of two pages was fetched in what is now the future, the later of
their uploads is the newer: rows are numbered in the order in which they came, whatever the clock said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import write
from lienworker.outbox import parcel_order
from lienworker.outbox.rows import Claimed


@dataclass(frozen=True, slots=True)
class Ordered:
    """Claimed results, by what may happen to them now."""

    sendable: list[Claimed]
    superseded: list[Claimed]
    stepped_back: list[Claimed]


def keep_order(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> Ordered:
    """Tell which of the claimed rows may go now. A look after the own claim sees the claims that came before it."""
    ordered = Ordered([], [], [])
    if not rows:
        return ordered
    now = rfc3339()
    overtaken, not_first = parcel_order.overtaken(rows, now), parcel_order.not_first(rows, now)
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
                parcel_order.supersede(row)
            for row in ordered.stepped_back:
                parcel_order.step_back(row)
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
