"""Storing what was scraped: results, the rows that deliver them, and pages to be fetched again."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, storable, write
from lienworker.errors import PageError
from lienworker.hostnames import host_of, route_of
from lienworker.logs import about_task
from lienworker.outbox import closing, transitions
from lienworker.outbox.backoff import RetryPolicy, TryAgain
from lienworker.outbox.closing import say_failed
from lienworker.outbox.deliveries import deliver_result, parcel_key
from lienworker.outbox.rows import Claimed, Entry
from lienworker.outbox.states import Topic
from lienworker.platforms import ParsedPage, Registry
from lienworker.platforms.catalog.lists import is_list
from lienworker.steps import drift
from lienworker.steps.drift import Sighting
from lienworker.steps.fill_rates import mask_of
from lienworker.steps.follow import add_parcels, parcels_wanted
from lienworker.steps.watchdog import Watchdog
from lienworker.store import tasks
from lienworker.store.history import Place, likely_platform
from lienworker.store.pages import PageRecord
from lienworker.store.pending import pending_path, write_pending
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask

#: Pages that came, but gave nothing: the parser may have lost its way.
_GIVES_NOTHING = frozenset(
    {"not_a_parcel", "parser_error", "parser_failed", "empty_page", "map_shell", "search_form", "disclaimer"}
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScrapeContext:
    """What parsing a page and storing its result needs."""

    folder: DataFolder
    registry: Registry
    retries: RetryPolicy
    watchdog: Watchdog
    #: Held while a heavy page is parsed in the child and its result stored: one at a time in a process.
    one_heavy: threading.Lock


@dataclass(frozen=True, slots=True)
class Scraped:
    """A row with what its page gave."""

    row: Claimed
    page: PageRecord | None
    outcome: ParsedPage | PageError
    parse_ms: int


@dataclass(frozen=True, slots=True)
class ReadyToStore:
    """A group with all that is made outside the transaction: the results, their files for people, listed parcels."""

    group: Sequence[Scraped]
    results: dict[int, NewResult]
    followed: dict[int, list[NewTask]]


def make_ready(context: ScrapeContext, group: Sequence[Scraped]) -> ReadyToStore:
    results = {item.row.id: result_of(item) for item in group if isinstance(item.outcome, ParsedPage)}
    for result in results.values():
        show_pending(context.folder, result)
    followed = {item.row.id: parcels for item in group if (parcels := _parcels_of(context, item))}
    return ReadyToStore(group, results, followed)


def store_in_transaction(context: ScrapeContext, ready: ReadyToStore) -> list[Place]:
    """Stores a group, each row by itself; gives the places whose fetches are to be held once that is committed."""
    for item in ready.group:
        if isinstance(item.outcome, PageError):
            _store_failure(context, item.row, item.outcome)
    made = [(item.row, ready.results[item.row.id]) for item in ready.group if item.row.id in ready.results]
    for row_id in _store_results(made) & ready.followed.keys():
        add_parcels(context.registry, ready.followed[row_id])
    return drift.watch(sightings(ready.group))


def store_scrapes(context: ScrapeContext, group: Sequence[Scraped]) -> None:
    """The files for people first, then everything else in one transaction."""
    if not group:
        return
    ready = make_ready(context, group)
    with write("scrape"):
        drifting = store_in_transaction(context, ready)
    drift.hold_fetches(drifting)


def show_pending(folder: DataFolder, result: NewResult) -> None:
    """The file for people; a list has none, for there is nothing to ship."""
    if result.json_path is not None:
        write_pending(folder, result.as_row())


def result_of(item: Scraped) -> NewResult:
    """What the task says about its parcel comes first; what it does not say, the page does."""
    assert isinstance(item.outcome, ParsedPage)
    assert item.page is not None
    row, record = item.row, item.outcome.record
    stays_here = is_list(record)
    return NewResult(
        task_id=row.task_id,
        generation=row.generation,
        parcel_id=row.parcel_id or _text(record.get("parcel_id")),
        platform=item.outcome.platform,
        state=row.state or _text(record.get("state")),
        county=row.county or _text(record.get("county")),
        data=record,
        json_path=None if stays_here else pending_path(row.task_id),
        html_path=item.page.path,
        raw_sha256=item.page.sha256,
        fetched_at=item.page.fetched_at,
        parser_version=item.outcome.version,
        scraped_at=rfc3339(),
        parse_duration_ms=item.parse_ms,
        stays_here=stays_here,
    )


def _text(value: object) -> str | None:
    return storable(str(value)) if value not in (None, "") else None


def _parcels_of(context: ScrapeContext, item: Scraped) -> list[NewTask]:
    if '"follow"' not in item.row.target_json or isinstance(item.outcome, PageError) or item.page is None:
        return []
    return parcels_wanted(context.folder, context.registry, item.row.target, item.outcome.record, item.page)


def _store_results(made: Sequence[tuple[Claimed, NewResult]]) -> set[int]:
    """Of the rows that are still ours, whose ids it gives; the others' results are somebody else's to store."""
    mine = transitions.end_all([row for row, _ in made])
    kept = [(row, result) for row, result in made if row.id in mine]
    save_result(*(result for _, result in kept))
    tasks.mark_completed(*(row.task_id for row, _ in kept), tries=1)
    deliver(kept)
    after_commit(lambda: _say_completed(kept))
    return mine


def _say_completed(kept: Sequence[tuple[Claimed, NewResult]]) -> None:
    for row, result in kept:
        logger.info(
            "completed %s: %s %s",
            row.task_id,
            result.platform,
            result.parcel_id,
            extra=about_task("completed", row.task_id, row.topic, platform=result.platform, county=result.county),
        )


def deliver(made: Sequence[tuple[Claimed, NewResult]]) -> None:
    """The rows that bring results to the Gateway. A list has no parcel of its own to deliver: it stays here."""
    deliver_result(
        *(
            (row, parcel_key(result.platform, result.state, result.county, result.parcel_id))
            for row, result in made
            if not result.stays_here
        )
    )


def sightings(group: Sequence[Scraped]) -> Iterator[Sighting]:
    """What the drift guard learns from these pages; trouble of the site's own is none of its business."""
    for item in group:
        row, path = item.row, item.page.path if item.page else ""
        host = host_of(row.url)
        if isinstance(item.outcome, ParsedPage):
            place = Place(item.outcome.platform, row.state, row.county, host)
            yield Sighting(place, row.task_id, mask_of(item.outcome.record), path)
        elif item.outcome.reason in _GIVES_NOTHING and item.page:
            platform = row.platform or likely_platform(row.state, row.county, host)
            if platform:
                yield Sighting(Place(platform, row.state, row.county, host), row.task_id, 0, path)


def _store_failure(context: ScrapeContext, row: Claimed, problem: PageError) -> None:
    """A page that may be better next time is fetched again, as a new generation; another ends the task."""
    tries = 1 + (json.loads(row.payload).get("tries", 0) if row.payload else 0)
    decision = context.retries.after(tries, retryable=problem.retryable)
    if isinstance(decision, TryAgain):
        if transitions.end(row, reason=problem.reason):
            _fetch_again(row, problem, tries, decision)
    elif closing.fail(row, problem.reason, problem.detail):
        say_failed(row.task_id, row.topic, problem.reason)


def _fetch_again(row: Claimed, problem: PageError, tries: int, decision: TryAgain) -> None:
    closing.note_try(row.id, row.task_id, row.topic, problem.reason, problem.detail)
    generation = tasks.next_generation(row.task_id)
    tasks.note_attempt(row.task_id, problem.reason, problem.detail)
    transitions.add(
        [
            Entry(
                Topic.FETCH,
                row.task_id,
                generation,
                row.queue,
                row.priority,
                host=route_of(row.url, row.proxy),
                payload={"tries": tries},
                due_at=now_ms() + decision.after_ms,
            )
        ]
    )
