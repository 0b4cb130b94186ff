"""Tasks that ended without a result, or were overtaken: the Gateway is told, so that it closes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

from lienworker.db.database import write
from lienworker.hubs.gateway.outcomes import Accepted, Outcome, Unavailable
from lienworker.hubs.gateway.wire import ClosedReply
from lienworker.outbox.report_messages import cleared
from lienworker.outbox.rows import Claimed
from lienworker.outbox.transitions import end
from lienworker.outbox.uploads import Claim, claim_uploads, take_back
from lienworker.steps.in_flight import InFlight
from lienworker.steps.upload.apply import settle_calls
from lienworker.steps.upload.context import MOST_REPORTS, UploadContext, guarded
from lienworker.steps.upload.verdict import AfterCalls


def store_reports(context: UploadContext, outcomes: Sequence[tuple[Claimed, Outcome[ClosedReply]]]) -> None:
    """Any 200 closes the row, `success: false` included: there is nothing more to tell."""
    if not outcomes:
        return
    with write("report_failure"):
        for row, outcome in outcomes:
            if isinstance(outcome, Accepted):
                end(row)
        verdict = settle_calls("tasks", outcomes, context.first_delay)
    context.bounds.report.adjust(len(outcomes), verdict.batch)


class ReportLane:
    """Tasks that failed for good, or were overtaken: the Gateway is told."""

    def __init__(self, context: UploadContext, claim: Claim, landed: threading.Event) -> None:
        self._context = context
        self._client = context.gateway.open()
        self._claim = claim
        self._in_flight: InFlight[Claimed, Outcome[ClosedReply]] = InFlight(
            context.gateway.loop, self._report, AfterCalls(), landed
        )

    def __len__(self) -> int:
        return len(self._in_flight)

    def set_out(self) -> int:
        if self._in_flight:
            return 0
        rows = claim_uploads("report_failure", MOST_REPORTS, self._claim)
        if rows:
            self._in_flight.load([(row, row) for row in rows], self._context.bounds.report.now)
        return len(rows)

    def land(self) -> None:
        arrived = self._in_flight.landed()
        store_reports(self._context, arrived)
        if any(isinstance(outcome, Unavailable) for _, outcome in arrived):
            take_back(self._in_flight.unload())

    def abandon(self) -> list[Claimed]:
        return self._in_flight.abandon()

    async def _report(self, row: Claimed) -> Outcome[ClosedReply]:
        report = json.loads(row.payload or "{}")
        is_complete = report.get("verb") == "complete"
        words = cleared(str(report.get("words", "")))
        call = self._client.complete(row.task_id) if is_complete else self._client.fail(row.task_id, words)
        return await guarded(call)
