"""Measuring time on a machine that may have other things to do."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable


def slowness() -> float:
    """Return how many times longer work takes now than if nobody else worked here.

    By the time and the processor time of two programs that start at once: what we measure starts several, too.
    """
    before, began = os.times(), time.monotonic()
    for process in [subprocess.Popen([sys.executable, "-c", "import lienworker.actors"]) for _ in range(2)]:
        assert process.wait() == 0
    after, seconds = os.times(), time.monotonic() - began
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return max(1.0, seconds / (used / 2))


def assert_within(seconds: float, measure: Callable[[], float], times: int, rounds: int = 4) -> None:
    """Assert that it takes less than this, as a rule; a round that was disturbed is not the last word."""
    found: list[float] = []
    while len(found) < rounds and min(found, default=math.inf) >= seconds:
        found.append(statistics.median(measure() for _ in range(times)) / slowness())
    print(f"\n{', '.join(f'{each:.2f}' for each in found)} s")
    assert min(found) < seconds, found


class Lag:
    """How late a thread of this machine was woken at a time: so much later than sent may a request be noticed."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Lag:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(0.002):
            now = time.monotonic()
            self._seen.append((now, now - before - 0.002))
            before = now

    def at(self, moment: float) -> float:
        return max((lag for when, lag in self._seen if moment - 0.2 < when < moment + 0.1), default=0.0)
