"""fetch: from a due row to a raw page on disk and a scrape row."""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import Task
from collections.abc import Callable

import dramatiq
from dramatiq.middleware import CurrentMessage

from lienworker.actors.app import broker, runtime, wake
from lienworker.actors.fetch_outcomes import Arrived, store_fetches
from lienworker.actors.flights import Flights
from lienworker.actors.runtime import Runtime
from lienworker.broker import FETCH
from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchOutcome, FetchRequest
from lienworker.outbox.claims import claim
from lienworker.outbox.closing import expire, give_back
from lienworker.outbox.entries import Claimed
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import write
from lienworker.store.pages import page_behind_result
from lienworker.store.raw_files import PageKey, write_aside

#: Rows that one message may work through before others get their turn, in batches.
_BATCHES_A_MESSAGE = 8
#: How long pages in the air may take to arrive once the process is asked to stop, s.
_GRACE = 2.0

logger = logging.getLogger(__name__)


class Pump:
    """Keeps a batch of requests in the air and commits what arrives, so that one slow page holds up nobody."""

    def __init__(
        self,
        runtime: Runtime,
        token: str,
        *,
        suspects: bool = False,
        message_id: str | None = None,
        when_stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._token = token
        self._suspects = suspects
        self._message_id = message_id
        self._when_stored = when_stored
        self._batch = runtime.settings.batch
        self._left = self._batch * _BATCHES_A_MESSAGE
        self._flights: Flights[FetchOutcome] = Flights(runtime.loop)
        self._is_drained = False

    def run(self) -> bool:
        """Works until nothing is due or the message has done its share; True when there is probably more."""
        self._refill()
        while self._flights:
            self._commit(self._flights.gather(max(1, self._batch // 2), patience=0.2))
            if self._runtime.stopping.is_set():
                self._land()
                return False
            self._refill()
        return not self._is_drained

    def run_row(self, row: Claimed) -> None:
        """Works on one row that the caller has claimed."""
        self._launch([row])
        while self._flights:
            self._commit(self._flights.gather(1, patience=0.2))

    def _refill(self) -> None:
        """Claims more when half of the batch has landed. A suspect in the air travels alone."""
        travelling_alone = any(row.alone for row in self._flights.rows)
        if not self._runtime.holder.owns(self._token):
            self._is_drained = True
        if self._is_drained or self._left <= 0 or travelling_alone or len(self._flights) > self._batch // 2:
            return
        room = min(self._batch - len(self._flights), self._left)
        rows = claim(
            "fetch",
            room,
            self._token,
            self._runtime.rules,
            suspects=self._suspects and not self._flights,
            message_id=self._message_id,
        )
        self._is_drained = not rows
        self._left -= len(rows)
        self._launch(self._without_expired(rows))

    def _without_expired(self, rows: list[Claimed]) -> list[Claimed]:
        """Tasks that came too late end here; nobody wants their page any more."""
        now = rfc3339()
        late = [row for row in rows if row.expires_at and row.expires_at < now]
        if late:
            with write("expire"):
                for row in late:
                    expire(row)
        return [row for row in rows if row not in late]

    def _launch(self, rows: list[Claimed]) -> None:
        fetcher = self._runtime.fetcher
        self._flights.launch((row, _fetch(fetcher, row.start_at, _request(self._runtime, row))) for row in rows)

    def _commit(self, arrived: list[tuple[Claimed, Task[FetchOutcome]]]) -> None:
        if arrived:
            store_fetches(self._runtime, [self._unpack(row, flight) for row, flight in arrived])
            self._when_stored()

    def _unpack(self, row: Claimed, flight: Task[FetchOutcome]) -> Arrived:
        outcome = _outcome_of(flight)
        if isinstance(outcome, Fetched):
            page = write_aside(self._runtime.folder, page_key(self._runtime, row), outcome.body, outcome.content_type)
            return Arrived(row, outcome, page, self._runtime.fetcher.crawl_delay(row.url))
        return Arrived(row, outcome)

    def _land(self) -> None:
        """The process stops: what arrives within the grace is committed, the rest goes back untried."""
        deadline = time.monotonic() + _GRACE
        while self._flights and time.monotonic() < deadline:
            self._commit(self._flights.gather(self._batch, patience=0.1))
        give_back(self._flights.abandon())


def page_key(runtime: Runtime, row: Claimed) -> PageKey:
    """Whose page it is, as far as that is known before it is read."""
    platform = row.platform
    if not platform:
        found = runtime.registry.for_url(row.url)
        platform = found.name if found else "generic"
    return PageKey(platform, row.state or "", row.county or "", row.parcel_id or "", row.task_id)


def _outcome_of(flight: Task[FetchOutcome]) -> FetchOutcome:
    problem = flight.exception()
    if problem is None:
        return flight.result()
    logger.error("the fetcher itself failed", exc_info=problem)
    return FetchFailed("fetcher_failed", f"{type(problem).__name__}: {problem}", True, False, None, None, None, 0)


def _request(runtime: Runtime, row: Claimed) -> FetchRequest:
    """A page that we have a result of is asked for only if it has changed."""
    proxy = row.proxy or runtime.settings.proxy
    known = page_behind_result(row.task_id) if row.generation > 1 else None
    if known is None or known.url != row.url:
        return FetchRequest(row.url, proxy=proxy)
    return FetchRequest(row.url, etag=known.etag, last_modified=known.last_modified, proxy=proxy)


async def _fetch(fetcher: Fetcher, start_at: int, request: FetchRequest) -> FetchOutcome:
    wait = (start_at - now_ms()) / 1000
    if wait > 0:  # at most the claim's horizon, a few tenths of a second
        await asyncio.sleep(wait)
    return await fetcher.fetch(request)


@dramatiq.actor(broker=broker, queue_name=FETCH, priority=30)
def fetch() -> None:
    """A token of the fetch lane."""
    work_fetch_lane(runtime())


def work_fetch_lane(runtime: Runtime) -> None:
    """Fetches what is due, as long as this process has a place for it."""
    message = CurrentMessage.get_current_message()
    with runtime.place() as free:
        if not free:
            return
        with runtime.holder.lease() as token, runtime.holder.room_for_suspects() as suspects:
            pump = Pump(
                runtime,
                token,
                suspects=suspects,
                message_id=message.message_id if message else None,
                when_stored=lambda: wake("scrape"),
            )
            has_more = pump.run()
    if has_more:
        wake("fetch")
