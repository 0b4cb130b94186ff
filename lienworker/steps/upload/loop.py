"""Raw files, then results, then reports to the Gateway, as far as it takes them.

None of the three lanes waits for another: the loop looks at all of them in turn, so a slow file holds back no result,
and a call that hangs holds back nothing but itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from lienworker.outbox.claims import Rules
from lienworker.outbox.rows import Claimed
from lienworker.outbox.uploads import Claim, take_back
from lienworker.steps.lane import short_switch_interval
from lienworker.steps.upload.context import UploadContext
from lienworker.steps.upload.raw import RawLane
from lienworker.steps.upload.report import ReportLane
from lienworker.steps.upload.result import ResultLane

#: How long one message may go on before others get their turn, s.
_SHARE = 10.0
#: How long a slow file is waited for when that time is over, and how often the time begins anew because of one.
_PATIENCE, _MOST_SHARES = 1.0, 12
#: What has landed waits so long for others to be stored with, while there are any under way, s.
_GROUP_SECONDS = 0.04
#: How often a look is taken at things that tell nobody: a stop, a row that is due, s.
_LOOK_SECONDS = 0.1


def upload_due(context: UploadContext, rules: Rules, message_id: str | None = None) -> bool:
    """Send what is due, unless another thread of this process is at it; True when there is probably more."""
    if not context.one_uploader.acquire(blocking=False):
        return False
    try:
        with context.holder.lease() as token:
            return Uploader(context, Claim(token, rules, message_id)).work()
    finally:
        context.one_uploader.release()


class Uploader:
    """Sends what may be sent. The same for a worker and for a person's replay."""

    def __init__(self, context: UploadContext, claim: Claim) -> None:
        self.context = context
        self.claim = claim
        self._landed = threading.Event()
        self.raws = RawLane(context, claim, self._landed)
        self.results = ResultLane(context, claim, self._landed)
        self.reports = ReportLane(context, claim, self._landed)
        self._released = 0

    def work(self, share: float = _SHARE, tick: Callable[[], None] = lambda: None) -> bool:
        """Works the lanes until nothing may go; True when there is probably more."""
        with short_switch_interval():
            return self._work(_deadlines(share), tick)

    def _work(self, deadlines: Iterator[float], tick: Callable[[], None]) -> bool:
        deadline = next(deadlines)
        try:
            while not self.context.stopping.is_set() and self.context.holder.owns(self.claim.token):
                if time.monotonic() > deadline + _PATIENCE:
                    deadline = next(deadlines)
                is_over = time.monotonic() > deadline
                pause = self.raws.pause()  # before: one that ends meanwhile has kept raw files from being claimed
                moved = self._finish() if is_over else self._set_out()
                if moved or self._under_way():
                    self._land()
                elif pause and not is_over:
                    self.context.stopping.wait(pause)
                else:
                    return is_over
                tick()
            self._land_now()
        finally:
            left = self._abandon()
        take_back(left)
        return False

    def _set_out(self) -> int:
        return self.raws.set_out() + self._send_results() + self.reports.set_out()

    def _send_results(self) -> int:
        sent = self.results.set_out(self._released, is_last=not self.raws)
        if sent:
            self._released = 0
        return sent

    def _finish(self) -> int:
        """The time is over: no raw file leaves any more. Results need not wait for one that is slow."""
        self.raws.call_back()
        return self._send_results() if self.raws else 0

    def _under_way(self) -> int:
        return len(self.raws) + len(self.results) + len(self.reports)

    def _land(self) -> None:
        """Waits for something to land, then a moment for others; a batch of results is a group by itself."""
        if self._under_way() and self._landed.wait(_LOOK_SECONDS):
            (self.raws if self.raws else self.reports).wait_for_group(_GROUP_SECONDS)
        self._landed.clear()
        self._land_now()

    def _land_now(self) -> None:
        self._released += self.raws.land()
        self.results.land()
        self.reports.land()

    def _abandon(self) -> list[Claimed]:
        return self.raws.abandon() + self.results.abandon() + self.reports.abandon()


def _deadlines(share: float) -> Iterator[float]:
    """When the time is over. A file that is still under way then may take minutes, and the others go on meanwhile."""
    for _ in range(_MOST_SHARES):
        yield time.monotonic() + share
    while True:
        yield time.monotonic()  # enough: it is only waited for
