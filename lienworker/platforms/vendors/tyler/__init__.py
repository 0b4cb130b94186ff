"""Tyler iasWorld Public Access: a banner with the parcel, and datalets of headings and data.

Values, sales and taxes are other pages (`mode=`) of the same parcel, built the same way.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.core.bounds import check_cells
from lienworker.platforms.reading import Grid, Pair
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.rules import Path, RulePlatform
from lienworker.platforms.vendors.tyler.banner import take_banner

_DATALETS = Path("//div[starts-with(@id, 'datalet_div_')]")
_WITH_GRIDS = Path("//div[starts-with(@id, 'datalet_div_')][.//td[contains(@class, 'DataletTopHeading')]]")
_TITLE = Path(".//td[contains(@class, 'DataletTitleColor')]")
_HEADINGS = Path(".//td[contains(@class, 'DataletSideHeading')]")
_HEADED_ROWS = Path(".//tr[td[contains(@class, 'DataletTopHeading')]]")
_NAMES = {
    "name s": "owner_name",
    "municipality": "",
    "owner name s": "owner_name",
    "city": "",
    "zip code": "",
    "zip": "",
    "land use code": "property_use",
    "classification": "",
    "homestead farmstead": "",
    "tax district": "",
}
_CITY_LINE = re.compile(r"city,? ?/? ?state|^contact address$", re.I)
_WORTH = re.compile(r"apprais|market", re.I)
_OLD = re.compile(r"histor|sale|transfer|prior|previous", re.I)


class TylerPlatform(RulePlatform):
    """Side headings are labels; top headings are the heads of grids."""

    name = "tyler"
    version = "3"
    delay = 3.0
    evidence = "a real page"
    concurrency = 1
    url_pattern = re.compile(r"/datalets?/datalet\.aspx", re.I)
    url_template = "{base_url}/Datalets/Datalet.aspx?mode={mode}&UseSearch=no&pin={parcel_id}"
    marks = ("DataletHeaderTop",)
    names = _NAMES

    def pairs(self, root: Any) -> list[Pair]:
        """A heading left blank, or said again, goes on with the value above it (a second name, more of an address)."""
        pairs: list[Pair] = []
        for datalet in _DATALETS(root):
            title = _title(datalet)
            before = ""
            for heading in _HEADINGS(datalet):
                name, value = text_of(heading).strip(" :/"), heading.getnext()
                lines = lines_of(value) if value is not None else ()
                if lines and before and name in ("", before):
                    last = pairs.pop()
                    pairs.append(Pair(last.label, last.lines + lines, title))
                elif name and lines:
                    pairs.append(Pair(name, lines, title))
                before = (name or before) if lines else ""
        titled = ((_title(datalet), datalet) for datalet in _WITH_GRIDS(root))
        found = ((title, grid) for title, datalet in titled if not _OLD.search(title) for grid in _grids(datalet))
        return pairs + [pair._replace(section=title) for title, grid in found for pair in grid.pairs()]

    def grids(self, root: Any) -> list[Grid]:
        return [_of_year(grid, _title(datalet)) for datalet in _WITH_GRIDS(root) for grid in _grids(datalet)]

    def finish(self, record: Record, root: Any, page: Page) -> None:
        take_banner(record, root)
        self._complete(record)

    def _complete(self, record: Record) -> None:
        """The mailing address goes on under a heading of its own; a homestead is a code with its name."""
        for bill in record.get("taxes", ()):
            if bill.get("paid", 0) < 0:  # a ledger shows what was paid as what it takes away
                bill["paid"] = -bill["paid"]
        fields: dict[str, str] = record["fields"]
        city = next((value for label, value in fields.items() if _CITY_LINE.search(label)), None)
        if city and record.get("owner_address") and city not in record["owner_address"]:
            record["owner_address"] = f"{record['owner_address']} {city}"
        homestead = next((value for label, value in fields.items() if label.lower().startswith("homestead")), "")
        if "homestead" in homestead.lower() and record.get("homestead") is None:
            record["homestead"] = not homestead.lower().startswith("no")


def _title(datalet: Any) -> str:
    found = _TITLE(datalet)
    return text_of(found[0]) if found else ""


def _of_year(grid: Grid, title: str) -> Grid:
    """`2023 Appraised Value` above `Land | Improvements | Total`: the year is in the title, the sum in the last row."""
    total = next((row for row in grid.rows if row[0].strip(" :").lower() == "total"), None)
    if total is None or clean.year(title) is None or grid.words[:1] != [""] or not _WORTH.search(title):
        return grid
    return Grid(["Tax Year", *grid.head[1:]], [[title, *total[1:]]], about="values")


def _grids(datalet: Any) -> list[Grid]:
    grids: list[Grid] = []
    passed = 0
    for head in _HEADED_ROWS(datalet):
        names = [text_of(cell).strip(" :") for cell in cells_of(head)]
        below = list(head.itersiblings("tr"))
        passed += len(below)
        check_cells(len(names), passed)  # each head has all the rows below it, those of the heads below it too
        rows = [[" ".join(lines_of(cell)) for cell in cells_of(row)] for row in below]
        body = [row for row in rows if len(row) == len(names) and any(row)]
        if body:
            grids.append(Grid(names, body))
    return grids


PLATFORM = TylerPlatform()
