"""Which values of a metric's label have their own series: thirty at most, and a name, once assigned, stays.

If they were the most frequent ones of each scrape, a value that rises among them would take its past out of `other`,
and Prometheus would read a counter that falls as one that was reset. No table says in which order values were first
seen (rollups are folded, hosts have no time), so the names are kept in the database.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping

from lienworker.db.database import DATABASE_TROUBLE, fact, set_fact, write

_MOST = 30
OTHER = "other"


class Names:
    """The names of one monitor. One that may not write, or cannot write now, keeps them in memory while it lives."""

    def __init__(self, *, may_write: bool) -> None:
        self._may_write = may_write
        self._given: dict[str, list[str]] = {}
        self._turn = threading.Lock()

    def bounded(self, label: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of values that have a name, and the rest as `other`."""
        names = self.chosen(label, counts)
        found = {name: n for name, n in counts.items() if name in names}
        if rest := sum(n for name, n in counts.items() if name not in names):
            found[OTHER] = rest
        return found

    def chosen(self, label: str, counts: Mapping[str, int]) -> frozenset[str]:
        """Return the names assigned so far and, while there is room, new ones. Write only where there are new ones."""
        with self._turn:
            names = self._with_new(label, counts)
            if self._may_write and names != _stored(label):
                # A full disk is no reason for no answer: the next scrape tries again.
                with contextlib.suppress(*DATABASE_TROUBLE), write("label_names"):
                    names = self._with_new(label, counts)  # another monitor may have been faster
                    set_fact(_place_of(label), json.dumps(names))
            self._given[label] = names
            return frozenset(names)

    def _with_new(self, label: str, counts: Mapping[str, int]) -> list[str]:
        """Add new names; of those that are new at the same time, the most frequent first."""
        known = dict.fromkeys([*_stored(label), *self._given.get(label, [])])
        new = sorted(counts.keys() - known.keys() - {OTHER}, key=lambda name: (-counts[name], name))
        return [*known, *new[: max(0, _MOST - len(known))]]


def _stored(label: str) -> list[str]:
    return list(json.loads(fact(_place_of(label)) or "[]"))


def _place_of(label: str) -> str:
    return f"metric_names_{label}"
