"""What an operator says of sites and counties: how often a site is asked, and what is paused. Each is in the audit.

An operator's word about a site's delay is kept beside the platform's and that of robots.txt, and
`outbox.pacing.chosen_delay` says which of them applies. A paused site keeps its rows waiting; no claim takes them. A
paused county has its fetches held (`outbox.pauses.PlaceHolds`), since its site may serve others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.errors import InputError
from lienworker.hostnames import host_of, same_host, site_of
from lienworker.outbox import transitions
from lienworker.outbox.pacing import LONGEST_DELAY, MOST_OPEN, SITE_OF_H
from lienworker.outbox.pauses import PAUSED, mark_county
from lienworker.queries.lists import spellings
from lienworker.store.audit import record_action

#: Rows of a county in one transaction, so that workers can write in between.
_CHUNK = 1000
_ROUTES = f"SELECT h.host FROM hosts h WHERE {SITE_OF_H} = ?"
_OPEN_ROWS = (
    "SELECT 1 FROM outbox WHERE topic = 'fetch' AND state IN ('waiting', 'leased', 'held') AND host = ? LIMIT 1"
)
_FORGET = (
    "UPDATE hosts SET robots_delay = NULL, operator_delay = NULL, operator_concurrency = NULL, over_robots = 0,"
    " paused_at = NULL, cooling_until = 0, failures_in_a_row = 0, failing_since = NULL, reason = NULL, requests = NULL"
    " WHERE host = ?"
)
_FORGIVE = "UPDATE hosts AS h SET failing_since = NULL, failures_in_a_row = 0, cooling_until = 0"
_OF_COUNTY = (
    "SELECT o.id FROM tasks t CROSS JOIN outbox o ON o.task_id = t.task_id WHERE t.county = ?"
    " AND t.state = ? COLLATE NOCASE AND o.topic = 'fetch' AND o.state = ? AND (? = '' OR o.reason = ?)"
)


@dataclass(frozen=True, slots=True)
class County:
    """A county as an operator names it: `FL/Dixie`."""

    state: str
    name: str

    def __str__(self) -> str:
        return f"{self.state}/{self.name}"


def site_named(words: str) -> str:
    """Return the site that an operator means, by its name or by an address there."""
    site = site_of(host_of(words) if "//" in words else same_host(words.strip().lower()))
    if not site or "/" in site:
        raise InputError(f"{words!r} is no host; write a name such as county.example, or an address.")
    return site


def county_named(words: str) -> County:
    state, slash, name = (part.strip() for part in words.partition("/"))
    if not (state and slash and name):
        raise InputError(f"{words!r} is no county; write state and county, such as FL/Dixie.")
    return County(state.upper(), name)


def check_pace(delay: float | None, concurrency: int | None) -> None:
    """Refuse figures that no site can be asked by."""
    if delay is not None and not 0 <= delay <= LONGEST_DELAY:
        raise InputError(f"A delay is between 0 and {LONGEST_DELAY:g} seconds.")
    if concurrency is not None and not 1 <= concurrency <= MOST_OPEN:
        raise InputError(f"Between 1 and {MOST_OPEN} requests may be open at a time.")


def set_host(
    site: str, delay: float | None = None, concurrency: int | None = None, *, over_robots: bool | None = None
) -> None:
    """Record an operator's word about a site; None leaves what was said before."""
    check_pace(delay, concurrency)
    said = {"delay": delay, "concurrency": concurrency, "over robots.txt": over_robots}
    words = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
    with write("host_by_hand"):
        execute("INSERT OR IGNORE INTO hosts (host) VALUES (?)", (site,))
        execute(
            "UPDATE hosts SET operator_delay = coalesce(?, operator_delay), over_robots = coalesce(?, over_robots),"
            " operator_concurrency = coalesce(?, operator_concurrency) WHERE host = ?",
            (delay, over_robots, concurrency, site),
        )
        _forget_pace(site)
        record_action("set", f"{site}: {words}", 1)


def unset_host(site: str) -> None:
    """Take back what an operator has said about a site's pace."""
    with write("host_by_hand"):
        execute(
            "UPDATE hosts SET operator_delay = NULL, operator_concurrency = NULL, over_robots = 0 WHERE host = ?",
            (site,),
        )
        _forget_pace(site)
        record_action("set", f"{site}: as its platform and the settings say", 1)


def _forget_pace(site: str) -> None:
    """Forget the pace that was seen: it was another's word."""
    execute("DELETE FROM host_paces WHERE site = ?", (site,))


def pause_host(site: str) -> None:
    """Let what waits for a site wait, until it is resumed; what is in flight arrives."""
    with write("host_by_hand"):
        execute("INSERT OR IGNORE INTO hosts (host) VALUES (?)", (site,))
        execute("UPDATE hosts SET paused_at = coalesce(paused_at, ?) WHERE host = ?", (now_ms(), site))
        record_action("pause", site, 1)


def resume_host(site: str) -> None:
    """Resume a site. What it failed before is forgiven: while it was paused, it had no chance to answer."""
    with write("host_by_hand"):
        execute("UPDATE hosts SET paused_at = NULL WHERE host = ?", (site,))
        execute(f"{_FORGIVE} WHERE {SITE_OF_H} = ?", (site,))
        record_action("resume", site, 1)


def forget_host(site: str) -> None:
    """Forget what was learned and said about a site, but not what its platform asks for while work waits for it."""
    with write("host_by_hand"):
        for (route,) in all_rows(_ROUTES, (site,)):
            execute(_FORGET, (route,))
            # A claim needs the row of what waits, and the next request its distance from the last.
            if one_row(_OPEN_ROWS, (route,)) is None:
                execute("DELETE FROM hosts WHERE host = ? AND next_allowed_at <= ?", (route, now_ms()))
        _forget_pace(site)
        record_action("forget", site, 1)


def pause_county(county: County) -> int:
    """Hold what waits to be fetched of a county, and what comes later; return how many rows wait."""
    with write("county_by_hand"):
        mark_county(county.state, county.name, paused=True)
        record_action("pause", str(county), 1)
    return _in_chunks(_rows_of(county, "waiting", ""), lambda rows: transitions.hold(rows, PAUSED))


def resume_county(county: County) -> int:
    """Release what a pause of the county holds; return how many rows that was."""
    with write("county_by_hand"):
        mark_county(county.state, county.name, paused=False)
        record_action("resume", str(county), 1)
    return _in_chunks(_rows_of(county, "held", PAUSED), transitions.release_steps)


def _rows_of(county: County, state: str, reason: str) -> list[int]:
    """Return the fetches of a county in a state, and held ones for a reason; its name is taken without case."""
    return [
        row_id
        for spelled in spellings("tasks", county.name)
        for (row_id,) in all_rows(_OF_COUNTY, (spelled, county.state, state, reason, reason))
    ]


def _in_chunks(row_ids: Sequence[int], change: Callable[[Sequence[int]], object]) -> int:
    for start in range(0, len(row_ids), _CHUNK):
        with write("county_rows"):
            change(row_ids[start : start + _CHUNK])
    return len(row_ids)
