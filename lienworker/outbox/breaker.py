"""A breaker for each endpoint of the Gateway, stored, so that all processes and the next start know of it.

Closed: calls go out. Open: nothing goes out until the time for a probe has come. A probe is one call, with another row
each time; if it goes through, the breaker closes and everything returns to speed. Rows lose nothing meanwhile.
It opens on an outage, for times of our own that grow, and on many 429, for what was asked; `steps.upload.verdict` tells
them apart, by what is known of the endpoint here.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import all_rows, dict_rows, execute, execute_many, one_row, storable
from lienworker.outbox.backoff import LONGEST_RETRY_AFTER

#: A probe whose process died is taken for failed after this long.
_PROBE_MS = 120_000
_LONGEST = 300.0
#: No connection, or one that broke: the destination is away or restarts; it is looked for after so long at first, s.
NOBODY_THERE, _SOON = ("down", "reset"), 3.0
#: A pause that nobody gave a length for, and the shortest one: 0 s, taken at its word, would be a busy loop. In s.
_USUAL_PAUSE, _SHORTEST_PAUSE = 5.0, 1.0
#: So long the last calls speak for the destination; what they say is old news then, ms.
_NEWS_MS = 60_000
#: How often a row may fail while others go through, before it is parked, where the way is clean.
LEAST_BLAME = 3
#: The last calls that are remembered: one, and the twenty before it.
REMEMBERED = 21
#: So unlikely must it be that a row failed so often by chance alone.
_BY_CHANCE = 1e-6
#: How much of what is known of a way is still remembered after one more call.
_MEMORY = 0.99


class Gate(Enum):
    """What may pass now."""

    CLOSED = "all"
    PROBE = "one"
    OPEN = "none"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the destination did not take a call."""

    kind: str
    words: str
    retry_after: float | None


def gate(endpoint: str) -> Gate:
    row = one_row("SELECT is_open, retry_at FROM breakers WHERE endpoint = ?", (endpoint,))
    if row is None or not row[0]:
        return Gate.CLOSED
    return Gate.PROBE if row[1] <= now_ms() else Gate.OPEN


def start_probe(endpoint: str) -> None:
    """One probe at a time: until it is judged, others find the breaker open. Part of a larger transaction."""
    sql = "UPDATE breakers SET is_probing = 1, retry_at = ? WHERE endpoint = ?"
    execute(sql, (now_ms() + _PROBE_MS, endpoint))


def call_off_probe(endpoint: str) -> None:
    """The row that was to be the probe made no call: another may, at once. Part of a larger transaction."""
    execute(
        "UPDATE breakers SET is_probing = 0, retry_at = ? WHERE endpoint = ? AND is_open = 1 AND is_probing = 1",
        (now_ms(), endpoint),
    )


@dataclass(frozen=True, slots=True)
class Way:
    """How lossy the way to an endpoint is: calls lately, and rows that failed at their first try; both fade."""

    tries: float = 0.0
    failures: float = 0.0

    def after_answers(self, calls: int) -> Way:
        """Return it after so many more calls that were answered."""
        fade = _MEMORY**calls
        return Way(tries=self.tries * fade + calls, failures=self.failures * fade)

    def after_first_failure(self) -> Way:
        """Return it after one more row that failed at its first try."""
        return Way(tries=self.tries * _MEMORY + 1, failures=self.failures * _MEMORY + 1)

    @property
    def most_blame(self) -> int:
        """How often a row must fail while others go through until chance is no excuse: more on a way that is lossy."""
        chance = min(0.9, self.failures / self.tries) if self.tries else 0.0
        return LEAST_BLAME if chance < 0.01 else max(LEAST_BLAME, math.ceil(math.log(_BY_CHANCE) / math.log(chance)))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an endpoint when calls to it are judged."""

    #: What the last calls came to, a letter each (`steps.upload.verdict`); none where they are old news.
    last_calls: str = ""
    #: Rows that ever went through.
    successes: int = 0
    way: Way = Way()
    #: Whether an answer closes the breaker: not one that was under way when the destination asked for a pause.
    closes_on_answer: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """An endpoint that takes nothing: since when, and why, in the words of the last failure."""

    since_ms: int
    words: str


def outage(endpoint: str) -> Outage | None:
    """Return why a breaker is open; None where it is closed."""
    row = one_row("SELECT since, words FROM breakers WHERE endpoint = ? AND is_open = 1", (endpoint,))
    return Outage(to_ms(row[0]) if row[0] else now_ms(), row[1] or "") if row else None


def known(endpoint: str) -> Known:
    """Return what is known of an endpoint. Part of a larger transaction."""
    now = now_ms()
    sql = (
        "SELECT CASE WHEN ? - last_call_at < ? THEN last_calls ELSE '' END, successes, recent_tries, recent_failures,"
        " is_open AND (is_probing OR retry_at <= ?) FROM breakers WHERE endpoint = ?"
    )
    row = one_row(sql, (now, _NEWS_MS, now, endpoint))
    if row is None:
        return Known()
    last_calls, successes, tries, failures, closes_on_answer = row
    return Known(
        last_calls=last_calls,
        successes=successes,
        way=Way(tries=tries, failures=failures),
        closes_on_answer=bool(closes_on_answer),
    )


def remember(endpoint: str, now_known: Known) -> None:
    """Store what is known of an endpoint after calls to it. Part of a larger transaction."""
    way = now_known.way
    execute(
        "INSERT INTO breakers (endpoint, last_calls, last_call_at, successes, recent_tries, recent_failures)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET last_calls = excluded.last_calls,"
        " last_call_at = excluded.last_call_at, successes = excluded.successes,"
        " recent_tries = excluded.recent_tries, recent_failures = excluded.recent_failures",
        (endpoint, now_known.last_calls, now_ms(), now_known.successes, way.tries, way.failures),
    )


def close(endpoint: str) -> None:
    """Close a breaker whose probe was answered. Part of a larger transaction.

    What the last calls came to is forgotten with it: the pause or outage that they led to is over.
    """
    execute(
        "UPDATE breakers SET is_open = 0, is_probing = 0, failures = 0, kind = NULL, words = NULL, since = NULL,"
        " last_calls = '' WHERE endpoint = ? AND is_open = 1",
        (endpoint,),
    )


def probe_others(endpoint: str) -> dict[str, int]:
    """One endpoint answers again, so perhaps all do: the others probe at once. Part of a larger transaction.

    Not where the token is refused or a pause was asked for: an answer elsewhere changes nothing about that. Return
    those that probe, and until when they would have waited.
    """
    now = now_ms()
    others = all_rows(
        "SELECT endpoint, retry_at FROM breakers WHERE is_open = 1 AND is_probing = 0 AND retry_at > ?"
        " AND endpoint <> ? AND kind NOT IN ('auth', 'rate_limited')",
        (now, endpoint),
    )
    sql = "UPDATE breakers SET retry_at = ? WHERE endpoint = ?"
    execute_many(sql, [(now, other) for other, _ in others])
    return dict(others)


def pause(endpoint: str, trouble: Failure, first_delay: float) -> int:
    """Open the breaker for exactly what was asked; return the time of the probe. Part of a larger transaction.

    No failure is counted: times of our own, which grow, are for outages.
    """
    now = now_ms()
    execute(
        "INSERT INTO breakers (endpoint, is_open, retry_at, kind, words, since) VALUES (?, 1, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET is_open = 1, is_probing = 0, kind = excluded.kind, words = excluded.words,"
        " retry_at = CASE WHEN is_open AND NOT is_probing THEN max(retry_at, excluded.retry_at)"
        " ELSE excluded.retry_at END, since = coalesce(since, excluded.since)",
        (
            endpoint,
            now + asked_ms(trouble.retry_after, first_delay),
            trouble.kind,
            storable(trouble.words),
            rfc3339(now),
        ),
    )
    return int(one_row("SELECT retry_at FROM breakers WHERE endpoint = ?", (endpoint,))[0])


def record_failure(endpoint: str, trouble: Failure, first_delay: float) -> int:
    """Opens the breaker; gives the time of the next probe. Troubles of calls that were under way together are one."""
    now = now_ms()
    sql = "SELECT is_open, is_probing, failures, retry_at, since FROM breakers WHERE endpoint = ?"
    is_open, is_probing, failures, retry_at, since = one_row(sql, (endpoint,)) or (0, 0, 0, 0, None)
    is_new = is_probing or not is_open
    failures += 1 if is_new else 0
    away = now - to_ms(since) if since else 0
    next_at = now + _until_probe_ms(trouble, max(1, failures), first_delay, away)
    next_at = next_at if is_new else max(next_at, retry_at)  # a pause that was asked for is not shortened
    execute(
        "INSERT INTO breakers (endpoint, is_open, retry_at, failures, kind, words, since) VALUES (?, 1, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET is_open = 1, is_probing = 0, retry_at = excluded.retry_at,"
        " failures = excluded.failures, kind = excluded.kind, words = excluded.words,"
        " since = coalesce(since, excluded.since)",
        (endpoint, next_at, failures, trouble.kind, storable(trouble.words), rfc3339(now)),
    )
    return next_at


def _until_probe_ms(trouble: Failure, failures: int, first_delay: float, away_ms: int) -> int:
    """How long until the next probe. A call that finds nobody costs nobody anything, so it is made more often.

    Later it comes after a tenth of the time that the destination has been away: it is found soon after it is back.
    """
    if trouble.kind not in NOBODY_THERE:
        return delay_ms(failures, first_delay, trouble.retry_after)
    soon = max(min(first_delay, _SOON), away_ms / 10_000)
    return delay_ms(1, min(soon, _LONGEST), trouble.retry_after)


def forgive_absurd_times(now: int, longest_ms: int) -> None:
    """After the wall clock was set back, no breaker waits for a time that only the wrong clock knew."""
    execute("UPDATE breakers SET retry_at = ? WHERE retry_at > ?", (now, now + longest_ms))


def delay_ms(failures: int, first_delay: float, retry_after: float | None, chance: float | None = None) -> int:
    """Twice as long each time up to five minutes, with jitter; what the destination asked for counts, if longer."""
    own = min(_LONGEST, first_delay * 2 ** min(failures - 1, 20))
    own *= 0.8 + 0.4 * (random.random() if chance is None else chance)  # dice, not secrets  # noqa: S311 # nosec B311
    return int(1000 * max(own, min(retry_after or 0.0, LONGEST_RETRY_AFTER)))


def asked_ms(retry_after: float | None, first_delay: float) -> int:
    """Return how long a 429 makes wait: what was asked; where nothing was, a moment."""
    usual = min(_USUAL_PAUSE, first_delay)
    return int(1000 * (usual if retry_after is None else min(max(retry_after, _SHORTEST_PAUSE), LONGEST_RETRY_AFTER)))


def probe_now() -> None:
    """A person asks: every open breaker probes at once. Part of a larger transaction."""
    execute("UPDATE breakers SET retry_at = 0 WHERE is_open = 1")


def next_probe(endpoint: str) -> int | None:
    """When an open breaker probes; None where it is closed."""
    row = one_row("SELECT retry_at FROM breakers WHERE endpoint = ? AND is_open = 1", (endpoint,))
    return int(row[0]) if row else None


def breakers() -> list[dict[str, Any]]:
    return list(dict_rows("SELECT * FROM breakers ORDER BY endpoint"))
