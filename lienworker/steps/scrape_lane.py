"""One message's share of the scrape lane: pages that were fetched earlier are parsed, and their results stored."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lienworker.outbox.claims import claim
from lienworker.outbox.outcomes import give_back, put_off
from lienworker.outbox.rows import Claimed
from lienworker.steps.harvest import is_source_page, store_page
from lienworker.steps.in_flight import GROUP_SECONDS
from lienworker.steps.lane import LaneLease, Slots
from lienworker.steps.scrape import ScrapeContext, Scraped, scrape_if_plain, scrape_in_child, store_scrapes

#: How long one message may run before others get their turn, s.
_SHARE = 2.0
#: How long a heavy page waits while another is parsed, ms.
_WHILE_ANOTHER_MS = 1_000


@dataclass(frozen=True, slots=True)
class ScrapeRun:
    """One message's share of the scrape lane."""

    context: ScrapeContext
    slots: Slots
    lane: LaneLease

    def work(self) -> bool:
        """Work through the message's share; return whether there is probably more."""
        deadline = time.monotonic() + _SHARE
        while time.monotonic() < deadline and not self.lane.stopping.is_set():
            if not self.lane.is_ours:
                return True
            rows = claim(
                "scrape",
                self.lane.batch,
                self.lane.token,
                self.lane.rules,
                quarantined=self.lane.quarantined,
                message_id=self.lane.message_id,
            )
            if not rows:
                return False
            with self.slots.compute_slot():
                self._work_on(rows)
        return True

    def _work_on(self, rows: list[Claimed]) -> None:
        """Commit in groups as results come; give back untried what a stop leaves.

        Heavy pages come last, and so do pages of sources, which have a thousand parcels each.
        """
        group: list[Scraped] = []
        heavy = [row for row in rows if is_source_page(row)]
        rows = [row for row in rows if not is_source_page(row)]
        since = time.monotonic()
        for n, row in enumerate(rows):
            if self.lane.stopping.is_set():
                give_back(rows[n:])
                break
            if scraped := scrape_if_plain(self.context, row, finished=group):
                group.append(scraped)
            else:
                heavy.append(row)
            if time.monotonic() - since > GROUP_SECONDS:
                store_scrapes(self.context, group)
                group, since = [], time.monotonic()
        store_scrapes(self.context, group)
        self._work_on_heavy(heavy)

    def _work_on_heavy(self, rows: list[Claimed]) -> None:
        """Parse heavy pages one by one, and store each at once: a large page takes a hundred megabytes and more.

        While another thread of this process does so, they wait in the outbox, not in a slot that others need.
        """
        if not rows or not self.context.one_heavy.acquire(blocking=False):
            put_off(rows, _WHILE_ANOTHER_MS)
            return
        try:
            for n, row in enumerate(rows):
                if self.lane.stopping.is_set():
                    give_back(rows[n:])
                    break
                self._work_on_one(row)
        finally:
            self.context.one_heavy.release()

    def _work_on_one(self, row: Claimed) -> None:
        if is_source_page(row):
            store_page(self.context, row, self.lane.stopping)
        else:
            store_scrapes(self.context, [scrape_in_child(self.context, row)])
