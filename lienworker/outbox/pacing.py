"""Politeness as durable state: each host's next allowed time, its cooling and its failing.

Waiting happens in the schedule, not in a sleeping thread. Errors never speed a host up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lienworker.outbox.backoff import cooling_ms
from lienworker.store.database import all_rows, execute, execute_many

#: Rows may be claimed this far ahead of their start, so that short delays do not cost a claim each.
HORIZON_MS = 250
#: Failures in a row after which a host counts as failing as a whole.
FAILING_AFTER = 3


@dataclass(frozen=True, slots=True)
class Politeness:
    """How a platform wants to be called; None leaves it to the setting."""

    delay: float | None = None
    concurrency: int | None = None


@dataclass(slots=True)
class Slot:
    """What one host allows now, while a claim takes from it."""

    delay_ms: int
    concurrency: int
    next_allowed_at: int
    open: int

    def take(self, now: int, most: int) -> list[int]:
        """The start times of up to `most` requests that may begin within the horizon."""
        most = min(most, self.concurrency - self.open)
        starts: list[int] = []
        while len(starts) < most and self.next_allowed_at <= now + HORIZON_MS:
            start = max(now, self.next_allowed_at)
            starts.append(start)
            self.next_allowed_at = start + self.delay_ms
        self.open += len(starts)
        return starts

    def give_back(self, starts: list[int]) -> None:
        """Undoes the last starts that found no row."""
        if starts:
            self.open -= len(starts)
            self.next_allowed_at = starts[0]


def know_hosts(hosts: Iterable[str], wishes: Mapping[str, Politeness]) -> None:
    """Makes hosts known, with what their platforms ask for. Part of a larger transaction."""
    nothing = Politeness()
    execute_many(
        "INSERT INTO hosts (host, delay, concurrency) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " delay = coalesce(excluded.delay, delay), concurrency = coalesce(excluded.concurrency, concurrency)",
        ((host, wishes.get(host, nothing).delay, wishes.get(host, nothing).concurrency) for host in hosts),
    )


def slow_down(host: str, delay: float) -> None:
    """A site's own wish (robots.txt); it counts where it is longer than ours."""
    sql = "UPDATE hosts SET robots_delay = ? WHERE host = ? AND robots_delay IS NOT ?"
    execute(sql, (delay, host, delay))


def note_start(host: str, started: int, host_delay: float) -> None:
    """A request went out later than planned: the next one keeps its distance from that."""
    execute(
        "UPDATE hosts SET next_allowed_at = max(next_allowed_at,"
        " ? + CAST(1000 * max(coalesce(delay, ?), coalesce(robots_delay, 0)) AS INTEGER)) WHERE host = ?",
        (started, host_delay, host),
    )


def note_answer(host: str, now: int) -> None:
    """The host serves us, so it is not given up. Cooling that is under way goes on: a late success does not end it."""
    execute(
        "UPDATE hosts SET failing_since = NULL,"
        " failures_in_a_row = CASE WHEN cooling_until <= ? THEN 0 ELSE failures_in_a_row END"
        " WHERE host = ? AND (failures_in_a_row > 0 OR failing_since IS NOT NULL)",
        (now, host),
    )


def note_failure(host: str, now: int, reason: str, retry_after: float | None) -> None:
    """The host as a whole does not serve us: it cools, longer each time, or as long as it asked for."""
    row = execute("SELECT failures_in_a_row, cooling_until FROM hosts WHERE host = ?", (host,)).fetchone()
    failures, cooling_until = row if row else (0, 0)
    # Answers to requests that were in the air together are one failure, not many.
    failures += 1 if now >= cooling_until else 0
    cool = cooling_ms(failures, retry_after)
    execute(
        "UPDATE hosts SET failures_in_a_row = ?, failing_since = coalesce(failing_since, ?), reason = ?,"
        " cooling_until = max(cooling_until, ?) WHERE host = ?",
        (failures, now, reason, now + cool, host),
    )


def hosts_given_up(now: int, give_up: float) -> list[tuple[str, str]]:
    """Hosts without one answer for so long that their tasks should end, with the reason."""
    return all_rows(
        "SELECT host, coalesce(reason, 'no answer') FROM hosts WHERE failing_since <= ? AND failures_in_a_row >= ?",
        (now - int(give_up * 1000), FAILING_AFTER),
    )


def try_afresh(host: str) -> None:
    """A host that was given up gets another chance with its next task."""
    execute("UPDATE hosts SET failing_since = NULL, failures_in_a_row = 0 WHERE host = ?", (host,))


def forgive_absurd_times(now: int, longest_delay_ms: int, longest_cooling_ms: int) -> None:
    """After the wall clock was set back, no host waits for a time that only the wrong clock knew."""
    execute("UPDATE hosts SET next_allowed_at = ? WHERE next_allowed_at > ?", (now, now + longest_delay_ms))
    execute("UPDATE hosts SET cooling_until = ? WHERE cooling_until > ?", (now, now + longest_cooling_ms))
