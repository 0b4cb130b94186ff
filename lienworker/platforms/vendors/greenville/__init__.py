"""Greenville County, South Carolina: the list of its delinquent tax sale."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading.elements import grid_of
from lienworker.platforms.rules import Path, RulePlatform

_LIST = Path("//table[not(.//table)][.//a[contains(@href, 'MapNumber=')]]")


class GreenvillePlatform(RulePlatform):
    """A row an item; a mobile home has no map number and stays without an id."""

    name = "greenville"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//(?:www\.)?greenvillecounty\.org/appsas400/\w*TaxSale", re.I)
    url_template = (
        "https://www.greenvillecounty.org/appsas400/RealProperty/Details.aspx?TaxYear={tax_year}&MapNumber={parcel_id}"
    )
    marks = ("appsas400/RealProperty/Details.aspx", "MapNumber=")

    def finish(self, record: Record, root: Any, page: Page) -> None:
        grids = [grid for table in _LIST(root) if (grid := grid_of(table))]
        record["parcels"] = [_item(row) for grid in grids for row in grid.items()]


def _item(row: dict[str, str]) -> Record:
    owner = clean.known(row.get("name"))
    return {
        "parcel_id": clean.identifier(row.get("map")),
        "alternate_ids": {"item": clean.identifier(row.get("item"))},
        "owner_name": owner,
        "owner_names": [owner] if owner else [],
        "total_due": clean.money(row.get("amount due")),
        "fields": {head: cell for head, cell in row.items() if cell},
    }


PLATFORM = GreenvillePlatform()
