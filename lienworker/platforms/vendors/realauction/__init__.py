"""RealAuction's sites (RealTaxLien, RealTaxDeed, RealForeclose): certificates, auction lists, calendars, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import unquote

from yarl import URL

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.flows import Flow
from lienworker.platforms.reading import Pair, record_of
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.reading.tokens import CELLS
from lienworker.platforms.rules import RulePlatform
from lienworker.platforms.vendors.realauction.files import looks_like_auction_file, read_auction_file
from lienworker.platforms.vendors.realauction.flow import BY_DAY, CALENDAR
from lienworker.platforms.vendors.realauction.lists import DAYS, ITEMS, day_of, item_of, written_out

#: The address of a day's preview, as a browser shows it.
_PREVIEW = re.compile(r"^(https?://[^/?#]+)/index\.cfm\?.*\bauctiondate=([\d/%a-f]+)", re.I)
_CERT = re.compile(r"""data-cert\s*=\s*["']?([\w-]+)""")
_IN_HEADER = re.compile(r"(ADV NUM|Parcel ID|Tax Year|Status):")
_POPUP_NAMES = {
    "area sqft or acres": "",
    "total value": "market_value",
    "gross sq ft": "building_area_sqft",
    "tax year": "tax_year",
    "status": "",
}


class RealAuctionPlatform(RulePlatform):
    """Popups are parcels; lists, calendars and files are lists."""

    name = "realauction"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    reach = "calendar and lists verified on recorded pages, preview from documentation"
    concurrency = 1
    flow = BY_DAY
    url_pattern = re.compile(r"//[\w-]+\.real(?:taxlien|taxdeed|foreclose|auction|tdm)\.com/", re.I)

    def flow_for(self, target: Target) -> Flow:
        """Return the way to the list of a day, or to the calendar where neither target nor address names one."""
        if target.extra.get("auction_date"):
            return BY_DAY
        if preview := _PREVIEW.search(target.url or ""):
            named = {"base_url": preview[1], "auction_date": unquote(preview[2])}
            return replace(BY_DAY, settings={**BY_DAY.settings, **named})
        return CALENDAR

    def list_of(self, item: Record, url: str) -> Target | None:
        """Return the list of a day of the calendar."""
        day = item.get("auction", {}).get("date")
        if item.get("parcel_id") or not day:
            return None
        asked = {"base_url": str(URL(url).origin()), "auction_date": f"{date.fromisoformat(day):%m/%d/%Y}"}
        return Target(self.name, extra=asked)

    def recognises(self, page: Page) -> bool:
        marks = ("certpop-", "AUCTION_ITEM", "CALBOX", '"retHTML"')
        return any(mark in page.text for mark in marks) or looks_like_auction_file(page)

    def parse(self, page: Page, target: Target) -> Record:
        if page.is_json:
            page = written_out(page)
        if looks_like_auction_file(page):
            return self.checked({"parcels": list(read_auction_file(page.text, target.state))})
        root = page.selector.root
        header = next((box for box in root.iter("div") if "popup-header" in (box.get("class") or "")), None)
        if header is not None:
            return self.checked(_popup(page, root, header))
        if items := ITEMS(root):
            return self.checked({"parcels": [item_of(item) for item in items]})
        if days := DAYS(root):
            return self.checked({"parcels": [day for day in map(day_of, days) if day["fields"]]})
        raise PageError("not_a_parcel", "the page has no certificate, no auction and no calendar")


def _popup(page: Page, root: Any, header: Any) -> Record:
    words = _IN_HEADER.split(text_of(header))
    head = {name: clean.text(value) for name, value in zip(words[1::2], words[2::2], strict=True)}
    if not head.get("Parcel ID"):
        raise PageError("parcel_not_found", "the popup is empty: there is no such certificate")
    pairs = [Pair(name, (value,)) for name, value in head.items() if value]
    record = record_of(pairs + list(_boxes(root)), names=_POPUP_NAMES)
    record["parcel_id"] = head["Parcel ID"]
    found = _CERT.search(page.text)
    others = {"advertising_number": head.get("ADV NUM"), "certificate_id": found[1] if found else None}
    record["alternate_ids"] = record.get("alternate_ids", {}) | others
    shown = record["fields"]
    record["liens"] = [
        {
            "certificate_number": clean.identifier(shown.get("Certificate Number")),
            "tax_year": clean.year(head.get("Tax Year")),
            "face_amount": clean.money(shown.get("Face Value")),
            "status": head.get("Status"),
        }
    ]
    return record


def _row(row: Any, title: str) -> Pair | None:
    # Nearly all rows are their two cells, and many say nothing: those are not looked at twice.
    cells = row if len(row) == 2 else cells_of(row)
    if len(cells) < 2 or not (lines := lines_of(cells[1])) or cells[0].tag not in CELLS or cells[1].tag not in CELLS:
        return None
    label = text_of(cells[0])
    return Pair(label, lines, title, lines[0].partition(" ")[0]) if label else None


def _boxes(root: Any) -> Iterator[Pair]:
    """The rows of the tables of details, each below the header of its box, in one walk."""
    title, table = "", None
    for element in root.iter("div", "table", "tr"):
        if (tag := element.tag) == "tr":
            if table is not None and (pair := _row(element, title)):
                yield pair
        elif tag == "table":
            table = element if "details" in (element.get("class") or "") else None
        elif "box-header" in (element.get("class") or ""):
            title = text_of(element)


PLATFORM = RealAuctionPlatform()
