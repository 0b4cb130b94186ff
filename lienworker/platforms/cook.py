"""Cook County, Illinois: the assessor's page, the property tax portal and the clerk's delinquent taxes, all by PIN."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms import clean
from lienworker.platforms.base import Page, Record
from lienworker.platforms.elements import cells_of, grid_of, text_of
from lienworker.platforms.reading import Grid, Pair, people
from lienworker.platforms.rules import Labels, Path, RulePlatform

_PIN = re.compile(r"\d{2}-\d{2}-\d{3}-\d{3}-\d{4}")
_ASSESSOR = Labels(Path("//span[contains(@class, 'detail-row--label')]"))
_PSEUDO_TABLES = Path("//div[contains(@class, 'psuedo-table')]")
_CLERK_TABLES = Path("//table[contains(@class, 'table-filter')]")
_CLERK_PIN = Path("//h4|//h3|//h2")
_PORTAL = Path("//@id[starts-with(., 'ContentPlaceHolder1_')]/..")
_BILL = re.compile(r"rptTaxBill_taxBillYear_(\d+)$")
_HISTORY = Path("//table[@id='assessdhistorytable']//tr")
_NAMES = {
    "address": "property_address",
    "pin": "parcel_id",
    "property classification": "property_use",
    "square footage land": "land_area_sqft",
    "use": "",
    "description": "",
    "building square footage": "building_area_sqft",
}
_PORTAL_SPOTS = {
    "parcel_id": ("lblResultTitle", clean.identifier),
    "property_address": ("PropertyInfo_propertyAddress", clean.text),
    "city": ("PropertyInfo_propertyCity", clean.text),
    "zip": ("PropertyInfo_propertyZip", clean.text),
    "owner_name": ("PropertyInfo_propertyMailingName", clean.text),
    "market_value": ("TaxYearInfo_propertyEstimatedValue", clean.money),
    "assessed_value": ("TaxYearInfo_propertyAssessedValue", clean.money),
    "land_area_sqft": ("TaxYearInfo_propertyLotSize", clean.number),
    "building_area_sqft": ("TaxYearInfo_propertyBuildingSize", clean.number),
    "property_use": ("TaxYearInfo_propertyClass", clean.text),
}


class CookPlatform(RulePlatform):
    """Three sites of one county; the page itself says which it is."""

    name = "cook"
    version = "1"
    delay = 3.0
    url_pattern = re.compile(
        r"//[\w.-]*cookcounty(?:assessoril\.gov|propertyinfo\.com|clerk(?:il)?\.(?:com|gov))", re.I
    )
    url_template = "https://www.cookcountyassessoril.gov/pin/{parcel_digits}"
    labels = (_ASSESSOR,)
    names = _NAMES

    def recognises(self, page: Page) -> bool:
        text = page.text
        if "detail-row--label" in text or "ContentPlaceHolder1_PropertyInfo_property" in text:
            return "Cook County" in text or "cookcounty" in page.lower_text
        return "table-filter" in text and "Delinquent Taxes" in text and _PIN.search(text) is not None

    def grids(self, root: Any) -> list[Grid]:
        """The assessor's tables are made of rows of `div`."""
        grids = []
        for table in _PSEUDO_TABLES(root):
            rows = [[text_of(cell) for cell in row.iterchildren("div")] for row in table.iterchildren("div")]
            if len(rows) > 1:
                grids.append(Grid(rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]))
        return grids

    def pairs(self, root: Any) -> list[Pair]:
        return super().pairs(root) + [
            Pair(element.get("id").rpartition("_property")[2], (value,))
            for element in _PORTAL(root)
            if "_property" in element.get("id") and (value := clean.text(text_of(element)))
        ]

    def finish(self, record: Record, root: Any, page: Page) -> None:
        shown = {element.get("id").removeprefix("ContentPlaceHolder1_"): element for element in _PORTAL(root)}
        if shown:
            self._take_portal(record, root, shown)
        elif tables := _CLERK_TABLES(root):
            self._take_clerk(record, root, [grid for table in tables if (grid := grid_of(table))])

    def _take_portal(self, record: Record, root: Any, shown: dict[str, Any]) -> None:
        for name, (place, wash) in _PORTAL_SPOTS.items():
            if place in shown and (value := wash(text_of(shown[place]))) is not None:
                record[name] = value
        if pin := _PIN.search(record.get("parcel_id", "")):
            record["parcel_id"] = pin[0]  # without the words around it
        mailing = ("PropertyInfo_propertyMailingAddress", "PropertyInfo_propertyMailingCityStateZip")
        record["owner_address"] = clean.joined([text_of(shown[place]) for place in mailing if place in shown], " ")
        if not people.is_owner(record.get("owner_name") or ""):
            record.pop("owner_name", None)
        record["taxes"] = [_bill(shown, found) for place in shown if (found := _BILL.search(place))]
        record["values"] = [
            {"year": clean.year(text_of(cells[0])), "assessed": clean.money(text_of(cells[1]))}
            for cells in map(cells_of, _HISTORY(root))
            if len(cells) > 1 and clean.year(text_of(cells[0]))
        ]

    def _take_clerk(self, record: Record, root: Any, grids: list[Grid]) -> None:
        """Sold taxes are liens; delinquent taxes are bills with a balance for each installment."""
        record["parcel_id"] = next((pin[0] for e in _CLERK_PIN(root) if (pin := _PIN.search(text_of(e)))), None)
        for grid in grids:
            rows = [dict(zip(map(_head, grid.head), row, strict=True)) for row in grid.rows]
            if "tax sale" in map(_head, grid.head):
                record["liens"] = [_sold(row) for row in rows if clean.year(row["tax sale"])]
            else:
                record["taxes"] = [bill for row in rows if clean.year(row.get("tax year")) for bill in _delinquent(row)]
                totals = [cell for row in grid.rows if row[0].startswith("Total") for cell in row if "$" in cell]
                record["fields"] |= {f"Total Tax Balance Due ({n})": cell for n, cell in enumerate(totals, start=1)}
                record["total_due"] = sum(clean.money(cell) or 0 for cell in totals) if totals else None


def _head(text: str) -> str:
    return text.lower().replace("?", "").strip()


def _bill(shown: dict[str, Any], found: re.Match[str]) -> Record:
    amount = shown.get(found.string.replace("taxBillYear", "taxBillAmount"))
    return {
        "year": clean.year(text_of(shown[found.string])),
        "amount": clean.money(text_of(amount)) if amount is not None else None,
    }


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
