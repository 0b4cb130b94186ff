"""A breaker for each endpoint of the Gateway, stored, so that all processes and the next start know of it.

Closed: calls go out. Open: nothing goes out until the time for a probe has come. A probe is one call, with another row
each time; if it goes through, the breaker closes and everything returns to speed. Rows lose nothing meanwhile.
It opens on an outage, for times of our own that grow, and on many 429, for what was asked; `verdict` tells them apart.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lienworker.outbox.backoff import LONGEST_RETRY_AFTER
from lienworker.outbox.verdict import Verdict, judge, remember
from lienworker.store.clock import now_ms, rfc3339
from lienworker.store.database import dict_rows, execute, one_row, storable

#: A probe whose process died is taken for failed after this long.
_PROBE_MS = 120_000
_LONGEST = 300.0
#: A pause that nobody gave a length for, and the shortest one: 0 s, taken at its word, would be a busy loop. In s.
_USUAL_PAUSE, _SHORTEST_PAUSE = 5.0, 1.0
#: So long the last calls speak for the destination; what they say is old news then, ms.
_NEWS_MS = 60_000
#: How often a row may fail while others go through, before it is parked, where the way is clean.
LEAST_BLAME = 3
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
class Trouble:
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


def note_success(endpoint: str, n: int = 1, *, calls: int | None = None) -> None:
    """Calls were answered, and `n` rows went through (a call each, unless said otherwise).

    That closes the breaker, unless they were under way when the destination asked for a pause. Part of a larger
    transaction.
    """
    now, calls = now_ms(), n if calls is None else calls
    execute(
        "INSERT INTO breakers (endpoint, successes, recent_tries) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " successes = successes + excluded.successes,"
        " recent_tries = recent_tries * ? + excluded.recent_tries, recent_failures = recent_failures * ?",
        (endpoint, n, calls, _MEMORY**calls, _MEMORY**calls),
    )
    # With it the 429 are forgotten that it was paused for: that pause was kept.
    execute(
        "UPDATE breakers SET is_open = 0, is_probing = 0, failures = 0, kind = NULL, words = NULL, since = NULL,"
        " last_calls = '' WHERE endpoint = ? AND is_open = 1 AND (is_probing = 1 OR retry_at <= ?)",
        (endpoint, now),
    )


def note_first_failure(endpoint: str) -> None:
    """A row failed at its first try: what is known of how lossy the way is. Part of a larger transaction."""
    execute(
        "INSERT INTO breakers (endpoint, recent_tries, recent_failures) VALUES (?, 1, 1) ON CONFLICT DO UPDATE SET"
        " recent_tries = recent_tries * ? + 1, recent_failures = recent_failures * ? + 1",
        (endpoint, _MEMORY, _MEMORY),
    )


def most_blame(endpoint: str) -> int:
    """How often a row must fail while others go through until chance is no excuse: more on a way that is lossy."""
    row = one_row("SELECT recent_tries, recent_failures FROM breakers WHERE endpoint = ?", (endpoint,))
    tries, failures = row or (0.0, 0.0)
    chance = min(0.9, failures / tries) if tries else 0.0
    return LEAST_BLAME if chance < 0.01 else max(LEAST_BLAME, math.ceil(math.log(_BY_CHANCE) / math.log(chance)))


def note_calls(endpoint: str, group: str) -> Verdict:
    """Remember what calls came to that ended together, and judge them. Part of a larger transaction."""
    now = now_ms()
    last, at = one_row("SELECT last_calls, last_call_at FROM breakers WHERE endpoint = ?", (endpoint,)) or ("", 0)
    before = last if now - at < _NEWS_MS else ""
    execute(
        "INSERT INTO breakers (endpoint, last_calls, last_call_at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " last_calls = excluded.last_calls, last_call_at = excluded.last_call_at",
        (endpoint, remember(before, group), now),
    )
    return judge(before, group)


def pause(endpoint: str, trouble: Trouble, first_delay: float) -> int:
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


def note_trouble(endpoint: str, trouble: Trouble, first_delay: float) -> int:
    """Opens the breaker; gives the time of the next probe. Troubles of calls that were under way together are one."""
    now = now_ms()
    row = one_row("SELECT is_open, is_probing, failures, retry_at FROM breakers WHERE endpoint = ?", (endpoint,))
    is_open, is_probing, failures, retry_at = row or (0, 0, 0, 0)
    is_new = is_probing or not is_open
    failures += 1 if is_new else 0
    next_at = now + delay_ms(max(1, failures), first_delay, trouble.retry_after)
    next_at = next_at if is_new else max(next_at, retry_at)  # a pause that was asked for is not shortened
    execute(
        "INSERT INTO breakers (endpoint, is_open, retry_at, failures, kind, words, since) VALUES (?, 1, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET is_open = 1, is_probing = 0, retry_at = excluded.retry_at,"
        " failures = excluded.failures, kind = excluded.kind, words = excluded.words,"
        " since = coalesce(since, excluded.since)",
        (endpoint, next_at, failures, trouble.kind, storable(trouble.words), rfc3339(now)),
    )
    return next_at


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


def successes(endpoint: str) -> int:
    row = one_row("SELECT successes FROM breakers WHERE endpoint = ?", (endpoint,))
    return int(row[0]) if row else 0


def probe_now() -> None:
    """A person asks: every open breaker probes at once. Part of a larger transaction."""
    execute("UPDATE breakers SET retry_at = 0 WHERE is_open = 1")


def next_probe(endpoint: str) -> int | None:
    """When an open breaker probes; None where it is closed."""
    row = one_row("SELECT retry_at FROM breakers WHERE endpoint = ? AND is_open = 1", (endpoint,))
    return int(row[0]) if row else None


def breakers() -> list[dict[str, Any]]:
    return list(dict_rows("SELECT * FROM breakers ORDER BY endpoint"))
