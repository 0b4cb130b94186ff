"""The pace that sites really keep: looked at every few seconds, so that no fetch pays for it.

A delay says how often a site may be asked, not how often it is: slow answers, cooling, flows of several requests and a
busy machine make it less. Tries and ends are counted anyway; what was added between two looks, while there was work all
the time, is the pace. What a pause, a stop of the stack or a site without due work adds says nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, replace

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute_many, fact, set_fact, write
from lienworker.hostnames import site_of
from lienworker.outbox.claims import is_lane_paused

#: Time between two looks, ms. Where it was much more, the stack was stopped, and nothing is concluded.
LOOK_MS = 10_000
_LAST_LOOK = "host_paces_at"
#: After how many tries an older pace counts half, and how many make it as well known as it gets.
_HALF_LIFE, _MOST_SEEN = 60.0, 200.0
#: The least share of tries that ends a task: with fewer nothing could be expected to end.
_FEWEST_ENDS = 0.1
_BUSY = "SELECT host FROM backlog WHERE topic = 'fetch' AND waiting > 0 AND not_before <= ?"
_COLUMNS = "site, at, tries, ended, was_busy, ms_per_try, tries_per_task, seen"
_STORE = f"""
INSERT INTO host_paces ({_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, tries = excluded.tries, ended = excluded.ended,
    was_busy = excluded.was_busy, ms_per_try = excluded.ms_per_try, tries_per_task = excluded.tries_per_task,
    seen = excluded.seen
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """What was seen of a site: when, how much it had done by then, whether work was due; and the averages."""

    at: int
    tries: int
    ended: int
    was_busy: bool
    ms_per_try: float | None = None
    tries_per_task: float | None = None
    seen: float = 0.0


def seen_again(before: Pace | None, now: int, tries: int, ended: int, *, is_busy: bool, is_sure: bool = True) -> Pace:
    """Return a site's pace after another look; where it is not `is_sure` that it was asked, only the counts are new."""
    if before is None:
        return Pace(now, tries, ended, is_busy)
    added, took = tries - before.tries, now - before.at
    if added < 0 or not (is_sure and is_busy and before.was_busy):
        return replace(before, at=now, tries=tries, ended=ended, was_busy=is_busy)
    if added == 0 or took <= 0:
        return before  # a slow site: the time counts for its next try
    weight = max(1 - 0.5 ** (added / _HALF_LIFE), added / (before.seen + added))
    ends = (ended - before.ended) / added
    ends_before = 1 / before.tries_per_task if before.tries_per_task else ends
    ms_before = before.ms_per_try if before.ms_per_try is not None else took / added
    return Pace(
        now,
        tries,
        ended,
        is_busy,
        ms_before + weight * (took / added - ms_before),
        1 / min(1.0, max(_FEWEST_ENDS, ends_before + weight * (ends - ends_before))),
        min(_MOST_SEEN, before.seen + added),
    )


def look_at_paces() -> None:
    """Look at all sites, if it is time; of all processes one does it."""
    now = now_ms()
    if 0 <= now - int(fact(_LAST_LOOK) or 0) < LOOK_MS:
        return
    with write("host_paces"):
        since_last = now - int(fact(_LAST_LOOK) or 0)
        if 0 <= since_last < LOOK_MS:
            return
        is_sure = 0 <= since_last < 3 * LOOK_MS and not is_lane_paused("fetch")
        set_fact(_LAST_LOOK, str(now))
        execute_many(_STORE, [(site, *astuple(pace)) for site, pace in _changed(now, is_sure=is_sure)])


def _changed(now: int, *, is_sure: bool) -> list[tuple[str, Pace]]:
    """Return the sites whose pace is to be stored: those with work, or with work at the last look."""
    known = {site: Pace(*values) for site, *values in all_rows(f"SELECT {_COLUMNS} FROM host_paces")}
    paused = {host for (host,) in all_rows("SELECT host FROM hosts WHERE paused_at IS NOT NULL")}
    busy = {site_of(host) for (host,) in all_rows(_BUSY, (now,))} - paused
    tries: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for host, n_tries, n_ended in all_rows("SELECT host, served + failed, ended FROM hosts"):
        tries[site_of(host)] += n_tries
        ended[site_of(host)] += n_ended
    found = []
    for site in busy | {site for site, pace in known.items() if pace.was_busy}:
        before = known.get(site)
        after = seen_again(before, now, tries[site], ended[site], is_busy=site in busy, is_sure=is_sure)
        if after != before:
            found.append((site, after))
    return found
