"""BAS Tax Bills Online, which towns in New York use: a bill, and lists of bills."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import people, read, record_of
from lienworker.platforms.reading.elements import cells_of, grid_of, lines_of, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_CONTROL = "BillUserControl1_gdv"
_BILLS = Path(f"//table[starts-with(@id, '{_CONTROL}')]")
_OWNERS = Path("//td[contains(@class, 'tableheader')][contains(., 'Owners')]")
_TOTAL = Path("//td[not(.//td)][contains(., 'Total Taxes:')]")
_COLLECTION = Path("//td[not(.//td)][contains(., 'Collection:')]")
_NAMES = {
    "tax map": "parcel_id",
    "tax map number": "parcel_id",
    "total tax due minus penalties and interest": "total_due",
    "total tax due": "total_due",
    "lot size": "",  # in what unit, the bill does not say
    "address": "property_address",
    "location": "property_address",
}


class BasPlatform(RulePlatform):
    """Grids with ids, and labels in bold cells; what is no bill is read as anybody reads it."""

    name = "bas"
    version = "1"
    delay = 3.0
    evidence = "a real page (a bill); lists from documentation"
    url_pattern = re.compile(r"//[\w.-]+/[\w/-]*iTax_\w+\.aspx", re.I)
    marks = ("BAS | Internet Tax",)
    labels = (Labels(Path("//td[span[contains(@style, 'bold')]][not(.//table)]")),)
    names = _NAMES

    def parse(self, page: Page, target: Target) -> Record:
        if _CONTROL in page.text:
            return super().parse(page, target)
        reading = read(page)
        return self.checked(record_of(reading.pairs, reading.grids, self.names))

    def finish(self, record: Record, root: Any, page: Page) -> None:
        grids = {table.get("id").removeprefix(_CONTROL): grid_of(table) for table in _BILLS(root)}
        rows = {name: grid.items() for name, grid in grids.items() if grid}
        bill = next(iter(rows.get("TaxBill", [])), {})
        record["parcel_id"] = clean.identifier(bill.get("tax map"))
        record["alternate_ids"] = {
            "bill": clean.identifier(bill.get("tax bill")),
            "swis": clean.identifier(bill.get("swis")),
        }
        record["property_address"] = clean.text(next(iter(rows.get("Address", [])), {}).get("address"))
        _take_owners(record, root)
        _take_bill(record, root, bill, rows.get("Transaction", []))
        for row in rows.get("Levyline", []):
            record["fields"][row.get("description", "")] = row.get("tax amount", "")


def _take_owners(record: Record, root: Any) -> None:
    """The first column: the names below its head, the address below them."""
    head = next(iter(_OWNERS(root)), None)
    if head is None:
        return
    below = [lines_of(cells_of(row)[0]) for row in list(head.getparent().itersiblings("tr"))[:2] if cells_of(row)]
    names, address = people.owner_and_address([line for lines in below for line in lines])
    record |= {"owner_name": names[0] if names else None, "owner_names": names}
    record["owner_address"] = clean.joined(address, " ")


def _take_bill(record: Record, root: Any, bill: dict[str, str], payments: list[dict[str, str]]) -> None:
    total = next((text_of(cell) for cell in _TOTAL(root)), "")
    year = next((clean.year(text_of(cell)) for cell in _COLLECTION(root)), None)
    paid = [clean.money(payment.get("total")) or 0.0 for payment in payments]
    amount = clean.money(total.partition(":")[2])
    record |= {"tax_year": year, "tax_amount": amount, "tax_status": clean.text(bill.get("status"))}
    record["taxes"] = [
        {
            "year": year,
            "bill": clean.identifier(bill.get("tax bill")),
            "amount": amount,
            "paid": round(sum(paid), 2) if paid else None,
            "due": record.get("total_due"),
            "status": record["tax_status"],
            "paid_on": max((day for item in payments if (day := clean.iso_date(item.get("posted")))), default=None),
        }
    ]
    record["fields"] |= bill | ({"Total": total} if total else {})


PLATFORM = BasPlatform()
