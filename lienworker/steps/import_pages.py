"""Pages that a person saved become tasks with their pages already there: parsed and delivered, never fetched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import write
from lienworker.errors import InputError
from lienworker.intake.fields import check_county, check_parcel_id, check_platform, check_state
from lienworker.intake.rows import BadRowError, Defaults, Reject, RejectsFile
from lienworker.intake.saved import SavedPage, read_saved
from lienworker.intake.urls import UrlChecker
from lienworker.outbox.registration import register_pages
from lienworker.platforms import Registry
from lienworker.platforms.catalog.registry import FALLBACK
from lienworker.steps.import_file import BatchImport, How
from lienworker.store.imports import record_progress
from lienworker.store.pages import PAGE, PageRecord
from lienworker.store.raw_files import PageKey, WrittenPage, put_in_place, write_aside
from lienworker.store.tasks import DEFAULT_PRIORITY, NewTask, Source

#: Pages in one transaction; each is in a file of its own before.
_BATCH = 50
_PART = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
#: What an archive of ours may say of a task.
_TOLD = {
    "platform": check_platform,
    "state": check_state,
    "county": check_county,
    "parcel_id": check_parcel_id,
}


@dataclass(slots=True)
class Prepared:
    """A task with its pages in temporary files: one, or all parts of a parcel."""

    task: NewTask
    pages: list[tuple[WrittenPage, SavedPage]]


class PageImporter(BatchImport):
    """The import of saved pages."""

    unit = "page"

    def __init__(self, folder: DataFolder, registry: Registry, source: Path, how: How, most_bytes: int) -> None:
        super().__init__(str(source), how)
        self._folder = folder
        self._registry = registry
        self._source = source
        self._most_bytes = most_bytes

    def _batches(self, rejects: RejectsFile) -> Iterator[list[Prepared]]:
        batch: list[Prepared] = []
        for item in read_saved(self._source, self._most_bytes):
            self.tally.rows += 1
            if isinstance(item, Reject):
                self.tally.rejected += 1
                if self._how.strict:
                    raise InputError(f"{self.name}, page {item.line}: {item.detail} (stopped: --strict)")
                rejects.write(item)
                continue
            task = task_of(self._registry, item, self._how.defaults)
            is_part = bool(batch) and item.task.get("position") and batch[-1].task.task_id == task.task_id
            # The same address again is another round of its task: in one transaction the first would lose its page.
            is_again = not is_part and any(other.task.task_id == task.task_id for other in batch)
            if is_again or (len(batch) >= _BATCH and not is_part):
                yield batch
                batch = []
            page = self._prepare(task, item)
            if is_part:
                batch[-1].pages.append(page)
            else:
                batch.append(Prepared(task, [page]))
                self.tally.urgent += task.queue == "urgent"
                self.tally.placeless += not (task.state and task.county)
        yield batch

    def _prepare(self, task: NewTask, page: SavedPage) -> tuple[WrittenPage, SavedPage]:
        """Write the page aside, so that a batch holds no bodies."""
        platform = task.platform or (found.name if (found := self._registry.for_url(task.url)) else FALLBACK)
        key = PageKey(platform, task.state or "", task.county or "", task.parcel_id or "", task.task_id)
        return write_aside(self._folder, key, page.body, page.content_type), replace(page, body=b"")

    def _store(self, batch: list[Prepared]) -> None:
        assert self.import_id is not None
        put_in_place([page for item in batch for page, _ in item.pages])
        for item in batch:
            item.task.import_id = self.import_id
        with write("import_pages"):
            done = register_pages([(item.task, self._records(item)) for item in batch])
            self.tally.count(done)
            record_progress(self.import_id, self.tally)

    def _records(self, item: Prepared) -> list[PageRecord]:
        return [self._record(item.task, position, *page) for position, page in enumerate(item.pages)]

    def _record(self, task: NewTask, position: int, page: WrittenPage, saved: SavedPage) -> PageRecord:
        return PageRecord(
            task_id=task.task_id,
            generation=1,
            path=str(page.path.relative_to(self._folder.root)),
            sha256=page.sha256,
            size=page.size,
            url=saved.url or task.url,
            status=200,
            content_type=saved.content_type,
            charset=saved.charset,
            etag=None,
            last_modified=None,
            fetched_at=_moment(saved.fetched_at),
            fetch_ms=0,
            part=_part_of(saved),
            position=position,
        )


def task_of(registry: Registry, page: SavedPage, defaults: Defaults) -> NewTask:
    """Return the task of a page: by its address, or by its content where it has none."""
    told = _told(page)
    url = _address_of_task(page) or page.url or _no_address(page)
    platform = told.get("platform") or defaults.platform
    place = registry.place(platform or (found.name if (found := registry.for_url(url)) else FALLBACK), url)
    target = page.task.get("target")
    return NewTask(
        source=Source.SAVED,
        url=url,
        platform=platform,
        state=told.get("state") or defaults.state or place.state,
        county=told.get("county") or defaults.county or place.county,
        parcel_id=told.get("parcel_id"),
        queue=defaults.queue or "default",
        priority=defaults.priority or DEFAULT_PRIORITY,
        target=target if isinstance(target, dict) else {},
        task_id="" if page.url else f"s-{hashlib.blake2b(page.body, digest_size=16).hexdigest()}",
    )


def _told(page: SavedPage) -> dict[str, str]:
    """What an archive says of the task, as far as a list might say it, too: anybody can write an archive."""
    told: dict[str, str] = {}
    for name, check in _TOLD.items():
        with suppress(BadRowError):
            if page.task.get(name) and (value := check(page.task[name])):
                told[name] = value
    return told


def _address_of_task(page: SavedPage) -> str | None:
    """The address that an archive of ours gives for all parts of a parcel, if it is one."""
    try:
        return UrlChecker()(page.task.get("url"))
    except BadRowError:
        return None


def _no_address(page: SavedPage) -> str:
    """A name for a page without an address; nobody can fetch it."""
    return f"saved://page/{quote(page.name or 'page')[:200]}"


def _part_of(saved: SavedPage) -> str:
    named = saved.task.get("part")
    return named if isinstance(named, str) and _PART.fullmatch(named) else PAGE


def _moment(said: str | None) -> str:
    """Return when a page was saved, as the store writes it; a clock that runs ahead is not believed."""
    try:
        return rfc3339(min(to_ms(said or ""), now_ms()))
    except (ValueError, OverflowError, OSError):
        return rfc3339()
