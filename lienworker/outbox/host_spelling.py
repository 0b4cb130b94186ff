"""Hosts as older versions have spelled them: renamed in place, once, when a worker starts."""

from __future__ import annotations

from lienworker.db.database import all_rows, execute, execute_many, one_row, write
from lienworker.db.kv import fact, set_fact
from lienworker.hostnames import route_of, same_host
from lienworker.outbox import transitions

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
#: Which spelling the stored hosts have; another number when `lienworker.hostnames` changes its mind.
SPELLING = "spelling_of_hosts"
_SPELLING = "1"


def respell_hosts() -> None:
    """Give rows that an older version stored the spelling that politeness goes by now, once."""
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
    """Rows a chunk at a time; the new name takes over the longer waits of both."""
    with write("respell"):
        execute(_MERGE, (plain, odd))
    while one_row(_OF_HOST, (odd, 1)):
        with write("respell"):
            rows = all_rows(_OF_HOST, (odd, _CHUNK))
            transitions.move_to_host((plain, row_id) for (row_id,) in rows)


def _give_routes() -> bool:
    """A route of their own for rows whose task brings its proxy; False when none is left."""
    with write("respell"):
        rows = [(route_of(url, proxy), row_id) for row_id, url, proxy in all_rows(_WITH_OWN_PROXY, (_CHUNK,))]
        execute_many("INSERT OR IGNORE INTO hosts (host) VALUES (?)", {(route,) for route, _ in rows})
        transitions.move_to_host(rows)
    return bool(rows)
