"""From a raw page on disk to a result, and the rows that deliver it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, storable, write
from lienworker.errors import PageError, ShortageError, StoreError, as_value
from lienworker.failpoints import failpoint
from lienworker.hostnames import host_of, route_of
from lienworker.logs import about_task
from lienworker.outbox import transitions
from lienworker.outbox.backoff import RetryPolicy, TryAgain
from lienworker.outbox.leases import free_for
from lienworker.outbox.outcomes import (
    deliver_result,
    fail,
    parcel_key,
    record_try,
    say_failed,
)
from lienworker.outbox.rows import Claimed, Entry
from lienworker.outbox.states import Topic
from lienworker.platforms import ParsedPage, Record, Registry, Target
from lienworker.platforms.catalog.guarded import parse_here
from lienworker.platforms.catalog.lists import is_list
from lienworker.platforms.core.addresses import AddressPlace
from lienworker.platforms.core.bounds import MOST_PLAIN_BYTES
from lienworker.platforms.core.doubts import Doubt, doubts_of
from lienworker.steps import drift
from lienworker.steps.drift import Sighting, mask_of
from lienworker.steps.follow import add_parcels, parcels_wanted
from lienworker.steps.ranges import UsualSizes, out_of_range, sizes_of
from lienworker.steps.stored_page import damaged, page_of_parts, parse_stored, stored_parts
from lienworker.steps.watchdog import Parse, Watchdog
from lienworker.store import tasks
from lienworker.store.history import Place, likely_platform
from lienworker.store.pages import PageRecord, pages_of
from lienworker.store.pending import pending_path, write_pending
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask

logger = logging.getLogger(__name__)
#: Pages of a parcel that are still in memory, its own first.
Fresh = list[tuple[PageRecord, bytes]]
Parser = Callable[[Sequence[PageRecord], Target], ParsedPage | None]


def scrape_row(context: ScrapeContext, row: Claimed) -> Scraped:
    """Parse the page of one row, wherever that is best.

    Whatever a parser does, the outcome is a value; a shortage of the machine is raised.
    """
    return scrape_if_plain(context, row) or scrape_in_child(context, row)


def scrape_if_plain(
    context: ScrapeContext, row: Claimed, fresh: Fresh | None = None, finished: Sequence[Scraped] = ()
) -> Scraped | None:
    """Parse a page that can be parsed here, the `fresh` one in memory or the one on disk; return None for another.

    A row whose holder died is parsed in the child. `finished` is what the caller has not stored yet: if this page
    hangs, the watchdog stores it.
    """
    if row.alone:
        return None
    records = [record for record, _ in fresh] if fresh else pages_of(row.task_id, row.generation)
    if not fresh and sum(record.size for record in records) > MOST_PLAIN_BYTES:
        return None

    def parse(records: Sequence[PageRecord], target: Target) -> ParsedPage | None:
        page = page_of_parts(fresh) if fresh else stored_parts(context.folder.root, records)
        with context.watchdog.over(row, finished):
            return parse_here(context.registry, page, target)

    return _scraped(row, records, parse)


def scrape_in_child(context: ScrapeContext, row: Claimed) -> Scraped:
    """Parse the page of one row in the process with limits, which may take ten seconds."""

    def parse(records: Sequence[PageRecord], target: Target) -> ParsedPage:
        return parse_stored(context.folder.root, context.registry, records, target)

    found = _scraped(row, pages_of(row.task_id, row.generation), parse)
    assert found is not None
    return found


def _scraped(row: Claimed, records: Sequence[PageRecord], parse: Parser) -> Scraped | None:
    failpoint("scrape.before_parse")
    started = time.perf_counter()
    try:
        if not records:
            raise StoreError(f"The page of task {row.task_id} is not in the store.")
        outcome: ParsedPage | PageError | None = parse(records, target_of(row))
    except PageError as problem:
        outcome = as_value(problem)
    except StoreError as problem:
        outcome = damaged(problem)
    except ShortageError:  # the row is given back for later
        raise
    except MemoryError:
        raise ShortageError(f"there is not enough memory to parse the page of {row.task_id}") from None
    except Exception as problem:  # a parser's bug must not cost the worker, nor the other rows
        logger.warning("the parser failed on %s", row.task_id, exc_info=True, extra={"task_id": row.task_id})
        outcome = PageError("parser_failed", f"{type(problem).__name__}: {problem}")
    failpoint("scrape.after_parse")
    if outcome is None:
        return None
    return Scraped(row, records[0] if records else None, outcome, int(1000 * (time.perf_counter() - started)))


def target_of(row: Claimed) -> Target:
    """Return what a task asks for. A platform that was only learned is looked up anew: a better one may be there."""
    extra: dict[str, Any] = json.loads(row.target_json)
    return Target(row.asked_platform, row.state, row.county, row.parcel_id, row.url, extra)


def give_up_hanging(context: ScrapeContext, holder_id: str, parse: Parse) -> None:
    """Store what the thread of a hanging parse has finished, and free its rows; the page that hangs is blamed."""
    store_scrapes(context, list(parse.finished))
    free_for(holder_id, parse.row.id, "Its page held a worker up for too long.")


# Storing what was scraped: results, the rows that deliver them, and pages to be fetched again.


#: Pages that arrived, but yielded nothing: the parser may no longer fit the site.
_GIVES_NOTHING = frozenset(
    {"not_a_parcel", "parser_error", "parser_failed", "empty_page", "map_shell", "search_form", "disclaimer"}
)


@dataclass(frozen=True, slots=True)
class ScrapeContext:
    """What parsing a page and storing its result needs."""

    folder: DataFolder
    registry: Registry
    retries: RetryPolicy
    watchdog: Watchdog
    #: Whether results get their files for people at once; on demand most of them are delivered before anybody looks.
    shows_results: bool
    #: Held while a heavy page is parsed in the child and its result stored: one at a time in a process.
    one_heavy: threading.Lock


@dataclass(frozen=True, slots=True)
class Scraped:
    """A row with what its page yielded."""

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
    usual = UsualSizes()
    results = {
        item.row.id: result_of(context.registry, item, usual) for item in group if isinstance(item.outcome, ParsedPage)
    }
    for result in results.values() if context.shows_results else ():
        show_pending(context.folder, result)
    followed = {item.row.id: parcels for item in group if (parcels := _parcels_of(context, item))}
    return ReadyToStore(group, results, followed)


def store_results(context: ScrapeContext, ready: ReadyToStore) -> list[Place]:
    """Store a group, each row on its own; return the places whose fetches must be held once that is committed."""
    for item in ready.group:
        if isinstance(item.outcome, PageError):
            store_page_failure(context, item.row, item.outcome)
    made = [(item.row, ready.results[item.row.id]) for item in ready.group if item.row.id in ready.results]
    for row_id in _store_results(made) & ready.followed.keys():
        add_parcels(context.registry, ready.followed[row_id])
    return drift.watch(sightings(ready.group))


def store_scrapes(context: ScrapeContext, group: Sequence[Scraped]) -> None:
    """Write the files for people first, then store everything else in one transaction."""
    if not group:
        return
    ready = make_ready(context, group)
    with write("scrape"):
        drifting = store_results(context, ready)
    drift.hold_fetches(drifting)


def show_pending(folder: DataFolder, result: NewResult) -> None:
    """Write the file for people; a list has none, since there is nothing to ship."""
    if result.json_path is not None:
        write_pending(folder, result.as_row())


def result_of(registry: Registry, item: Scraped, usual: UsualSizes) -> NewResult:
    """Make a result: what the task says about its parcel comes first, then its address, then the page."""
    assert isinstance(item.outcome, ParsedPage)
    assert item.page is not None
    row, record = item.row, item.outcome.record
    stays_here = is_list(record)
    told = AddressPlace() if row.state and row.county else registry.place(item.outcome.platform, item.page.url)
    return NewResult(
        task_id=row.task_id,
        generation=row.generation,
        parcel_id=row.parcel_id or _text(record.get("parcel_id")),
        platform=item.outcome.platform,
        state=row.state or told.state or _text(record.get("state")),
        county=row.county or told.county or _text(record.get("county")),
        data=record,
        json_path=None if stays_here else pending_path(row.task_id),
        html_path=item.page.path,
        raw_sha256=item.page.sha256,
        fetched_at=item.page.fetched_at,
        parser_version=item.outcome.version,
        scraped_at=rfc3339(),
        parse_duration_ms=item.parse_ms,
        stays_here=stays_here,
        doubts=[doubt._asdict() for doubt in _doubts(item, record, usual)],
    )


def _doubts(item: Scraped, record: Record, usual: UsualSizes) -> list[Doubt]:
    """About the record by itself, as of the day of its page, and beside the county's others."""
    assert isinstance(item.outcome, ParsedPage)
    assert item.page is not None
    found = doubts_of(record, date.fromisoformat(item.page.fetched_at[:10]))
    return found + out_of_range(usual[_place(item, item.outcome.platform)], record)


def _text(value: object) -> str | None:
    return storable(str(value)) if value not in (None, "") else None


def _parcels_of(context: ScrapeContext, item: Scraped) -> list[NewTask]:
    if '"follow"' not in item.row.target_json or isinstance(item.outcome, PageError) or item.page is None:
        return []
    return parcels_wanted(context.folder, context.registry, item.row.target, item.outcome.record, item.page)


def _store_results(made: Sequence[tuple[Claimed, NewResult]]) -> set[int]:
    """Store results of rows that are still ours; return their ids. The others belong to another worker now."""
    mine = transitions.end_all([row for row, _ in made])
    kept = [(row, result) for row, result in made if row.id in mine]
    save_result(*(result for _, result in kept))
    tasks.learn_keys([result for row, result in kept if has_to_learn(row, result)])
    tasks.mark_completed(*(row.task_id for row, _ in kept), tries=1)
    deliver(kept)
    after_commit(lambda: _say_completed(kept))
    return mine


def has_to_learn(row: Claimed, result: NewResult) -> bool:
    """Return whether a result knows of a parcel what its task does not: where it is, and by which platform."""
    agrees = row.asked_platform or row.platform == result.platform
    return not (agrees and row.state and row.county and row.parcel_id)


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
    """Add the rows that deliver results. A list is not a parcel itself, so it is not delivered."""
    deliver_result(
        *(
            (row, parcel_key(result.platform, result.state, result.county, result.parcel_id))
            for row, result in made
            if not result.stays_here
        )
    )


def sightings(group: Sequence[Scraped]) -> Iterator[Sighting]:
    """Yield what the drift guard learns from these pages; a site's own failures do not concern it."""
    for item in group:
        row, path = item.row, item.page.path if item.page else ""
        if isinstance(item.outcome, ParsedPage):
            record = item.outcome.record
            place = _place(item, item.outcome.platform)
            yield Sighting(place, row.task_id, mask_of(record), path, sizes_of(record))
        elif item.outcome.reason in _GIVES_NOTHING and item.page:
            platform = row.platform or likely_platform(row.state, row.county, host_of(row.url))
            if platform:
                yield Sighting(_place(item, platform), row.task_id, 0, path)


def _place(item: Scraped, platform: str) -> Place:
    return Place(platform, item.row.state, item.row.county, host_of(item.row.url))


def store_page_failure(context: ScrapeContext, row: Claimed, problem: PageError) -> None:
    """Fetch a page again that may be better next time, as a new generation; any other failure ends the task."""
    tries = 1 + (json.loads(row.payload).get("tries", 0) if row.payload else 0)
    decision = context.retries.after(tries, retryable=problem.retryable)
    if isinstance(decision, TryAgain):
        if transitions.end(row, reason=problem.reason):
            _fetch_again(row, problem, tries, decision)
    elif fail(row, problem.reason, problem.detail):
        say_failed(row.task_id, row.topic, problem.reason)


def _fetch_again(row: Claimed, problem: PageError, tries: int, decision: TryAgain) -> None:
    record_try(row.id, row.task_id, row.topic, problem.reason, problem.detail)
    generation = tasks.next_generation(row.task_id)
    tasks.record_attempt(row.task_id, problem.reason, problem.detail)
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
