"""Storing what was fetched: a group of rows in one transaction, each row by itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, write
from lienworker.fetching import Fetched, FetchFailed, FetchOutcome
from lienworker.logs import about_task
from lienworker.outbox import closing, pacing, transitions
from lienworker.outbox.backoff import RetryPolicy, TryAgain
from lienworker.outbox.rows import Claimed, Entry
from lienworker.outbox.states import Topic
from lienworker.store import tasks
from lienworker.store.pages import PageRecord, file_is_back, page_behind_result, save_page
from lienworker.store.raw_files import WrittenPage, put_in_place
from lienworker.store.results import confirm_result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A row whose page has come, or has not; the page is written aside already."""

    row: Claimed
    outcome: FetchOutcome
    page: WrittenPage | None = None
    #: What the site's robots.txt asks for; a task's own proxy is not believed.
    crawl_delay: float | None = None


def store_fetches(folder: DataFolder, retries: RetryPolicy, arrived: Sequence[Arrived]) -> None:
    """Put pages into their places, then store the rows that name them; reading is left to the scrape lane."""
    put_in_place([item.page for item in arrived if item.page])
    with write("fetch"):
        leave_pages(store_in_transaction(folder, retries, arrived))


def leave_pages(pages: Sequence[tuple[Claimed, PageRecord]]) -> None:
    """A scrape row for each page, for whoever comes."""
    transitions.add(
        [
            Entry(Topic.SCRAPE, row.task_id, row.generation, row.queue, row.priority, payload=_payload(row))
            for row, _ in pages
        ]
    )


def _payload(row: Claimed) -> dict[str, Any] | None:
    return json.loads(row.payload) if row.payload else None


def store_in_transaction(
    folder: DataFolder, retries: RetryPolicy, arrived: Sequence[Arrived]
) -> list[tuple[Claimed, PageRecord]]:
    """Store what came for each row; return the new pages, which are to be read, with the rows that fetched them."""
    for host in {item.row.host for item in arrived if not isinstance(item.outcome, FetchFailed)}:
        pacing.note_answer(host, now_ms())
    for host, delay in {item.row.host: item.crawl_delay for item in arrived if item.crawl_delay}.items():
        pacing.slow_down(host, delay)
    fresh = [item for item in arrived if _is_fresh(folder, retries, item)]
    mine = transitions.end_all([item.row for item in fresh])
    # Where somebody else has the row, the page stays on disk, but nothing speaks of it.
    pages = [(item.row, _record(folder, item)) for item in fresh if item.row.id in mine]
    save_page(*(page for _, page in pages))
    return pages


def _is_fresh(folder: DataFolder, retries: RetryPolicy, item: Arrived) -> bool:
    """Whether a page came that wants to be read. All other outcomes are stored here."""
    row, outcome = item.row, item.outcome
    if isinstance(outcome, FetchFailed):
        _store_failure(retries, row, outcome)
        return False
    known = page_behind_result(row.task_id) if item.page and row.generation > 1 else None
    if item.page and not (known and known.sha256 == item.page.sha256):
        return True
    if transitions.end(row, reason="unchanged" if item.page else "not_modified"):
        if item.page and known:
            file_is_back(row.task_id, known.generation, _path(folder, item.page))
        _confirm(row)
    return False


def _record(folder: DataFolder, item: Arrived) -> PageRecord:
    fetched, page = item.outcome, item.page
    assert isinstance(fetched, Fetched)
    assert page is not None
    return PageRecord(
        task_id=item.row.task_id,
        generation=item.row.generation,
        path=_path(folder, page),
        sha256=page.sha256,
        size=page.size,
        url=fetched.url,
        status=fetched.status,
        content_type=fetched.content_type,
        charset=fetched.charset,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        fetched_at=rfc3339(),
        fetch_ms=fetched.elapsed_ms,
    )


def _path(folder: DataFolder, page: WrittenPage) -> str:
    return str(page.path.relative_to(folder.root))


def _confirm(row: Claimed) -> None:
    """The page is what it was: the result stands, and nothing goes further."""
    confirm_result(row.task_id)
    tasks.mark_completed(row.task_id)
    extra = about_task("confirmed", row.task_id, row.topic, platform=row.platform, county=row.county)
    after_commit(lambda: logger.info("confirmed %s: the page has not changed", row.task_id, extra=extra))


def _store_failure(retries: RetryPolicy, row: Claimed, failed: FetchFailed) -> None:
    now = now_ms()
    if failed.host_fault:
        pacing.note_failure(row.host, now, failed.reason, failed.retry_after)
    else:
        pacing.note_answer(row.host, now)
    decision = retries.after(row.attempts + 1, retryable=failed.retryable)
    if isinstance(decision, TryAgain):
        closing.try_again(row, decision.after_ms, failed.reason, failed.detail)
    elif closing.fail(row, failed.reason, failed.detail):
        closing.say_failed(row.task_id, row.topic, failed.reason)
