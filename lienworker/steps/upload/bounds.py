"""How much goes to the Gateway at a time: learned from what it takes, for the life of a process."""

from __future__ import annotations

from dataclasses import dataclass

from lienworker.steps.upload.verdict import BatchAction

#: Reports of tasks that ended without a result, under way at a time.
MOST_REPORTS = 16


class CallBound:
    """How many calls of an endpoint are under way at a time: one more after so many went well, half after a failure.

    Two at least, where that is allowed: one of them may hang.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._went_well = 0
        self.now = min(4, most)

    def adjust(self, calls: int, action: BatchAction) -> None:
        """Learn from calls that ended together."""
        self._went_well = 0 if action is BatchAction.SHRINK else self._went_well + calls
        if action is BatchAction.SHRINK:
            self.now = max(min(2, self._most), self.now // 2)
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
