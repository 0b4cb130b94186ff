"""Results to the Gateway, a batch at a time, bisected as far as needed to know what became of each item."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.db.database import write
from lienworker.hubs.gateway.bisect import Item, deliver_in_parts
from lienworker.hubs.gateway.outcomes import DeliveryResult, Outcome, Stored
from lienworker.hubs.gateway.sanitize import FitResult, fit_stored, with_raw
from lienworker.hubs.gateway.transport import raw_listing
from lienworker.hubs.gateway.wire import ResultsReply
from lienworker.outbox import breaker, uploads
from lienworker.outbox.rows import Claimed
from lienworker.outbox.uploads import Claim, Parked, claim_uploads, result_rows
from lienworker.steps.upload.apply import settle_batch
from lienworker.steps.upload.context import UploadContext, guarded
from lienworker.store.pending import item as result_item
from lienworker.store.pending import remove_pending

#: Results wait no longer than this for a full batch while raw files are under way, s.
_BATCH_SECONDS = 1.0
#: Batches under way: while the Gateway stores one, the next is claimed and prepared.
_MOST_BATCHES = 2

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """Results that may be sent together, and how many rows came to an end or a step further without a call."""

    items: list[tuple[Claimed, dict[str, Any]]]
    settled: int


def prepare_results(folder: DataFolder, rows: Sequence[Claimed]) -> Batch:
    """The items of rows that may be sent now, made fit; what cannot be sent as it is, is parked."""
    stored = result_rows(rows)
    ordered = keep_order(rows, stored)
    pages = uploads.sent_pages([row.id for row in ordered.sendable])
    prepared, unfit = [], []
    for row in ordered.sendable:
        found = stored[row.task_id]
        fitted = fit_stored(result_item(found), with_raw(found["data"], raw_listing(pages.get(row.id, []))))
        if isinstance(fitted, FitResult):
            prepared.append((row, fitted.item))
        else:
            unfit.append((row, fitted))
    if unfit or (rows and not prepared):
        with write("upload_unfit"):
            for row, problem in unfit:
                uploads.park_unsendable(row, problem.reason, problem.detail)
            uploads.say_parked([Parked(row, problem.reason, problem.detail) for row, problem in unfit])
            if not prepared:
                breaker.call_off_probe("results")
    for row in ordered.superseded:
        _remove_overtaken(folder, row, stored.get(row.task_id))
    return Batch(prepared, len(unfit) + len(ordered.superseded))


def _remove_overtaken(folder: DataFolder, row: Claimed, found: dict[str, Any] | None) -> None:
    """The file for people goes with the result, unless a newer result of the same task has taken its place."""
    if found and found["generation"] == row.generation:
        remove_pending(folder, row.task_id)


def store_results(
    context: UploadContext,
    outcomes: Sequence[tuple[Claimed, DeliveryResult]],
    calls: Sequence[Outcome[ResultsReply]],
) -> None:
    """Store what became of a batch, and what each of the calls came to that were made to find out."""
    with write("upload_result"):
        delivered = uploads.results_delivered([row for row, outcome in outcomes if isinstance(outcome, Stored)])
        verdict = settle_batch(outcomes, calls, context.first_delay)
    context.bounds.result.adjust(len(outcomes), verdict.batch)
    for task_id in delivered:
        remove_pending(context.folder, task_id)
    if delivered:
        logger.info("delivered %d results", len(delivered), extra={"action": "delivered"})


@dataclass(frozen=True, slots=True)
class _Call:
    """A batch under way; `calls` are those that it took so far, many where each result had to be found out about."""

    rows: list[Claimed]
    calls: list[Outcome[ResultsReply]]
    delivery: Future[list[DeliveryResult]]


class ResultLane:
    """Results, a batch or two at a time."""

    def __init__(self, context: UploadContext, claim: Claim, landed: threading.Event) -> None:
        self._context = context
        self._client = context.gateway.open()
        self._claim = claim
        self._landed = landed
        self._under_way: list[_Call] = []
        self._may_be_more = True
        self._looked_at = 0.0

    def __len__(self) -> int:
        return len(self._under_way)

    def set_out(self, released: int, *, is_last: bool) -> int:
        """Sends a batch if it is worth it: `released` raw files have landed since, or (`is_last`) no more will."""
        if not self._is_worth_it(released, is_last=is_last):
            return 0
        rows = claim_uploads("upload_result", self._context.bounds.result.now, self._claim)
        self._may_be_more = len(rows) >= self._context.bounds.result.now
        self._looked_at = time.monotonic()
        batch = prepare_results(self._context.folder, rows)
        if batch.items:
            self._submit(batch)
        return batch.settled + len(batch.items)

    def _is_worth_it(self, released: int, *, is_last: bool) -> bool:
        """A second batch goes beside the first only if it is full: a trickle gathers while the first is under way."""
        is_full = self._may_be_more or released >= self._context.bounds.result.now
        if self._under_way:
            return is_full and len(self._under_way) < _MOST_BATCHES
        return is_full or is_last or time.monotonic() - self._looked_at > _BATCH_SECONDS

    def _submit(self, batch: Batch) -> None:
        calls: list[Outcome[ResultsReply]] = []

        async def submit(items: list[Item]) -> Outcome[ResultsReply]:
            outcome = await guarded(self._client.submit_results(items))
            calls.append(outcome)
            return outcome

        errand = deliver_in_parts([item for _, item in batch.items], submit)
        delivery = asyncio.run_coroutine_threadsafe(errand, self._context.gateway.loop)
        self._under_way.append(_Call([row for row, _ in batch.items], calls, delivery))
        delivery.add_done_callback(lambda _: self._landed.set())

    def land(self) -> None:
        ended = [call for call in self._under_way if call.delivery.done()]
        self._under_way = [call for call in self._under_way if call not in ended]
        for call in ended:
            store_results(self._context, list(zip(call.rows, call.delivery.result(), strict=True)), call.calls)

    def abandon(self) -> list[Claimed]:
        abandoned, self._under_way = self._under_way, []
        for call in abandoned:
            call.delivery.cancel()
        return [row for call in abandoned for row in call.rows]


# Order within a parcel: the newest result goes, and none that a newer one has overtaken.
#
# Newer is whose page was fetched later, then the later generation. One upload a parcel at a time.
#
# The wall clock may have been set back since. Where one of two pages was fetched in what is now the future, the later
# of their uploads is the newer: rows are numbered in the order in which they came, whatever the clock said.


@dataclass(frozen=True, slots=True)
class Ordered:
    """Claimed results, by what may happen to them now."""

    sendable: list[Claimed]
    superseded: list[Claimed]
    stepped_back: list[Claimed]


def keep_order(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]]) -> Ordered:
    """Tell which of the claimed rows may go now. A look after the own claim sees the claims that came before it."""
    ordered = Ordered([], [], [])
    if not rows:
        return ordered
    now = rfc3339()
    overtaken, not_first = uploads.overtaken(rows, now), uploads.not_first(rows, now)
    newest = _newest_by_parcel(rows, stored, now)
    for row in rows:
        found = stored.get(row.task_id)
        if found is None or found["generation"] != row.generation or row.id in overtaken:
            ordered.superseded.append(row)
        elif newest.get(row.parcel_key or "", row) is not row or row.id in not_first:
            ordered.stepped_back.append(row)
        else:
            ordered.sendable.append(row)
    if ordered.superseded or ordered.stepped_back:
        with write("keep_order"):
            for row in ordered.superseded:
                uploads.supersede(row)
            for row in ordered.stepped_back:
                uploads.step_back(row)
    return ordered


def _newest_by_parcel(rows: Sequence[Claimed], stored: dict[str, dict[str, Any]], now: str) -> dict[str, Claimed]:
    newest: dict[str, Claimed] = {}
    for row in rows:
        if row.parcel_key and row.task_id in stored:
            rival = newest.get(row.parcel_key)
            if rival is None or _is_newer(row, rival, stored, now):
                newest[row.parcel_key] = row
    return newest


def _is_newer(row: Claimed, rival: Claimed, stored: dict[str, dict[str, Any]], now: str) -> bool:
    mine, other = stored[row.task_id], stored[rival.task_id]
    if (mine["fetched_at"] > now) != (other["fetched_at"] > now):
        return row.id > rival.id
    return (mine["fetched_at"], mine["generation"]) > (other["fetched_at"], other["generation"])
