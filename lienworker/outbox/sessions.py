"""Sessions at sites: durable, shared by all processes, used by one flow at a time.

There are so many numbers as the platform allows for each platform and route (host and proxy). A number belongs to the
fetch row that leased it for as long as that row is leased, so nobody has to free it: a worker that dies loses its rows,
and with them its sessions. What a session consists of (cookies, captured values) is a secret: it is read only here, and
shown nowhere.

A session is stored with the outcome of the flow that used it, in the same transaction. A kill before that costs the
session, never a parcel.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute, one_row
from lienworker.outbox.rows import Claimed

_LEASED = "EXISTS (SELECT 1 FROM outbox o WHERE o.id = s.row_id AND o.state = 'leased' AND o.lease_token = s.token)"
_OF_PLACE = f"""
SELECT s.number, {_LEASED}, s.secret, s.ends_at, s.made_by FROM sessions s WHERE s.platform = ? AND s.route = ?
ORDER BY s.number
"""
_LEASE = """
INSERT INTO sessions (platform, route, number, row_id, token) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET row_id = excluded.row_id, token = excluded.token
"""
_MINE = "WHERE platform = ? AND route = ? AND number = ? AND row_id = ? AND token = ?"
_STORE = f"""
UPDATE sessions SET secret = ?, made_by = ?, row_id = NULL, token = NULL,
    opened_at = CASE WHEN ? THEN ? ELSE opened_at END, ends_at = CASE WHEN ? THEN ? ELSE ends_at END
{_MINE}
"""
_DROP = f"UPDATE sessions SET secret = NULL, opened_at = NULL, ends_at = NULL, row_id = NULL, token = NULL {_MINE}"
_FORGET = f"DELETE FROM sessions AS s WHERE coalesce(s.ends_at, 0) < ? AND NOT {_LEASED}"


@contextmanager
def _wiping() -> Iterator[None]:
    """Let SQLite overwrite what it deletes: a backup copies its pages as they are, free space included."""
    execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        execute("PRAGMA secure_delete = OFF").fetchall()


class _Secret(str):
    """A text that is stored and not shown: at the level `debug`, every statement is logged with its values."""

    def __repr__(self) -> str:
        return "'(secret)'"


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a session is: which platform's, over which route, and which of those that may be open there."""

    platform: str
    route: str
    number: int


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session consists of."""

    cookies: Sequence[Mapping[str, str]] = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)
    #: The address of the page that opening it ended on.
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LeasedSession:
    """A session in a flow's hands; `state` is None where it must be opened first."""

    place: SessionPlace
    state: SessionState | None
    made_by: str


def lease_session(platform: str, route: str, most: int, made_by: str, row: Claimed) -> LeasedSession | None:
    """Lease a session to a claimed row, an open one if there is any; None where all are in use.

    Inside the transaction that claims the row.
    """
    now, free, open_ones = now_ms(), set(range(1, most + 1)), {}
    for number, is_leased, secret, ends_at, maker in all_rows(_OF_PLACE, (platform, route)):
        if is_leased:
            free.discard(number)
        elif number in free and secret and maker == made_by and now < (ends_at or 0):
            open_ones[number] = secret
    if not free:
        return None
    number = min(open_ones or free)
    with _wiping():
        execute(_LEASE, (platform, route, number, row.id, row.token))
    return LeasedSession(SessionPlace(platform, route, number), _state(open_ones.get(number)), made_by)


def _state(secret: str | None) -> SessionState | None:
    """Return what is stored; None where it cannot be read, and is opened anew."""
    try:
        found = json.loads(secret or "")
        return SessionState(found["cookies"], found["values"], found["url"])
    except (ValueError, KeyError, TypeError):
        return None


def store_session(leased: LeasedSession, row: Claimed, state: SessionState, seconds: float, *, is_new: bool) -> None:
    """Store what a flow leaves of its session, if it is still the row's. Part of a larger transaction."""
    secret = _Secret(json.dumps({"cookies": list(state.cookies), "values": dict(state.values), "url": state.url}))
    now = now_ms()
    ends_at = now + int(1000 * seconds)
    with _wiping():
        execute(_STORE, (secret, leased.made_by, is_new, now, is_new, ends_at, *_mine(leased, row)))


def drop_session(leased: LeasedSession, row: Claimed) -> None:
    """Forget a session that is over. Part of a larger transaction."""
    with _wiping():
        execute(_DROP, _mine(leased, row))


def _mine(leased: LeasedSession, row: Claimed) -> tuple[Any, ...]:
    return leased.place.platform, leased.place.route, leased.place.number, row.id, row.token


def forget_ended_sessions() -> int:
    """Remove sessions that are over and in nobody's hands; return how many. Part of a larger transaction."""
    with _wiping():
        return int(execute(_FORGET, (now_ms(),)).rowcount)


# POSTs that must not be sent twice.


def note_unsafe_post(row: Claimed, step: str) -> None:
    """Note that a POST is about to be sent that must not be sent again by itself. Part of a larger transaction."""
    execute(
        "INSERT INTO unsafe_posts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET generation = excluded.generation,"
        " step = excluded.step, at = excluded.at",
        (row.task_id, row.generation, step, now_ms()),
    )


def sent_unsafe_post(row: Claimed) -> str | None:
    """Return the step of a POST that this round of the task has perhaps sent already; None where it may be walked.

    A round is what a person (or an import) has started; the fetches that it repeats by itself belong to it.
    """
    found = one_row("SELECT generation, step FROM unsafe_posts WHERE task_id = ?", (row.task_id,))
    if found is None:
        return None
    is_same_round = found[0] == row.generation or '"tries"' in (row.payload or "")
    return str(found[1]) if is_same_round else None


# What a host is told of flows: how many at a time, and what a parcel costs.


#: How much the newest parcel counts in the average.
_NEWEST = 0.1
#: For a flow without sessions: as many as the host's own rules allow.
ANY_NUMBER = 1000


def note_flow_host(site: str, width: int) -> None:
    """Record that flows lead to this host, and how many may be open there. Part of a larger transaction."""
    execute("UPDATE hosts SET flow_width = ? WHERE host = ? AND flow_width IS NOT ?", (width, site, width))


def note_requests(site: str, requests: int) -> None:
    """Record what one parcel has cost at a host. Part of a larger transaction."""
    execute(
        "UPDATE hosts SET requests = coalesce(requests + ? * (? - requests), ?) WHERE host = ?",
        (_NEWEST, requests, requests, site),
    )
