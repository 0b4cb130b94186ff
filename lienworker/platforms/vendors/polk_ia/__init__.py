"""Polk County, Iowa: the assessor's parcel card and search results, and the treasurer's tax pages."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import people, read, record_of
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.reading.tokens import CELLS
from lienworker.platforms.rules import Path, RulePlatform

#: Rows of an address.
_MOST_LINES = 20
_ROWS = Path("//tr[not(.//table)]")
_RESULTS = Path("//form[@name='DpResults']//tr[td/input[@type='submit']][count(td) > 4]")
_BELOW = re.compile(r"(property|mailing) address")
_BILL = re.compile(r"Payable Year:\s*(\d{4})/\d{4}\s*Installment #\s*(\d+)", re.I)
_NAMES = {
    "district parcel": "parcel_id",
    "parcel": "parcel_id",
    "street address": "property_address",
    "square feet": "land_area_sqft",
    "tsfla": "building_area_sqft",
    "taxable value credit": "",
    "class": "property_use",
    "map": "map",
    "status": "",
    "name": "",
}


class PolkIowaPlatform(RulePlatform):
    """Old tables without ids: read by their heads, like a page of no known platform, with Polk's own words."""

    name = "polk_ia"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(
        r"//[\w.]*(?:assess\.co\.polk\.ia\.us|polkweb|taxsearch\.polkcountyiowa|polkcountyiowa\.gov/treasurer)", re.I
    )

    def recognises(self, page: Page) -> bool:
        text = page.text
        if "Polk County Treasurer" in text and "Database Inquiry" in text:
            return True
        # The assessor's office has changed its name.
        return "Polk/Des Moines Assessor" in text or ("Polk County Assessor" in text and "District/Parcel" in text)

    def parse(self, page: Page, target: Target) -> Record:
        reading = read(page)
        root = page.selector.root
        if "DpResults" in page.text and (results := _RESULTS(root)):
            return self.checked({"parcels": [_item(row) for row in results], "fields": _count(root)})
        grids = [grid for grid in reading.grids if "payable year:" not in " ".join(grid.head).lower()]
        record = record_of(reading.pairs, grids, _NAMES)
        record.setdefault("fields", {})
        self._call_it_assessed(record)
        self._take_addresses(record, root)
        has_bills = "payable" in page.lower_text
        found = (row for row in _ROWS(root) if has_bills or _is_of_assessment(row))
        rows = [[text_of(cell) for cell in cells_of(row)] for row in found]
        self._take_bills(record, rows)
        self._take_assessment(record, rows)
        return self.checked(record)

    def _call_it_assessed(self, record: Record) -> None:
        """Polk's totals by year are assessments; their heads say only "Total"."""
        record.pop("market_value", None)
        for entry in record.get("values", ()):
            entry["assessed"] = entry.pop("market", None)

    def _take_addresses(self, record: Record, root: Any) -> None:
        """An address is a head and the rows below it, up to the next head."""
        for head in root.iter("th"):
            said = text_of(head).lower()
            about = _BELOW.search(said) if "address" in said else None
            if about is None:
                continue
            lines: list[str] = []
            for cells in map(cells_of, islice(head.getparent().itersiblings("tr"), _MOST_LINES)):
                if not cells or cells[0].tag == "th":
                    break
                lines += lines_of(cells[0])
            if about[1] == "property":
                record["property_address"] = clean.text(" ".join(lines))
            elif lines:
                record["owner_address"] = people.mailing_address(lines)

    def _take_bills(self, record: Record, rows: list[list[str]]) -> None:
        """A head names the installment, then come what was due and what was paid."""
        bills: list[Record] = []
        for cells in rows:
            if any("payable year" in cell.lower() for cell in cells[:2]) and (found := _BILL.search(" ".join(cells))):
                bills.append({"year": int(found[1]), "bill": f"Installment #{found[2]}"})
            elif bills and len(cells) > 5 and cells[0] == "Tax Due":
                bills[-1] |= {"amount": clean.money(cells[4]), "due": clean.money(cells[4]), "status": "Due"}
            elif bills and len(cells) > 5 and cells[0].startswith("Paid"):
                bills[-1] |= {"paid": clean.money(cells[4]), "paid_on": clean.iso_date(cells[5])}
                bills[-1] |= {"status": cells[0]} | ({"due": 0.0} if cells[0] == "Paid in Full" else {})
        if bills:
            record["taxes"] = bills[::-1]

    def _take_assessment(self, record: Record, rows: list[list[str]]) -> None:
        for cells in rows:
            filled = [cell for cell in cells if cell]
            if len(filled) > 1 and filled[0] in ("Total Assessed Value", "Total Taxable Value"):
                record["assessed_value" if "Assessed" in filled[0] else "taxable_value"] = clean.money(filled[1])
            elif filled[:1] == ["Current"] and len(cells) == 7:
                # The card's own line: class, kind, land, building, agricultural, total.
                record |= {"property_use": filled[1], "assessed_value": clean.money(cells[6])}
                record |= {"land_value": clean.money(cells[3]), "building_value": clean.money(cells[4])}


def _is_of_assessment(row: Any) -> bool:
    """By its first words; the cells of all other rows need not be read."""
    first = next((text for cell in row if cell.tag in CELLS and (text := text_of(cell))), "")
    return first.startswith(("Total Assessed Value", "Total Taxable Value", "Current"))


def _count(root: Any) -> dict[str, str]:
    """How many there are, in the page's own words (`2 Records`)."""
    texts = [text_of(cell) for cell in root.iter("th")]
    return {"Found": next((text for text in texts if text.lower().endswith("records")), "")}


def _item(row: Any) -> Record:
    cells = [" ".join(lines_of(cell)) for cell in cells_of(row)]
    button = next(row.iter("input"))
    return {
        "parcel_id": clean.identifier(button.get("value")),
        "alternate_ids": {"geoparcel": clean.identifier(cells[1])},
        "property_use": clean.text(cells[2]),
        "property_address": clean.text(cells[3]),
        "owner_name": clean.text(cells[4]),
    }


PLATFORM = PolkIowaPlatform()
