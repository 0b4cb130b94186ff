"""The state of the whole in one line of text, and whether progress is being made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lienworker.data_folder import DataFolder, is_stack_running
from lienworker.db.clock import now_ms, to_ms
from lienworker.maintenance.disk_limits import Room, free_files, free_where_pages_lie, known_mb
from lienworker.outbox.breaker import breakers
from lienworker.outbox.leases import living
from lienworker.outbox.pauses import pauses
from lienworker.outbox.uploads import ENDPOINTS, undelivered
from lienworker.queries.formatting import at, cut, in_our_words, number, seconds
from lienworker.queries.lists import overdue_hosts
from lienworker.queries.outbox import uploads_held
from lienworker.settings import Settings
from lienworker.store.counts import OUTBOX_STATES, by_minute, outbox_counts, sums, task_counts, this_minute
from lienworker.store.damage import known_damage
from lienworker.store.heartbeats import ACKNOWLEDGED, last_heartbeat
from lienworker.store.history import paused_places

#: A worker beats every three seconds; one that has been silent this long hangs.
_SILENT_SECONDS = 30
#: Due work that nobody has touched for this long means that nothing moves; longer than the slowest page.
_STUCK_MINUTES = 2
_KINDS = {
    "auth": "refuses our token",
    "down": "cannot be reached",
    "timeout": "does not answer in time",
    "reset": "breaks the connection",
    "missing": "does not know our address: is it a Gateway?",
    "rate_limited": "asks us to slow down",
    "server_error": "is in trouble",
}
_HELD = {
    "standalone": "until `lienworker outbox replay`",
    "operator": "by hand, until they are released",
    "drift": "until a person has looked at their county",
    "restored": "since a restore, until `lienworker outbox release --reason restored`",
}
_RATE_MINUTES = 10
#: The longest time between two heartbeats, s.
_BEATS_APART = 120


@dataclass(frozen=True, slots=True)
class Health:
    """`level` is good, busy, warn or bad; `words` is the line."""

    level: str
    words: str


def facts_of(folder: DataFolder) -> dict[str, Any]:
    """Return what the health line is made of; all of it from tallies and small tables."""
    now = now_ms()
    workers = living(folder, "worker")
    lanes = [outbox_counts(topic) for topic in ENDPOINTS]
    for worker in workers:
        worker["silent_seconds"] = max(0, now - to_ms(worker["seen_at"])) // 1000
    return {
        "tasks": task_counts(),
        "outbox": outbox_counts(),
        "uploads": {state: sum(lane[state] for lane in lanes) for state in OUTBOX_STATES},
        "unsent": sum(lane["waiting"] for lane in lanes),
        "undelivered": undelivered(),
        "replays": len(living(folder, "replay")),
        "held": uploads_held(),
        "drift": paused_places(),
        "breakers": breakers(),
        "heartbeat": last_heartbeat(),
        "pauses": [dict(zip(("lane", "cause", "since", "words"), row, strict=True)) for row in pauses()],
        "workers": workers,
        "damage": known_damage(folder),
        "stack_runs": is_stack_running(folder),
        "disk_free_mb": free_where_pages_lie(folder),
        "disk_free_files": free_files(folder.raw),
        "data_mb": known_mb(folder),
        **_pace(),
    }


def _pace() -> dict[str, Any]:
    """Return the tasks that end per second, over the last ten minutes, and the time that the rest will take."""
    minute = this_minute()
    lately = by_minute("task", minute - _RATE_MINUTES)
    moments = [when for counts in lately.values() for when in counts]
    ended = sum(n for counts in lately.values() for n in counts.values())
    # A run that began a minute ago is not slow because nothing ended before it.
    span = max(60, (minute - min(moments)) * 60 + (now_ms() // 1000) % 60) if moments else 60
    rate = ended / span
    counts = task_counts()
    left = counts["pending"] + counts["processing"]
    return {"rate": rate, "left": left, "left_seconds": left / rate if rate and left else None}


def judge(settings: Settings, facts: dict[str, Any]) -> Health:
    """Return the health, the worst first; "nothing is lost" is said where a reader would fear it."""
    bad = [*_damage(facts), *facts.get("redis_trouble", ()), *_no_workers(facts), *_stuck(facts)]
    warn = [
        *(_gateway(settings, facts) or _heartbeat(settings, facts)),
        *_unsent(settings, facts),
        *_intake(settings, facts),
        *_pauses(facts),
        *_drift(facts),
        *_disk(settings, facts),
    ]
    parts = [*bad, *warn, _work(facts, is_well=not (bad or warn)), *_held(facts)]
    level = "bad" if bad else "warn" if warn else "busy" if facts["left"] else "good"
    line = "; ".join(parts)
    return Health(level, line[0].upper() + line[1:] + ".")


def _damage(facts: dict[str, Any]) -> list[str]:
    if not facts["damage"]:
        return []
    return [f"the database is damaged ({facts['damage']}), no stack runs on it: `lienworker doctor --repair`"]


def _no_workers(facts: dict[str, Any]) -> list[str]:
    if not facts["stack_runs"]:
        return ["no stack runs on this folder"] if facts["left"] else []
    silent = [worker for worker in facts["workers"] if worker["silent_seconds"] > _SILENT_SECONDS]
    if not facts["workers"]:
        return ["the stack runs, but no worker lives"]
    return [f"{len(silent)} of {len(facts['workers'])} workers give no sign of life"] if silent else []


def _stuck(facts: dict[str, Any]) -> list[str]:
    if not facts["stack_runs"] or any(pause["lane"] == "fetch" for pause in facts["pauses"]):
        return []
    hosts = overdue_hosts(now_ms() - _STUCK_MINUTES * 60_000)
    since = this_minute() - _STUCK_MINUTES
    if not hosts or sums("outbox", since) or sums("try", since):
        return []
    return [f"nothing has moved for {_STUCK_MINUTES} minutes, though work is due"]


def _gateway(settings: Settings, facts: dict[str, Any]) -> list[str]:
    if settings.mode != "ondemand":
        return []
    troubles = [row for row in facts["breakers"] if row["is_open"]]
    if not troubles:
        return []
    first = min(troubles, key=lambda row: row["since"] or "")
    kind = _KINDS.get(first["kind"] or "", f"does not take {first['endpoint']}: {first['words']}")
    return [
        f"Gateway {kind} since {at(first['since'])[11:16]} UTC; {_uploads(facts['unsent'], 'waits', 'wait')};"
        " nothing is lost"
    ]


def _heartbeat(settings: Settings, facts: dict[str, Any]) -> list[str]:
    """Return a warning where only heartbeats fail: nothing else shows that the Gateway will soon drop this worker."""
    beat = facts["heartbeat"]
    if settings.mode != "ondemand" or not facts["stack_runs"] or beat["outcome"] in (None, ACKNOWLEDGED):
        return []
    since = beat["acknowledged_at"]
    if since and now_ms() - to_ms(since) < 1000 * _BEATS_APART:
        return []
    lately = f"since {at(since)[11:16]} UTC" if since else "yet"
    why = cut(in_our_words(beat["outcome"]), 200)
    return [f"the Gateway has taken no heartbeat {lately}, and may count this worker as gone: {why}"]


def _unsent(settings: Settings, facts: dict[str, Any]) -> list[str]:
    """Return what waits while nobody sends it: neither an on-demand stack nor a person's replay."""
    is_alone = settings.mode != "ondemand"
    if not facts["unsent"] or facts["replays"] or (facts["stack_runs"] and not is_alone):
        return []
    remedy = "`lienworker outbox replay`" if is_alone else "`lienworker up` or `lienworker outbox replay`"
    words = _uploads(facts["unsent"], "waits; nobody sends it", "wait; nobody sends them")
    return [f"{words}: {remedy}"]


def _uploads(n: int, one: str, many: str) -> str:
    return f"1 upload {one}" if n == 1 else f"{number(n)} uploads {many}"


def _intake(settings: Settings, facts: dict[str, Any]) -> list[str]:
    """Nothing else shows why a worker with nothing to do takes nothing."""
    n = facts["undelivered"]
    if settings.mode != "ondemand" or n < settings.max_waiting:
        return []
    return [f"no work is taken until some of {number(n)} outcomes are delivered (LIENWORKER_MAX_WAITING)"]


def _pauses(facts: dict[str, Any]) -> list[str]:
    return [f"{pause['lane']} is paused ({pause['words']})" for pause in facts["pauses"]]


def _drift(facts: dict[str, Any]) -> list[str]:
    """Return the message of a single paused county; the names of the first where there are more."""
    if len(facts["drift"]) == 1:
        return [facts["drift"][0]["words"].partition("; see ")[0]]
    names = [place["words"].partition(" is paused")[0] for place in facts["drift"]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{len(names)} counties are paused, for their pages changed: {'; '.join(names[:3])}{more}"] if names else []


def _disk(settings: Settings, facts: dict[str, Any]) -> list[str]:
    """Return warnings about the disk, unless a lane is stopped because of it, which says it already."""
    stopped = any(pause["cause"] in {"disk", "storage"} for pause in facts["pauses"])
    room = Room(facts["disk_free_mb"], facts["data_mb"], settings, facts["disk_free_files"])
    return [] if stopped else room.warnings()


def _work(facts: dict[str, Any], *, is_well: bool) -> str:
    if not facts["left"]:
        idle = "nothing waits to be scraped"
        if not facts["stack_runs"]:
            return f"{idle}; no stack runs on this folder"
        return f"all is well, {idle}" if is_well else idle
    words = "1 task is in progress" if facts["left"] == 1 else f"{number(facts['left'])} tasks are in progress"
    is_known = facts["stack_runs"] and (facts["left_seconds"] or 0) >= 1
    return words + (f", done in about {seconds(facts['left_seconds'])}" if is_known else "")


def _held(facts: dict[str, Any]) -> list[str]:
    words = [
        f"{_uploads(n, 'is held', 'are held')} {_HELD.get(reason, f'({reason})')}"
        for reason, n in facts["held"].items()
    ]
    parked = facts["outbox"]["parked"]
    return words + ([_uploads(parked, "is parked", "are parked")] if parked else [])


def readiness(folder: DataFolder) -> Health:
    """Return whether progress is being made: a stack whose workers hang is not ready."""
    facts = facts_of(folder)
    if not facts["stack_runs"]:
        return Health("bad", "no stack runs on this folder")
    trouble = [*_no_workers(facts), *_stuck(facts)]
    return Health("bad", "; ".join(trouble)) if trouble else Health("good", "ready")
