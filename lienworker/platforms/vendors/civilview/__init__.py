"""CivilView (salesweb.civilview.com): sheriffs' sales, as a list and one by one.

Defendants are not said to own what is sold, so they stay among the fields; a list cuts their names short anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import Grid, Pair, record_of
from lienworker.platforms.reading.elements import cells_of, grid_of, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_LABELS = Labels(Path("//td[contains(@class, 'heading-bold')]"))
_LIST = Path("//table[not(.//table)][.//th][.//td]")
_LINKS = Path(".//a[contains(@href, 'PropertyId=')]")
_HISTORY = Path("//table[@id='longTable']//tr")
_NAMES = {"address": "property_address", "deed": "", "deed address": "", "description": "legal_description"}


class CivilViewPlatform(RulePlatform):
    """A sale has the sheriff's number, and only in some counties a parcel's."""

    name = "civilview"
    version = "1"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(r"//salesweb\.civilview\.com/", re.I)
    labels = (_LABELS,)
    names = _NAMES

    def recognises(self, page: Page) -> bool:
        return "Sales Listing" in page.text and "sheriff #" in page.lower_text

    def parse(self, page: Page, target: Target) -> Record:
        root = page.selector.root
        if pairs := self.pairs(root):
            return _sale(pairs, root)
        found = [(table, grid) for table in _LIST(root) if (grid := grid_of(table)) and "sheriff" in grid.words]
        if not found:
            raise PageError("parcel_not_found", "the list has no sales on it")
        return {"parcels": [sale for table, grid in found for sale in _listed(table, grid)]}


def _sale(pairs: list[Pair], root: Any) -> Record:
    record = record_of(pairs, names=_NAMES)
    record.pop("sales", None)  # the day of the auction is no sale yet
    shown = {pair.label: pair.value for pair in pairs}
    history = [[text_of(cell) for cell in cells_of(row)] for row in _HISTORY(root)]
    statuses = [row[0] for row in history if len(row) > 1 and clean.iso_date(row[1])]
    record["alternate_ids"] = record.get("alternate_ids", {}) | {"sheriff": clean.identifier(shown.get("Sheriff #"))}
    record["auction"] = {
        "date": clean.iso_date(shown.get("Sales Date")),
        "status": statuses[0] if statuses else None,
        "case_number": clean.identifier(shown.get("Court Case #")),
        "type": "Sheriff sale",
    }
    return record


def _listed(table: Any, grid: Grid) -> Iterator[Record]:
    links = [parse_qs(urlsplit(link.get("href")).query).get("PropertyId", [""])[0] for link in _LINKS(table)]
    places = links if len(links) == len(grid.rows) else [""] * len(grid.rows)
    for row, cells, place in zip(grid.items(), grid.rows, places, strict=True):
        yield {
            "parcel_id": clean.identifier(row.get("parcel")),
            "alternate_ids": {"sheriff": clean.identifier(row.get("sheriff")), "property": place},
            "property_address": clean.text(row.get("address")),
            "auction": {"date": clean.iso_date(row.get("sales date")), "type": "Sheriff sale"},
            "fields": {head: cell for head, cell in zip(grid.head, cells, strict=True) if head and cell},
        }


PLATFORM = CivilViewPlatform()
