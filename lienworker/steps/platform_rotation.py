"""In which order, and how often, a poll names the platforms: so that none starves, and few calls bring many tasks.

The Gateway goes through the names as they stand and hands out, at each of them, one task of each priority, until the
capacity is used up. So the first platform named can have all of it, for as long as it has tasks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


class PlatformRotation:
    """Each call begins after the platform that was served first in the last one.

    Platforms that have brought tasks are named again and again, by which each gets its share of the capacity.
    """

    def __init__(self, names: Sequence[str], start: int | None = None) -> None:
        self._names = list(names)
        # By chance: a turn may have time for one call only, and would always favor the same platform.
        chance = random.randrange(len(self._names) or 1)  # dice, not secrets  # noqa: S311 # nosec B311
        self._start = chance if start is None else start
        self._busy: set[str] = set()

    def names(self, capacity: int) -> list[str]:
        """Return the names for a call, in their order."""
        share = -(-capacity // max(1, len(self._busy)))
        return [name for name in self._rotated() for _ in range(share if name in self._busy else 1)]

    def learn(self, served: Sequence[str], capacity: int) -> None:
        """Learn from the platforms of the tasks that a call brought; of a full reply, only about those it got to."""
        order = self._rotated()
        found = [name for name in order if name in served]
        if len(served) < capacity:
            self._busy = set(found)
        elif found:
            passed = order[: order.index(found[-1])]
            self._busy = self._busy.difference(passed).union(found)
        if found:
            self._start = (self._names.index(found[0]) + 1) % len(self._names)

    def _rotated(self) -> list[str]:
        return self._names[self._start :] + self._names[: self._start]
