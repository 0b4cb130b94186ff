"""Nothing is dropped: what was added is there in some state, or was purged on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from lienworker.store.counts import OUTBOX_STATES
from lienworker.store.database import all_rows


@dataclass(frozen=True, slots=True)
class Balance:
    """The two sides for one topic."""

    topic: str
    added: int
    purged: int
    by_state: dict[str, int]

    @property
    def there(self) -> int:
        return sum(self.by_state.values())

    @property
    def holds(self) -> bool:
        return self.added == self.there + self.purged


def balances() -> list[Balance]:
    """Counts the rows themselves, not the tallies: this is the check, so it trusts nothing."""
    counters = {(name, topic): n for name, topic, n in all_rows("SELECT name, topic, n FROM counters")}
    rows = {
        (topic, state): n for topic, state, n in all_rows("SELECT topic, state, count(*) FROM outbox GROUP BY 1, 2")
    }
    topics = sorted({topic for _, topic in counters} | {topic for topic, _ in rows})
    return [
        Balance(
            topic,
            counters.get(("added", topic), 0),
            counters.get(("purged", topic), 0),
            {state: rows.get((topic, state), 0) for state in OUTBOX_STATES},
        )
        for topic in topics
    ]


def wrong_tallies() -> list[str]:
    """Tallies and backlog against the rows; each difference as a sentence."""
    checks = {
        "outbox tally": (
            "SELECT topic || '/' || state, n FROM tally WHERE kind = 'outbox' AND n <> 0",
            "SELECT topic || '/' || state, count(*) FROM outbox GROUP BY 1",
        ),
        "task tally": (
            "SELECT state, n FROM tally WHERE kind = 'task' AND n <> 0",
            "SELECT status, count(*) FROM tasks GROUP BY 1",
        ),
        "backlog": (
            "SELECT topic || '/' || host || '/' || rank, waiting FROM backlog WHERE waiting <> 0",
            "SELECT topic || '/' || host || '/' || rank, count(*) FROM outbox WHERE state = 'waiting' GROUP BY 1",
        ),
    }
    wrong = []
    for name, (kept, counted) in checks.items():
        said, true = dict(all_rows(kept)), dict(all_rows(counted))
        wrong += [
            f"{name} {key}: says {said.get(key, 0)}, there are {true.get(key, 0)}"
            for key in sorted(said.keys() | true.keys())
            if said.get(key, 0) != true.get(key, 0)
        ]
    return wrong
