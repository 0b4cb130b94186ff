"""Cook County, Illinois: the assessor's page, the property tax portal and the clerk's delinquent taxes, all by PIN."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import Grid, Pair
from lienworker.platforms.reading.elements import grid_of, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform
from lienworker.platforms.vendors.cook.portal import PIN, portal_parts, take_portal

_ASSESSOR_MARK = "detail-row--label"
_ASSESSOR = Labels(Path(f"//span[contains(@class, '{_ASSESSOR_MARK}')]"))
_PSEUDO_TABLES = Path("//div[contains(@class, 'psuedo-table')]")
_CLERK_TABLES = Path("//table[contains(@class, 'table-filter')]")
_CLERK_PIN = Path("//h4|//h3|//h2")
_NAMES = {
    "address": "property_address",
    "pin": "parcel_id",
    "property classification": "property_use",
    "square footage land": "land_area_sqft",
    "use": "",
    "description": "",
    "building square footage": "building_area_sqft",
}


class CookPlatform(RulePlatform):
    """Three sites of one county; the page itself says which it is."""

    name = "cook"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(
        r"//[\w.-]*cookcounty(?:assessoril\.gov|propertyinfo\.com|clerk(?:il)?\.(?:com|gov))", re.I
    )
    url_template = "https://www.cookcountyassessoril.gov/pin/{parcel_digits}"
    labels = (_ASSESSOR,)
    names = _NAMES

    def recognises(self, page: Page) -> bool:
        text = page.text
        if _ASSESSOR_MARK in text or "propertyMailingCityStateZip" in text:
            return "Cook County" in text or "cookcounty" in page.lower_text
        return "table-filter" in text and "Delinquent Taxes" in text and PIN.search(text) is not None

    def grids(self, root: Any) -> list[Grid]:
        """The assessor's tables are made of rows of `div`."""
        grids = []
        for table in _PSEUDO_TABLES(root):
            rows = [[text_of(cell) for cell in row.iterchildren("div")] for row in table.iterchildren("div")]
            if len(rows) > 1:
                grids.append(Grid(rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]))
        return grids

    def pairs(self, root: Any) -> list[Pair]:
        return super().pairs(root) or [
            Pair(name.removeprefix("property"), (value,))
            for name, element in portal_parts(root).items()
            if name.startswith("property") and (value := clean.text(text_of(element)))
        ]

    def finish(self, record: Record, root: Any, page: Page) -> None:
        if _ASSESSOR_MARK in page.text:
            return
        if parts := portal_parts(root):
            take_portal(record, root, parts)
        elif tables := _CLERK_TABLES(root):
            self._take_clerk(record, root, [grid for table in tables if (grid := grid_of(table))])

    def _take_clerk(self, record: Record, root: Any, grids: list[Grid]) -> None:
        """Sold taxes are liens; delinquent taxes are bills with a balance for each installment."""
        record["parcel_id"] = next((pin[0] for e in _CLERK_PIN(root) if (pin := PIN.search(text_of(e)))), None)
        for grid in grids:
            rows = [dict(zip(map(_head, grid.head), row, strict=True)) for row in grid.rows]
            if "tax sale" in map(_head, grid.head):
                record["liens"] = [_sold(row) for row in rows if clean.year(row["tax sale"])]
            else:
                record["taxes"] = [bill for row in rows if clean.year(row.get("tax year")) for bill in _delinquent(row)]
                totals = [cell for row in grid.rows if row[0].startswith("Total") for cell in row if "$" in cell]
                record["fields"] |= {f"Total Tax Balance Due ({n})": cell for n, cell in enumerate(totals, start=1)}
                record["total_due"] = round(sum(clean.money(cell) or 0 for cell in totals), 2) if totals else None


def _head(text: str) -> str:
    return text.lower().replace("?", "").strip()


def _sold(row: dict[str, str]) -> Record:
    return {
        "tax_year": clean.year(row["tax sale"]),
        "status": clean.joined((row["tax sale"], row.get("status"), row.get("comment"))),
        "sale_date": clean.iso_date(row.get("date")),
    }


def _delinquent(row: dict[str, str]) -> list[Record]:
    """A bill for each installment that the clerk shows a balance of."""
    year, status = clean.year(row["tax year"]), clean.text(row.get("status"))
    return [
        {"year": year, "bill": head.removesuffix("tax balance").strip(), "due": clean.money(cell), "status": status}
        for head, cell in row.items()
        if "balance" in head and cell
    ]


PLATFORM = CookPlatform()
