"""Platforms that read a page as anybody reads it, and know better what some of its labels mean."""

from __future__ import annotations

from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import read, record_of
from lienworker.platforms.rules import RulePlatform


class GuidedPlatform(RulePlatform):
    """For sites of which no page is at hand: their addresses, their marks and the meaning of their labels are known."""

    def parse(self, page: Page, target: Target) -> Record:
        return self.checked(self.read_page(page))

    def read_page(self, page: Page) -> Record:
        """Return what the page says, a parcel or not: a part of one may not name it."""
        reading = read(page)
        record = record_of(reading.pairs, reading.grids, self.names)
        record.setdefault("fields", {})
        if not page.is_json:
            self.finish(record, page.selector.root, page)
        return record
