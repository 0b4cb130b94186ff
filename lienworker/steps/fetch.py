"""From a due row to a raw page on disk and, if nothing prevents it, to its result."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, write
from lienworker.errors import RefusedError, as_value
from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchOutcome, FetchRequest
from lienworker.fetching.turns import TurnError
from lienworker.hostnames import route_of, site_of
from lienworker.logs import about_task
from lienworker.outbox import pacing, transitions
from lienworker.outbox.backoff import RetryPolicy, TryAgain
from lienworker.outbox.claims import add_claimed, claim_in_transaction
from lienworker.outbox.clock_jumps import correct_clock_jump
from lienworker.outbox.outcomes import expire, fail, give_back, give_back_in_transaction, say_failed, try_again
from lienworker.outbox.rows import Claimed, Entry
from lienworker.outbox.sessions import (
    ANY_NUMBER,
    drop_session,
    lease_session,
    note_flow_host,
    note_requests,
    sent_unsafe_post,
    store_session,
)
from lienworker.outbox.states import Topic
from lienworker.outbox.storage_watch import stop_fetching
from lienworker.platforms import Registry, Target
from lienworker.platforms.core.bounds import MOST_PLAIN_BYTES
from lienworker.platforms.flows import Flow
from lienworker.platforms.harvest.plan import MOST_BYTES
from lienworker.steps import drift
from lienworker.steps.flows import FlowJob, FlowWalker, Walked, failure, flow_of, maker_of
from lienworker.steps.harvest import PageJob, headers_of, is_source_page, open_page
from lienworker.steps.in_flight import GROUP_SECONDS, InFlight, OnLoop
from lienworker.steps.lane import LaneLease, Slots
from lienworker.steps.pacer import turn_of
from lienworker.steps.scrape import (
    Fresh,
    ReadyToStore,
    ScrapeContext,
    Scraped,
    make_ready,
    scrape_if_plain,
    store_results,
    store_scrapes,
)
from lienworker.store import tasks
from lienworker.store.damage import is_lost
from lienworker.store.pages import PAGE, PageRecord, file_is_back, page_behind_result, pages_of, save_page
from lienworker.store.raw_files import PageKey, WrittenPage, put_in_place, write_aside
from lienworker.store.refusals import record_refusal
from lienworker.store.results import confirm_result

#: How long one message may run before others get their turn, s.
_SHARE = 4.0
#: How long its last pages may take to arrive then, s; if one takes longer, the message runs for another share.
_LAST_PAGES = 1.0
#: Requests that one loop may have in flight, in batches: slow sites need many, and one thread handles them all.
_BATCHES_IN_THE_AIR = 4
#: How long a row waits whose flow found no free session or place, ms.
_WITHOUT_A_SESSION_MS = 500
#: Pages of sources that one loop holds in memory.
_SOURCE_PAGES = 2
#: How long pages in flight may take to arrive once the process is asked to stop, s.
_GRACE = 2.0

logger = logging.getLogger(__name__)


#: A row with its flow; None where one GET brings its page.
Job = tuple[Claimed, FlowJob | None]
#: The outcome of a row's fetch or of its flow; None where not even a request was sent.
Landed = tuple[Claimed, FetchOutcome | Walked | None]


@dataclass(frozen=True, slots=True)
class FetchContext:
    """What fetching pages needs, and (`scrape`) parsing them from memory."""

    folder: DataFolder
    fetcher: OnLoop[Fetcher]
    #: The proxy of tasks without their own.
    proxy: str | None
    registry: Registry
    retries: RetryPolicy
    slots: Slots
    scrape: ScrapeContext
    walker: FlowWalker


class FetchLoop:
    """Keeps a batch of requests in flight, stores what arrives and parses it, so that one slow page blocks no other.

    A turn of the loop is one transaction: it stores the results of the pages that arrived before and the pages that
    have arrived now, each with its scrape row leased to us, and claims new rows. While those are in flight, the pages
    are parsed from memory. So a page is on disk and committed before a parser sees it, and yet a whole group costs one
    commit.

    Flows are in flight apart from single pages, since one takes as long as all its requests: they have places of their
    own, and nobody waits for them to store what has arrived.
    """

    def __init__(self, context: FetchContext, lane: LaneLease) -> None:
        self._context = context
        self._lane = lane
        self._batch = lane.batch
        self._deadline = time.monotonic() + _SHARE
        self._fetcher = context.fetcher.open()
        self._in_flight: InFlight[tuple[Claimed, FetchRequest], FetchOutcome | None] = InFlight(
            context.fetcher.loop, self._fetch
        )
        self._flows: InFlight[tuple[Claimed, FlowJob], Walked | None] = InFlight(context.fetcher.loop, self._walk)
        self._scraped: list[Scraped] = []
        #: Pages of sources whose parcels are being stored, a part of the first one in each turn.
        self._harvested: deque[PageJob] = deque()
        self._is_drained = False
        self._is_closing = False
        self.has_left_pages = False
        self.refused: RefusedError | None = None

    def run(self) -> bool:
        """Work until nothing is due or the message has had its share; return whether there is probably more."""
        self._turn([])
        while self._is_busy():
            self._turn(self._gather())
            if self._lane.stopping.is_set():
                self._land()
                return False
        return not self._is_drained

    def run_row(self, row: Claimed) -> None:
        """Work on one row that the caller has claimed."""
        self._is_closing = True
        self._launch(self._assign_alone(row))
        while self._is_busy():
            self._turn(self._gather())

    def _is_busy(self) -> bool:
        return bool(self._in_flight or self._flows or self._scraped or self._harvested)

    def _gather(self) -> list[Landed]:
        """Return what has arrived once half of the pages in flight have, or a moment after the first; flows besides."""
        if self._harvested:  # there is enough to do until more arrives
            return [*self._in_flight.landed(self._batch), *self._landed_flows()]
        wait = GROUP_SECONDS / 2 if self._scraped else GROUP_SECONDS
        if not self._in_flight:
            return [*self._flows.gather(self._batch, wait, group=wait)] if self._flows else []
        enough = min(self._batch, max(1, len(self._in_flight) // 2))
        return [*self._in_flight.gather(self._batch, wait, enough=enough, group=wait), *self._landed_flows()]

    def _landed_flows(self) -> list[Landed]:
        return [*self._flows.landed(self._batch)] if self._flows else []

    def _turn(self, landed: list[Landed]) -> None:
        arrived = self._keep_on_disk(landed)
        room = self._room()
        if arrived or self._scraped or self._harvested or room:
            with self._context.slots.compute_slot():
                self._read(self._store(arrived, room))

    def _keep_on_disk(self, landed: list[Landed]) -> list[Arrived]:
        """Return what has arrived, its pages durable. Rows whose page cannot be stored wait as if never asked."""
        arrived: list[Arrived] = []
        with self._context.slots.compute_slot():
            for row, outcome in landed:
                try:
                    arrived += self._unpack(row, outcome)
                except RefusedError as problem:
                    self.refused = as_value(problem)
        try:
            put_in_place([page for item in arrived for page in item.pages])
        except RefusedError as problem:
            self.refused = as_value(problem)
            arrived = [item for item in arrived if not item.page]
        if self.refused:
            self._stop(self.refused)
        kept = {item.row.id for item in arrived}
        give_back(row for row, _ in landed if row.id not in kept)
        return arrived

    def _stop(self, problem: RefusedError) -> None:
        """Stop fetching, since storage refuses pages: ask for nothing more, and do not wait for what is in flight."""
        self._is_closing = self._is_drained = True
        stop_fetching(self._context.folder, problem)
        give_back(self._in_flight.abandon() + self._flows.abandon())

    def _store(self, arrived: list[Arrived], room: int) -> list[tuple[Claimed, Fresh]]:
        """Store everything in the one transaction of a turn; return the pages to parse."""
        ready = self._make_ready()
        job = self._harvested[0] if self._harvested else None
        if job:
            job.prepare()
        with write("fetch"):
            correct_clock_jump()
            drifting = store_results(self._context.scrape, ready) if self._scraped else []
            if job:
                job.store()
            pages = self._keep(arrived, store_pages(self._context.folder, self._context.retries, arrived))
            jobs = self._claim(room) if room else []
        self._scraped = []
        if job and job.is_over:
            self._harvested.popleft()
        self._launch(jobs)
        drift.hold_fetches(drifting)
        return pages

    def _make_ready(self) -> ReadyToStore:
        """Prepare results; where their files cannot be written, they wait, while arrived pages are still stored."""
        try:
            return make_ready(self._context.scrape, self._scraped)
        except OSError as problem:
            logger.warning("results wait, their files cannot be written: %s", problem, extra={"action": "storage"})
            give_back([item.row for item in self._scraped])
            self._scraped = []
            return make_ready(self._context.scrape, [])

    def _keep(
        self, arrived: list[Arrived], pages: list[tuple[Claimed, list[PageRecord]]]
    ) -> list[tuple[Claimed, Fresh]]:
        """Claim the scrape rows of the pages at once. Large pages, which would fill the memory, are left on disk."""
        bodies = {item.row.id: item.bodies for item in arrived if item.page}
        small = [(row, parts) for row, parts in pages if self._is_small(row, parts)]
        large = [(row, parts) for row, parts in pages if not self._is_small(row, parts)]
        leave_pages([row for row, _ in large])
        self.has_left_pages |= bool(large)
        taken = add_claimed(Topic.SCRAPE, [row for row, _ in small], self._lane.message_id)
        return [
            (scrape, list(zip(parts, bodies[row.id], strict=True)))
            for scrape, (row, parts) in zip(taken, small, strict=True)
        ]

    def _is_small(self, row: Claimed, parts: list[PageRecord]) -> bool:
        """Return whether a page may stay in memory; of pages of sources, the one at work and the next."""
        if is_source_page(row):
            return len(self._harvested) < _SOURCE_PAGES and parts[0].size <= MOST_BYTES
        return sum(page.size for page in parts) <= MOST_PLAIN_BYTES

    def _read(self, pages: list[tuple[Claimed, Fresh]]) -> None:
        """Parse pages; the next turn stores their results, unless that takes too long. Heavy ones stay on disk."""
        since = time.monotonic()
        for row, fresh in pages:
            if is_source_page(row):
                job = open_page(self._context.scrape, row, fresh[0])
                self._harvested.extend([job] if job else [])
            elif scraped := scrape_if_plain(self._context.scrape, row, fresh, self._scraped):
                self._scraped.append(scraped)
            else:
                give_back([row])
                self.has_left_pages = True
            if time.monotonic() - since > GROUP_SECONDS:
                store_scrapes(self._context.scrape, self._scraped)
                self._scraped, since = [], time.monotonic()

    def _room(self) -> int:
        """Return how many rows to claim: a batch, or what there is room for in flight. A quarantined row is isolated.

        Where nothing was due the last time, look again for as long as a slow page keeps us here anyway.
        """
        if not self._lane.is_ours:
            self._is_closing = self._is_drained = True
        if self._is_closing or self._is_over() or any(row.alone for row in self._rows()):
            return 0
        room = self._batch * _BATCHES_IN_THE_AIR - len(self._in_flight)
        return min(self._batch, room) if room >= self._batch // 2 else 0

    def _rows(self) -> list[Claimed]:
        """Return the rows in flight, by pages and by flows."""
        return self._in_flight.rows + self._flows.rows if self._flows else self._in_flight.rows

    def _is_over(self) -> bool:
        """Return whether this message has had its share; not while a slow page keeps it, since its slot stays taken."""
        now = time.monotonic()
        if (self._in_flight or self._flows) and now > self._deadline + _LAST_PAGES:
            self._deadline = now + _SHARE
        return now > self._deadline

    def _claim(self, room: int) -> list[Job]:
        """Claim due rows. Tasks that came too late end here; nobody wants their page any more."""
        lane, quarantined = self._lane, self._lane.quarantined and not (self._in_flight or self._flows)
        rows = claim_in_transaction(
            "fetch",
            room,
            lane.token,
            lane.rules,
            quarantined=quarantined,
            message_id=lane.message_id,
            flows=min(self._flow_places(), max(1, room // 2)),  # the other half is for hosts that answer at once
        )
        self._is_drained = not rows
        now = rfc3339()
        late = {row.id for row in rows if row.expires_at and row.expires_at < now and expire(row)}
        return self._assign([row for row in rows if row.id not in late])

    def _flow_places(self) -> int:
        """Return how many flows may start beside those in flight."""
        return self._batch * _BATCHES_IN_THE_AIR // 2 - len(self._flows)

    def _assign(self, rows: list[Claimed]) -> list[Job]:
        """Give each row its flow, if it needs one, and its session; part of the transaction that claims it."""
        jobs: list[Job] = []
        places = self._flow_places()
        for row in rows:
            found = flow_of(self._context.registry, row)
            if found is None:
                jobs.append((row, None))
            elif job := self._flow_job(row, *found, may_start=places > 0 or row.queue == "urgent"):
                jobs.append((row, job))
                places -= 1
        return jobs

    def _assign_alone(self, row: Claimed) -> list[Job]:
        """Do the same for a row that the caller has claimed."""
        if flow_of(self._context.registry, row) is None:
            return [(row, None)]
        with write("claim_session"):
            return self._assign([row])

    def _flow_job(self, row: Claimed, platform: str, flow: Flow, target: Target, *, may_start: bool) -> FlowJob | None:
        """Return the row's walk; None where it must wait for a place or a session, or must not be walked again."""
        note_flow_host(site_of(row.host), flow.sessions if flow.session else ANY_NUMBER)
        if step := sent_unsafe_post(row):
            detail = f"The flow was interrupted after {step}, a POST that it does not call safe (`safe = true`)."
            if fail(row, "unsafe_repeat", detail):
                say_failed(row.task_id, row.topic, "unsafe_repeat")
            return None
        request = self._asked(row)
        session = None
        if may_start and flow.session:
            route = route_of(row.url, request.proxy)
            session = lease_session(platform, route, flow.sessions, maker_of(flow), row)
            may_start = session is not None
        if not may_start:
            give_back_in_transaction([row], not_before=now_ms() + _WITHOUT_A_SESSION_MS)
            return None
        return FlowJob(flow, target, session, request)

    def _launch(self, jobs: list[Job]) -> None:
        self._in_flight.load([(row, (row, self._request(row))) for row, job in jobs if job is None])
        if walks := [(row, (row, job)) for row, job in jobs if job is not None]:
            self._flows.load(walks)

    def _asked(self, row: Claimed) -> FetchRequest:
        return FetchRequest(row.url, proxy=row.proxy or self._context.proxy, is_own_proxy=bool(row.proxy))

    def _request(self, row: Claimed) -> FetchRequest:
        """Return the request of a row: conditional where there is a result of it whose file is not lost."""
        asked = self._asked(row)
        if is_source_page(row):
            return replace(asked, headers=headers_of(row))
        known = page_behind_result(row.task_id) if row.generation > 1 else None
        if known is None or known.url != row.url or is_lost(self._context.folder, known):
            return asked
        return replace(asked, etag=known.etag, last_modified=known.last_modified)

    async def _fetch(self, asked: tuple[Claimed, FetchRequest]) -> FetchOutcome | None:
        """Fetch a page on the event loop. Whatever happens, the outcome is a value."""
        row, request = asked
        try:
            return await self._fetcher.fetch(replace(request, turn=turn_of(row)))
        except TurnError:
            return None
        except Exception as problem:
            return _broken(problem)

    async def _walk(self, asked: tuple[Claimed, FlowJob]) -> Walked | None:
        """Walk a flow on the event loop. Whatever happens, the outcome is a value."""
        row, job = asked
        try:
            return await self._context.walker.walk(self._fetcher, row, job, self._lane.stopping)
        except Exception as problem:
            return Walked((), _broken(problem), 0, job.session, None, None)

    def _unpack(self, row: Claimed, outcome: FetchOutcome | Walked | None) -> list[Arrived]:
        """Return what arrived, with its page in a temporary file; empty where not even a request was sent."""
        if outcome is None:
            return []
        if isinstance(outcome, Walked):
            return [self._unpack_walk(row, outcome)]
        if isinstance(outcome, Fetched):
            key = page_key(self._context.registry, row)
            page = write_aside(self._context.folder, key, outcome.body, outcome.content_type)
            return [Arrived(row, outcome, page, self._crawl_delay(row))]
        return [Arrived(row, outcome)]

    def _unpack_walk(self, row: Claimed, walked: Walked) -> Arrived:
        """Return what a flow has brought, all its pages in temporary files."""
        if walked.failed:
            return Arrived(row, walked.failed, walk=walked)
        key = page_key(self._context.registry, row)
        first, *others = (
            write_aside(self._context.folder, replace(key, part=part), fetched.body, fetched.content_type)
            for part, fetched in walked.parts
        )
        return Arrived(row, walked.parts[0][1], first, self._crawl_delay(row), walked, tuple(others))

    def _crawl_delay(self, row: Claimed) -> float | None:
        """Return the site's crawl delay; a task's own proxy is not believed: it could slow the site down for all."""
        return None if row.proxy else self._fetcher.crawl_delay(row.url, self._context.proxy)

    def _land(self) -> None:
        """Stop: commit what arrives within the grace period, and give the rest back untried."""
        self._is_closing = True
        deadline = time.monotonic() + _GRACE
        while (self._in_flight or self._flows or self._scraped) and time.monotonic() < deadline:
            waiting = self._in_flight or self._flows
            self._turn([*waiting.gather(self._batch, patience=0.1), *self._landed_flows()] if waiting else [])
        store_scrapes(self._context.scrape, self._scraped)
        give_back(job.row for job in self._harvested)
        give_back(self._in_flight.abandon() + self._flows.abandon())


def _broken(problem: Exception) -> FetchFailed:
    """Return the failure of a page whose fetch has failed by our own fault."""
    logger.error("the fetcher itself failed", exc_info=problem)
    return replace(failure("fetcher_failed", f"{type(problem).__name__}: {problem}"), retryable=True)


def page_key(registry: Registry, row: Claimed) -> PageKey:
    """Return the key of a row's page, as far as that is known before it is parsed."""
    platform = row.platform
    if not platform:
        found = registry.for_url(row.url)
        platform = found.name if found else "generic"
    return PageKey(platform, row.state or "", row.county or "", row.parcel_id or "", row.task_id)


# Storing what was fetched: a group of rows in one transaction, each row on its own.


@dataclass(frozen=True, slots=True)
class Arrived:
    """A row whose page has arrived, or has not; the page is in a temporary file already."""

    row: Claimed
    outcome: FetchOutcome
    page: WrittenPage | None = None
    #: What the site's robots.txt asks for; a task's own proxy is not believed.
    crawl_delay: float | None = None
    #: How its flow has ended, where the page was reached by one.
    walk: Walked | None = None
    #: The parcel's other pages.
    more: tuple[WrittenPage, ...] = ()

    @property
    def pages(self) -> tuple[WrittenPage, ...]:
        return (self.page, *self.more) if self.page else ()

    @property
    def parts(self) -> tuple[tuple[str, Fetched], ...]:
        """The parcel's pages by their names, its own first."""
        if self.walk is not None:
            return self.walk.parts
        return ((PAGE, self.outcome),) if isinstance(self.outcome, Fetched) else ()

    @property
    def bodies(self) -> list[bytes]:
        return [fetched.body for _, fetched in self.parts]


def store_fetches(folder: DataFolder, retries: RetryPolicy, arrived: Sequence[Arrived]) -> None:
    """Put pages in place, then store the rows that name them; parsing is left to the scrape lane."""
    put_in_place([page for item in arrived for page in item.pages])
    with write("fetch"):
        leave_pages([row for row, _ in store_pages(folder, retries, arrived)])


def leave_pages(rows: Sequence[Claimed]) -> None:
    """Add a scrape row for each fetched row, for any worker to claim."""
    transitions.add(
        [
            Entry(Topic.SCRAPE, row.task_id, row.generation, row.queue, row.priority, payload=_payload(row))
            for row in rows
        ]
    )


def _payload(row: Claimed) -> dict[str, Any] | None:
    return json.loads(row.payload) if row.payload else None


def store_pages(
    folder: DataFolder, retries: RetryPolicy, arrived: Sequence[Arrived]
) -> list[tuple[Claimed, list[PageRecord]]]:
    """Store the outcome of each row; return the new pages, which are to be parsed, with the rows that fetched them."""
    for host in {item.row.host for item in arrived if not isinstance(item.outcome, FetchFailed)}:
        pacing.record_host_answer(host, now_ms())
    for host, delay in {item.row.host: item.crawl_delay for item in arrived if item.crawl_delay}.items():
        pacing.slow_down(host, delay)
    refused = [item.row for item in arrived if isinstance(item.outcome, FetchFailed) and item.outcome.is_refused_here]
    pacing.return_turns((site_of(row.host), row.start_at, row.delay_ms) for row in refused)
    fresh = [item for item in arrived if _is_fresh(folder, retries, item)]
    mine = transitions.end_all([item.row for item in fresh])
    # Where another worker has the row, the page stays on disk, but no row names it.
    pages = [(item.row, _records(folder, item)) for item in fresh if item.row.id in mine]
    save_page(*(page for _, parts in pages for page in parts))
    for item in arrived:
        if item.walk is not None:
            _store_walk(item.row, item.walk)
    return pages


def _store_walk(row: Claimed, walked: Walked) -> None:
    """Store what a flow leaves of its session, and what its parcel has cost."""
    if walked.session and walked.state:
        is_new = walked.opened_for is not None
        store_session(walked.session, row, walked.state, walked.opened_for or 0.0, is_new=is_new)
    elif walked.session:
        drop_session(walked.session, row)
    if not walked.failed:
        note_requests(site_of(row.host), walked.requests)


def _is_fresh(folder: DataFolder, retries: RetryPolicy, item: Arrived) -> bool:
    """Store an outcome; return whether it is a page that still has to be parsed."""
    row, outcome = item.row, item.outcome
    if isinstance(outcome, FetchFailed):
        _store_failure(retries, row, outcome)
        return False
    is_compared = item.page and row.generation > 1 and not is_source_page(row)
    known = page_behind_result(row.task_id) if is_compared else None
    if item.page and not (known and _is_same(known, item)):
        return True
    if transitions.end(row, reason="unchanged" if item.page else "not_modified"):
        if known:
            for page in item.pages:
                file_is_back(row.task_id, known.generation, _path(folder, page))
        _confirm(row)
    return False


def _is_same(known: PageRecord, item: Arrived) -> bool:
    """Return whether these are the pages behind the stored result."""
    if not item.more:
        return known.sha256 == item.pages[0].sha256
    stored = [(page.part, page.sha256) for page in pages_of(known.task_id, known.generation)]
    return stored == [(part, page.sha256) for (part, _), page in zip(item.parts, item.pages, strict=True)]


def _records(folder: DataFolder, item: Arrived) -> list[PageRecord]:
    now = rfc3339()
    return [
        PageRecord(
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
            fetched_at=now,
            fetch_ms=fetched.elapsed_ms,
            part=part,
            position=position,
        )
        for position, ((part, fetched), page) in enumerate(zip(item.parts, item.pages, strict=True))
    ]


def _path(folder: DataFolder, page: WrittenPage) -> str:
    return str(page.path.relative_to(folder.root))


def _confirm(row: Claimed) -> None:
    """Record that the page has not changed: the result stands, and nothing is delivered."""
    confirm_result(row.task_id)
    tasks.mark_completed(row.task_id)
    extra = about_task("confirmed", row.task_id, row.topic, platform=row.platform, county=row.county)
    after_commit(lambda: logger.info("confirmed %s: the page has not changed", row.task_id, extra=extra))


def _store_failure(retries: RetryPolicy, row: Claimed, failed: FetchFailed) -> None:
    now = now_ms()
    if failed.host_fault:
        pacing.record_host_failure(row.host, now, failed.reason, failed.retry_after)
    else:
        pacing.record_host_answer(row.host, now)
    if failed.body:
        record_refusal(row.host, failed.reason, row.url, failed.status, failed.body)
    decision = retries.after(row.attempts + 1, retryable=failed.retryable)
    if isinstance(decision, TryAgain):
        try_again(row, decision.after_ms, failed.reason, failed.detail)
    elif fail(row, failed.reason, failed.detail):
        say_failed(row.task_id, row.topic, failed.reason)
