"""upload: raw files, then results, then reports to the Gateway, as far as it takes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import dramatiq
from dramatiq.middleware import CurrentMessage

from lienworker.actors.app import broker, runtime, wake
from lienworker.actors.flights import Flights
from lienworker.actors.runtime import ResultBound, Runtime
from lienworker.actors.upload_outcomes import (
    RawFile,
    outcome_of,
    prepare_raw,
    prepare_results,
    store_raws,
    store_reports,
    store_results,
)
from lienworker.broker import UPLOAD
from lienworker.gateway.outcomes import Outcome, Unavailable
from lienworker.gateway.taking_apart import Item, deliver_in_parts
from lienworker.gateway.wire import ClosedReply, RawReply, ResultsReply
from lienworker.outbox.closing import give_back
from lienworker.outbox.entries import Claimed
from lienworker.outbox.uploads import Claim, claim_uploads

_REPORTS_A_BATCH = 16
#: How long one message may go on before others get their turn, s.
_SHARE = 10.0

T = TypeVar("T")


class Uploader:
    """Sends what may be sent. The same for a worker and for a person's replay."""

    def __init__(self, runtime: Runtime, claim: Claim) -> None:
        self.runtime = runtime
        self.claim = claim
        self._raws: Flights[Outcome[RawReply]] = Flights(runtime.loop)
        self._doubtful: list[tuple[Claimed, Outcome[RawReply]]] = []

    def work(self, share: float = _SHARE, tick: Callable[[], None] = lambda: None) -> bool:
        """Works the lanes until nothing may go; True when there is probably more.

        Raw files come first and stay in the air; results follow in batches as large as can be had without waiting for
        a slow file.
        """
        deadline = time.monotonic() + share
        landed = 0
        while not self.runtime.stopping.is_set() and self.runtime.holder.owns(self.claim.token):
            launched = self._launch_raws()
            landed += self._land_raws()
            sent = 1
            if not launched or landed >= ResultBound.MOST:
                sent, landed = self.send_results() + self.send_reports(), 0
            tick()
            if not self._raws:
                if not launched and not sent:
                    return False
                if time.monotonic() > deadline:
                    return True
        give_back(self._raws.abandon())
        return False

    def _launch_raws(self) -> int:
        """Fills up what the Gateway has shown to take, when half of it has landed."""
        bound = self.runtime.raw_bound.now
        if len(self._raws) > bound // 2:
            return 0
        rows = claim_uploads("upload_raw", bound - len(self._raws), self.claim)
        files = [(row, prepare_raw(self.runtime, row)) for row in rows]
        self._raws.launch((row, self._upload(file)) for row, file in files if file)
        return len(rows)

    def _land_raws(self) -> int:
        """Stores what has arrived. A failure waits for its neighbours: if one of them gets through, it says little."""
        arrived = self._raws.gather(max(1, self.runtime.raw_bound.now // 2), patience=0.1) if self._raws else []
        outcomes = [(row, outcome_of(flight)) for row, flight in arrived]
        certain = [pair for pair in outcomes if not (isinstance(pair[1], Unavailable) and pair[1].perhaps_the_row)]
        self._doubtful += [pair for pair in outcomes if pair not in certain]
        if self._doubtful and (certain or not self._raws):
            certain, self._doubtful = certain + self._doubtful, []
        store_raws(self.runtime, certain)
        return len(arrived)

    def send_raws(self) -> int:
        """Raw files only, to the end."""
        sent = 0
        while (launched := self._launch_raws()) or self._raws:
            sent += launched
            self._land_raws()
        return sent

    def send_results(self) -> int:
        """One batch, taken apart as far as needed to know each item's fate."""
        rows = claim_uploads("upload_result", self.runtime.result_bound.now, self.claim)
        batch = prepare_results(self.runtime, rows)
        if batch.items:
            fates = self._wait(deliver_in_parts([item for _, item in batch.items], self._submit))
            store_results(self.runtime, [(row, fate) for (row, _), fate in zip(batch.items, fates, strict=True)])
        return batch.settled + len(batch.items)

    def send_reports(self) -> int:
        rows = claim_uploads("report_failure", _REPORTS_A_BATCH, self.claim)
        flights: Flights[Outcome[ClosedReply]] = Flights(self.runtime.loop)
        flights.launch((row, self._report(row)) for row in rows)
        while flights:
            store_reports(self.runtime, flights.gather(len(rows), patience=0.2))
            if self.runtime.stopping.is_set():
                give_back(flights.abandon())
        return len(rows)

    async def _upload(self, file: RawFile) -> Outcome[RawReply]:
        return await self.runtime.gateway_on_loop.upload_raw(file.path, file.name, file.metadata)

    async def _submit(self, items: list[Item]) -> Outcome[ResultsReply]:
        return await self.runtime.gateway_on_loop.submit_results(items)

    async def _report(self, row: Claimed) -> Outcome[ClosedReply]:
        report = json.loads(row.payload or "{}")
        if report.get("verb") == "complete":
            return await self.runtime.gateway_on_loop.complete(row.task_id)
        return await self.runtime.gateway_on_loop.fail(row.task_id, report.get("words", ""))

    def _wait(self, errand: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(errand, self.runtime.loop).result()


@dramatiq.actor(broker=broker, queue_name=UPLOAD, priority=10)
def upload() -> None:
    """A token of the lanes to the Gateway. One at a time in a process: a Gateway that hangs holds one thread."""
    here = runtime()
    if here.settings.mode != "ondemand" or not here.uploading.acquire(blocking=False):
        return
    try:
        here.open_gateway()
        message = CurrentMessage.get_current_message()
        with here.holder.lease() as token:
            has_more = Uploader(here, Claim(token, here.rules, message.message_id if message else None)).work()
    finally:
        here.uploading.release()
    if has_more:
        wake("upload")
