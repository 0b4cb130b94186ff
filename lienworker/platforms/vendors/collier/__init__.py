"""Collier County, Florida, Property Appraiser (collierappraiser.com): every field has its id, on every tab again."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of, texts_of
from lienworker.platforms.reading.gridfacts import kind_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_IDS = Path("//*[@id]")
_SALES = Path("//div[@id='PropSum']//tr[starts-with(@id, 'TrSale')]|//tfoot[@id='SalesAdditional']/tr")
_HISTORY = Path("//table[@id='HistoryPropertyTaxTable']//tr")
_LABELS = Labels(Path("//div[@id='PropSum']//td[contains(@class, 'clsLabel')][following-sibling::td[1]/span]"))
_SPOTS = {
    "parcel_id": ("ParcelID", clean.identifier),
    "property_address": ("FullAddressUnit", clean.text),
    "legal_description": ("Legal", clean.text),
    "property_use": ("UCDescription", clean.text),
    "acres": ("TotalAcres", clean.acres),
    "land_value": ("LandJustValue", clean.money),
    "building_value": ("ImprovementsJustValue", clean.money),
    "market_value": ("TotalJustValue", clean.money),
    "tax_amount": ("TotalTaxes", clean.money),
}
_HISTORY_OF = {
    "TrHistoryLandJustValue": "land",
    "TrHistoryImprovementsJustValue": "building",
    "TrHistoryTotalJustValue": "market",
    "TrHistoryCountyAssessedValue": "assessed",
    "TrHistoryCountyTaxableValue": "taxable",
}
_NAMES = {"name address": "", "city": "", "zip": "", "state": "", "municipality": ""}
_DOLLARS = re.compile(r"\$[\d,.]+")


class CollierPlatform(RulePlatform):
    """Spots by id; the newest roll in the summary, five rolls in the history."""

    name = "collier"
    version = "3"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//(?:www\.)?collierappraiser\.com/", re.I)
    url_template = "https://www.collierappraiser.com/main_search/recorddetail.html?FolioID={parcel_id}"
    marks = ("OwnerLine1", "FullAddressUnit")
    labels = (_LABELS,)
    names = _NAMES
    spots = _SPOTS

    def finish(self, record: Record, root: Any, page: Page) -> None:
        shown = {element.get("id"): element for element in reversed(_IDS(root))}
        texts = {name: text_of(shown[name]) for name in ("OwnerCity", "OwnerState", "OwnerZip") if name in shown}
        owner = [line for n in range(1, 6) if f"OwnerLine{n}" in shown for line in lines_of(shown[f"OwnerLine{n}"])]
        names, address = people.owner_and_address(owner)
        record |= {"owner_name": names[0] if names else None, "owner_names": names}
        record["owner_address"] = clean.joined([*address, *texts.values()], " ")
        record["alternate_ids"] = {
            name: clean.identifier("".join(texts_of(shown[place])))
            for name, place in (("map", "MapNumber"), ("strap", "StrapNumber"))
            if place in shown
        }
        record["sales"] = [_sale(row) for row in _SALES(root)]
        record["values"] = self._values(root)
        self._take_roll(record, shown)

    def _values(self, root: Any) -> list[Record]:
        years: list[Record] = []
        for row in _HISTORY(root):
            cells = [text_of(cell) for cell in cells_of(row)][1:]
            if row.get("id") == "TrHistoryTaxYear":
                years = [{"year": clean.year(cell), **kind_of(cell)} for cell in cells]
            elif name := _HISTORY_OF.get(row.get("id") or ""):
                for entry, cell in zip(years, cells[-len(years) :] if years else (), strict=False):
                    entry[name] = clean.money(cell)
        return [entry for entry in years if entry["year"]]

    def _take_roll(self, record: Record, shown: dict[str, Any]) -> None:
        """What the summary says of the current roll, also where the history is not there."""
        for name, place in (("assessed", "TrCountyAssessedValue"), ("taxable", "TrCountyTaxableValue")):
            if place in shown:
                record[f"{name}_value"] = clean.money(text_of(cells_of(shown[place])[-1]))
        title = text_of(shown["RollType"]) if "RollType" in shown else ""
        year = record["tax_year"] = clean.year(title)
        if year and not any(entry["year"] == year for entry in record["values"]):
            names = ("land", "building", "market", "assessed", "taxable")
            roll = {name: record.get(f"{name}_value") for name in names}
            record["values"].insert(0, {"year": year, **kind_of(title), **roll})


def _sale(row: Any) -> Record:
    cells = [text_of(cell) for cell in cells_of(row)]
    price = _DOLLARS.search(cells[2]) if len(cells) > 2 else None
    book = cells[1] if len(cells) > 1 else None
    return {"date": clean.iso_date(cells[0]), "price": clean.money(price[0]) if price else None, "book_page": book}


PLATFORM = CollierPlatform()
