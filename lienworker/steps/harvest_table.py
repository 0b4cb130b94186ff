"""The harvest of a table in a file: its pages are stored at once, since nobody has to be asked for them.

Each page begins with its scrape row. What a kill left out, the same command again adds: a harvest of the same file that
is not over goes on, and pages that are there are known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.database import write
from lienworker.errors import InputError
from lienworker.intake.pieces import Piece, pieces_of
from lienworker.outbox.registration import register_pages
from lienworker.platforms.harvest import Cursor, Plan
from lienworker.platforms.harvest.table import parcel_of
from lienworker.steps.harvest import page_task
from lienworker.store import harvests
from lienworker.store.harvests import HarvestRecord
from lienworker.store.pages import PageRecord
from lienworker.store.raw_files import PageKey, WrittenPage, put_in_place, write_aside
from lienworker.store.tasks import NewTask

#: Pages in one transaction.
_GROUP = 10


class TableHarvest:
    """The pages of one file."""

    def __init__(self, folder: DataFolder, path: Path, encoding: str | None, new: HarvestRecord, plan: Plan) -> None:
        self._folder = folder
        self._path = path
        self._encoding = encoding
        self._plan = plan
        self._harvest = new

    def run(self, progress: Callable[[int], None] = lambda rows: None) -> int:
        """Store all pages; return the harvest's number."""
        before = _stamp(self._path)
        with write("begin_table"):
            self._harvest = _begun(self._harvest)
        rows = 0
        pieces = self._pieces()
        while group := list(islice(pieces, _GROUP)):
            self._store(group)
            rows += sum(len(piece.rows) for _, piece in group)
            progress(rows)
        with write("end_table"):
            if _stamp(self._path) != before:
                harvests.add_notes(self._harvest.id, ["The file was changed while it was read. Harvest it again."])
            harvests.set_announced(self._harvest.id, rows)
            harvests.page_read(self._harvest.id)  # the one that stood for all that were still to come
        return self._harvest.id

    def _pieces(self) -> Iterator[tuple[Cursor, Piece]]:
        plan, left = self._plan, self._plan.limit
        pieces = pieces_of(str(self._path), self._encoding, plan.size, lambda header, row: parcel_of(plan, header, row))
        for number, piece in enumerate(pieces, 1):
            if left is not None:
                piece = Piece(piece.header, piece.rows[: max(0, left - piece.before)], piece.before)
            if not piece.rows:
                return
            yield Cursor(number, piece.before, plan.size, read=piece.before), piece

    def _store(self, group: list[tuple[Cursor, Piece]]) -> None:
        made = [self._page(cursor, piece) for cursor, piece in group]
        put_in_place([written for _, written in made])
        with write("harvest_table"):
            done = register_pages([(task, [self._record(task, written)]) for task, written in made])
            harvests.page_added(self._harvest.id, made[-1][0].task_id, done.added)

    def _page(self, cursor: Cursor, piece: Piece) -> tuple[NewTask, WrittenPage]:
        task = page_task(self._harvest, self._plan, cursor)
        key = PageKey(self._harvest.platform, self._harvest.state, self._harvest.county, "", task.task_id)
        return task, write_aside(self._folder, key, piece.to_bytes(), "text/csv")

    def _record(self, task: NewTask, written: WrittenPage) -> PageRecord:
        return PageRecord(
            task_id=task.task_id,
            generation=1,
            path=str(written.path.relative_to(self._folder.root)),
            sha256=written.sha256,
            size=written.size,
            url=task.url,
            status=200,
            content_type="text/csv",
            charset="utf-8",
            etag=None,
            last_modified=None,
            fetched_at=rfc3339(),
            fetch_ms=0,
        )


def _begun(new: HarvestRecord) -> HarvestRecord:
    """Return the harvest with its number: one that was cut off goes on. Part of a larger transaction."""
    known = harvests.unfinished_harvest(new.url, new.state, new.county)
    if known is None:
        known = harvests.add_harvest(new, None)
        harvests.keep_open(known)
    elif harvests.is_complete(known):
        raise InputError(f"Harvest {known} of this file is not over: `lienworker harvests list` shows it.")
    return replace(new, id=known)


def _stamp(path: Path) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns
