"""What the upload lanes need of their process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from lienworker.data_folder import DataFolder
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.outcomes import Kind, Outcome, Unavailable
from lienworker.outbox.leases import WorkerLease
from lienworker.steps.in_flight import OnLoop
from lienworker.steps.upload.verdict import BatchAction


@dataclass(frozen=True, slots=True)
class UploadContext:
    """The way to the Gateway, and how it is used."""

    folder: DataFolder
    holder: WorkerLease
    gateway: OnLoop[GatewayClient]
    stopping: threading.Event
    bounds: Bounds
    #: Held by the one thread of this process that uploads: a Gateway that hangs holds one thread.
    one_uploader: threading.Lock
    #: Raw files under way at most, files that take long included.
    concurrency: int
    #: How long a row waits after its first failure, s; an outage waits so long at first.
    first_delay: float


# A call to the Gateway whose outcome is always a value.


T = TypeVar("T")
logger = logging.getLogger(__name__)


async def guarded(call: Awaitable[Outcome[T]]) -> Outcome[T]:
    """Return what a call came to; a bug of our own is nobody's fault but ours, and costs no row."""
    try:
        return await call
    except Exception as problem:
        logger.exception("the Gateway client itself failed")
        return Unavailable(Kind.LOCAL, f"{type(problem).__name__}: {problem}")


# How much goes to the Gateway at a time: learned from what it takes, for the life of a process.


#: Reports of tasks that ended without a result, under way at a time.
MOST_REPORTS = 16


class CallBound:
    """How many calls of an endpoint are under way at a time: half after a failure, more while all goes well.

    Each call that goes well brings one back, until there are as many as before the failure; from there one more comes
    after as many went well as are under way. So a failure costs little where it was chance: in slow steps all the way,
    3 % of 429 kept half of the calls from being under way. Where it was a limit, the next one comes near that number.
    Two at least, where that is allowed: one of them may hang.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._before_failure = 0
        self._went_well = 0
        self.now = min(4, most)

    def adjust(self, calls: int, action: BatchAction) -> None:
        """Learn from calls that ended together."""
        if action is BatchAction.SHRINK:
            self._shrink()
        else:
            self._grow(calls)

    def _shrink(self) -> None:
        self._before_failure, self._went_well = self.now, 0
        self.now = max(min(2, self._most), self.now // 2)

    def _grow(self, calls: int) -> None:
        regained = min(calls, max(0, self._before_failure - self.now))
        self.now += regained
        self._went_well += calls - regained
        while self._went_well >= self.now:
            self._went_well -= self.now
            self.now = min(self._most, self.now + 1)


class ResultBound:
    """How many results go in one call: a quarter after a failure, twice as many after a full one that went well.

    So a result that brings the Gateway down is alone in the end, and its neighbors are through.
    """

    #: With the Gateway's stop after eleven failures, larger batches are harder to bisect.
    MOST = 100

    def __init__(self) -> None:
        self.now = self.MOST

    def adjust(self, size: int, action: BatchAction) -> None:
        """Learn from a batch."""
        if action is BatchAction.SHRINK:
            self.now = max(1, min(size, self.now) // 4)
        elif action is BatchAction.GROW and size >= self.now:
            self.now = min(self.MOST, 2 * self.now)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the three lanes. One set a process: what one message has learned, the next one knows."""

    raw: CallBound
    result: ResultBound
    report: CallBound
