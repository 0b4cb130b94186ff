"""Vision Government Solutions (gis.vgsi.com): New England towns, span ids that never change."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import grid_of, lines_of, text_of, texts_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_TABLES = {"sales": Path("//table[@id='MainContent_grdSales']")}
_NAMES = {"address": "owner_address", "owner": "", "co owner": "", "land": "", "size acres": "acres"}
_SPOTS = {
    "parcel_id": ("MainContent_lblPid", clean.identifier),
    "owner_name": ("MainContent_lblGenOwner", clean.text),
    "property_address": ("MainContent_lblLocation", clean.text),
    "assessed_value": ("MainContent_lblGenAssessment", clean.money),
    "market_value": ("MainContent_lblGenAppraisal", clean.money),
    "acres": ("MainContent_lblLndAcres", clean.acres),
}
# Towns that show no acres beside the summary have a size with the land, in acres unless they say otherwise.
_LAND_SIZE = "MainContent_lblLndSize"
_SQUARE_SIZE = Path("//*[@id='MainContent_lblLndSize']/ancestor::*[self::dd or self::td][1]/preceding-sibling::*[1]")
_CARE_OF = re.compile(r"(?:c/o|attn|%)", re.I)
_BY_ID = Path("//*[starts-with(@id, 'MainContent_')]")
_BUILDING = re.compile(r"MainContent_ctl\d+_(lblYearBuilt|lblBldArea)$")
_IMAGES = Path("//img[contains(@id, '_imgPhoto')]/@src")
_VALUE_TABLES = {
    "MainContent_grdCurrentValueAppr": "market",
    "MainContent_grdHistoryValuesAppr": "market",
    "MainContent_grdCurrentValueAsmt": "assessed",
    "MainContent_grdHistoryValuesAsmt": "assessed",
}


class VgsiPlatform(RulePlatform):
    """Single fields by id; the values come in one table for appraisals and one for assessments."""

    name = "vgsi"
    version = "3"
    delay = 2.0
    evidence = "a real page"
    url_pattern = re.compile(r"//gis\.vgsi\.com/", re.I)
    url_template = "https://gis.vgsi.com/{town}/Parcel.aspx?pid={parcel_id}"
    marks = ("MainContent_lblPid", "MainContent_lblLocation")
    labels = (Labels(Path("//dt|//td[contains(@class, 'plabel')]|//table[contains(@id, '_grdCns')]//tr/td[1]")),)
    tables = _TABLES
    names = _NAMES
    spots = _SPOTS

    def finish(self, record: Record, root: Any, page: Page) -> None:
        places = {element.get("id"): element for element in reversed(_BY_ID(root))}
        shown = {name: text_of(element) for name, element in places.items() if name.startswith("MainContent_lbl")}
        record["alternate_ids"] = {
            name: clean.identifier("".join(texts_of(places[place])))  # with its inner spaces
            for name, place in (("account", "MainContent_lblAcctNum"), ("mblu", "MainContent_lblMblu"))
            if place in places
        }
        co_owner = clean.text(shown.get("MainContent_lblCoOwner"))
        record["owner_names"] = [record.get("owner_name"), None if _CARE_OF.match(co_owner or "") else co_owner]
        record["property_use"] = clean.joined(
            (shown.get("MainContent_lblUseCode"), shown.get("MainContent_lblUseCodeDescription")), " - "
        )
        if "MainContent_lblAddr1" in places:
            record["owner_address"] = people.mailing_address(lines_of(places["MainContent_lblAddr1"]))
        if record.get("acres") is None and _LAND_SIZE in shown:
            in_feet = any("sq" in text_of(label).lower() for label in _SQUARE_SIZE(root))
            record["land_area_sqft" if in_feet else "acres"] = clean.number(shown[_LAND_SIZE])
        self._take_values(record, places)
        self._take_building(record, places)
        self._take_current_sale(record, shown)
        record["images"] = [str(image) for image in _IMAGES(root)]

    def _take_values(self, record: Record, places: dict[str, Any]) -> None:
        years: dict[int, Record] = {}
        for name, kind in _VALUE_TABLES.items():
            grid = grid_of(places[name]) if name in places else None
            for row in grid.rows if grid else ():
                shown = dict(zip(map(str.lower, grid.head if grid else ()), row, strict=True))
                if (year := clean.year(shown.get("valuation year"))) is None:
                    continue
                entry = years.setdefault(year, {"year": year})
                entry[kind] = clean.money(shown.get("total"))
                if kind == "market":
                    entry |= {
                        "land": clean.money(shown.get("land")),
                        # Towns that tell extra features and outbuildings apart call it a building.
                        "building": clean.money(shown.get("improvements", shown.get("building"))),
                    }
        record["values"] = sorted(years.values(), key=lambda entry: -int(entry["year"]))
        newest: Record = next((entry for entry in record["values"] if "land" in entry), {})
        record |= {"land_value": newest.get("land"), "building_value": newest.get("building")}

    def _take_building(self, record: Record, places: dict[str, Any]) -> None:
        for name, element in reversed(places.items()):  # of several buildings the first
            found = _BUILDING.match(name)
            if found and found[1] == "lblYearBuilt" and not record.get("year_built"):
                record["year_built"] = clean.year(text_of(element))
            elif found and found[1] == "lblBldArea" and not record.get("building_area_sqft"):
                record["building_area_sqft"] = clean.number(text_of(element))

    def _take_current_sale(self, record: Record, shown: dict[str, str]) -> None:
        """The deed of today's owner, where the town shows no history."""
        if record.get("sales"):
            return
        book = clean.text(shown.get("MainContent_lblBp")) or clean.joined(
            (shown.get("MainContent_lblBook"), shown.get("MainContent_lblPage")), "/"
        )
        sale = {
            "date": clean.iso_date(shown.get("MainContent_lblSaleDate")),
            "price": clean.money(shown.get("MainContent_lblPrice")),
            "book_page": book,
            "grantee": record.get("owner_name"),
        }
        record["sales"] = [sale] if sale["date"] else []


PLATFORM = VgsiPlatform()
