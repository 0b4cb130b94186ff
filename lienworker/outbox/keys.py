"""The keys of a result, filled in where its task came without them.

The Gateway stores a result by platform, state, county and parcel id. A list of bare addresses names none of them, and
not every page does. Such a result is parked as `incomplete_key`; once somebody says what is missing, it goes out.
What a task or a result says already is never changed: another key is another parcel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lienworker.db.database import all_rows, execute_many, one_row
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import held_or_waiting, parcel_key

_LACKING = """
SELECT t.task_id FROM tasks t LEFT JOIN results r ON r.task_id = t.task_id
WHERE t.task_id IN (SELECT value FROM json_each(?)) AND (
    coalesce(t.state, '') = '' OR coalesce(t.county, '') = '' OR coalesce(t.parcel_id, '') = ''
    OR r.task_id IS NOT NULL AND (
        coalesce(r.state, '') = '' OR coalesce(r.county, '') = '' OR coalesce(r.parcel_id, '') = ''))
"""
_FILL = (
    "state = coalesce(nullif(state, ''), ?1), county = coalesce(nullif(county, ''), ?2),"
    " parcel_id = coalesce(nullif(parcel_id, ''), ?3) WHERE task_id = ?4 AND (coalesce(state, '') = '' AND ?1 <> ''"
    " OR coalesce(county, '') = '' AND ?2 <> '' OR coalesce(parcel_id, '') = '' AND ?3 <> '')"
)


@dataclass(frozen=True, slots=True)
class Keys:
    """What is known of a parcel now; None for what is not."""

    state: str | None = None
    county: str | None = None
    parcel_id: str | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.state or self.county or self.parcel_id)


@dataclass(frozen=True, slots=True)
class Filled:
    """Tasks that learned a key, and how many results were parked for it and go out now."""

    task_ids: tuple[str, ...] = ()
    released: int = 0


def fill_keys(known: Mapping[str, Keys]) -> Filled:
    """Fill in what tasks and their results lack. Part of a larger transaction.

    The files in `pending/` are the caller's to make again afterwards.
    """
    wanted = {task_id: keys for task_id, keys in known.items() if not keys.is_empty}
    lacking = [row[0] for row in all_rows(_LACKING, (json.dumps(list(wanted)),))] if wanted else []
    changed = [task_id for task_id in lacking if _fill(task_id, wanted[task_id])]
    return Filled(tuple(changed), _release(changed))


def _fill(task_id: str, keys: Keys) -> bool:
    values = (keys.state, keys.county, keys.parcel_id, task_id)
    changed = execute_many(f"UPDATE tasks SET {_FILL}", [values])
    return bool(changed + execute_many(f"UPDATE results SET {_FILL}", [values]))


def _release(task_ids: Sequence[str]) -> int:
    """Let the results go whose keys are whole now; return how many were parked for it."""
    state, reason = held_or_waiting()
    released = 0
    for task_id in task_ids:
        row = one_row("SELECT platform, state, county, parcel_id FROM results WHERE task_id = ?", (task_id,))
        key = parcel_key(*row) if row else None
        if key:
            released += transitions.complete_key(task_id, key, state, reason)
    return released
