"""GrizzlyLogic's county sites in Florida (*.floridapa.com): bold titles, nameless tables."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import cells_of, grid_of, lines_of, text_of
from lienworker.platforms.reading.gridfacts import kind_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_PARCEL = Path("//table[contains(@class, 'parcelIDtable')]//b")
_FULL_LEGAL = Path("//table[@id='Flegal' or @id='Blegal']")
_YEAR_TITLE = Path("//b[u[contains(., 'Values')]]|//u[b[contains(., 'Values')]]")
_VALUE_TABLES = Path(
    "//table[contains(@class, 'parcelDetails_insideTable')]"
    "[.//td[starts-with(normalize-space(), 'Just') or starts-with(normalize-space(), 'Assessed')]]"
)
_ROWS = Path("./tbody/tr|./tr")
_BUILDINGS = Path("//div[@id='parcelDetails_BldgTable']//table")
_TABLES = {"sales": Path("//div[@id='parcelDetails_SalesTable']//table")}
_LABELS = Labels(
    Path(
        "//table[contains(@class, 'parcelDetails_insideTable')][not(ancestor::div[starts-with(@id, 'parcelDetails_')])]"
        "/descendant-or-self::*[self::table or self::tbody]/tr/td[position() mod 2 = 1][following-sibling::td]"
    )
)
_COLUMN_OF = {"mkt land": "land", "building": "building", "just": "market", "assessed": "assessed"}
_COUNTY_TAXABLE = re.compile(r"(?:county|cnty):\s*(\$[\d,.]+)", re.I)
# Older sites say more: `Mkt Land Value cnt: (1)`.
_COUNT = re.compile(r"\s*(?:value)?\s*(?:cnt:)?\s*(?:\(\d+\))?$")
_YEAR_BUILT = ("year blt", "year built", "yr blt", "actual year built")
_NAMES = {
    "site": "property_address", "description": "", "area": "acres", "land area": "acres", "use code": "property_use",
    **dict.fromkeys(("mkt land", "building", "just", "assessed", "appraised", "total appraised", "class", "total"), ""),
}  # fmt: skip


class FloridapaPlatform(RulePlatform):
    """Found by its titles and its table classes; the map and the search form are other pages."""

    name = "floridapa"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(r"//[\w-]+\.floridapa\.com/", re.I)
    marks = ("parcelDetails_insideTable", "parcelIDtable")
    labels = (_LABELS,)
    tables = _TABLES
    names = _NAMES

    def finish(self, record: Record, root: Any, page: Page) -> None:
        shown = next((text_of(element) for element in _PARCEL(root)), "")
        record["parcel_id"] = people.parcel_id(shown)
        record.setdefault("alternate_ids", {})["internal"] = people.internal_number(shown)
        legal = [" ".join(lines_of(table)).replace("<<<less", "").strip() for table in _FULL_LEGAL(root)]
        record["legal_description"] = clean.text(max(legal, key=len, default=""))
        record["values"] = self._values(root)
        for entry in sorted(record["values"], key=lambda entry: -int(entry["year"]))[:1]:
            for name in ("land", "building", "market", "assessed", "taxable"):
                record[f"{name}_value"] = entry.get(name)
        self._take_building(record, root)

    def _values(self, root: Any) -> list[Record]:
        """A table of values has its title in its first row; where it has none, the page's head names the year."""
        title = next((text_of(element) for element in _YEAR_TITLE(root)), "")
        entries: dict[str, Record] = {}
        for table in _VALUE_TABLES(root):
            for row in _ROWS(table):
                cells = [" ".join(lines_of(cell)) for cell in cells_of(row)]
                if len(cells) == 1 and clean.year(cells[0]):
                    title = cells[0]
                elif len(cells) > 1 and (year := clean.year(title)):
                    _take_value(entries.setdefault(title, {"year": year, **kind_of(title)}), cells)
        return [entry for entry in entries.values() if len(entry) > 2]

    def _take_building(self, record: Record, root: Any) -> None:
        for grid in filter(None, map(grid_of, _BUILDINGS(root))):
            heads = [head.lower().strip(" *") for head in grid.head]
            first = dict(zip(heads, grid.rows[0], strict=True)) if grid.rows else {}
            built = next((year for name in _YEAR_BUILT if (year := clean.year(first.get(name)))), None)
            if built and not record.get("year_built"):
                record |= {"year_built": built, "building_area_sqft": clean.number(first.get("actual sf"))}


def _take_value(entry: Record, cells: list[str]) -> None:
    label = _COUNT.sub("", cells[0].lower())
    if label in _COLUMN_OF:
        entry[_COLUMN_OF[label]] = clean.money(cells[-1])
    elif "taxable" in label and (found := _COUNTY_TAXABLE.search(cells[-1])):
        entry["taxable"] = clean.money(found[1])


PLATFORM = FloridapaPlatform()
