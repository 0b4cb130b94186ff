"""Lives of tasks, from registration to delivery, by the product's own transactions: no network, no parsing.

The clock is the caller's, so that a year passes in minutes. Raw files, rows, counters and pending files are real.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from dramatiq.asyncio import EventLoopThread

from lienworker.db import clock as store_clock
from lienworker.db.database import close, write
from lienworker.errors import PageError
from lienworker.fetching import Fetched, FetchFailed, FetchOutcome
from lienworker.hubs.gateway.outcomes import Accepted, DeliveryResult, Outcome, RefusedAlone, Stored
from lienworker.hubs.gateway.wire import RawReply, ResultsReply
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.rows import Claimed
from lienworker.outbox.transitions import end
from lienworker.outbox.uploads import Claim, claim_uploads
from lienworker.platforms import ParsedPage
from lienworker.settings import Settings
from lienworker.steps.fetch import Arrived, store_fetches
from lienworker.steps.runtime import Runtime, running
from lienworker.steps.scrape import Scraped, store_scrapes
from lienworker.steps.upload.raw import prepare_raws, store_raws
from lienworker.steps.upload.result import prepare_results, store_results
from lienworker.store.pages import page_of
from lienworker.store.raw_files import PageKey, write_aside
from lienworker.store.tasks import NewTask

DAY_MS = 86_400_000
_FREE = Rules(host_delay=0.0, host_concurrency=1_000_000)
_GROUP = 200
#: Compresses about as well as a page does.
_WORDS = (
    "parcel", "owner", "address", "assessed", "market", "value", "land", "building", "tax", "lien", "certificate",
    "due", "paid", "sale",
)  # fmt: skip


@dataclass
class Clock:
    """The store's wall clock: stands still until it is set."""

    ms: int = field(default_factory=store_clock.now_ms)

    def go(self, days: float) -> None:
        self.ms += int(days * DAY_MS)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        with patch.object(store_clock, "time", SimpleNamespace(time_ns=lambda: self.ms * 1_000_000)):
            yield


@dataclass(frozen=True, slots=True)
class Shares:
    """How many of the tasks go which way; the rest is delivered."""

    not_found: float = 0.02
    no_parcel: float = 0.01
    refused: float = 0.005


#: Pages are cut out of this.
_TEXT = " ".join(random.Random(7).choices(_WORDS, k=20_000))


class Lives:
    """The hands of one worker."""

    def __init__(self, runtime: Runtime, seed: int = 1) -> None:
        self.runtime = runtime
        self.chance = random.Random(seed)

    def register(self, new: Sequence[NewTask]) -> None:
        for start in range(0, len(new), _GROUP):
            with write("register"):
                register_in_transaction(new[start : start + _GROUP])

    def fetch(self, shares: Shares, size: int) -> None:
        with self.runtime.holder.lease() as token:
            while rows := claim("fetch", _GROUP, token, _FREE):
                store_fetches(
                    self.runtime.folder, self.runtime.retries, [self._arrived(row, shares, size) for row in rows]
                )

    def _arrived(self, row: Claimed, shares: Shares, size: int) -> Arrived:
        outcome: FetchOutcome
        if self.chance.random() < shares.not_found:
            outcome = FetchFailed("http_404", "The site has no such page.", False, False, None, 404, None, 1)
            return Arrived(row, outcome)
        start = self.chance.randrange(len(_TEXT) // 2)
        words = _TEXT[start : start + size]
        body = f"<html>{row.url} {row.generation} {self.chance.getrandbits(256):x} {words}</html>".encode()
        key = PageKey(row.platform or "", row.state or "", row.county or "", row.parcel_id or "", row.task_id)
        outcome = Fetched(row.url, 200, body, "text/html", "utf-8", None, None, 0, 1)
        return Arrived(row, outcome, write_aside(self.runtime.folder, key, body, "text/html"))

    def scrape(self, shares: Shares) -> None:
        with self.runtime.holder.lease() as token:
            while rows := claim("scrape", _GROUP, token, _FREE):
                store_scrapes(self.runtime.scrape, [self._parsed(row, shares) for row in rows])

    def _parsed(self, row: Claimed, shares: Shares) -> Scraped:
        page = page_of(row.task_id, row.generation)
        if self.chance.random() < shares.no_parcel:
            return Scraped(row, page, PageError("not_a_parcel", "The page has no parcel on it."), 3)
        record = {
            "parcel_id": row.parcel_id,
            "owner_name": f"Owner of {row.parcel_id}",
            "property_address": f"{self.chance.randrange(9999)} Main Street",
            "total_due": self.chance.randrange(100_000) / 100,
            "fields": {f"Field {k}": str(self.chance.random()) for k in range(20)},
        }
        return Scraped(row, page, ParsedPage(row.platform or "generic", "1", record), 3)

    def deliver(self, shares: Shares) -> None:
        """The Gateway takes what there is, or refuses some of it."""
        with self.runtime.holder.lease() as token:
            how = Claim(token, self.runtime.rules)
            while rows := claim_uploads("upload_raw", _GROUP, how):
                took: Outcome[RawReply] = Accepted(RawReply("somewhere"))
                files = prepare_raws(self.runtime.folder, rows)
                store_raws(self.runtime.upload, [(row, took) for row, _ in files])
            while rows := claim_uploads("upload_result", _GROUP, how):
                batch = prepare_results(self.runtime.folder, rows)
                outcomes = [(row, self._outcome(shares)) for row, _ in batch.items]
                store_results(
                    self.runtime.upload,
                    outcomes,
                    [Accepted(ResultsReply(sent=len(outcomes), inserted=len(outcomes), updated=0, failed=0))],
                )

    def report(self) -> None:
        """The Gateway is told of what failed."""
        with self.runtime.holder.lease() as token:
            while rows := claim_uploads("report_failure", _GROUP, Claim(token, self.runtime.rules)):
                with write("report_failure"):
                    for row in rows:
                        end(row)

    def _outcome(self, shares: Shares) -> DeliveryResult:
        refused = self.chance.random() < shares.refused
        return RefusedAlone("The Gateway does not want it.", 422) if refused else Stored()


@contextlib.contextmanager
def lives(root: Path, mode: str = "ondemand") -> Iterator[Lives]:
    """A worker on a data folder, without a Gateway to talk to: what it would say is made up."""
    settings = Settings(data_dir=root, standalone=mode == "standalone", gateway_url="http://gateway.invalid")
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    try:
        with running(settings, "lives", 0, loop.loop) as runtime:
            yield Lives(runtime)
    finally:
        close()
        loop.stop()
