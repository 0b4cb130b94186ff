"""Tyler EagleWeb: accounts of assessors (taxweb) and treasurers (treasurerweb), behind a guest session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.core.merging import merge
from lienworker.platforms.flows import Flow
from lienworker.platforms.guided import GuidedPlatform
from lienworker.platforms.reading.elements import cells_of, text_of
from lienworker.platforms.rules import Path
from lienworker.platforms.vendors.eagleweb.flow import BY_ACCOUNT, BY_PARCEL

_TOTALS = Path("//*[@id='totals']//tr")
_NAMES = {
    "account id": "account",
    "account number": "account",
    "parcel number": "parcel_id",
    "owners": "owner_name",
    "address": "owner_address",
    "situs address": "property_address",
    "legal": "legal_description",
    "actual": "market_value",
    "actual value": "market_value",
}


class EagleWebPlatform(GuidedPlatform):
    """Account and parcel are two numbers; the parcel's is the id where both are shown."""

    name = "eagleweb"
    version = "1"
    delay = 3.0
    evidence = "from documentation"
    reach = "from documentation"
    url_pattern = re.compile(r"/(?:taxweb|treasurerweb)/(?:account|results)\.jsp", re.I)
    url_template = "{base_url}/taxweb/account.jsp?accountNum={account}"
    marks = ("taxAccountSummary",)
    names = _NAMES
    flow = BY_PARCEL

    def flow_for(self, target: Target) -> Flow:
        return BY_ACCOUNT if target.extra.get("account") else BY_PARCEL

    def parse_parts(self, parts: Mapping[str, Page], target: Target) -> Record:
        """Add what the documents of an account say. They show its number, and mostly not that of the parcel."""
        account, *documents = parts.values()
        record = self.parse(account, target)
        for document in documents:
            merge(record, self.read_page(document))
        return record

    def finish(self, record: Record, root: Any, page: Page) -> None:
        for cells in map(cells_of, _TOTALS(root)):
            if len(cells) > 1 and text_of(cells[0]) == "Total Due":
                record["total_due"] = clean.money(text_of(cells[1]))


PLATFORM = EagleWebPlatform()
