"""Tasks that ended without a result, or were overtaken: the Gateway is told, so that it closes them."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence

from lienworker.db.clock import now_ms
from lienworker.db.database import after_commit, write
from lienworker.hubs.gateway.outcomes import Accepted, Outcome, Unavailable
from lienworker.hubs.gateway.wire import ClosedReply
from lienworker.logs import about_task
from lienworker.outbox.outcomes import fingerprint
from lienworker.outbox.report_messages import cleared
from lienworker.outbox.rows import Claimed
from lienworker.outbox.transitions import end, retry_later
from lienworker.outbox.uploads import Claim, claim_uploads, take_back
from lienworker.steps.in_flight import InFlight
from lienworker.steps.upload.apply import settle_calls
from lienworker.steps.upload.context import MOST_REPORTS, UploadContext, guarded
from lienworker.steps.upload.verdict import AfterCalls

_NOT_CLOSED = "not_closed"

logger = logging.getLogger(__name__)


def store_reports(context: UploadContext, outcomes: Sequence[tuple[Claimed, Outcome[ClosedReply]]]) -> None:
    """End the rows that the Gateway answered; one that it did not close gets a second try first."""
    if not outcomes:
        return
    with write("report_failure"):
        for row, outcome in outcomes:
            if isinstance(outcome, Accepted):
                _end_or_try_again(row, outcome, context.first_delay)
        verdict = settle_calls("tasks", outcomes, context.first_delay)
    context.bounds.report.adjust(len(outcomes), verdict.batch)


def _end_or_try_again(row: Claimed, answer: Accepted[ClosedReply], first_delay: float) -> None:
    """`success: false` for a task that was handed to us is odd, but nothing that a third call could change.

    It is what the Gateway says where a reply was lost and the task is closed already, and where the worker id changed.
    """
    if answer.reply.success:
        end(row)
    elif not row.attempts:
        retry_later(row, now_ms() + int(1000 * first_delay), _NOT_CLOSED, fingerprint(_NOT_CLOSED))
    elif end(row, reason=_NOT_CLOSED):
        words = (
            "the Gateway did not close task %s: it is closed there already, or booked under another WORKER_ID"
            " (request %s)"
        )
        extra = about_task("report", row.task_id, row.topic, reason=_NOT_CLOSED, request_id=answer.request_id)
        after_commit(lambda: logger.warning(words, row.task_id, answer.request_id, extra=extra))


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

    def wait_for_group(self, seconds: float) -> None:
        self._in_flight.wait_for_group(MOST_REPORTS, seconds)

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
        return await guarded(self._close(row.task_id, None if is_complete else words, int(report.get("times", 1))))

    async def _close(self, task_id: str, failure: str | None, times: int) -> Outcome[ClosedReply]:
        """Close a task as often as it was handed out; the last answer tells whether that was too often."""
        for _ in range(times):
            call = self._client.complete(task_id) if failure is None else self._client.fail(task_id, failure)
            outcome = await call
            if not isinstance(outcome, Accepted):
                break
        return outcome
