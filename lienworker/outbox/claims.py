"""Claiming: take the best due rows of a lane, within what each host allows, in one transaction.

A claim is how a row gets from WAITING to LEASED: an actor that received a token asks for the best rows it may work on,
and the same transaction selects them, books their start times with their hosts and writes the caller's token into
them. So two workers never hold one row, and no host is promised to two requests at once. Rank decides first (urgent
before default, then priority), then which host is free first, then which of its rows has been due longest.

A million rows of one slow host cost the others nothing: the backlog table says which hosts have rows of which rank, and
only hosts that allow a request now are looked at. Rejected: one queue per host in Redis (it would have to survive a
wiped Redis), and rows named in the message (a lost or repeated message would lose or repeat work).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute, execute_many, one_row, write
from lienworker.hostnames import site_of
from lienworker.outbox import transitions
from lienworker.outbox.pacing import (
    DELAYS,
    HORIZON_MS,
    MOST_OPEN,
    Booked,
    Slot,
    book_claimed,
    booked_until,
    open_at_most,
    spacing_ms,
)
from lienworker.outbox.pauses import PlaceHolds
from lienworker.outbox.rows import ASKED_FOR, NEVER_DUE, Claimed
from lienworker.outbox.states import UPLOADS, Topic
from lienworker.store import tasks

#: Ranks up to this one are urgent (see `outbox.rank` in the schema).
LAST_URGENT_RANK = 10
#: How long a lease is good for without a sign of life from its holder. It is renewed every few seconds.
LEASE_MS = 30_000

#: What a claim reads of a row and of its task, in the names of `Claimed`.
_OF_ROW = (
    "id", "topic", "task_id", "generation", "host", "queue", "priority", "attempts", "payload", "alone", "parcel_key",
)  # fmt: skip
_OF_TASK = (
    "url", "platform", "platform_learned", "state", "county", "parcel_id", "source", "target_json", "proxy",
    "expires_at",
)  # fmt: skip
_NAMES = (*_OF_ROW, *_OF_TASK)
_ROW = ", ".join([*(f"o.{name}" for name in _OF_ROW), *(f"t.{name}" for name in _OF_TASK)])
_DUE_ROWS = f"""
SELECT {_ROW} FROM outbox o JOIN tasks t ON t.task_id = o.task_id
WHERE o.state = 'waiting' AND o.topic = ? AND o.host = ? AND o.rank = ? AND o.due_at <= ? AND (? OR o.alone = 0)
ORDER BY o.due_at LIMIT ?
"""
_ALONE, _HOST = _NAMES.index("alone"), _NAMES.index("host")
_ONE_ROW = f"""
SELECT {_ROW} FROM outbox o JOIN tasks t ON t.task_id = o.task_id
WHERE o.state = 'waiting' AND o.task_id = ? AND o.topic = ? ORDER BY o.generation DESC LIMIT 1
"""
_PROBE_ROW = f"""
SELECT {_ROW} FROM outbox o JOIN tasks t ON t.task_id = o.task_id
WHERE o.state = 'waiting' AND o.topic = ? AND o.due_at <= ?
AND (? IS NULL OR o.id IN (SELECT value FROM json_each(?)))
ORDER BY o.seen_successes IS NOT NULL, o.due_at LIMIT 1
"""
_CHOSEN_ROWS = f"""
SELECT {_ROW} FROM outbox o JOIN tasks t ON t.task_id = o.task_id
WHERE o.state = 'waiting' AND o.topic = ? AND o.due_at <= ? AND o.id IN (SELECT value FROM json_each(?))
ORDER BY o.rank, o.due_at LIMIT ?
"""
# A route cools on its own and with the site that it leads to (`site_of`, in SQL); spacing is the site's alone.
_SITE = "JOIN hosts s ON s.host = substr(b.host, 1, instr(b.host || ' ', ' ') - 1)"
_READY = f"""
SELECT b.host, b.rank, b.waiting, coalesce(s.operator_concurrency, s.concurrency), s.next_allowed_at, s.flow_width,
    {", ".join(f"s.{name}" for name in DELAYS)}
FROM backlog b JOIN hosts h ON h.host = b.host {_SITE}
WHERE b.topic = ? AND b.waiting > 0 AND b.not_before <= ? AND s.next_allowed_at <= ?
AND max(h.cooling_until, s.cooling_until) <= ? AND s.paused_at IS NULL
ORDER BY b.rank, s.next_allowed_at
"""
_RANKS = (
    "SELECT rank, waiting FROM backlog WHERE topic = ? AND host = '' AND waiting > 0 AND not_before <= ? ORDER BY rank"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that a claim depends on."""

    host_delay: float
    host_concurrency: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Rows of one host and rank that may be taken now, and when each may start."""

    host: str
    rank: int
    starts: list[int]
    slot: Slot | None


def claim(
    topic: str, limit: int, token: str, rules: Rules, *, quarantined: bool = True, message_id: str | None = None
) -> list[Claimed]:
    """Take up to `limit` of the best due rows of a lane.

    A row whose holder died once is quarantined: it is claimed in isolation, and only where `quarantined` is true.
    """
    with write("claim"):
        return claim_in_transaction(topic, limit, token, rules, quarantined=quarantined, message_id=message_id)


def claim_in_transaction(
    topic: str,
    limit: int,
    token: str,
    rules: Rules,
    *,
    quarantined: bool,
    message_id: str | None,
    flows: int = MOST_OPEN,
) -> list[Claimed]:
    """Claim inside the caller's transaction; see `claim`. At most `flows` rows of hosts that flows lead to are taken.

    A flow stays in the air for many requests: without a bound, slow ones would fill every place. Urgent rows are not
    counted, and not kept waiting.
    """
    now = now_ms()
    if is_paused(topic):
        return []
    picked = _pick(topic, limit, token, rules, quarantined, now, flows)
    _lease(picked, token, now, message_id)
    return picked


def add_claimed(topic: Topic, rows: Sequence[Claimed], message_id: str | None) -> list[Claimed]:
    """Add the next step of rows that the caller holds, already leased to it. Inside the caller's transaction."""
    now = now_ms()
    ids = transitions.add_leased(topic, rows, now + LEASE_MS, message_id)
    return [
        replace(row, id=row_id, topic=topic, host="", attempts=0, alone=0, start_at=now)
        for row, row_id in zip(rows, ids, strict=True)
    ]


def claim_probe(topic: str, token: str, only: Sequence[int] | None) -> list[Claimed]:
    """Claim one row to try a destination with: one that has not failed there yet, else the one that waited longest."""
    now = now_ms()
    chosen = None if only is None else json.dumps(list(only))
    row = one_row(_PROBE_ROW, (topic, now, chosen, chosen or "[]"))
    picked = [_claimed(row, token, now)] if row else []
    _lease(picked, token, now, None)
    return picked


def claim_these(topic: str, limit: int, token: str, ids: Sequence[int]) -> list[Claimed]:
    """Claim the due ones of the rows that a person has chosen. Inside the caller's transaction."""
    now = now_ms()
    rows = all_rows(_CHOSEN_ROWS, (topic, now, json.dumps(list(ids)), limit))
    picked = [_claimed(row, token, now) for row in rows]
    _lease(picked, token, now, None)
    return picked


def claim_task(task_id: str, topic: str, token: str, rules: Rules) -> Claimed | None:
    """Claim one task's row of a lane, for a caller that waits for just that task; its host is still paced."""
    with write("claim_task"):
        now = now_ms()
        row = one_row(_ONE_ROW, (task_id, topic))
        if row is None:
            return None
        booked = book_claimed(row[_HOST], rules.host_delay, now) if topic == Topic.FETCH else Booked(now, 0)
        row_claimed = _claimed(row, token, booked.start_at, booked.delay_ms)
        _lease([row_claimed], token, now, None)
    return row_claimed


def _claimed(row: tuple[Any, ...], token: str, start_at: int, delay_ms: int = 0) -> Claimed:
    return Claimed(**dict(zip(_NAMES, row, strict=True)), token=token, start_at=start_at, delay_ms=delay_ms)


def _pick(topic: str, limit: int, token: str, rules: Rules, quarantined: bool, now: int, flows: int) -> list[Claimed]:
    picked: list[Claimed] = []
    touched: dict[str, Slot] = {}
    held_places = PlaceHolds() if topic == Topic.FETCH else None
    for candidate in _candidates(topic, limit, rules, now, touched, flows):
        wanted = min(len(candidate.starts), limit - len(picked))
        chosen = _due_rows(topic, candidate, now, wanted, quarantined=quarantined and not picked)
        if held_places:
            chosen = _without_held(chosen, held_places)
        starts = candidate.starts[: len(chosen)]
        delay_ms = candidate.slot.delay_ms if candidate.slot else 0
        picked += [_claimed(row, token, start, delay_ms) for row, start in zip(chosen, starts, strict=True)]
        if candidate.slot:
            candidate.slot.give_back(candidate.starts[len(chosen) :])
        if len(picked) >= limit or (picked and picked[0].alone):
            break
    _book_hosts({site_of(row.host) for row in picked}, touched)
    return picked


def _due_rows(topic: str, candidate: _Candidate, now: int, wanted: int, *, quarantined: bool) -> list[tuple[Any, ...]]:
    """Return due rows; a quarantined one is isolated: it can only be the first row, and then the only one."""
    place = (topic, candidate.host, candidate.rank)
    rows = all_rows(_DUE_ROWS, (*place, now, quarantined, wanted))
    if not rows:
        _note_next_due(place)
    if rows and rows[0][_ALONE]:
        return rows[:1]
    return [row for row in rows if not row[_ALONE]]


def _without_held(rows: list[tuple[Any, ...]], places: PlaceHolds) -> list[tuple[Any, ...]]:
    """Leave out, and hold, rows of a place that is held since they were added; not what a person asks for."""
    free = []
    for row in rows:
        it = _claimed(row, "", 0)
        is_asked_for = ASKED_FOR in (it.payload or "")
        reason = None if is_asked_for else places.reason_for(it.platform, it.state, it.county, site_of(it.host))
        if reason:
            transitions.hold([it.id], reason)
        else:
            free.append(row)
    return free


def _candidates(
    topic: str, limit: int, rules: Rules, now: int, touched: dict[str, Slot], flows: int = MOST_OPEN
) -> Iterator[_Candidate]:
    if topic != Topic.FETCH:
        for rank, waiting in all_rows(_RANKS, (topic, now)):
            yield _Candidate("", rank, [now] * min(limit, waiting), None)
        return
    open_requests = Counter(
        site_of(host) for (host,) in all_rows("SELECT host FROM outbox WHERE state = 'leased' AND topic = 'fetch'")
    )
    for host, rank, waiting, concurrency, next_allowed_at, flow_width, *delays in all_rows(
        _READY, (topic, now, now + HORIZON_MS, now)
    ):
        is_counted = flow_width is not None and rank > LAST_URGENT_RANK
        if is_counted and flows <= 0:
            continue
        site = site_of(host)
        if site not in touched:
            delay_ms = spacing_ms(rules.host_delay, *delays)
            most = min(open_at_most(concurrency, rules.host_concurrency), open_at_most(flow_width, MOST_OPEN))
            touched[site] = Slot(delay_ms, most, booked_until(next_allowed_at), open_requests[site])
        slot = touched[site]
        starts = slot.take(now, min(limit, waiting, flows) if is_counted else min(limit, waiting))
        flows -= len(starts) if is_counted else 0
        if starts:
            yield _Candidate(host, rank, starts, slot)


def _note_next_due(place: tuple[str, str, int]) -> None:
    """Record when the rows of a host and rank are due next, so that nobody looks earlier."""
    execute(
        "UPDATE backlog SET not_before = coalesce((SELECT min(due_at) FROM outbox WHERE state = 'waiting'"
        " AND topic = backlog.topic AND host = backlog.host AND rank = backlog.rank), ?)"
        " WHERE topic = ? AND host = ? AND rank = ?",
        (NEVER_DUE, *place),
    )


def _book_hosts(hosts: set[str], touched: dict[str, Slot]) -> None:
    execute_many(
        "UPDATE hosts SET next_allowed_at = ? WHERE host = ?",
        [(touched[host].next_allowed_at, host) for host in hosts if host in touched],
    )


def _lease(rows: list[Claimed], token: str, now: int, message_id: str | None) -> None:
    transitions.lease([row.id for row in rows], token, now + LEASE_MS, message_id)
    tasks.mark_processing([row.task_id for row in rows if row.topic == Topic.FETCH])


def is_paused(topic: str) -> bool:
    lane = "upload" if topic in UPLOADS else "fetch" if topic == Topic.FETCH else ""
    return bool(lane) and is_lane_paused(lane)


def is_lane_paused(lane: str) -> bool:
    """Return whether an operator, the Gateway or a guard has paused `intake`, `fetch` or `upload`."""
    return one_row("SELECT 1 FROM pauses WHERE lane = ?", (lane,)) is not None


def claimable(topic: str, rules: Rules, most: int) -> int:
    """Return how many rows of a lane could be claimed now, counted up to `most`."""
    if is_paused(topic):
        return 0
    now = now_ms()
    total = 0
    for candidate in _candidates(topic, most, rules, now, {}):
        total += len(candidate.starts)
        if total >= most:
            break
    return min(total, most)


def next_due(topic: str) -> int | None:
    """Return when the next row of a lane that is not due yet will be due; None when no row waits for a time."""
    if topic == Topic.FETCH:
        sql = (
            "SELECT min(at) FROM (SELECT max(b.not_before, s.next_allowed_at, h.cooling_until, s.cooling_until) AS at"
            f" FROM backlog b JOIN hosts h ON h.host = b.host {_SITE} WHERE b.topic = ? AND b.waiting > 0"
            " AND s.paused_at IS NULL)"
            " WHERE at > ? AND at < ?"
        )
    else:
        sql = (
            "SELECT min(not_before) FROM backlog WHERE topic = ? AND waiting > 0 AND not_before > ? AND not_before < ?"
        )
    row = one_row(sql, (topic, now_ms(), NEVER_DUE))
    return int(row[0]) if row and row[0] is not None else None
