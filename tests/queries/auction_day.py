"""A made-up auction day, played event by event: its own model of sites, backoff and cooling, with a clock of its own.

It shares no code with the forecast. What a database would hold at a moment (counts, due times, booked turns) is all
that it tells.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

URGENT, DEFAULT = 3, 13
RETRY_MS, ATTEMPTS = 5_000, 4
GIVE_UP_MS = 600_000
OPEN_AT_MOST = 4
_TIMEOUT_MS = 10_000


@dataclass
class Site:
    """One host: how long it wants between two requests, and how long an answer takes, ms."""

    name: str
    delay: int
    answer: int
    #: The share of tries that fails, and whether a failure cools the site.
    fails: float = 0.2
    cools: bool = False
    is_dead: bool = False
    #: Rows that wait: rank, due, number; and their failed tries.
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    failed_tries: dict[int, int] = field(default_factory=dict)
    flying: list[tuple[int, int, int]] = field(default_factory=list)
    next_turn: int = 0
    cooling_until: int = 0
    failures: int = 0
    failing_since: int | None = None
    tries: int = 0
    ended: int = 0
    last_end: int = 0

    @property
    def left(self) -> int:
        return len(self.rows) + len(self.flying)


class Day:
    """All sites and one clock. `go_to` plays until a moment."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0
        self.sites: dict[str, Site] = {}
        self._numbers = iter(range(1 << 40))
        self._later: list[tuple[int, int, Callable[[], None]]] = []

    def add(self, name: str, n: int, rank: int = DEFAULT) -> None:
        self.sites[name].rows += [(rank, self.now, next(self._numbers)) for _ in range(n)]

    def at(self, moment: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (moment, next(self._numbers), do))

    @property
    def left(self) -> int:
        return sum(site.left for site in self.sites.values())

    @property
    def ended(self) -> int:
        return sum(site.ended for site in self.sites.values())

    def go_to(self, moment: int) -> None:
        while self._later and self._later[0][0] <= moment:
            at, _, do = heapq.heappop(self._later)
            self._play(at)
            do()
        self._play(moment)

    def _play(self, moment: int) -> None:
        for site in self.sites.values():
            self._play_site(site, moment)
        self.now = moment

    def _play_site(self, site: Site, until: int) -> None:
        now = self.now
        while now <= until:
            while site.flying and site.flying[0][0] <= now:
                self._land(site, *heapq.heappop(site.flying))
            if site.failing_since is not None and site.is_dead and now >= site.failing_since + GIVE_UP_MS:
                site.ended += len(site.rows)
                site.rows.clear()
                site.last_end = now
            moments = [landing for landing, _, _ in site.flying[:1]]
            if site.failing_since is not None and site.is_dead and site.rows:
                moments.append(site.failing_since + GIVE_UP_MS)
            if site.rows and len(site.flying) < OPEN_AT_MOST:
                start = max(site.next_turn, site.cooling_until, min(due for _, due, _ in site.rows))
                if start <= now:
                    self._start(site, now)
                    continue
                moments.append(start)
            now = min(moments, default=until + 1)

    def _start(self, site: Site, now: int) -> None:
        best = min(row for row in site.rows if row[1] <= now)
        site.rows.remove(best)
        took = _TIMEOUT_MS if site.is_dead else int(site.answer * self.dice.uniform(0.6, 1.4))
        site.next_turn = now + site.delay
        heapq.heappush(site.flying, (now + took, best[0], best[2]))

    def _land(self, site: Site, now: int, rank: int, number: int) -> None:
        site.tries += 1
        site.last_end = now
        if not site.is_dead and self.dice.random() >= site.fails:
            site.ended += 1
            return
        if site.is_dead or site.cools:
            self._cool(site, now)
        tries = site.failed_tries[number] = site.failed_tries.get(number, 0) + 1
        if tries >= ATTEMPTS:
            site.ended += 1
        else:
            backoff = RETRY_MS * 4 ** (tries - 1) * self.dice.uniform(0.8, 1.2)
            site.rows.append((rank, now + int(backoff), number))

    def _cool(self, site: Site, now: int) -> None:
        if site.is_dead:
            site.failures += now >= site.cooling_until
            site.failing_since = now if site.failing_since is None else site.failing_since
        cooling = min(300_000, 2_000 * 2 ** max(0, site.failures - 1)) * self.dice.uniform(0.8, 1.2)
        site.cooling_until = max(site.cooling_until, now + int(cooling))


def a_day(seed: int) -> Day:
    """Fifty sites with delays of 0.5 to 5 s, two of them slow and one dead; a fifth of all tries fails."""
    day = Day(seed)
    for k in range(50):
        site = Site(f"s{k:02d}.example", day.dice.randrange(500, 5_000), day.dice.randrange(200, 1_500))
        site.cools = k % 3 == 0
        site.answer = day.dice.randrange(12_000, 20_000) if k in (7, 23) else site.answer
        day.sites[site.name] = site
    return day


def load(day: Day) -> None:
    """The day's lists, and urgent ones that come in between."""
    day.sites["s41.example"].is_dead = True
    for name in day.sites:
        day.add(name, day.dice.randrange(100, 400))
    for _ in range(6):
        names = day.dice.sample(sorted(day.sites), 8)
        n = day.dice.randrange(5, 20)
        day.at(day.now + day.dice.randrange(60_000, 1_200_000), lambda names=names, n=n: _urgent(day, names, n))  # type: ignore[misc]


def _urgent(day: Day, names: list[str], n: int) -> None:
    for name in names:
        day.add(name, n, URGENT)
