"""Parse stored pages with the current parsers: nothing is fetched, and only what has changed is delivered again."""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.database import write
from lienworker.errors import PageError, StoreError, as_value
from lienworker.operator.reparse_source import reread_source, source_page
from lienworker.outbox.outcomes import as_row, begin_generation
from lienworker.outbox.rows import Claimed
from lienworker.platforms import ParsedPage, Registry
from lienworker.platforms.catalog.guarded import parse_guarded
from lienworker.steps import drift
from lienworker.steps.ranges import UsualSizes
from lienworker.steps.scrape import Scraped, deliver, has_to_learn, result_of, show_pending, sightings, target_of
from lienworker.steps.stored_page import stored_parts
from lienworker.store import tasks
from lienworker.store.history import Place
from lienworker.store.pages import PageRecord, page_behind_result, page_of, pages_of, was_purged
from lienworker.store.pending import write_pending
from lienworker.store.results import NewResult, result, save_result
from lienworker.store.runs import PageFilter, RunPage, add_page, finish_run, record_counts, start_run, tasks_with_pages

#: Pages in one transaction.
_GROUP = 50
_ABOUT = ("parcel_id", "platform", "state", "county")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What a run has done so far. `failed` pages yielded no record; what was stored of them stays."""

    pages: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    healed: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("pages", "changed", "unchanged", "failed")}


@dataclass(frozen=True, slots=True)
class Reread:
    """A stored page with what the parser makes of it now and what is stored of it."""

    scraped: Scraped
    status: str
    has_changed: bool


class Reparse:
    """One pass over stored pages."""

    def __init__(self, folder: DataFolder, registry: Registry, wanted: PageFilter, *, dry_run: bool = False) -> None:
        self.run_id: int | None = None
        self.tally = Tally()
        self._folder = folder
        self._registry = registry
        self._wanted = wanted
        self._dry_run = dry_run
        self._versions: dict[str, str] = {}
        self._seen: dict[Place, list[tuple[str, int]]] = defaultdict(list)

    def work(self, progress: Callable[[int, int], None] = lambda done, total: None) -> Tally:
        ids = tasks_with_pages(self._wanted)
        if ids and not self._dry_run:  # a run without pages is not worth recording
            self.run_id = start_run("reparse", self._wanted.in_words())
        for start in range(0, len(ids), _GROUP):
            group = [task_id for task_id in ids[start : start + _GROUP] if not self._take_source(task_id)]
            self._take([item for item in map(self._reread, group) if item])
            progress(min(start + _GROUP, len(ids)), len(ids))
        if self.run_id is not None:
            finish_run(self.run_id)
            self.tally.healed = [place.in_words() for place, seen in self._seen.items() if _is_healed(place, seen)]
            drift.release_stale_holds()
        return self.tally

    def _take_source(self, task_id: str) -> bool:
        """Read the page of a source again, whose parcels count one each; return whether it was one."""
        row = source_page(task_id)
        if row is None:
            return False
        done = reread_source(self._folder, row, dry_run=self._dry_run)
        self.tally.changed += len(done.changed)
        self.tally.unchanged += done.unchanged
        self.tally.failed += done.failed
        self.tally.pages += len(done.changed) + done.unchanged + done.failed
        return True

    def _reread(self, task_id: str) -> Reread | None:
        """Parse a page again; return None where the task has moved on, or its page belongs to another platform."""
        found = as_row(task_id)
        if found is None or found[1] not in ("completed", "failed"):
            return None
        row, status = found
        page = page_behind_result(task_id) if status == "completed" else page_of(task_id, row.generation)
        if page is None:
            return None
        started = time.perf_counter()
        outcome = self._parse(row, pages_of(task_id, page.generation))
        platform = outcome.platform if isinstance(outcome, ParsedPage) else row.asked_platform
        if self._wanted.platform and platform not in (None, self._wanted.platform):
            return None
        scraped = Scraped(row, page, outcome, int(1000 * (time.perf_counter() - started)))
        return Reread(scraped, status, self._has_changed(scraped, result(task_id) if status == "completed" else None))

    def _has_changed(self, scraped: Scraped, before: dict[str, Any] | None) -> bool:
        if isinstance(scraped.outcome, PageError):
            return False
        if before is None:
            return True
        new = result_of(self._registry, scraped, UsualSizes())
        if any(getattr(new, name) != before[name] for name in _ABOUT):
            return True
        return bool(json.loads(json.dumps(new.data)) != before["data"])

    def _parse(self, row: Claimed, parts: list[PageRecord]) -> ParsedPage | PageError:
        try:
            return parse_guarded(self._registry, stored_parts(self._folder.root, parts), target_of(row))
        except PageError as problem:
            return as_value(problem)
        except StoreError as problem:
            return PageError("raw_page_damaged", str(problem))

    def _take(self, group: list[Reread]) -> None:
        for item in group:
            self._count(item)
        if self._dry_run or not group:
            return
        # Made once: the file for people must equal the row, to the millisecond.
        usual = UsualSizes()
        made = {
            item.scraped.row.task_id: result_of(self._registry, item.scraped, usual)
            for item in group
            if item.has_changed
        }
        for changed in made.values():
            show_pending(self._folder, changed)
        with write("reparse"):
            late = [item for item in group if not self._store(item, made.get(item.scraped.row.task_id))]
            assert self.run_id is not None
            record_counts(self.run_id, self.tally.counts(), self._versions)
        self._put_back(late)

    def _count(self, item: Reread) -> None:
        outcome = item.scraped.outcome
        self.tally.pages += 1
        if isinstance(outcome, PageError):
            self.tally.failed += 1
        else:
            self._versions[outcome.platform] = outcome.version
            name = "changed" if item.has_changed else "unchanged"
            setattr(self.tally, name, getattr(self.tally, name) + 1)
        for sighting in sightings([item.scraped]):
            assert item.scraped.page is not None
            self._seen[sighting.place].append((item.scraped.page.fetched_at, sighting.mask))

    def _store(self, item: Reread, changed: NewResult | None) -> bool:
        """Store a changed result; return False where a refresh was quicker or a purge has removed the page."""
        row, page, outcome = item.scraped.row, item.scraped.page, item.scraped.outcome
        now = as_row(row.task_id)
        if now is None or (now[0].generation, now[1]) != (row.generation, item.status):
            return False
        if page is None or was_purged(page):  # its result could not be delivered without its page
            return False
        assert self.run_id is not None
        add_page(self.run_id, _run_page(row, outcome))
        if changed:
            generation = begin_generation(row.task_id, page.generation)
            again = replace(row, generation=generation)
            stored = replace(changed, generation=generation)
            save_result(stored)
            tasks.learn_keys([stored] if has_to_learn(row, stored) else [])
            tasks.mark_completed(row.task_id)
            deliver([(again, stored)])
            for sighting in sightings([item.scraped]):
                drift.hold_uploads(sighting)
        return True

    def _put_back(self, late: list[Reread]) -> None:
        """Restore the files for people to what is stored."""
        for item in late:
            stored = result(item.scraped.row.task_id)
            if stored and stored["json_path"]:
                write_pending(self._folder, stored)


def _is_healed(place: Place, seen: list[tuple[str, int]]) -> bool:
    """Return whether a paused county resumes: its newest pages decide, since older ones were never affected."""
    return drift.resume(place, [mask for _, mask in sorted(seen)])


def _run_page(row: Claimed, outcome: ParsedPage | PageError) -> RunPage:
    about = (row.state, row.county, row.parcel_id)
    if isinstance(outcome, PageError):
        return RunPage(row.task_id, row.platform, *about, outcome.reason, None)
    return RunPage(row.task_id, outcome.platform, *about, None, outcome.record)
