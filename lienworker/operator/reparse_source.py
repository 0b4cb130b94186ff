"""Read the stored page of a source again: its parcels as the tables of column names make them now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from lienworker.data_folder import DataFolder
from lienworker.db.database import write
from lienworker.errors import PageError, StoreError
from lienworker.outbox.outcomes import as_row, begin_generation
from lienworker.outbox.rows import Claimed
from lienworker.platforms.harvest import Plan
from lienworker.steps.harvest import CHUNK, cursor_of, harvest_of, is_source_page, read_rows
from lienworker.steps.harvest_parcels import PageReader, PageStore, Parcel
from lienworker.store import tasks
from lienworker.store.harvests import results_of_page, stored_parcels
from lienworker.store.pages import page_of, was_purged
from lienworker.store.raw_files import raw_place, read_page


@dataclass(frozen=True, slots=True)
class RereadSource:
    """What the parcels of a page are now: changed ones, and how many are as they were or cannot be read."""

    changed: Sequence[Parcel]
    unchanged: int
    failed: int


def source_page(task_id: str) -> Claimed | None:
    """Return the page of a source that has been read; None for any other task."""
    found = as_row(task_id)
    return found[0] if found and found[1] == "completed" and is_source_page(found[0]) else None


def reread_source(folder: DataFolder, row: Claimed, *, dry_run: bool) -> RereadSource:
    """Read a page again and store the parcels that have changed, each as another generation."""
    page, harvest = page_of(row.task_id, row.generation), harvest_of(row)
    if page is None or harvest is None or was_purged(page):
        return RereadSource((), 0, 1)
    try:
        body = read_page(raw_place(folder.root, page.path), page.sha256)
        rows = read_rows(harvest, cursor_of(row), body).rows
    except (PageError, StoreError):
        return RereadSource((), 0, 1)
    reader = PageReader(harvest, Plan.from_json(harvest.plan), date.fromisoformat(page.fetched_at[:10]))
    found = [reader.parcel(index, each) for index, each in enumerate(rows)]
    parcels = [item for item in found if isinstance(item, Parcel)]
    changed = _changed(row.task_id, parcels)
    if not dry_run:
        store = PageStore(row, page, harvest)
        for start in range(0, len(changed), CHUNK):
            _store(store, changed[start : start + CHUNK])
    return RereadSource(changed, len(parcels) - len(changed), len(found) - len(parcels))


def _changed(page_task: str, parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return the parcels whose results differ: those that this page gave, and those that nothing has given yet.

    What a later page has said of a parcel since stays.
    """
    before = results_of_page(page_task)
    changed = []
    for parcel in parcels:
        task_id, data = before.get(parcel.index, ("", ""))
        is_new = not task_id and not stored_parcels([parcel.task_id])
        if is_new or (task_id == parcel.task_id and data != json.dumps(parcel.data)):
            changed.append(parcel)
    return changed


def _store(store: PageStore, parcels: Sequence[Parcel]) -> None:
    with write("reparse_source"):
        known = stored_parcels([parcel.task_id for parcel in parcels])
        new = [parcel for parcel in parcels if parcel.task_id not in known]
        again = [
            parcel
            for parcel in parcels
            if parcel.task_id in known and known[parcel.task_id].source_task == store.row.task_id
        ]
        store.add_tasks(new)
        store.deliver([(parcel, 1) for parcel in new])
        store.deliver([(parcel, begin_generation(parcel.task_id, 0)) for parcel in again])
        tasks.mark_completed(*(parcel.task_id for parcel in again))
