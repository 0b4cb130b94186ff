"""upload: raw files, then results, then reports to the Gateway, as far as it takes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import dramatiq
from dramatiq.middleware import CurrentMessage

from lienworker.actors.app import broker, runtime, wake
from lienworker.actors.flights import Flights
from lienworker.actors.runtime import ResultBound, Runtime
from lienworker.actors.upload_outcomes import (
    RawFile,
    prepare_raw,
    prepare_results,
    store_raws,
    store_reports,
    store_results,
)
from lienworker.broker import UPLOAD
from lienworker.crash import reach
from lienworker.gateway.outcomes import Outcome
from lienworker.gateway.taking_apart import Item, deliver_in_parts
from lienworker.gateway.wire import ClosedReply, RawReply, ResultsReply
from lienworker.outbox.closing import give_back
from lienworker.outbox.entries import Claimed
from lienworker.outbox.uploads import Claim, claim_uploads

_REPORTS_A_BATCH = 16
#: How long one message may go on before others get their turn, s.
_SHARE = 10.0

T = TypeVar("T")


@dataclass(slots=True)
class Uploader:
    """Sends what may be sent. The same for a worker and for a person's replay."""

    runtime: Runtime
    claim: Claim

    def work(self, share: float = _SHARE) -> bool:
        """Works the lanes in their order until nothing may go; True when there is probably more."""
        deadline = time.monotonic() + share
        while not self.runtime.stopping.is_set() and self.runtime.holder.owns(self.claim.token):
            if not (self.send_raws() + self.send_results() + self.send_reports()):
                return False
            if time.monotonic() > deadline:
                return True
        return False

    def send_raws(self) -> int:
        """Raw files in parallel, as many as the Gateway has shown to take, until a batch of results can follow."""
        flights: Flights[Outcome[RawReply]] = Flights(self.runtime.loop)
        sent, is_drained = 0, False
        while True:
            bound = self.runtime.raw_bound.now
            if not is_drained and sent < ResultBound.MOST and len(flights) <= bound // 2:
                rows = claim_uploads("upload_raw", min(bound - len(flights), ResultBound.MOST - sent), self.claim)
                self._launch_raws(rows, flights)
                sent, is_drained = sent + len(rows), not rows
            if not flights:
                if is_drained or sent >= ResultBound.MOST:
                    return sent
                continue
            store_raws(self.runtime, flights.gather(max(1, bound // 2), patience=0.2))
            if self.runtime.stopping.is_set():
                give_back(flights.abandon())
                return sent

    def _launch_raws(self, rows: list[Claimed], flights: Flights[Outcome[RawReply]]) -> None:
        for row in rows:
            file = prepare_raw(self.runtime, row)
            if file:
                flights.launch(row, self._upload(file))

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
        for row in rows:
            flights.launch(row, self._report(row))
        while flights:
            store_reports(self.runtime, flights.gather(len(rows), patience=0.2))
            if self.runtime.stopping.is_set():
                give_back(flights.abandon())
        return len(rows)

    async def _upload(self, file: RawFile) -> Outcome[RawReply]:
        reach("upload_raw.before_request")
        outcome = await self.runtime.gateway_on_loop.upload_raw(file.path, file.name, file.metadata)
        reach("upload_raw.after_reply")
        return outcome

    async def _submit(self, items: list[Item]) -> Outcome[ResultsReply]:
        reach("upload_result.before_request")
        outcome = await self.runtime.gateway_on_loop.submit_results(items)
        reach("upload_result.after_reply")
        return outcome

    async def _report(self, row: Claimed) -> Outcome[ClosedReply]:
        report = json.loads(row.payload or "{}")
        reach("report_failure.before_request")
        if report.get("verb") == "complete":
            outcome = await self.runtime.gateway_on_loop.complete(row.task_id)
        else:
            outcome = await self.runtime.gateway_on_loop.fail(row.task_id, report.get("words", ""))
        reach("report_failure.after_reply")
        return outcome

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
