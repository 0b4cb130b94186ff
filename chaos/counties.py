"""All the sites of a run and their tasks: most for the large county, some for sites that measure or mean harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import Any

from chaos.county import FailingCounty
from chaos.hostile import ENDLESS, PAGES, ROBOTS, HostileCounty
from chaos.plan import LONG_RUN
from chaos.polite import PACED, PoliteCounty, TooClose, too_close
from chaos.witness import WatchedCounty, Witness
from lienworker.testing.county.site import ODD
from lienworker.testing.serving import serving

#: What LIENWORKER_HOST_DELAY is in a run; the large county's platform asks for none.
HOST_DELAY = 0.5
_PAGE_SIZE = 8_000
_CRAWL_DELAY = 1.5


class Counties:
    """`conditions` says which of the small sites there are."""

    def __init__(self, seed: int, seconds: float, conditions: Collection[str]) -> None:
        #: When the run began, by the steady clock.
        self.began = 0.0
        self.large = FailingCounty(seed, size=_PAGE_SIZE)
        self.polite: list[PoliteCounty] = []
        self.hostile: list[HostileCounty] = []
        self._endless: list[HostileCounty] = []
        self._robots: list[HostileCounty] = []
        if "polite" in conditions:
            self.polite = [
                PoliteCounty(seed + 1, HOST_DELAY, size=_PAGE_SIZE),
                PoliteCounty(seed + 2, HOST_DELAY, size=_PAGE_SIZE, crawl_delay=_CRAWL_DELAY),
                PoliteCounty(seed + 3, HOST_DELAY, size=_PAGE_SIZE, redirects=True),
            ]
        if "hostile_pages" in conditions:
            self.hostile = [HostileCounty(pages=tuple(PAGES))]
        if "hostile_pages" in conditions and seconds >= LONG_RUN:  # their tries take ten minutes in all
            self._endless = [HostileCounty(pages=ENDLESS)]
        if "hostile_robots" in conditions:
            kinds = [kind for kind in ROBOTS if seconds >= LONG_RUN or kind not in ENDLESS]
            self._robots = [HostileCounty(robots=kind, size=_PAGE_SIZE) for kind in kinds]

    @property
    def all(self) -> list[WatchedCounty]:
        return [*self.honest, *self.all_hostile]

    @property
    def honest(self) -> list[FailingCounty]:
        """Those whose pages are counted: the large one and the polite ones."""
        return [self.large, *self.polite]

    @property
    def all_hostile(self) -> list[HostileCounty]:
        return [*self.hostile, *self._endless, *self._robots]

    @property
    def patient(self) -> list[str]:
        """Addresses of sites that ask for a delay without end: their tasks may wait, that is as it should be."""
        return [county.url for county in self._robots if county.robots == "crawl_delay"]

    def serve(self, stack: ExitStack, witness: Witness) -> None:
        for county in self.all:
            stack.enter_context(serving(county))
            county.witness = witness

    def mend_all(self) -> None:
        for county in self.honest:
            county.mend_all()

    def task(self, number: int, share: float) -> dict[str, Any]:
        """`share` is how much of the run's time is over."""
        row = self._row(number, share)
        target = {name: row[name] for name in ("parcel_id", "state", "county", "url")}
        return {
            "task_id": f"task-{number}",
            "type": "scrape",
            "platform": row["platform"],
            "target": target,
            "priority": 1 + number % 4,
            "created_at": "2026-11-01T00:00:00Z",
        }

    def _row(self, number: int, share: float) -> dict[str, str]:
        """Some are for a parcel that has come before."""
        if self.polite and number % 8 == 3:
            return self.polite[number // 8 % len(self.polite)].polite_row(number)
        if self.hostile and number % 40 == 14:
            return self.hostile[0].hostile_row(number // 40)
        if self._endless and share < 0.2 and number % 100 == 21:
            return self._endless[0].hostile_row(number // 100)
        if self._robots and number % 30 in {25, 26}:  # the second one meets what the first one has stored
            return self._robots[number // 30 % len(self._robots)].hostile_row(number)
        if number % 50 == 7:
            return self.large._row(ODD["missing"])
        return self.large.parcels(1, number // 2 + 1 if number % 20 == 0 else number + 1)[0]

    def struck(self) -> Counter[str]:
        """How often each hostile thing was handed out."""
        return sum((county.struck for county in self.all_hostile), Counter())

    def too_close(self) -> Iterator[TooClose]:
        """Pages that were asked for too soon after each other, which must not be."""
        for county in self.polite:
            yield from too_close(county.url, county.arrivals, only=PACED)

    def too_close_uncounted(self) -> Iterator[TooClose]:
        """Neighbours of which at least one was a redirect or a robots.txt."""
        for county in self.polite:
            yield from (pair for pair in too_close(county.url, county.arrivals) if not pair.is_counted)
