"""A page of a source: many parcels, each a result of its own, stored in short transactions.

One harvest is a chain of pages. Each page is a task with the ordinary rows: `fetch` brings it, `scrape` reads it. The
first transaction of a page's scrape row stores what the page owns (its summary, the one row that uploads its raw file)
and adds the next page's task with its fetch row: that row is the cursor. So the next page is on its way while the
parcels of this one are stored. Every transaction records in the scrape row how far it got, fenced by the lease: a kill
repeats the rows that were not committed, and no other.

A parcel is known by its key, so one that comes again is a refresh: unchanged it is confirmed, changed it is another
generation. Its result names the page and its place there, has no file of its own, and may be sent when the page's raw
file was acknowledged.
"""

from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any

from lienworker.db.database import after_commit, write
from lienworker.errors import PageError, ShortageError, StoreError, as_value
from lienworker.failpoints import failpoint
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import begin_generation, give_back
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.rows import Claimed
from lienworker.platforms.harvest import KINDS, Cursor, Plan, SourcePage, TooMuchError, smaller
from lienworker.steps.harvest_parcels import PageReader, PageStore, Parcel, Rejected
from lienworker.steps.scrape import ScrapeContext, store_page_failure
from lienworker.steps.stored_page import damaged
from lienworker.store import harvests, tasks
from lienworker.store.harvests import Counts, HarvestRecord, StoredParcel
from lienworker.store.pages import PageRecord, page_of
from lienworker.store.raw_files import raw_place, read_page
from lienworker.store.results import confirm_result, save_result
from lienworker.store.tasks import NewTask, Source

#: Parcels in one transaction: it takes some tens of milliseconds, and every other writer waits for it.
CHUNK = 500
#: Where the page of a source belongs whose rows say their counties themselves.
_ALL_COUNTIES = "all counties"

logger = logging.getLogger(__name__)


def is_source_page(row: Claimed) -> bool:
    """Return whether a claimed row is of a page of a harvest."""
    return row.source == Source.HARVEST


def headers_of(row: Claimed) -> dict[str, str]:
    """Return the headers of a page's request: the secret of its source is in no address."""
    found = harvest_of(row)
    if found is None:
        return {}
    return dict(KINDS[found.kind].request(Plan.from_json(found.plan), cursor_of(row), found.secret).headers)


def harvest_of(row: Claimed) -> HarvestRecord | None:
    """Return the harvest that a page belongs to."""
    return harvests.harvest(int(row.target["harvest"]))


def cursor_of(row: Claimed) -> Cursor:
    """Return the place of a page."""
    return Cursor.from_dict(row.target["cursor"])


def page_task(harvest: HarvestRecord, plan: Plan, cursor: Cursor) -> NewTask:
    """Return the task of a page."""
    return NewTask(
        source=Source.HARVEST,
        url=KINDS[harvest.kind].request(plan, cursor, None).url,
        platform=harvest.platform,
        state=harvest.state,
        county=harvest.county or None,
        target={"harvest": harvest.id, "cursor": cursor.to_dict()},
        task_id=f"harvest-{harvest.id}-page-{cursor.number}",
    )


def begin_harvest(new: HarvestRecord, plan: Plan) -> int:
    """Store a harvest with its first page, which is to be fetched; return its number."""
    with write("begin_harvest"):
        harvest_id = harvests.add_harvest(new, plan.expected)
        _add_page(replace(new, id=harvest_id), plan, Cursor(size=plan.size))
    return harvest_id


def _add_page(harvest: HarvestRecord, plan: Plan, cursor: Cursor) -> None:
    """Add the task and the fetch row of a page, unless a repetition has done so. Part of a larger transaction."""
    task = page_task(harvest, plan, cursor)
    if register_in_transaction([task]).added:
        harvests.page_added(harvest.id, task.task_id)


class PageJob:
    """A page that is being stored. `prepare` and `store` in turns, the latter in a transaction, until `is_over`."""

    def __init__(self, row: Claimed, page: PageRecord, harvest: HarvestRecord, found: SourcePage) -> None:
        plan = Plan.from_json(harvest.plan)
        self.row = row
        self.is_over = False
        self._harvest = harvest
        self._plan = plan
        self._found = found
        self._reader = PageReader(harvest, plan, date.fromisoformat(page.fetched_at[:10]))
        self._payload: dict[str, Any] = json.loads(row.payload) if row.payload else {}
        self._store = PageStore(row, page, harvest)
        self._ready: list[Parcel | Rejected] = []

    @property
    def _done(self) -> int:
        return int(self._payload.get("done", 0))

    def prepare(self) -> None:
        """Make the parcels of the next transaction, outside of it."""
        rows = self._found.rows[self._done : self._done + CHUNK]
        with uncollected():
            self._ready = [self._reader.parcel(self._done + n, row) for n, row in enumerate(rows)]

    def store(self) -> None:
        """Store what is prepared. Where another worker has the row, nothing is, and the job is over."""
        is_first = "done" not in self._payload
        self._payload["done"] = self._done + len(self._ready)
        if not transitions.record_progress(self.row, json.dumps(self._payload)):
            self.is_over = True
            return
        if is_first:
            self._begin()
        self._store_parcels()
        if self._done >= len(self._found.rows):
            self._end()

    def _begin(self) -> None:
        """Store what the page owns, and add the next page."""
        data = {"fields": {"rows": str(len(self._found.rows))}}
        county = self._harvest.county or _ALL_COUNTIES
        about = {"generation": self.row.generation, "parcel_id": None, "county": county, "stays_here": True}
        save_result(self._store.result(self.row.task_id, data, **about))
        if self._found.next is not None:
            _add_page(self._harvest, self._plan, self._found.next)
        harvests.add_notes(self._harvest.id, self._found.notes)

    def _store_parcels(self) -> None:
        parcels = [item for item in self._ready if isinstance(item, Parcel)]
        counts = Counts(read=len(self._ready), rejected=len(self._ready) - len(parcels))
        while parcels:
            # A parcel that comes twice is stored twice, one after the other.
            once = {parcel.task_id: parcel for parcel in reversed(parcels)}
            self._store_distinct([parcel for parcel in parcels if once[parcel.task_id] is parcel], counts)
            parcels = [parcel for parcel in parcels if once[parcel.task_id] is not parcel]
        harvests.count_rows_read(self._harvest.id, counts)
        reasons = {item.reason for item in self._ready if isinstance(item, Rejected)}
        harvests.add_notes(self._harvest.id, [f"Rows were rejected: {reason}." for reason in sorted(reasons)])

    def _store_distinct(self, parcels: Sequence[Parcel], counts: Counts) -> None:
        known = harvests.stored_parcels([parcel.task_id for parcel in parcels])
        new = [parcel for parcel in parcels if parcel.task_id not in known]
        changed = [parcel for parcel in parcels if parcel.task_id in known and _has_changed(parcel, known)]
        self._store.add_tasks(new)
        made = [(parcel, 1) for parcel in new]
        made += [(parcel, begin_generation(parcel.task_id, 0)) for parcel in changed]
        tasks.mark_completed(*(parcel.task_id for parcel in changed))
        self._store.deliver(made)
        for task_id in known.keys() - {parcel.task_id for parcel in changed}:
            confirm_result(task_id)
        counts.added += len(new)
        counts.refreshed += len(changed)
        counts.unchanged += len(parcels) - len(made)

    def _end(self) -> None:
        self.is_over = True
        transitions.end(self.row)
        tasks.mark_completed(self.row.task_id, tries=1)
        is_last = harvests.page_read(self._harvest.id)
        after_commit(lambda: _say_read(self._harvest, len(self._found.rows), is_last))


def _has_changed(parcel: Parcel, known: dict[str, StoredParcel]) -> bool:
    return json.dumps(parcel.data) != known[parcel.task_id].data


def _say_read(harvest: HarvestRecord, rows: int, is_last: bool) -> None:
    words = "harvest %d: a page of %d rows is stored" + (", and it was the last" if is_last else "")
    logger.info(words, harvest.id, rows, extra={"action": "harvested"})


@contextmanager
def uncollected() -> Iterator[None]:
    """Put the garbage collector off for some milliseconds.

    It would go through a hundred thousand new objects again and again, none of which is garbage: a fifth of what making
    the parcels of a page costs.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def open_page(context: ScrapeContext, row: Claimed, fresh: tuple[PageRecord, bytes] | None = None) -> PageJob | None:
    """Read a page, from memory or from its file; None where it failed, which is stored then."""
    failpoint("harvest.before_read")
    try:
        page, body = fresh or _stored(context, row)
        harvest = harvest_of(row)
        if harvest is None:
            raise PageError("harvest_lost", "its harvest is not in the store any more")
        with context.watchdog.over(row, ()), uncollected():
            found = read_rows(harvest, cursor_of(row), body)
        return PageJob(row, page, harvest, found)
    except PageError as problem:
        _store_failure(context, row, as_value(problem))
    except StoreError as problem:
        _store_failure(context, row, damaged(problem))
    except (ShortageError, MemoryError):  # the row is given back for later
        raise
    except Exception as problem:  # a bug of ours must not cost the worker, nor the other rows
        logger.warning("the page %s could not be read", row.task_id, exc_info=True, extra={"task_id": row.task_id})
        _store_failure(context, row, PageError("parser_failed", f"{type(problem).__name__}: {problem}"))
    return None


def read_rows(harvest: HarvestRecord, cursor: Cursor, body: bytes) -> SourcePage:
    """Return what a page has; nothing of one that has too much, whose place is asked for again in smaller pieces."""
    plan = Plan.from_json(harvest.plan)
    try:
        return KINDS[harvest.kind].read(plan, cursor, body)
    except TooMuchError:
        return SourcePage(next=smaller(plan, cursor))


def _stored(context: ScrapeContext, row: Claimed) -> tuple[PageRecord, bytes]:
    page = page_of(row.task_id, row.generation)
    if page is None:
        raise StoreError(f"The page of task {row.task_id} is not in the store.")
    return page, read_page(raw_place(context.folder.root, page.path), page.sha256)


def _store_failure(context: ScrapeContext, row: Claimed, problem: PageError) -> None:
    """Fetch the page again, or fail it; a harvest ends there until a person retries the page."""
    with write("harvest_failed"):
        store_page_failure(context, row, problem)


def store_page(context: ScrapeContext, row: Claimed, stopping: threading.Event) -> None:
    """Store a page to its end, or until the process is asked to stop: its row then waits, with how far it got."""
    job = open_page(context, row)
    while job is not None and not job.is_over:
        if stopping.is_set():
            give_back([row])
            return
        job.prepare()
        with write("harvest"):
            job.store()
