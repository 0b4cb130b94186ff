"""What the forecast is made of, read at one moment: tallies, hosts and their paces, never all rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, dict_rows, one_row
from lienworker.hostnames import site_of
from lienworker.outbox.pacing import DELAYS, FAILING_AFTER, Politeness, booked_until, chosen_delay
from lienworker.queries.forecast.model import Facts, Forecast, Lot, SiteFacts, forecast_of, with_more
from lienworker.settings import Settings

#: Rows of a site up to which those that failed before are counted: in a long queue they do not decide when it ends.
_COUNTED = 300
#: Tasks of an import up to which its place in each queue is looked up; a larger one ends with its sites.
_MOST_OF_IMPORT = 30_000
_LOTS = """
SELECT b.host, b.rank, b.waiting, (SELECT max(o.due_at) FROM outbox o WHERE o.state = 'waiting' AND o.topic = 'fetch'
    AND o.host = b.host AND o.rank = b.rank)
FROM backlog b WHERE b.topic = 'fetch' AND b.waiting > 0
"""
_IN_HAND = "SELECT host, count(*) FROM outbox WHERE state = 'leased' AND topic = 'fetch' GROUP BY host"
_TRIED = """
SELECT attempts, count(*) FROM outbox WHERE state = 'waiting' AND topic = 'fetch' AND host = ? AND attempts > 0
GROUP BY attempts ORDER BY attempts
"""
_HOSTS = """
SELECT h.host, h.delay, h.robots_delay, h.operator_delay, h.over_robots, h.requests, h.next_allowed_at,
    h.cooling_until, h.failures_in_a_row, h.failing_since, h.paused_at, p.ms_per_try, p.tries_per_task, p.seen
FROM hosts h LEFT JOIN host_paces p ON p.site = h.host
"""
_OF_IMPORT = """
SELECT o.host, o.rank, o.due_at FROM tasks t CROSS JOIN outbox o ON o.task_id = t.task_id AND o.topic = 'fetch'
WHERE t.import_id = ? AND t.status IN ('pending', 'processing') AND o.state IN ('waiting', 'leased') LIMIT ?
"""
_BEFORE = """
SELECT count(*) FROM outbox WHERE state = 'waiting' AND topic = 'fetch' AND host = ? AND rank = ? AND due_at <= ?
"""
_HELD = (
    "SELECT reason, sum(n) FROM set_aside WHERE state = 'held' AND topic = 'fetch' GROUP BY reason HAVING sum(n) > 0"
)
#: What is not known of a site that nobody has asked yet.
_NOTHING_KNOWN = (
    "requests", "ms_per_try", "tries_per_task", "seen", "next_allowed_at", "cooling_until", "paused_at",
)  # fmt: skip


def facts_now(settings: Settings) -> Facts:
    """Return the facts of this moment."""
    queues: dict[str, list[Lot]] = defaultdict(list)
    for host, rank, n, last_due in all_rows(_LOTS):
        queues[host].append(Lot(rank, n, booked_until(last_due)))
    in_hand = Counter(dict(all_rows(_IN_HAND)))
    hosts = {row["host"]: row for row in dict_rows(_HOSTS)} if queues or in_hand else {}
    paused = one_row("SELECT words FROM pauses WHERE lane = 'fetch' ORDER BY since LIMIT 1")
    return Facts(
        now=now_ms(),
        sites=tuple(_sites(queues, in_hand, hosts, settings)),
        held=dict(all_rows(_HELD)),
        lane_paused=paused[0] if paused else None,
        give_up_ms=int(1000 * settings.host_give_up),
        retry_ms=int(1000 * settings.retry_delay),
        attempts=settings.fetch_attempts,
    )


def _sites(
    queues: Mapping[str, list[Lot]], in_hand: Counter[str], hosts: Mapping[str, Any], settings: Settings
) -> Iterable[SiteFacts]:
    """Yield each site with the queues of its routes as one; a route that is dead is told apart."""
    routes: dict[str, list[str]] = defaultdict(list)
    for host in sorted({*queues, *in_hand}):
        if host in hosts:
            routes[host if _is_dead(hosts[host]) else site_of(host)].append(host)
    for name, members in routes.items():
        lots = _merged([lot for host in members for lot in queues.get(host, [])])
        site = hosts.get(site_of(name), hosts[members[0]])
        tried = _tried(members, sum(lot.n for lot in lots))
        own = _facts_of(name, site, settings)
        yield _with_work(own, lots, sum(in_hand[host] for host in members), tried, hosts[members[0]])


def _is_dead(host: Mapping[str, Any]) -> bool:
    return host["failing_since"] is not None and host["failures_in_a_row"] >= FAILING_AFTER


def _merged(lots: Iterable[Lot]) -> tuple[Lot, ...]:
    ranks: dict[int, Lot] = {}
    for lot in lots:
        same = ranks.get(lot.rank, Lot(lot.rank, 0, 0))
        ranks[lot.rank] = Lot(lot.rank, same.n + lot.n, max(same.last_due, lot.last_due))
    return tuple(ranks[rank] for rank in sorted(ranks))


def _tried(hosts: Iterable[str], waiting: int) -> tuple[int, ...]:
    if waiting > _COUNTED:
        return ()
    counts: Counter[int] = Counter()
    for host in hosts:
        counts.update(dict(all_rows(_TRIED, (host,))))
    return tuple(counts[k] for k in range(1, max(counts, default=0) + 1))


def _facts_of(name: str, site: Mapping[str, Any], settings: Settings) -> SiteFacts:
    delay, source = chosen_delay(settings.host_delay, *(site[column] for column in DELAYS))
    return SiteFacts(
        site=name,
        lots=(),
        delay=delay,
        delay_from=source,
        requests=site["requests"] or 1.0,
        ms_per_try=site["ms_per_try"],
        tries_per_task=site["tries_per_task"],
        seen=site["seen"] or 0.0,
        free_at=max(booked_until(site["next_allowed_at"]), booked_until(site["cooling_until"])),
        paused=site["paused_at"] is not None,
    )


def _with_work(
    site: SiteFacts, lots: tuple[Lot, ...], in_hand: int, tried: tuple[int, ...], route: Mapping[str, Any]
) -> SiteFacts:
    dead_since = route["failing_since"] if _is_dead(route) else None
    return replace(site, lots=lots, in_hand=in_hand, tried=tried, dead_since=dead_since)


def import_part(facts: Facts, import_id: int) -> dict[str, Lot]:
    """Return how far into each queue the last task of an import is."""
    rows = all_rows(_OF_IMPORT, (import_id, _MOST_OF_IMPORT))
    if len(rows) == _MOST_OF_IMPORT:
        return {site.site: replace(_whole_queue(site), own=site.waiting) for site in facts.sites if site.lots}
    last: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    own: Counter[str] = Counter()
    for host, rank, due in rows:
        site = _site_in(facts, host)
        own[site] += 1
        last[site][host, rank] = max(last[site].get((host, rank), 0), due)
    return {
        each.site: replace(_ahead(each, last[each.site]), own=own[each.site])
        for each in facts.sites
        if each.site in last
    }


def forecast_of_county(settings: Settings, platform: str, state: str, county: str) -> Forecast:
    """Return when the last task of a county ends."""
    facts = facts_now(settings)
    return forecast_of(facts, county_parts(facts).get((platform, state, county), {}))


def forecast_of_import(settings: Settings, import_id: int) -> Forecast:
    """Return when the last task of an import ends."""
    facts = facts_now(settings)
    return forecast_of(facts, import_part(facts, import_id))


def _site_in(facts: Facts, host: str) -> str:
    return host if any(site.site == host for site in facts.sites) else site_of(host)


def _ahead(site: SiteFacts, last: Mapping[tuple[str, int], int]) -> Lot:
    """Return what is worked off until the last of these rows: better ranks, what is due before it, and itself."""
    worst = max(rank for _, rank in last)
    better = sum(lot.n for lot in site.lots if lot.rank < worst)
    same = sum(one_row(_BEFORE, (host, rank, due))[0] for (host, rank), due in last.items() if rank == worst)
    return Lot(worst, better + same, max(last.values()))


def county_parts(facts: Facts) -> dict[tuple[str, str, str], dict[str, Lot]]:
    """Return for each platform, state and county how far into each queue its last task is, by when it was added."""
    sql = "SELECT host, place, minute, n FROM waiting_since WHERE topic = 'fetch' AND n > 0 ORDER BY minute"
    done: Counter[str] = Counter()
    found: dict[tuple[str, str, str], dict[str, Lot]] = defaultdict(dict)
    for host, place, minute, n in all_rows(sql):
        site = _site_in(facts, host)
        done[site] += n
        platform, state, county = [*place.split("|", 2), "", ""][:3]
        found[platform, state, county][site] = Lot(0, done[site], minute * 60_000)
    return dict(found)


@dataclass(frozen=True, slots=True)
class Work:
    """Tasks that are not imported yet: how many of a rank at a host, and what its platform asks for."""

    host: str
    rank: int
    n: int
    wish: Politeness


def forecast_with(settings: Settings, work: Iterable[Work], *, is_open: bool) -> Forecast:
    """Return when further work would end, behind what waits already; without a store nothing is known of any site."""
    facts = facts_now(settings) if is_open else Facts(now_ms(), (), attempts=settings.fetch_attempts)
    new = [_new_site(each, settings, is_open=is_open) for each in work]
    whole = with_more(facts, new)
    named = {each.site for each in new}
    return forecast_of(whole, {site.site: _whole_queue(site) for site in whole.sites if site.site in named})


def _whole_queue(site: SiteFacts) -> Lot:
    return Lot(0, site.waiting, max(lot.last_due for lot in site.lots))


def _new_site(work: Work, settings: Settings, *, is_open: bool) -> SiteFacts:
    """Return a site as the work would find it: as it is known, or as its platform asks."""
    known = next(dict_rows(f"{_HOSTS} WHERE h.host = ?", (work.host,)), None) if is_open else None
    own = known or dict.fromkeys(("delay", *DELAYS, *_NOTHING_KNOWN))
    stored = {**own, "delay": work.wish.delay if work.wish.delay is not None else own["delay"]}
    return replace(_facts_of(work.host, stored, settings), lots=(Lot(work.rank, work.n, now_ms()),))
