"""Pinellas County, Florida, Property Appraiser (pcpao.org): one page a parcel, tables in tables, few ids.

A map is on every page of it, so a reader who does not know the site takes it for the shell of a map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import Pair, people
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.reading.histories import take_newest
from lienworker.platforms.rules import Path, RulePlatform

_PARCEL = re.compile(r"\d{2}-\d{2}-\d{2}-\d{5}-\d{3}-\d{4}")
_BIG = Path("//th//font[@size='+2']")
_OWNER_HEAD = Path("//th[not(.//th)][contains(translate(., 'OWNERSHIP', 'ownership'), 'ownership/')]")
_CELLS = Path("//td[not(.//table)][contains(., ':')]")
_VALUE_HEAD = Path("//tr[not(.//table)][td[contains(., 'Just/Market Value')]]")
_HOMESTEAD = Path("//td[not(.//table)][contains(., 'Homestead:')]")
_NAMES = {
    "total heated sf": "building_area_sqft",
    "total building heated sf": "",
    "site address": "",
    "homestead": "",
    "current tax district": "",
}
_TABLES = {"sales": Path("//table[not(.//table)][.//th[contains(translate(., 'SALEDT', 'saledt'), 'sale date')]]")}
_SPOTS = {"legal_description": ("legal", clean.text)}
# The columns of both tables of values: this year's, and those of the years before as certified.
_COLUMNS = {2: "market", 3: "assessed", 4: "taxable"}


class PinellasPlatform(RulePlatform):
    """`Label: value` in one cell; owner and site below their heads."""

    name = "pinellas"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//(?:www\.)?pcpao\.org/", re.I)
    marks = ("Property Appraiser General Information", "legal-title")
    tables = _TABLES
    names = _NAMES
    spots = _SPOTS

    def pairs(self, root: Any) -> list[Pair]:
        return list(_pairs(root))

    def finish(self, record: Record, root: Any, page: Page) -> None:
        titles = (_PARCEL.search(text_of(element)) for element in _BIG(root))
        record["parcel_id"] = next((found[0] for found in titles if found), None)
        if heads := _OWNER_HEAD(root):
            _take_people(record, heads[0].getparent().getnext())
        if "Year Built (2)" in record["fields"]:
            record.pop("year_built", None)  # of several buildings none is the parcel's
        record["homestead"] = next((_newest_answer(cell.getparent()) for cell in _HOMESTEAD(root)), None)
        record["values"] = list(_values(root))
        take_newest(record)


def _pairs(root: Any) -> Iterator[Pair]:
    for cell in _CELLS(root):
        label, _, value = text_of(cell).partition(":")
        if label.strip() and value.strip():
            yield Pair(label.strip(), (value.strip(),))


def _take_people(record: Record, row: Any) -> None:
    """The row below the heads: the owners with their address, and the site."""
    cells = cells_of(row) if row is not None else []
    if len(cells) < 2:
        return
    names, address = people.owner_and_address(lines_of(cells[0]))
    site = lines_of(cells[1])
    record |= {"owner_name": names[0] if names else None, "owner_names": names}
    record["owner_address"] = clean.joined(address, " ")
    record["property_address"] = clean.joined(site, " ")
    record["city"] = site[-1] if len(site) > 1 and not any(map(str.isdigit, site[-1])) else None


def _newest_answer(row: Any) -> bool | None:
    """The last of the years beside `Homestead:`."""
    return clean.yes_no(text_of(cells_of(row)[-1]))


def _values(root: Any) -> Iterator[Record]:
    for head in _VALUE_HEAD(root):
        certified = any(box.get("id") == "valhist" for box in head.iterancestors("div"))
        for row in head.itersiblings("tr"):
            cells = [text_of(cell) for cell in cells_of(row)]
            if len(cells) > max(_COLUMNS) and (year := clean.year(cells[0])):
                amounts = {name: clean.money(cells[place]) for place, name in _COLUMNS.items()}
                yield {"year": year, "kind": "certified" if certified else None, **amounts}


PLATFORM = PinellasPlatform()
