"""Batches are a convenience, not a unit: what is ready is committed in groups as it comes."""

from __future__ import annotations

import queue
import time
from typing import Generic, TypeVar

T = TypeVar("T")

#: A finished row waits at most this long for neighbours to be committed with.
GROUP_SECONDS = 0.2


class Group(Generic[T]):
    """Collects things that come from other threads until there are enough, or the first has waited long enough."""

    def __init__(self) -> None:
        self._ready: queue.SimpleQueue[T] = queue.SimpleQueue()

    def put(self, item: T) -> None:
        self._ready.put(item)

    def gather(self, most: int, patience: float) -> list[T]:
        """Up to `most` items: waits `patience` for the first, then GROUP_SECONDS at most for the others."""
        try:
            items = [self._ready.get(timeout=patience)]
        except queue.Empty:
            return []
        deadline = time.monotonic() + GROUP_SECONDS
        while len(items) < most:
            try:
                items.append(self._ready.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                break
        return items
