"""A person says where parcels are whose lists did not: what was parked for want of it goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, write
from lienworker.outbox.keys import Filled, Keys, fill_keys
from lienworker.platforms import Registry
from lienworker.store.audit import record_action
from lienworker.store.pending import make_again

#: Tasks in one transaction, so that workers get their turn in between.
_CHUNK = 500


def keys_to_fill(registry: Registry, task_ids: Sequence[str], given: Keys) -> dict[str, Keys]:
    """Return what each task is to learn: what a person says, else what its address is known to tell."""
    found: dict[str, Keys] = {}
    for task_id in task_ids:
        rows = all_rows("SELECT url, platform FROM tasks WHERE task_id = ?", (task_id,))
        if rows:
            told = registry.place(rows[0][1], rows[0][0])
            found[task_id] = Keys(given.state or told.state, given.county or told.county)
    return found


def fill(folder: DataFolder, known: Mapping[str, Keys], what: str) -> Filled:
    """Fill in keys, a chunk a transaction, and make the files in `pending/` again that name them."""
    task_ids, released = list(known), 0
    changed: list[str] = []
    for start in range(0, len(task_ids), _CHUNK):
        with write("by_hand"):
            filled = fill_keys({task_id: known[task_id] for task_id in task_ids[start : start + _CHUNK]})
            if filled.task_ids:
                record_action("fill", what, len(filled.task_ids))
        for task_id in filled.task_ids:
            make_again(folder, task_id)
        changed += filled.task_ids
        released += filled.released
    return Filled(tuple(changed), released)
