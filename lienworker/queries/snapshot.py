"""What a verdict on the whole is made of, read at one moment: tallies and small tables, never all tasks.

`health.judge` turns it into the line that the monitor's overview, `lienworker status`, the API and `/readyz` share.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lienworker.data_folder import DataFolder, is_stack_running
from lienworker.db.clock import now_ms, to_ms
from lienworker.db.database import dict_rows, one_row
from lienworker.errors import RedisAwayError
from lienworker.maintenance.disk_limits import free_files, free_where_pages_lie, known_mb
from lienworker.outbox.breaker import breakers
from lienworker.outbox.leases import living
from lienworker.outbox.pauses import pauses
from lienworker.outbox.uploads import ENDPOINTS, undelivered
from lienworker.queries.counties import dropped_fields, failing_counties
from lienworker.queries.forecast.deadlines import deadlines
from lienworker.queries.forecast.facts import facts_now
from lienworker.queries.forecast.model import forecast
from lienworker.queries.forecast.words import as_facts
from lienworker.queries.hosts import paused_by_hand
from lienworker.queries.lists import overdue_hosts
from lienworker.queries.outbox import uploads_held
from lienworker.settings import Settings
from lienworker.store.counts import OUTBOX_STATES, by_minute, outbox_counts, sums, task_counts, this_minute
from lienworker.store.damage import known_damage
from lienworker.store.heartbeats import last_heartbeat
from lienworker.store.history import paused_places

#: Due pages that nobody has touched for this long mean that nothing moves; longer than the slowest page.
STUCK_MINUTES = 2
#: The same for uploads, which wait for each other and are sent in batches.
UPLOADS_STUCK_MINUTES = 10
_STEPS = ("fetch", "scrape")
_RATE_MINUTES = 10
#: A host that failed this often in a row, and is left alone for a while, does not serve us.
_BLOCKED_AFTER = 5
_MOST_HOSTS = 20


def facts_of(settings: Settings, folder: DataFolder) -> dict[str, Any]:
    """Return the snapshot."""
    now = now_ms()
    work = facts_now(settings)
    workers = living(folder, "worker")
    lanes = [outbox_counts(topic) for topic in ENDPOINTS]
    for worker in workers:
        worker["silent_seconds"] = max(0, now - to_ms(worker["seen_at"])) // 1000
    return {
        "now_ms": now,
        "tasks": task_counts(),
        "outbox": outbox_counts(),
        "uploads": {state: sum(lane[state] for lane in lanes) for state in OUTBOX_STATES},
        "unsent": sum(lane["waiting"] for lane in lanes),
        "undelivered": undelivered(),
        "replays": len(living(folder, "replay")),
        "held": uploads_held(),
        "drift": paused_places(),
        "failing": failing_counties(now),
        "dropped": dropped_fields(now),
        "blocked": _blocked_hosts(now),
        "stuck": _stuck(now),
        "breakers": breakers(),
        "heartbeat": last_heartbeat(),
        "pauses": [dict(zip(("lane", "cause", "since", "words"), row, strict=True)) for row in pauses()],
        "paused_by_hand": paused_by_hand(),
        "workers": workers,
        "damage": known_damage(folder),
        "redis_trouble": _redis_trouble(settings),
        "stack_runs": is_stack_running(folder),
        "disk_free_mb": free_where_pages_lie(folder),
        "disk_free_files": free_files(folder.raw),
        "data_mb": known_mb(folder),
        "forecast": as_facts(forecast(work)),
        "deadlines": deadlines(work),
        **_pace(),
    }


def _pace() -> dict[str, Any]:
    """Return the tasks that end per second, over the last ten minutes, and how many are left."""
    minute = this_minute()
    lately = by_minute("task", minute - _RATE_MINUTES)
    moments = [when for counts in lately.values() for when in counts]
    ended = sum(n for counts in lately.values() for n in counts.values())
    # A run that began a minute ago is not slow because nothing ended before it.
    span = max(60, (minute - min(moments)) * 60 + (now_ms() // 1000) % 60) if moments else 60
    rate = ended / span
    counts = task_counts()
    left = counts["pending"] + counts["processing"]
    return {"rate": rate, "left": left}


def _redis_trouble(settings: Settings) -> str | None:
    """Return what is wrong with the operator's own Redis; a private one is the stack's to look after."""
    if not settings.redis_url:
        return None
    from lienworker.broker import refuse_redis_away  # and Dramatiq with it: most have nothing to ask there

    try:
        refuse_redis_away(settings)
    except RedisAwayError as problem:
        return str(problem).rstrip(".")
    return None


def _stuck(now: int) -> list[str]:
    """Return what is due and does not move: "steps", "uploads"."""
    steps_before, uploads_before = (now - minutes * 60_000 for minutes in (STUCK_MINUTES, UPLOADS_STUCK_MINUTES))
    found = []
    if overdue_hosts(steps_before) and not _has_moved(_STEPS, STUCK_MINUTES):
        found.append("steps")
    if _has_overdue_uploads(uploads_before) and not _has_moved(ENDPOINTS, UPLOADS_STUCK_MINUTES):
        found.append("uploads")
    return found


def _has_moved(topics: Iterable[str], minutes: int) -> bool:
    """Return whether a row of these topics has ended or failed in the last minutes."""
    since, known = this_minute() - minutes, set(topics)
    return any(key.partition("|")[0] in known for name in ("outbox", "try") for key in sums(name, since))


def _has_overdue_uploads(before: int) -> bool:
    # The backlog's time is only a lower bound: the rows themselves say whether one is due.
    sql = (
        "SELECT 1 FROM backlog b WHERE b.topic NOT IN ('fetch', 'scrape') AND b.waiting > 0 AND b.not_before <= ?"
        " AND EXISTS (SELECT 1 FROM outbox o WHERE o.state = 'waiting' AND o.topic = b.topic AND o.host = b.host"
        " AND o.rank = b.rank AND o.due_at <= ?) LIMIT 1"
    )
    return one_row(sql, (before, before)) is not None


def _blocked_hosts(now: int) -> list[dict[str, Any]]:
    """Return the hosts that keep failing and are left alone for a while, with how many pages wait for each."""
    sql = (
        "SELECT h.host, coalesce(h.reason, 'no answer') AS reason, sum(b.waiting) AS waiting,"
        " (h.cooling_until - ?) / 1000 AS cooling_seconds FROM hosts h JOIN backlog b ON b.host = h.host"
        " AND b.topic = 'fetch' WHERE h.cooling_until > ? AND h.failures_in_a_row >= ?"
        " GROUP BY h.host HAVING sum(b.waiting) > 0 ORDER BY 3 DESC LIMIT ?"
    )
    return list(dict_rows(sql, (now, now, _BLOCKED_AFTER, _MOST_HOSTS)))
