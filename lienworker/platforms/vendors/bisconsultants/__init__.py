"""BIS Consultants' eSearch, which appraisal districts in Texas use: one page of panels a property, and JSON lists.

In Texas the appraised value is what is left of the market value after the loss of agricultural land; it is neither the
market's nor the assessed one, so it stays among the fields.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading.elements import grid_of, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform
from lienworker.platforms.services import objects, owners, shown_fields

_INFO = Path("//div[contains(@class, 'panel-table-info')]")
_LABELS = Labels(Path("//tr/th[following-sibling::*[1][self::td]]"))
_TABLES = {"": Path("//table[.//tr[count(th) > 2]]")}
_TITLE = Path("//h3[contains(., 'Property ID')]")
_AREA = re.compile(r"Living Area:\s*([\d,.]+)\s*sqft", re.I)
_NAMES = {
    "property id": "parcel_id",
    "name": "owner_name",
    "owner name": "owner_name",
    "geographic id": "geo_id",
    "appraised": "",
    "appraised value": "",
    "assessed": "",
    "improvements": "",
    "land market": "",
    "value": "",
}


class BisConsultantsPlatform(RulePlatform):
    """Panels of `th` and `td`; the living area stands above the table of each building."""

    name = "bisconsultants"
    version = "1"
    delay = 3.0
    evidence = "from documentation"
    url_pattern = re.compile(r"//esearch\.[\w.-]+/(?:Property/View|Search)", re.I)
    url_template = "{base_url}/Property/View/{parcel_id}?year={tax_year}"
    marks = ("panel-table-info", "Property Values")
    labels = (_LABELS,)
    tables = _TABLES
    names = _NAMES

    def recognises(self, page: Page) -> bool:
        if page.is_json:
            return '"resultsList"' in page.text and '"propertyId"' in page.text
        return super().recognises(page)

    def parse(self, page: Page, target: Target) -> Record:
        if not page.is_json:
            return super().parse(page, target)
        found = objects(page.json(), "resultsList")
        if not found:
            raise PageError("parcel_not_found", "the search found no property")
        return {"parcels": [_listed(item) for item in found]}

    def finish(self, record: Record, root: Any, page: Page) -> None:
        areas = [area[1] for info in _INFO(root) if (area := _AREA.search(" ".join(info.itertext())))]
        record["building_area_sqft"] = clean.number(areas[0]) if len(areas) == 1 else None
        record["year_built"] = self._year_built(root)
        record["tax_year"] = next((clean.year(text_of(title).rpartition("Year")[2]) for title in _TITLE(root)), None)

    def _year_built(self, root: Any) -> int | None:
        """Where all parts of all buildings are of one year."""
        grids = (grid_of(table) for table in _TABLES[""](root))
        years = {clean.year(row.get("year built")) for grid in grids if grid for row in grid.items()} - {None}
        return years.pop() if len(years) == 1 else None


def _listed(item: dict[str, Any]) -> Record:
    return {
        "parcel_id": clean.identifier(item.get("propertyId")),
        "alternate_ids": {"geo_id": clean.identifier(item.get("geoId"))},
        **owners([item.get("ownerName")]),
        "property_address": clean.text(item.get("address")),
        "legal_description": clean.text(item.get("legalDescription")),
        "fields": shown_fields(item),
    }


PLATFORM = BisConsultantsPlatform()
