"""upload: raw files, then results, then reports to the Gateway, as far as it takes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import dramatiq
from dramatiq.middleware import CurrentMessage

from lienworker.actors.app import broker, calmly, runtime, wake
from lienworker.actors.quick_turns import quick_turns
from lienworker.actors.runtime import Runtime
from lienworker.actors.upload_lanes import RawLane, ReportLane, ResultLane
from lienworker.broker import UPLOAD
from lienworker.outbox.entries import Claimed
from lienworker.outbox.uploads import Claim, take_back

#: How long one message may go on before others get their turn, s.
_SHARE = 10.0
#: How long a slow file is waited for when that time is over, and how often the time begins anew because of one.
_PATIENCE, _MOST_SHARES = 1.0, 12
#: What has landed waits so long for others to be stored with, while there are any in the air, s.
_GROUP_SECONDS = 0.02
#: How often a look is taken at things that tell nobody: a stop, a row that is due, s.
_LOOK_SECONDS = 0.1


class Uploader:
    """Sends what may be sent. The same for a worker and for a person's replay."""

    def __init__(self, runtime: Runtime, claim: Claim) -> None:
        self.runtime = runtime
        self.claim = claim
        self._news = threading.Event()
        self.raws = RawLane(runtime, claim, self._news)
        self.results = ResultLane(runtime, claim, self._news)
        self.reports = ReportLane(runtime, claim, self._news)
        self._released = 0

    def work(self, share: float = _SHARE, tick: Callable[[], None] = lambda: None) -> bool:
        """Works the lanes until nothing may go; True when there is probably more."""
        with quick_turns():
            return self._work(_deadlines(share), tick)

    def _work(self, deadlines: Iterator[float], tick: Callable[[], None]) -> bool:
        deadline = next(deadlines)
        try:
            while not self.runtime.stopping.is_set() and self.runtime.holder.owns(self.claim.token):
                if time.monotonic() > deadline + _PATIENCE:
                    deadline = next(deadlines)
                is_over = time.monotonic() > deadline
                moved = self._finish() if is_over else self._set_out()
                if moved or self._in_air():
                    self._land()
                elif pause := 0.0 if is_over else self.raws.pause():
                    self.runtime.stopping.wait(pause)
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

    def _in_air(self) -> int:
        return len(self.raws) + len(self.results) + len(self.reports)

    def _land(self) -> None:
        """Waits for something to land, then a moment for others."""
        if self._in_air() and self._news.wait(_LOOK_SECONDS) and self._in_air() > 1:
            time.sleep(_GROUP_SECONDS)
        self._news.clear()
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


@dramatiq.actor(broker=broker, queue_name=UPLOAD, priority=10)
@calmly
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
