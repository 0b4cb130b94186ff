"""When the last task ends, at each site and in all: a pure function over facts that were read at one moment.

A site is asked one request after the other, so its time is what waits, times the tries that a task takes there, times
the pace that the site really keeps. The whole ends with the site that ends last; how fast the others are does not
matter. Three things make it later than that product:

- A failed try goes to the end of its queue, and waits at least for its backoff. So tries come in rounds, each a
  fraction of the one before; the last rounds are a few tasks that wait for their time while the site is idle.
- What must not move yet: a site that cools, a turn that is booked, a row that is not due.
- What does not move at all until a person acts or a site comes back (paused, held, dead): it is told apart, because no
  clock time is true of it. A dead site does have a time: the one at which it is given up.

Before a site was seen at work, its pace is what the delay allows; it may turn out slower, never faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

#: Ranks up to this one are urgent (see `outbox.rank` in the schema).
LAST_URGENT_RANK = 10
#: How many tries must have been seen before they count as much as what is assumed.
_HALF_KNOWN = 8.0
#: What a try takes where no delay is wanted and none was seen, ms.
_QUICKEST_MS = 50.0
#: Tries of a task where nothing was seen anywhere.
_USUAL_TRIES = 1.05
#: The range: this share of the remaining time either way, and as much again where nothing of the site was seen.
_SPREAD = 0.12
#: A site whose tries take up to so many times its delay is as fast as it may be; and the least delay to advise, s.
_PACED, _QUICKEST_DELAY = 1.3, 0.1
#: Tasks of a round that are too few to expect it.
_NEGLIGIBLE = 0.02
#: How much later than its backoff the last of several retries comes, by their jitter.
_LATEST = 1.1


class Hindrance(StrEnum):
    """Why what waits does not move."""

    PAUSED = "paused"  # an operator has paused the site, or all fetching
    DEAD = "dead"  # the site does not answer; its tasks fail when it is given up
    HELD = "held"  # with its county, until a person has acted


@dataclass(frozen=True, slots=True)
class Lot:
    """What waits at a site in one rank: how many, and when the last of them is due, ms."""

    rank: int
    n: int
    last_due: int
    #: Of a part of the work: how many of these are its own.
    own: int = 0


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """A site with work."""

    site: str
    #: The best rank first.
    lots: tuple[Lot, ...]
    in_hand: int = 0
    #: How many of what waits has failed once, twice and so on; empty where that was not counted.
    tried: tuple[int, ...] = ()
    #: Seconds between two requests, and whose word that is.
    delay: float = 1.0
    delay_from: str = "setting"
    #: Requests that a try costs.
    requests: float = 1.0
    #: The pace that was seen, and of how many tries it is made.
    ms_per_try: float | None = None
    tries_per_task: float | None = None
    seen: float = 0.0
    #: When it may be asked next: a booked turn, or the end of its cooling, ms.
    free_at: int = 0
    #: Since when it has answered nothing, where it counts as dead, ms.
    dead_since: int | None = None
    paused: bool = False

    @property
    def waiting(self) -> int:
        return sum(lot.n for lot in self.lots)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the forecast is made of."""

    now: int
    sites: tuple[SiteFacts, ...]
    #: Tasks that are held, by reason.
    held: Mapping[str, int] = field(default_factory=dict)
    #: Why nothing is fetched, if that is so.
    lane_paused: str | None = None
    #: After how long a site that does not answer is given up, ms.
    give_up_ms: int = 1_800_000
    #: The first backoff of a failed try, ms, and how often a task is tried at most.
    retry_ms: int = 5_000
    attempts: int = 4


@dataclass(frozen=True, slots=True)
class Span:
    """A time in ms, and the range that it is expected in."""

    likely: int
    early: int
    late: int


@dataclass(frozen=True, slots=True)
class SiteForecast:
    """When the last task of a site ends; None where that depends on a person."""

    facts: SiteFacts
    ends: Span | None
    hindrance: Hindrance | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """When everything ends that can end, the sites of which that depends, and what does not move."""

    now: int
    ends: Span | None
    #: The last to end first.
    sites: tuple[SiteForecast, ...]
    held: Mapping[str, int]
    lane_paused: str | None

    @property
    def moving(self) -> int:
        """How many tasks wait at sites that are asked."""
        return sum(site.facts.waiting for site in self.sites if site.hindrance is None)

    @property
    def hindered(self) -> tuple[SiteForecast, ...]:
        return tuple(site for site in self.sites if site.hindrance is not None)


def forecast(facts: Facts) -> Forecast:
    """Return when the work ends."""
    usual = _usual_tries(facts)
    busy = (site for site in facts.sites if site.waiting or site.in_hand)
    return _combined(facts, [_of_site(site, facts, site.lots, usual) for site in busy])


def forecast_of(facts: Facts, ahead: Mapping[str, Lot]) -> Forecast:
    """Return when a part of the work ends, given for each site how far into its queue the last of it is.

    The part's lot has in `n` all that is worked off until then: what is of a better rank, what came before, and itself.
    """
    usual = _usual_tries(facts)
    sites = (site for site in facts.sites if site.site in ahead)
    return _combined(facts, [_of_site(site, facts, (ahead[site.site],), usual) for site in sites])


@dataclass(frozen=True, slots=True)
class Late:
    """What of a site does not make a deadline, and the seconds between two requests with which it would."""

    site: SiteFacts
    n: int
    #: None where no delay helps: the site is paused or dead, or slow by itself.
    helps: float | None


def late_for(facts: Facts, ahead: Mapping[str, Lot], due_by: int) -> list[Late]:
    """Return what of a part of the work will not be done by then, the most first; `ahead` is as for `forecast_of`."""
    usual = _usual_tries(facts)
    found = [_late_at(site, ahead[site.site], facts, due_by, usual) for site in facts.sites if site.site in ahead]
    return sorted((late for late in found if late.n), key=lambda late: -late.n)


def _late_at(site: SiteFacts, lot: Lot, facts: Facts, due_by: int, usual: float) -> Late:
    if site.paused or site.dead_since is not None or facts.lane_paused is not None:
        return Late(site, lot.own, None)
    tries, pace = max(1.0, _tries_of(site, usual)), pace_of(site)
    time = max(0, due_by - max(facts.now, site.free_at))
    late = min(lot.own, max(0, math.ceil(lot.n - time / (pace * tries))))
    wanted = time / max(1, lot.n) / tries / site.requests / 1000
    is_paced = pace <= _PACED * 1000 * site.delay * max(1.0, site.requests)
    return Late(site, late, wanted if is_paced and wanted >= _QUICKEST_DELAY else None)


def urgent_part(facts: Facts) -> dict[str, Lot]:
    """Return how far into each queue the last urgent task is."""
    found = {}
    for site in facts.sites:
        if urgent := [lot for lot in site.lots if lot.rank <= LAST_URGENT_RANK]:
            found[site.site] = Lot(LAST_URGENT_RANK, sum(lot.n for lot in urgent), max(lot.last_due for lot in urgent))
    return found


def with_more(facts: Facts, more: Iterable[SiteFacts]) -> Facts:
    """Return the facts as they would be with further work; what is known of a site is kept."""
    sites = {site.site: site for site in facts.sites}
    for new in more:
        known = sites.get(new.site)
        sites[new.site] = replace(known, lots=tuple(sorted([*known.lots, *new.lots], key=_rank))) if known else new
    return replace(facts, sites=tuple(sites.values()))


def _rank(lot: Lot) -> int:
    return lot.rank


def _combined(facts: Facts, sites: list[SiteForecast]) -> Forecast:
    spans = [site.ends for site in sites if site.ends is not None]
    ends = (
        Span(*(max(getattr(span, name) for span in spans) for name in ("likely", "early", "late"))) if spans else None
    )
    ordered = sorted(sites, key=lambda site: (-(site.ends.likely if site.ends else math.inf), site.facts.site))
    return Forecast(facts.now, ends, tuple(ordered), facts.held, facts.lane_paused)


def _of_site(site: SiteFacts, facts: Facts, lots: tuple[Lot, ...], usual: float) -> SiteForecast:
    if site.paused or facts.lane_paused is not None:
        return SiteForecast(site, None, Hindrance.PAUSED)
    if site.dead_since is not None:
        given_up = max(facts.now, site.dead_since + facts.give_up_ms)
        return SiteForecast(site, Span(given_up, facts.now, given_up), Hindrance.DEAD)
    n, last_due = sum(lot.n for lot in lots), max((lot.last_due for lot in lots), default=0)
    fails = 1 - 1 / min(float(facts.attempts), max(1.001, _tries_of(site, usual)))
    ends = _last_try(site, facts, n, last_due, fails)
    return SiteForecast(site, _span(facts.now, ends, site))


def _last_try(site: SiteFacts, facts: Facts, n: int, last_due: int, fails: float) -> float:
    """Return when the last try ends, ms: round after round, each of what failed in the one before."""
    pace = pace_of(site)
    took = n * pace + (0.5 * site.in_hand + (not n)) * pace
    ends = max(facts.now, site.free_at if n else 0) + took
    ends = max(ends, last_due + pace) if n else ends
    counts = _by_failures(site, n)
    for _ in range(facts.attempts - 1):
        counts = [0.0, *(fails * count for count in counts)][: facts.attempts]
        if sum(counts) < _NEGLIGIBLE:
            break
        took = max(
            sum(counts) * pace,
            *(_idle(count, k, took, facts) + pace * min(1.0, count) for k, count in enumerate(counts)),
        )
        ends += took
    return ends


def _by_failures(site: SiteFacts, n: int) -> list[float]:
    """Return how many of the next n tasks, and of those in hand, have failed never, once, twice and so on."""
    tried = sum(site.tried)
    share = min(1.0, n / site.waiting) if site.waiting else 0.0
    return [n + site.in_hand - share * tried, *(share * count for count in site.tried)]


def _idle(count: float, failures: int, round_ms: float, facts: Facts) -> float:
    """Return how long a site waits after a round for the last task whose backoff after so many failures is not over."""
    if not failures or not count:
        return 0.0
    chance = 1 - math.exp(-count)  # that there is such a task at all
    backoff = _LATEST * facts.retry_ms * 4.0 ** (failures - 1)
    return chance * max(0.0, backoff - round_ms / (count / chance + 1))


def pace_of(site: SiteFacts) -> float:
    """Return the ms between two tries at a site: as seen, and never less than its delay allows."""
    allowed = max(_QUICKEST_MS, 1000 * site.delay * max(1.0, site.requests))
    if site.ms_per_try is None:
        return allowed
    weight = site.seen / (site.seen + _HALF_KNOWN)
    return max(allowed, weight * site.ms_per_try + (1 - weight) * allowed)


def _tries_of(site: SiteFacts, usual: float) -> float:
    """Return how often a task is tried there: as seen, leaning on the other sites where little was."""
    if site.tries_per_task is None:
        return usual
    weight = site.seen / (site.seen + 10 * _HALF_KNOWN)
    return weight * site.tries_per_task + (1 - weight) * usual


def _usual_tries(facts: Facts) -> float:
    """Return how often a task is tried at all sites together."""
    weighed = [(site.tries_per_task, site.seen) for site in facts.sites if site.tries_per_task is not None]
    total = sum(seen for _, seen in weighed)
    return sum(tries * seen for tries, seen in weighed) / total if total else _USUAL_TRIES


def _span(now: int, ends: float, site: SiteFacts) -> Span:
    left = ends - now
    share = _SPREAD * (1 + _HALF_KNOWN / (_HALF_KNOWN + site.seen))
    return Span(int(ends), int(now + left * (1 - share)), int(now + left * (1 + share) + pace_of(site)))
