"""Tyler Munis self-service (*.munisselfservice.com): the bills of a parcel by year, one bill, and what was paid on it.

The list of bills matches ids by their beginning; only the rows of the parcel itself are read.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.guided import GuidedPlatform
from lienworker.platforms.reading import Grid
from lienworker.platforms.reading.elements import grid_of
from lienworker.platforms.rules import Path
from lienworker.platforms.vendors.munis.flow import FLOW

_BILLS = Path("//table[contains(@id, 'BillsGridView')]")
_INSTALLMENTS = Path("//table[.//th[contains(., 'Pay By')]]|//table[.//td[contains(., 'Pay By')]]")
_NAMES = {
    "bill year": "tax_year",
    "bill": "",
    "owner": "owner_name",
    "parcel id": "parcel_id",
    "as of": "",
    **dict.fromkeys(("amount", "payments credits", "balance", "interest", "due", "pay by"), ""),
}


class MunisPlatform(GuidedPlatform):
    """A list of bills, or one bill with its installments."""

    name = "munis"
    version = "1"
    delay = 3.0
    concurrency = 1
    evidence = "from documentation"
    reach = "from documentation"
    url_pattern = re.compile(r"//[\w.-]+\.munisselfservice\.com/|/citizens/RealEstate/", re.I)
    marks = ("ContentPlaceHolderMain", "PrimaryPlaceHolder")
    names = _NAMES
    flow = FLOW

    def parse(self, page: Page, target: Target) -> Record:
        tables = _BILLS(page.selector.root)
        if tables:
            return self.checked(_bills(grid_of(tables[0]), target.parcel_id))
        return super().parse(page, target)

    def finish(self, record: Record, root: Any, page: Page) -> None:
        """Take the amounts of the bill from the row of totals, not from the first installment."""
        record.pop("taxes", None)
        grid = next((grid for table in _INSTALLMENTS(root) if (grid := grid_of(table))), None)
        total = next((row for row in grid.items() if "TOTAL" in row.values()), None) if grid else None
        if total is None:
            return
        bill = {
            "year": record.get("tax_year"),
            "bill": clean.identifier(record["fields"].get("Bill")),
            "amount": clean.money(total.get("amount")),
            "paid": clean.money(total.get("payments credits")),
            "due": clean.money(total.get("due")),
        }
        record |= {"taxes": [bill], "tax_amount": bill["amount"], "total_due": bill["due"]}


def _bills(grid: Grid | None, wanted: str | None) -> Record:
    """The parcel of a list: its newest row, and a bill for each of its rows."""
    rows = [row for row in grid.items() if wanted in (None, row.get("parcel id"))] if grid else []
    if not rows:
        raise PageError("parcel_not_found", "the list has no bill of this parcel")
    if len({row.get("parcel id") for row in rows}) > 1:
        return {"parcels": [_parcel(row) for row in {row["parcel id"]: row for row in rows}.values()]}
    newest = max(rows, key=lambda row: clean.year(row.get("tax year")) or 0)
    return _parcel(newest) | {"taxes": [{"year": clean.year(row.get("tax year"))} for row in rows]}


def _parcel(row: dict[str, str]) -> Record:
    owner = clean.known(row.get("owner"))
    return {
        "parcel_id": clean.identifier(row.get("parcel id")),
        "owner_name": owner,
        "owner_names": [owner] if owner else [],
        "property_address": clean.text(row.get("property address")),
        "fields": {name: value for name, value in row.items() if name and value},
    }


PLATFORM = MunisPlatform()
