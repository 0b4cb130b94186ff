"""From a raw page on disk to a result, and the rows that deliver it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.errors import PageError, ShortageError, StoreError
from lienworker.failpoints import reach
from lienworker.outbox.claims import claim
from lienworker.outbox.closing import give_back, put_off
from lienworker.outbox.leases import free_for
from lienworker.outbox.rows import Claimed
from lienworker.platforms import Page, ParsedPage, Target
from lienworker.platforms.catalog.guarded import parse_here, parse_in_child
from lienworker.steps.in_flight import GROUP_SECONDS
from lienworker.steps.lane import LaneLease
from lienworker.steps.scrape_outcomes import ScrapeContext, Scraped, store_scrapes
from lienworker.steps.slots import Slots
from lienworker.steps.watchdog import Parse
from lienworker.store.pages import PageRecord, page_of
from lienworker.store.raw_files import read_page
from lienworker.store.stored_paths import raw_place

#: How long one message may go on before others get their turn, s.
_SHARE = 2.0
#: How long a heavy page waits while another is parsed, ms.
_WHILE_ANOTHER_MS = 1_000
#: Pages of more than this are weighed and parsed one at a time.
_LARGE_BYTES = 1_000_000

logger = logging.getLogger(__name__)
Fresh = tuple[PageRecord, bytes]
Parser = Callable[[Page, Target], ParsedPage | None]


def scrape_row(context: ScrapeContext, row: Claimed) -> Scraped:
    """Parses the page of one row, wherever that is best. Whatever a parser does, the outcome is a value; a shortage of
    the machine's own is not."""
    return scrape_if_plain(context, row) or scrape_in_child(context, row)


def scrape_if_plain(
    context: ScrapeContext, row: Claimed, fresh: Fresh | None = None, finished: Sequence[Scraped] = ()
) -> Scraped | None:
    """The same for a page that can be parsed here, the `fresh` one in hand or the one on disk; None for another.

    A row whose holder died is parsed in the child. `finished` is what the caller has not stored yet: if this page
    hangs, the watchdog does it.
    """
    if row.alone:
        return None

    def parse(page: Page, target: Target) -> ParsedPage | None:
        with context.watchdog.over(row, finished):
            return parse_here(context.registry, page, target)

    return _scraped(context, row, fresh, parse)


def scrape_in_child(context: ScrapeContext, row: Claimed) -> Scraped:
    """The same in the process with limits, which may take ten seconds."""
    found = _scraped(context, row, None, lambda page, target: parse_in_child(context.registry, page, target))
    assert found is not None
    return found


def _scraped(context: ScrapeContext, row: Claimed, fresh: Fresh | None, parse: Parser) -> Scraped | None:
    reach("scrape.before_parse")
    page, body = fresh or (page_of(row.task_id, row.generation), None)
    started = time.perf_counter()
    try:
        outcome: ParsedPage | PageError | None = parse(_page(context, row, page, body), target_of(row))
    except PageError as problem:
        outcome = problem
    except StoreError as problem:
        outcome = PageError("raw_page_damaged", str(problem), retryable=True)
    except ShortageError:  # the row is given back for later
        raise
    except MemoryError:
        raise ShortageError(f"there is not enough memory to parse the page of {row.task_id}") from None
    except Exception as problem:  # a parser's bug must not cost the worker, nor the neighbours' rows
        logger.warning("the parser failed on %s", row.task_id, exc_info=True, extra={"task_id": row.task_id})
        outcome = PageError("parser_failed", f"{type(problem).__name__}: {problem}")
    reach("scrape.after_parse")
    if outcome is None:
        return None
    return Scraped(row, page, outcome, int(1000 * (time.perf_counter() - started)))


def _page(context: ScrapeContext, row: Claimed, page: PageRecord | None, body: bytes | None) -> Page:
    if page is None:
        raise StoreError(f"The page of task {row.task_id} is not in the store.")
    if body is None:
        body = read_page(raw_place(context.folder.root, page.path), page.sha256)
    return Page(page.url, body, page.content_type, page.charset, page.status)


def target_of(row: Claimed) -> Target:
    extra: dict[str, Any] = json.loads(row.target_json)
    return Target(row.platform, row.state, row.county, row.parcel_id, row.url, extra)


def give_up_hanging(context: ScrapeContext, holder_id: str, parse: Parse) -> None:
    """Store what the thread of a hanging parse has finished, and free its rows; the page that hangs is blamed."""
    store_scrapes(context, list(parse.finished))
    free_for(holder_id, parse.row.id, "Its page held a worker up for too long.")


@dataclass(frozen=True, slots=True)
class ScrapeRun:
    """One message's share of the scrape lane."""

    context: ScrapeContext
    slots: Slots
    lane: LaneLease

    def work(self) -> bool:
        """True when there is probably more."""
        deadline = time.monotonic() + _SHARE
        while time.monotonic() < deadline and not self.lane.stopping.is_set():
            if not self.lane.is_ours:
                return True
            rows = claim(
                "scrape",
                self.lane.batch,
                self.lane.token,
                self.lane.rules,
                suspects=self.lane.suspects,
                message_id=self.lane.message_id,
            )
            if not rows:
                return False
            with self.slots.compute_slot():
                self._work_on(rows)
        return True

    def _work_on(self, rows: list[Claimed]) -> None:
        """Commits in groups as results come; what a stop leaves undone goes back untried. Heavy pages come last."""
        group: list[Scraped] = []
        heavy: list[Claimed] = []
        since = time.monotonic()
        for n, row in enumerate(rows):
            if self.lane.stopping.is_set():
                give_back(rows[n:])
                break
            scraped = None if _is_large(row) else scrape_if_plain(self.context, row, finished=group)
            if scraped:
                group.append(scraped)
            else:
                heavy.append(row)
            if time.monotonic() - since > GROUP_SECONDS:
                store_scrapes(self.context, group)
                group, since = [], time.monotonic()
        store_scrapes(self.context, group)
        self._work_on_heavy(heavy)

    def _work_on_heavy(self, rows: list[Claimed]) -> None:
        """One by one, and each stored at once: a large page takes a hundred megabytes and more while it is in hand.

        While another thread of this process does so, they wait in the outbox, not in a place that others need.
        """
        if not rows or not self.context.one_heavy.acquire(blocking=False):
            put_off(rows, _WHILE_ANOTHER_MS)
            return
        try:
            for n, row in enumerate(rows):
                if self.lane.stopping.is_set():
                    give_back(rows[n:])
                    break
                store_scrapes(self.context, [scrape_row(self.context, row)])
        finally:
            self.context.one_heavy.release()


def _is_large(row: Claimed) -> bool:
    """Return whether even weighing the page takes so much memory that a process should have one of its kind in hand."""
    page = page_of(row.task_id, row.generation)
    return page is not None and page.size > _LARGE_BYTES
