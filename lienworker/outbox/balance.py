"""Nothing is dropped: every row that was added is in some state, or was purged on purpose."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lienworker.db.database import all_rows, execute
from lienworker.outbox.rows import count_rows
from lienworker.store.counts import OUTBOX_STATES


@dataclass(frozen=True, slots=True)
class Balance:
    """Both sides of the account for one topic."""

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
    """Return both sides by topic, counting the rows themselves, not the tallies: a check must not trust them."""
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


@dataclass(frozen=True, slots=True)
class Tally:
    """A table that triggers keep and that can be rebuilt from the rows."""

    name: str
    kept: str
    counted: str
    again: tuple[str, ...]


#: What waits, with the county of what waits to be fetched.
_AGES = """
SELECT o.topic, o.host, o.created_at / 60000 AS minute,
    CASE o.topic WHEN 'fetch' THEN coalesce(t.platform, '') || '|' || coalesce(t.state, '') || '|'
        || coalesce(t.county, '') ELSE '' END AS place
FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE o.state = 'waiting'
"""
_TALLIES = (
    Tally(
        "outbox tally",
        "SELECT topic || '/' || state, n FROM tally WHERE kind = 'outbox' AND n <> 0",
        "SELECT topic || '/' || state, count(*) FROM outbox GROUP BY 1",
        (
            "DELETE FROM tally WHERE kind = 'outbox'",
            "INSERT INTO tally SELECT 'outbox', topic, state, count(*) FROM outbox GROUP BY 2, 3",
        ),
    ),
    Tally(
        "task tally",
        "SELECT state, n FROM tally WHERE kind = 'task' AND n <> 0",
        "SELECT status, count(*) FROM tasks GROUP BY 1",
        (
            "DELETE FROM tally WHERE kind = 'task'",
            "INSERT INTO tally SELECT 'task', '', status, count(*) FROM tasks GROUP BY 3",
        ),
    ),
    Tally(
        "backlog",
        "SELECT topic || '/' || host || '/' || rank, waiting FROM backlog WHERE waiting <> 0",
        "SELECT topic || '/' || host || '/' || rank, count(*) FROM outbox WHERE state = 'waiting' GROUP BY 1",
        (
            "DELETE FROM backlog",
            "INSERT INTO backlog SELECT topic, host, rank, count(*), min(due_at) FROM outbox"
            " WHERE state = 'waiting' GROUP BY 1, 2, 3",
        ),
    ),
    Tally(
        "waiting by age",
        "SELECT topic || '/' || host || '/' || place || '/' || minute, n FROM waiting_since WHERE n <> 0",
        f"SELECT topic || '/' || host || '/' || place || '/' || minute, count(*) FROM ({_AGES}) GROUP BY 1",
        (
            "DELETE FROM waiting_since",
            f"INSERT INTO waiting_since SELECT topic, host, place, minute, count(*) FROM ({_AGES}) GROUP BY 1, 2, 3, 4",
        ),
    ),
    Tally(
        "set aside",
        "SELECT state || '/' || topic || '/' || reason || '/' || fingerprint, n FROM set_aside WHERE n <> 0",
        "SELECT state || '/' || topic || '/' || coalesce(reason, '') || '/' || coalesce(fingerprint, ''), count(*)"
        " FROM outbox WHERE state IN ('held', 'parked') GROUP BY 1",
        (
            "DELETE FROM set_aside",
            "INSERT INTO set_aside SELECT state, topic, coalesce(reason, ''), coalesce(fingerprint, ''), count(*),"
            " min(coalesce(finished_at, created_at)), max(coalesce(finished_at, created_at)), max(id)"
            " FROM outbox WHERE state IN ('held', 'parked') GROUP BY 1, 2, 3, 4",
        ),
    ),
    Tally(
        "failed tasks",
        "SELECT reason, n FROM failed_tasks WHERE n <> 0",
        "SELECT coalesce(reason, 'unknown'), count(*) FROM tasks WHERE status IN ('failed', 'expired') GROUP BY 1",
        (
            "DELETE FROM failed_tasks",
            "INSERT INTO failed_tasks SELECT coalesce(reason, 'unknown'), count(*), max(task_id), max(updated_at)"
            " FROM tasks WHERE status IN ('failed', 'expired') GROUP BY 1",
        ),
    ),
)
#: The tables behind the tallies: a salvage does not copy them but counts again.
TALLY_TABLES = frozenset({"tally", "backlog", "waiting_since", "set_aside", "failed_tasks"})


def wrong_tallies() -> list[str]:
    """Compare what triggers keep with the rows; return each difference as a sentence."""
    wrong = []
    for tally in _TALLIES:
        said, true = dict(all_rows(tally.kept)), dict(all_rows(tally.counted))
        wrong += [
            f"{tally.name} {key}: says {said.get(key, 0)}, there are {true.get(key, 0)}"
            for key in sorted(said.keys() | true.keys())
            if said.get(key, 0) != true.get(key, 0)
        ]
    return wrong


def count_again() -> None:
    """Rebuild every tally from the rows. Part of a larger transaction."""
    for tally in _TALLIES:
        for statement in tally.again:
            execute(statement)


def book_losses() -> int:
    """Book what damage did: missing rows count as purged, unaccounted rows as added; return how many.

    Nothing else adjusts the balance, and the audit records what was booked here. Part of a larger transaction.
    """
    booked = 0
    for side in balances():
        missing = side.added - side.purged - side.there
        if missing:
            count_rows("purged" if missing > 0 else "added", Counter({side.topic: abs(missing)}))
            booked += abs(missing)
    return booked
