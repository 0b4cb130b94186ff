"""Any county page, without knowing the county: known labels become canonical fields, all pairs are kept."""

from __future__ import annotations

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.reading import read, record_of


class GenericPlatform(Platform):
    """Reads pairs and grids of any nesting. Never detected: it is what is left when nobody else knows the page."""

    name = "generic"
    version = "3"
    evidence = "real pages"

    def parse(self, page: Page, target: Target) -> Record:
        reading = read(page)
        record = record_of(reading.pairs, reading.grids)
        if not record.get("parcels") and not is_useful(record):
            known = ", ".join(pair.label for pair in reading.pairs[:8]) or "nothing"
            raise PageError("not_a_parcel", f"too little of a parcel in {reading.words} texts (saw {known})")
        return record


def is_useful(record: Record) -> bool:
    """An id with at least something beside it, or several facts about a place that has none."""
    facts = len(record.keys() - {"fields", "alternate_ids", "owner_names"})
    return facts >= 2 if "parcel_id" in record else facts >= 3


PLATFORM = GenericPlatform()
