"""Pacing: each host's next allowed request, its cooling and its failures, as durable state.

Each host has a row in `hosts`. A claim reads it to decide how many requests may start now and moves `next_allowed_at`
on for each of them; a fetch moves it for what the claim did not know of (redirects, robots.txt, a missed start); an
answer or a failure changes cooling and the count of failures. Waiting happens in the schedule, not in a sleeping
thread, so a slow county holds no worker, and a restart or a second process keeps to the same spacing. Rejected: a
limiter in memory (each process would have its own), and one in Redis (a wiped Redis would forget that a site asked us
to wait). Errors never speed a host up.

Spacing belongs to a site, cooling and failures to a route: a task with its own proxy may hear from the proxy what the
site never said, so such a route has its own row in `hosts` (see `lienworker.hostnames`).

Every number here came from outside once, or from a database that an older program wrote outside numbers to. So each is
clamped where it is used, and `heal_hosts` corrects what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lienworker.db.database import all_rows, execute, execute_many, fact, one_row, set_fact, write
from lienworker.hostnames import route_of, same_host, site_of
from lienworker.outbox import transitions
from lienworker.outbox.backoff import cooling_ms

#: Rows may be claimed this far ahead of their start, so that short delays do not cost a claim each.
HORIZON_MS = 250
#: Failures in a row after which a host as a whole counts as failing.
FAILING_AFTER = 3
#: The longest time between two requests that anybody may ask for, s; the same limit as the setting's.
LONGEST_DELAY = 3600.0
#: The most open requests that anybody may ask for.
MOST_OPEN = 1000
_MOST_FAILURES = 1_000_000

#: What the columns of a site say about its delay, in the order of `chosen_delay`.
DELAYS = ("delay", "robots_delay", "operator_delay", "over_robots")
_PACE = "SELECT delay, robots_delay, operator_delay, over_robots, next_allowed_at FROM hosts WHERE host = ?"
#: `site_of` a row of `hosts h`, in SQL.
SITE_OF_H = "substr(h.host, 1, instr(h.host || ' ', ' ') - 1)"
_COOLING = "SELECT cooling_until FROM hosts WHERE host IN (?, ?)"


@dataclass(frozen=True, slots=True)
class Politeness:
    """What a platform asks for; None leaves it to the setting."""

    delay: float | None = None
    concurrency: int | None = None


@dataclass(slots=True)
class Slot:
    """What one host allows now, while a claim takes requests from it."""

    delay_ms: int
    concurrency: int
    next_allowed_at: int
    open: int

    def take(self, now: int, most: int) -> list[int]:
        """Return the start times of up to `most` requests that may start within the horizon."""
        most = min(most, self.concurrency - self.open)
        starts: list[int] = []
        while len(starts) < most and self.next_allowed_at <= now + HORIZON_MS:
            start = max(now, self.next_allowed_at)
            starts.append(start)
            self.next_allowed_at = start + self.delay_ms
        self.open += len(starts)
        return starts

    def give_back(self, starts: list[int]) -> None:
        """Undo the last starts, for which no row was found."""
        if starts:
            self.open -= len(starts)
            self.next_allowed_at = starts[0]


@dataclass(frozen=True, slots=True)
class Booking:
    """A request that needs a start time: one that the claim did not know of, or one that missed its own."""

    site: str
    #: The start time that it had and missed.
    missed: int | None = None
    #: Seconds that the site's robots.txt, just read, asks for.
    crawl_delay: float | None = None
    #: How far ahead the start must lie, ms, so that a busy process can keep it.
    lead_ms: int = 0


@dataclass(frozen=True, slots=True)
class Booked:
    """When a request may start, and how long its host must be left alone afterwards.

    A start that is far off is returned, not booked: nobody waits that long with a request in hand.
    """

    start_at: int
    delay_ms: int
    is_far: bool = False


def whole(value: Any, least: int, most: int, otherwise: int) -> int:
    """Clamp a stored number to its bounds; return `otherwise` for what is not a number."""
    if not isinstance(value, int | float) or value != value:
        return otherwise
    return int(min(max(value, least), most))


def seconds_of(delay: Any) -> float | None:
    """Clamp a delay to its bounds; return None for what is not a delay."""
    if not isinstance(delay, int | float) or not delay >= 0:
        return None
    return min(float(delay), LONGEST_DELAY)


def chosen_delay(
    host_delay: float, delay: Any, robots_delay: Any, operator_delay: Any, over_robots: Any
) -> tuple[float, str]:
    """Return the seconds between two requests to a site, and whose word that is.

    An operator's word counts before the platform's, and that before the setting. It is never less than robots.txt asks
    for, unless the operator has said expressly that theirs counts before that, too.
    """
    by_hand, by_platform = seconds_of(operator_delay), seconds_of(delay)
    if by_hand is not None:
        chosen, source = by_hand, "operator"
    elif by_platform is not None:
        chosen, source = by_platform, "platform"
    else:
        chosen, source = host_delay, "setting"
    asked = seconds_of(robots_delay) or 0.0
    if asked > chosen and not (over_robots and by_hand is not None):
        return asked, "robots.txt"
    return chosen, source


def spacing_ms(host_delay: float, delay: Any, robots_delay: Any, operator_delay: Any, over_robots: Any) -> int:
    """Return the chosen delay in ms."""
    return int(1000 * chosen_delay(host_delay, delay, robots_delay, operator_delay, over_robots)[0])


def open_at_most(concurrency: Any, otherwise: int) -> int:
    """Return how many requests a host may have open; a number that allows none would stop it for good."""
    return whole(concurrency, 0, MOST_OPEN, 0) or otherwise


def know_hosts(hosts: Iterable[str], wishes: Mapping[str, Politeness]) -> None:
    """Add hosts to the table, with what their platforms ask for. Part of a larger transaction."""
    nothing = Politeness()
    execute_many(
        "INSERT INTO hosts (host, delay, concurrency) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " delay = coalesce(excluded.delay, delay), concurrency = coalesce(excluded.concurrency, concurrency)",
        (
            (host, seconds_of(wish.delay), open_at_most(wish.concurrency, 0) or None)
            for host in hosts
            for wish in (wishes.get(host, nothing),)
        ),
    )


def book(booking: Booking, host_delay: float, now: int, most_wait_ms: int | None = None) -> Booked:
    """Take the next start that a site allows, within the longest wait. Part of a larger transaction.

    A request that missed its start may go at once where nothing is booked behind it, so a slow connection costs no
    spacing; otherwise it goes to the end of the line, since those behind it keep their times.
    """
    execute("INSERT OR IGNORE INTO hosts (host) VALUES (?)", (booking.site,))
    delay, robots_delay, operator_delay, over_robots, stored = one_row(_PACE, (booking.site,))
    delay_ms = spacing_ms(host_delay, delay, robots_delay, operator_delay, over_robots)
    free_at = booked_until(stored)
    if booking.missed is not None and free_at <= booking.missed + delay_ms:
        free_at = booking.missed
    if booking.crawl_delay is not None:
        slow_down(booking.site, booking.crawl_delay)
        longer = spacing_ms(host_delay, delay, booking.crawl_delay, operator_delay, over_robots) - delay_ms
        delay_ms, free_at = delay_ms + longer, free_at + max(0, longer)  # counted from the last request
    start = max(now + booking.lead_ms, free_at)
    is_far = most_wait_ms is not None and start - now > most_wait_ms
    execute("UPDATE hosts SET next_allowed_at = ? WHERE host = ?", (start + (0 if is_far else delay_ms), booking.site))
    return Booked(start, delay_ms, is_far)


def booked_until(next_allowed_at: Any) -> int:
    """Return a stored moment in ms as a number that can be calculated with."""
    return whole(next_allowed_at, 0, 2**53, 0)


def book_claimed(route: str, host_delay: float, now: int) -> Booked:
    """Take the next start for a caller that waits for one row: not before its site and its route have cooled."""
    site = site_of(route)
    cool = max((booked_until(row[0]) for row in all_rows(_COOLING, (site, route))), default=0)
    return book(Booking(site), host_delay, max(now, cool))


def return_turns(turns: Iterable[tuple[str, int, int]]) -> None:
    """Make turns (site, start, delay in ms) free again that nobody used, as far as nothing is booked behind them."""
    for site, start_at, delay_ms in sorted(turns, key=lambda turn: turn[1], reverse=True):
        booked = (start_at, site, start_at + delay_ms)
        execute("UPDATE hosts SET next_allowed_at = ? WHERE host = ? AND next_allowed_at = ?", booked)


def slow_down(site: str, delay: float) -> None:
    """Store the delay that a site's robots.txt asks for; it applies where it is longer than ours."""
    wanted = seconds_of(delay)
    execute("UPDATE hosts SET robots_delay = ? WHERE host = ? AND robots_delay IS NOT ?", (wanted, site, wanted))


def record_host_answer(route: str, now: int) -> None:
    """Record that a host serves us, so it is not given up. Cooling continues: a late success does not end it."""
    execute(
        "UPDATE hosts SET failing_since = NULL,"
        " failures_in_a_row = CASE WHEN cooling_until <= ? THEN 0 ELSE failures_in_a_row END"
        " WHERE host = ? AND (failures_in_a_row > 0 OR failing_since IS NOT NULL)",
        (now, route),
    )


def record_host_failure(route: str, now: int, reason: str, retry_after: float | None) -> None:
    """Record that a host as a whole does not serve us: it cools, longer each time, or as long as it asked for."""
    row = execute("SELECT failures_in_a_row, cooling_until FROM hosts WHERE host = ?", (route,)).fetchone()
    failures, cooling_until = row if row else (0, 0)
    # Answers to requests that were sent together are one failure, not many.
    failures = whole(failures, 0, _MOST_FAILURES, 0) + (1 if now >= booked_until(cooling_until) else 0)
    cool = cooling_ms(failures, retry_after)
    execute(
        "UPDATE hosts SET failures_in_a_row = ?, failing_since = coalesce(failing_since, ?), reason = ?,"
        " cooling_until = max(cooling_until, ?) WHERE host = ?",
        (failures, now, reason, now + cool, route),
    )


def hosts_given_up(now: int, give_up: float) -> list[tuple[str, str]]:
    """Return hosts that have not answered for so long that their tasks should end, with the reason."""
    return all_rows(
        "SELECT host, coalesce(reason, 'no answer') FROM hosts WHERE failing_since <= ? AND failures_in_a_row >= ?"
        " AND NOT EXISTS (SELECT 1 FROM hosts s WHERE s.paused_at IS NOT NULL"
        " AND s.host = substr(hosts.host, 1, instr(hosts.host || ' ', ' ') - 1))",
        (now - int(give_up * 1000), FAILING_AFTER),
    )


def try_afresh(route: str) -> None:
    """Give a host that was given up another chance with its next task."""
    execute("UPDATE hosts SET failing_since = NULL, failures_in_a_row = 0 WHERE host = ?", (route,))


# Hosts as older versions spelled them: renamed in place, once, when a worker starts.


_CHUNK = 5_000
_WITH_OWN_PROXY = """
SELECT o.id, t.url, t.proxy FROM outbox o JOIN tasks t ON t.task_id = o.task_id
WHERE o.topic = 'fetch' AND o.state IN ('waiting', 'leased', 'held') AND t.proxy IS NOT NULL AND instr(o.host, ' ') = 0
LIMIT ?
"""
_OF_HOST = "SELECT id FROM outbox WHERE topic = 'fetch' AND state IN ('waiting', 'leased', 'held') AND host = ? LIMIT ?"
_MERGE = """
INSERT INTO hosts (host, delay, concurrency, robots_delay, next_allowed_at, cooling_until)
SELECT ?, delay, concurrency, robots_delay, next_allowed_at, cooling_until FROM hosts WHERE host = ?
ON CONFLICT DO UPDATE SET
    delay = max(coalesce(delay, excluded.delay), coalesce(excluded.delay, delay)),
    concurrency = min(coalesce(concurrency, excluded.concurrency), coalesce(excluded.concurrency, concurrency)),
    robots_delay = max(coalesce(robots_delay, excluded.robots_delay), coalesce(excluded.robots_delay, robots_delay)),
    next_allowed_at = max(next_allowed_at, excluded.next_allowed_at),
    cooling_until = max(cooling_until, excluded.cooling_until)
"""
#: The version of the spelling of stored hosts; raised when `lienworker.hostnames` changes it.
SPELLING = "spelling_of_hosts"
_SPELLING = "1"


def respell_hosts() -> None:
    """Rename hosts that an older version stored to the current spelling, once."""
    if fact(SPELLING) == _SPELLING:
        return
    for (odd,) in all_rows("SELECT host FROM hosts"):
        if same_host(odd) != odd:
            _respell(odd, same_host(odd))
    while _give_routes():
        pass
    with write("respelled"):
        set_fact(SPELLING, _SPELLING)


def _respell(odd: str, plain: str) -> None:
    """Rename a host's rows a chunk at a time; the new name keeps the longer waits of both."""
    with write("respell"):
        execute(_MERGE, (plain, odd))
    while one_row(_OF_HOST, (odd, 1)):
        with write("respell"):
            rows = all_rows(_OF_HOST, (odd, _CHUNK))
            transitions.move_to_host((plain, row_id) for (row_id,) in rows)


def _give_routes() -> bool:
    """Move rows of tasks with their own proxy to their own route; return False when none is left."""
    with write("respell"):
        rows = [(route_of(url, proxy), row_id) for row_id, url, proxy in all_rows(_WITH_OWN_PROXY, (_CHUNK,))]
        execute_many("INSERT OR IGNORE INTO hosts (host) VALUES (?)", {(route,) for route, _ in rows})
        transitions.move_to_host(rows)
    return bool(rows)
