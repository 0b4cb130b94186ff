"""The verdict on the whole in one line of text: pure decisions over one snapshot.

The monitor's overview, `lienworker status`, the API and `/readyz` say the same, because they all ask `judge`. It is red
where a person has to act now (nothing moves, a county fails, the Gateway refuses our token), yellow where a person
should look, and green only where neither is so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lienworker.db.clock import to_ms
from lienworker.maintenance.disk_limits import Room
from lienworker.queries.chance import at_least
from lienworker.queries.formatting import at, cut, in_our_words, number, share
from lienworker.queries.snapshot import STUCK_MINUTES, UPLOADS_STUCK_MINUTES
from lienworker.settings import Settings
from lienworker.store.heartbeats import ACKNOWLEDGED

#: A worker beats every three seconds; one that has been silent this long hangs.
_SILENT_SECONDS = 30
#: A county is in trouble when at least this share of its newest pages fails, surely; it fails when most do.
TROUBLED, FAILS = 0.1, 0.5
#: Fewer pages than this say nothing about a county.
_FEWEST_PAGES = 5
#: Counties or hosts that are named; the others are counted.
_NAMED = 3
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
#: Kinds of refusal that no waiting ends: a person has to correct the token or the address.
_NEEDS_A_PERSON = {"auth", "missing"}
#: Pauses that are no one's wish.
_OUT_OF_ROOM = {"disk", "storage"}
#: The longest time between two heartbeats, s.
_BEATS_APART = 120


Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Health:
    """`level` is good, busy, warn or bad; `words` is the line."""

    level: str
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `level` is warn or bad."""

    level: str
    words: str


def judge(settings: Settings, facts: Facts) -> Health:
    """Return the verdict, the worst first; "nothing is lost" is said where a reader would fear it."""
    found = sorted(findings(settings, facts), key=lambda finding: finding.level != "bad")
    parts = [*(finding.words for finding in found), _work(facts, is_well=not found), *_held(facts)]
    level = found[0].level if found else "busy" if facts["left"] else "good"
    line = "; ".join(parts)
    return Health(level, line[0].upper() + line[1:] + ".")


def findings(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Yield all that a person should know of, each cause once."""
    yield from _damage(facts)
    yield from _no_workers(settings, facts)
    yield from _stuck(settings, facts)
    yield from (Finding("bad", row["words"]) for row in facts["deadlines"] if row["late"])
    yield from _counties(facts)
    yield from _blocked(facts)
    yield from _gateway(settings, facts) or _heartbeat(settings, facts)
    yield from _unsent(settings, facts)
    yield from _parked(facts)
    yield from _intake(settings, facts)
    yield from _pauses(facts)
    yield from _drift(facts)
    yield from _dropped(facts)
    yield from _disk(settings, facts)


def _damage(facts: Facts) -> Iterator[Finding]:
    if facts["damage"]:
        words = f"the database is damaged ({facts['damage']}), no stack runs on it: `lienworker doctor --repair`"
        yield Finding("bad", words)
    if facts["redis_trouble"]:
        yield Finding("bad", facts["redis_trouble"])


def _no_workers(settings: Settings, facts: Facts) -> Iterator[Finding]:
    if not facts["stack_runs"]:
        # In standalone mode a finished run leaves no stack behind, and that is as it should be.
        if facts["left"] or settings.mode == "ondemand":
            yield Finding("bad", "no stack runs on this folder")
    elif not facts["workers"]:
        yield Finding("bad", "the stack runs, but no worker lives")
    elif silent := sum(worker["silent_seconds"] > _SILENT_SECONDS for worker in facts["workers"]):
        n = len(facts["workers"])
        yield Finding("bad", f"{silent} of {n} {'worker gives' if n == 1 else 'workers give'} no sign of life")


def _stuck(settings: Settings, facts: Facts) -> Iterator[Finding]:
    paused = {pause["lane"] for pause in facts["pauses"]}
    if not facts["stack_runs"]:
        return
    if "steps" in facts["stuck"] and "fetch" not in paused:
        yield Finding("bad", f"nothing has moved for {STUCK_MINUTES} minutes, though work is due")
    waits_for_gateway = any(row["is_open"] for row in facts["breakers"])
    if "uploads" in facts["stuck"] and "upload" not in paused and settings.mode == "ondemand" and not waits_for_gateway:
        yield Finding("bad", f"no upload has moved for {UPLOADS_STUCK_MINUTES} minutes, though some are due")


def _counties(facts: Facts) -> Iterator[Finding]:
    """Yield counties whose pages fail by more than chance: most of them is red, many is yellow."""
    shares = [(at_least(row["failed"], row["ended"]), row) for row in facts["failing"] if row["ended"] >= _FEWEST_PAGES]
    for level, low, high in (("bad", FAILS, 1.1), ("warn", TROUBLED, FAILS)):
        rows = [row for fails, row in shares if low < fails <= high]
        yield from (Finding(level, words) for words in _named([_failing_in_words(row) for row in rows], "counties"))


def _failing_in_words(row: Facts) -> str:
    good = row["ended"] - row["failed"]
    return f"{_place(row)}: {number(good)} of the last {number(row['ended'])} pages were read (mostly {row['reason']})"


def _place(row: Facts) -> str:
    county = " ".join(filter(None, (row["county"] or "no county", row["state"])))
    return f"{row['platform']}, {county}" if row["platform"] else county


def _named(words: list[str], noun: str) -> list[str]:
    """Return the first ones, and how many more there are."""
    more = [f"{len(words) - _NAMED} more {noun} like that"] if len(words) > _NAMED else []
    return words[:_NAMED] + more


def _blocked(facts: Facts) -> Iterator[Finding]:
    words = [
        f"{row['host']} does not serve us ({row['reason']}); {number(row['waiting'])}"
        f" {'page waits' if row['waiting'] == 1 else 'pages wait'} for it"
        for row in facts["blocked"]
    ]
    yield from (Finding("warn", each) for each in _named(words, "hosts"))


def _gateway(settings: Settings, facts: Facts) -> list[Finding]:
    if settings.mode != "ondemand":
        return []
    troubles = [row for row in facts["breakers"] if row["is_open"]]
    if not troubles:
        return []
    refusing = [row for row in troubles if row["kind"] in _NEEDS_A_PERSON]
    first = min(refusing or troubles, key=lambda row: row["since"] or "")
    kind = _KINDS.get(first["kind"] or "", f"does not take {first['endpoint']}: {first['words']}")
    words = (
        f"Gateway {kind} since {at(first['since'])[11:16]} UTC; {_uploads(facts['unsent'], 'waits', 'wait')};"
        " nothing is lost"
    )
    return [Finding("bad" if refusing else "warn", words)]


def _heartbeat(settings: Settings, facts: Facts) -> list[Finding]:
    """Return a warning where only heartbeats fail: nothing else shows that the Gateway will soon drop this worker."""
    beat = facts["heartbeat"]
    if settings.mode != "ondemand" or not facts["stack_runs"] or beat["outcome"] in (None, ACKNOWLEDGED):
        return []
    since = beat["acknowledged_at"]
    if since and facts["now_ms"] - to_ms(since) < 1000 * _BEATS_APART:
        return []
    lately = f"since {at(since)[11:16]} UTC" if since else "yet"
    why = cut(in_our_words(beat["outcome"]), 200)
    return [Finding("warn", f"the Gateway has taken no heartbeat {lately}, and may count this worker as gone: {why}")]


def _unsent(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Yield what waits while nobody sends it: neither an on-demand stack nor a person's replay."""
    is_alone = settings.mode != "ondemand"
    if not facts["unsent"] or facts["replays"] or (facts["stack_runs"] and not is_alone):
        return
    remedy = "`lienworker outbox replay`" if is_alone else "`lienworker up` or `lienworker outbox replay`"
    words = _uploads(facts["unsent"], "waits; nobody sends it", "wait; nobody sends them")
    yield Finding("warn", f"{words}: {remedy}")


def _uploads(n: int, one: str, many: str) -> str:
    return f"1 upload {one}" if n == 1 else f"{number(n)} uploads {many}"


def _parked(facts: Facts) -> Iterator[Finding]:
    if parked := facts["outbox"]["parked"]:
        yield Finding("warn", f"{_uploads(parked, 'is parked', 'are parked')} until a person has looked")


def _intake(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Nothing else shows why a worker with nothing to do takes nothing."""
    n = facts["undelivered"]
    if settings.mode == "ondemand" and n >= settings.max_waiting:
        words = f"no work is taken until some of {number(n)} outcomes are delivered (LIENWORKER_MAX_WAITING)"
        yield Finding("warn", words)


def _pauses(facts: Facts) -> Iterator[Finding]:
    for pause in facts["pauses"]:
        level = "bad" if pause["cause"] in _OUT_OF_ROOM else "warn"
        yield Finding(level, f"{pause['lane']} is paused ({pause['words']})")
    if names := facts["paused_by_hand"]:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield Finding("warn", f"an operator has paused {', '.join(names[:_NAMED])}{more}; what waits there is kept")


def _drift(facts: Facts) -> Iterator[Finding]:
    """Yield the message of a single paused county; the names of the first where there are more."""
    names = [place["words"].partition(" is paused")[0] for place in facts["drift"]]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    if len(names) == 1:
        yield Finding("warn", facts["drift"][0]["words"].partition("; see ")[0])
    elif names:
        listed = "; ".join(names[:_NAMED]) + more
        yield Finding("warn", f"{len(names)} counties are paused, for their pages changed: {listed}")


def _dropped(facts: Facts) -> Iterator[Finding]:
    words = [
        f"{_place(row)}: {row['field']} is on {share(row['now'])} of the newest pages, {share(row['before'])} before"
        for row in facts["dropped"]
    ]
    yield from (Finding("warn", each) for each in _named(words, "fields"))


def _disk(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Yield warnings about the disk, unless a lane is stopped because of it, which says it already."""
    if not any(pause["cause"] in _OUT_OF_ROOM for pause in facts["pauses"]):
        room = Room(facts["disk_free_mb"], facts["data_mb"], settings, facts["disk_free_files"])
        yield from (Finding("warn", words) for words in room.warnings())


def _work(facts: Facts, *, is_well: bool) -> str:
    if not facts["left"]:
        idle = "nothing waits to be scraped"
        if not facts["stack_runs"]:
            return f"{idle}; no stack runs on this folder"
        return f"all is well, {idle}" if is_well else idle
    words = "1 task is in progress" if facts["left"] == 1 else f"{number(facts['left'])} tasks are in progress"
    said = [words, *facts["forecast"]["stuck"]]
    if facts["stack_runs"] and facts["forecast"]["words"]:
        said[0] += f", {facts['forecast']['words']}"
    return "; ".join(said)


def _held(facts: Facts) -> list[str]:
    return [
        f"{_uploads(n, 'is held', 'are held')} {_HELD.get(reason, f'({reason})')}"
        for reason, n in facts["held"].items()
    ]
