"""Storing what was scraped: results, the rows that deliver them, and pages to be fetched again."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lienworker.actors.runtime import Runtime
from lienworker.errors import PageError
from lienworker.outbox import closing
from lienworker.outbox.backoff import TryAgain, decide
from lienworker.outbox.deliveries import deliver_result, parcel_key
from lienworker.outbox.entries import Claimed, Entry, add_entries
from lienworker.outbox.registration import host_of
from lienworker.platforms import ParsedPage
from lienworker.store import tasks
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import storable, write
from lienworker.store.pages import PageRecord
from lienworker.store.pending import pending_path, write_pending
from lienworker.store.results import NewResult, save_result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scraped:
    """A row with what its page gave."""

    row: Claimed
    page: PageRecord | None
    outcome: ParsedPage | PageError
    parse_ms: int


def store_scrapes(runtime: Runtime, group: Sequence[Scraped]) -> None:
    """The files for people first, then everything else in one transaction."""
    if not group:
        return
    results = {item.row.id: _result(item) for item in group if isinstance(item.outcome, ParsedPage)}
    for result in results.values():
        write_pending(runtime.folder, result.as_row())
    with write("scrape"):
        for item in group:
            if isinstance(item.outcome, PageError):
                _store_failure(runtime, item.row, item.outcome)
            else:
                _store_result(item.row, results[item.row.id])


def _result(item: Scraped) -> NewResult:
    """What the task says about its parcel comes first; what it does not say, the page does."""
    assert isinstance(item.outcome, ParsedPage)
    assert item.page is not None
    row, record = item.row, item.outcome.record
    return NewResult(
        task_id=row.task_id,
        generation=row.generation,
        parcel_id=row.parcel_id or _text(record.get("parcel_id")),
        platform=item.outcome.platform,
        state=row.state or _text(record.get("state")),
        county=row.county or _text(record.get("county")),
        data=record,
        json_path=pending_path(row.task_id),
        html_path=item.page.path,
        raw_sha256=item.page.sha256,
        fetched_at=item.page.fetched_at,
        parser_version=item.outcome.version,
        scraped_at=rfc3339(),
        parse_duration_ms=item.parse_ms,
    )


def _text(value: object) -> str | None:
    return storable(str(value)) if value not in (None, "") else None


def _store_result(row: Claimed, result: NewResult) -> None:
    if not closing.end(row):
        return  # somebody else has the row
    save_result(result)
    tasks.note_attempt(row.task_id, None, None)
    tasks.mark_completed(row.task_id)
    key = parcel_key(result.platform, result.state, result.county, result.parcel_id)
    deliver_result(row, key)
    logger.info(
        "completed %s: %s %s",
        row.task_id,
        result.platform,
        result.parcel_id,
        extra={"action": "completed", "task_id": row.task_id, "topic": row.topic},
    )


def _store_failure(runtime: Runtime, row: Claimed, problem: PageError) -> None:
    """A page that may be better next time is fetched again, as a new generation; another ends the task."""
    tries = 1 + (json.loads(row.payload)["tries"] if row.payload else 0)
    settings = runtime.settings
    decision = decide(tries, settings.fetch_attempts, settings.retry_delay, retryable=problem.retryable)
    if isinstance(decision, TryAgain):
        if closing.end(row, reason=problem.reason):
            _fetch_again(row, problem, tries, decision)
    elif closing.fail(row, problem.reason, problem.detail):
        logger.info(
            "failed %s: %s",
            row.task_id,
            problem.reason,
            extra={"action": "failed", "task_id": row.task_id, "topic": row.topic},
        )


def _fetch_again(row: Claimed, problem: PageError, tries: int, decision: TryAgain) -> None:
    closing.note_try(row.id, row.task_id, row.topic, problem.reason, problem.detail)
    generation = tasks.next_generation(row.task_id)
    tasks.note_attempt(row.task_id, problem.reason, problem.detail)
    add_entries(
        [
            Entry(
                "fetch",
                row.task_id,
                generation,
                row.queue,
                row.priority,
                host=host_of(row.url),
                payload={"tries": tries},
                due_at=now_ms() + decision.after_ms,
            )
        ]
    )
