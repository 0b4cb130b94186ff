"""The three ways to the Gateway: raw files, results, reports. Each sets out what may go and lands what came back.

None of them waits: whoever moves them looks at all of them in turn, so a slow file holds back no result, and a call
that hangs holds back nothing but itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any, TypeVar

from lienworker.actors.convoy import Convoy, Course
from lienworker.actors.runtime import MOST_REPORTS, Runtime
from lienworker.actors.upload_blame import SURELY_THE_DESTINATION
from lienworker.actors.upload_outcomes import (
    RawFile,
    prepare_raws,
    prepare_results,
    store_raws,
    store_reports,
    store_results,
)
from lienworker.gateway.fates import Fate
from lienworker.gateway.outcomes import Accepted, Kind, Outcome, Unavailable
from lienworker.gateway.taking_apart import Item, deliver_in_parts
from lienworker.gateway.wire import ClosedReply, RawReply, ResultsReply
from lienworker.outbox.entries import Claimed
from lienworker.outbox.report_words import cleared
from lienworker.outbox.uploads import Claim, claim_uploads, is_open, take_back
from lienworker.outbox.verdict import MANY_LIMITED, REMEMBERED

#: Nobody else leaves until it is judged what these mean.
_HALTING = SURELY_THE_DESTINATION | {Kind.DOWN}
#: Raw files are claimed ahead, so many times what may be in the air: the air must not be empty during a commit.
_AHEAD = 8
#: After a claim that brought all there was, the next comes so much later, s: what is scraped meanwhile goes together.
_PAUSE_SECONDS = 0.1
#: A file that is in the air for longer than this is slow, s.
_SLOW_SECONDS = 1.0
#: How long a failure waits for a neighbour that gets through, s.
_DOUBT_SECONDS = 1.0
#: Results wait no longer than this for a full batch while raw files are under way, s.
_BATCH_SECONDS = 1.0

T = TypeVar("T")
logger = logging.getLogger(__name__)


class RawLane:
    """Raw files, as many at a time as the Gateway has shown to take."""

    def __init__(self, runtime: Runtime, claim: Claim, news: threading.Event) -> None:
        self._runtime = runtime
        self._claim = claim
        self._convoy: Convoy[RawFile, Outcome[RawReply]] = Convoy(runtime.loop, self._upload, Courses(), news)
        self._doubtful: list[tuple[Claimed, Outcome[RawReply]]] = []
        self._doubtful_since = 0.0
        self._next_claim = 0.0
        self._is_probing = False

    def __len__(self) -> int:
        return len(self._convoy) + len(self._doubtful)

    def set_out(self) -> int:
        """Fills up the queue; gives how many rows that were."""
        if self._doubtful:
            return 0
        if self._convoy.waiting and not self._is_probing and is_open("upload_raw"):
            self.call_back()  # another process has learned what these must not go against
        rows = self._claimed()
        files = prepare_raws(self._runtime, rows) if rows else []
        if files or self._convoy.waiting:
            self._convoy.load(files, self._width())
        return len(rows)

    def _claimed(self) -> list[Claimed]:
        most = _AHEAD * self._runtime.raw_bound.now
        if self.pause() or self._convoy.waiting >= most // 2:
            return []
        rows = claim_uploads("upload_raw", most, self._claim)
        self._is_probing = bool(rows) and is_open("upload_raw")
        is_all = 1 < len(rows) < most  # a single one may be a probe, and is no trickle
        self._next_claim = time.monotonic() + _PAUSE_SECONDS if is_all else 0.0
        return rows

    def pause(self) -> float:
        """How long to wait for more, s; none where the last look found nothing, or not all of it."""
        return max(0.0, self._next_claim - time.monotonic())

    def _width(self) -> int:
        """What may be in the air: files that take long do not count, or some that hang would hold up all the others."""
        if is_open("upload_raw"):  # a probe
            return self._convoy.in_air + 1
        most = max(self._runtime.settings.upload_concurrency, self._runtime.raw_bound.now)
        return min(most, self._runtime.raw_bound.now + self._convoy.slow(_SLOW_SECONDS))

    def land(self) -> int:
        """Stores what came back; gives how many files the Gateway has taken.

        A failure waits for its neighbours: if one of them gets through, it says little about the destination.
        """
        arrived = self._convoy.landed()
        judged = [pair for pair in arrived if not _is_doubtful(pair[1])]
        if not self._doubtful:
            self._doubtful_since = time.monotonic()
        self._doubtful += [pair for pair in arrived if _is_doubtful(pair[1])]
        is_old = time.monotonic() - self._doubtful_since > _DOUBT_SECONDS
        if self._doubtful and (judged or is_old or not self._convoy.in_air):
            judged, self._doubtful = judged + self._doubtful, []
        store_raws(self._runtime, judged)
        if any(isinstance(outcome, Unavailable) for _, outcome in judged):
            self._next_claim = 0.0
            self._go_on_if_allowed()
        return sum(isinstance(outcome, Accepted) for _, outcome in judged)

    def _go_on_if_allowed(self) -> None:
        if is_open("upload_raw"):
            self.call_back()
        else:
            self._convoy.load([], self._width())

    def call_back(self) -> None:
        """What has not left yet waits for another time."""
        take_back(self._convoy.unload())

    def abandon(self) -> list[Claimed]:
        return [row for row, _ in self._doubtful] + self._convoy.abandon()

    async def _upload(self, file: RawFile) -> Outcome[RawReply]:
        return await _safely(self._runtime.gateway_on_loop.upload_raw(file.source, file.name, file.metadata))


class ResultLane:
    """Results, a batch at a time, taken apart as far as needed to know each item's fate."""

    def __init__(self, runtime: Runtime, claim: Claim, news: threading.Event) -> None:
        self._runtime = runtime
        self._claim = claim
        self._news = news
        self._batch: tuple[list[Claimed], Future[list[Fate]]] | None = None
        self._calls: list[Outcome[ResultsReply]] = []  # of this batch; there may be many until each fate is known
        self._may_be_more = True
        self._looked_at = 0.0

    def __len__(self) -> int:
        return len(self._batch[0]) if self._batch else 0

    def set_out(self, released: int, *, is_last: bool) -> int:
        """Sends a batch if it is worth it: `released` raw files have landed since, or (`is_last`) no more will."""
        if self._batch or not (is_last or self._is_worth_it(released)):
            return 0
        rows = claim_uploads("upload_result", self._runtime.result_bound.now, self._claim)
        self._may_be_more = len(rows) >= self._runtime.result_bound.now
        self._looked_at = time.monotonic()
        batch = prepare_results(self._runtime, rows)
        if batch.items:
            self._calls = []
            errand = deliver_in_parts([item for _, item in batch.items], self._submit)
            flight = asyncio.run_coroutine_threadsafe(errand, self._runtime.loop)
            self._batch = [row for row, _ in batch.items], flight
            flight.add_done_callback(lambda _: self._news.set())
        return batch.settled + len(batch.items)

    def _is_worth_it(self, released: int) -> bool:
        is_time = time.monotonic() - self._looked_at > _BATCH_SECONDS
        return self._may_be_more or is_time or released >= self._runtime.result_bound.now

    def land(self) -> None:
        if self._batch and self._batch[1].done():
            rows, flight = self._batch
            self._batch = None
            store_results(self._runtime, list(zip(rows, flight.result(), strict=True)), self._calls)

    def abandon(self) -> list[Claimed]:
        if self._batch is None:
            return []
        rows, flight = self._batch
        self._batch = None
        flight.cancel()
        return rows

    async def _submit(self, items: list[Item]) -> Outcome[ResultsReply]:
        outcome = await _safely(self._runtime.gateway_on_loop.submit_results(items))
        self._calls.append(outcome)
        return outcome


class ReportLane:
    """Tasks that failed for good, or were overtaken: the Gateway is told."""

    def __init__(self, runtime: Runtime, claim: Claim, news: threading.Event) -> None:
        self._runtime = runtime
        self._claim = claim
        self._convoy: Convoy[Claimed, Outcome[ClosedReply]] = Convoy(runtime.loop, self._report, Courses(), news)

    def __len__(self) -> int:
        return len(self._convoy)

    def set_out(self) -> int:
        if self._convoy:
            return 0
        rows = claim_uploads("report_failure", MOST_REPORTS, self._claim)
        if rows:
            self._convoy.load([(row, row) for row in rows], self._runtime.report_bound.now)
        return len(rows)

    def land(self) -> None:
        arrived = self._convoy.landed()
        store_reports(self._runtime, arrived)
        if any(isinstance(outcome, Unavailable) for _, outcome in arrived):
            take_back(self._convoy.unload())

    def abandon(self) -> list[Claimed]:
        return self._convoy.abandon()

    async def _report(self, row: Claimed) -> Outcome[ClosedReply]:
        report = json.loads(row.payload or "{}")
        client = self._runtime.gateway_on_loop
        is_complete = report.get("verb") == "complete"
        words = cleared(str(report.get("words", "")))
        errand = client.complete(row.task_id) if is_complete else client.fail(row.task_id, words)
        return await _safely(errand)


def _is_doubtful(outcome: Outcome[Any]) -> bool:
    return isinstance(outcome, Unavailable) and outcome.perhaps_the_row


class Courses:
    """What an outcome means for calls that have not left yet. Asked on the event loop, for one outcome after another.

    A lone 429 halts nobody: the verdict on it takes a commit, and at 3 % of 429 a third of the time would go to waiting
    for verdicts. When it is one of many, a pause is likely, and nobody leaves until that is decided.
    """

    def __init__(self) -> None:
        self._were_limited: deque[bool] = deque(maxlen=REMEMBERED - 1)

    def __call__(self, outcome: Outcome[Any]) -> Course:
        is_limited = isinstance(outcome, Unavailable) and outcome.kind is Kind.RATE_LIMITED
        is_one_of_many = is_limited and sum(self._were_limited) >= MANY_LIMITED - 1
        self._were_limited.append(is_limited)
        if not isinstance(outcome, Unavailable):
            return Course.GO_ON
        return Course.HALT if is_one_of_many or outcome.kind in _HALTING else Course.REST


async def _safely(errand: Awaitable[Outcome[T]]) -> Outcome[T]:
    """What a call came to; a bug of our own is nobody's fault but ours, and costs no row."""
    try:
        return await errand
    except Exception as problem:
        logger.exception("the Gateway client itself failed")
        return Unavailable(Kind.LOCAL, f"{type(problem).__name__}: {problem}")
