"""Storing what was fetched: a group of rows in one transaction, each row by itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lienworker.actors.runtime import Runtime
from lienworker.fetching import Fetched, FetchFailed, FetchOutcome
from lienworker.outbox import closing, pacing
from lienworker.outbox.backoff import TryAgain, decide
from lienworker.outbox.entries import Claimed, Entry, add_entries
from lienworker.store import tasks
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import write
from lienworker.store.folder import DataFolder
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
    crawl_delay: float | None = None


def store_fetches(runtime: Runtime, arrived: Sequence[Arrived]) -> None:
    """Pages into their places first, then the rows that name them."""
    put_in_place([item.page for item in arrived if item.page])
    with write("fetch"):
        for item in arrived:
            _store(runtime, item)


def _store(runtime: Runtime, item: Arrived) -> None:
    if isinstance(item.outcome, FetchFailed):
        _store_failure(runtime, item.row, item.outcome)
        return
    pacing.note_answer(item.row.host, now_ms())
    if item.crawl_delay:
        pacing.slow_down(item.row.host, item.crawl_delay)
    if isinstance(item.outcome, Fetched) and item.page:
        _store_page(runtime.folder, item.row, item.outcome, item.page)
    elif closing.end(item.row, reason="not_modified"):
        _confirm(item.row)


def _store_page(folder: DataFolder, row: Claimed, fetched: Fetched, page: WrittenPage) -> None:
    known = page_behind_result(row.task_id) if row.generation > 1 else None
    if known and known.sha256 == page.sha256:
        if closing.end(row, reason="unchanged"):
            file_is_back(row.task_id, known.generation, str(page.path.relative_to(folder.root)))
            _confirm(row)
        return
    if not closing.end(row):
        return  # somebody else has the row: the page stays on disk, but nothing speaks of it
    save_page(
        PageRecord(
            row.task_id,
            row.generation,
            str(page.path.relative_to(folder.root)),
            page.sha256,
            page.size,
            fetched.url,
            fetched.status,
            fetched.content_type,
            fetched.charset,
            fetched.etag,
            fetched.last_modified,
            rfc3339(),
            fetched.elapsed_ms,
        )
    )
    payload = json.loads(row.payload) if row.payload else None
    add_entries([Entry("scrape", row.task_id, row.generation, row.queue, row.priority, payload=payload)])


def _confirm(row: Claimed) -> None:
    """The page is what it was: the result stands, and nothing goes further."""
    confirm_result(row.task_id)
    tasks.mark_completed(row.task_id)
    logger.info("confirmed %s: the page has not changed", row.task_id, extra=_fields(row, "confirmed"))


def _store_failure(runtime: Runtime, row: Claimed, failed: FetchFailed) -> None:
    now = now_ms()
    if failed.host_fault:
        pacing.note_failure(row.host, now, failed.reason, failed.retry_after)
    else:
        pacing.note_answer(row.host, now)
    settings = runtime.settings
    decision = decide(row.attempts + 1, settings.fetch_attempts, settings.retry_delay, retryable=failed.retryable)
    if isinstance(decision, TryAgain):
        closing.try_again(row, decision.after_ms, failed.reason, failed.detail)
    elif closing.fail(row, failed.reason, failed.detail):
        logger.info("failed %s: %s", row.task_id, failed.reason, extra=_fields(row, "failed"))


def _fields(row: Claimed, action: str) -> dict[str, str]:
    return {"action": action, "task_id": row.task_id, "topic": row.topic}
