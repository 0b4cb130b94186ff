"""RealAuction's lists of auctions, as a page or in the shorthand sent to the site's script, and its calendar."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import Pair, record_of
from lienworker.platforms.reading.elements import lines_of, text_of
from lienworker.platforms.rules import Path

ITEMS = Path("//div[contains(@class, 'AUCTION_ITEM')][@aid or starts-with(@id, 'AITEM_')]")
# A cell of a row, or (Orange) a block beside a block.
_ITEM_LABELS = Path(".//*[contains(@class, 'AD_LBL')]")
_STATS = Path(".//div[contains(@class, 'AUCTION_STATS')]//*[contains(@class, 'ASTAT_MSG')]")
DAYS = Path("//div[contains(@class, 'CALBOX')][@dayid]")
_BY_CLASS = Path(".//*[@class]")
_AUCTION = {
    "auction type": ("type", clean.text),
    "case #": ("case_number", clean.identifier),
    "case number": ("case_number", clean.identifier),
    "opening bid": ("opening_bid", clean.money),
    "case status": ("status", clean.text),
}


# The site's script writes these out before it shows a list; some counties have `th` for the second kind of `td`.
_SHORTHAND = {
    "@A": '<div class="', "@B": "</div>", "@C": ' class="', "@D": "<div>", "@E": "AUCTION", "@F": "</td><td",
    "@G": "</td></tr>", "@H": "<tr><td ", "@I": "table", "@J": 'p_back="NextCheck=', "@K": 'style="Display:none"',
    "@L": "/index.cfm?zaction=auction&zmethod=details&AID=",
}  # fmt: skip
_CERTIFICATE = ("certificate #", "certificate number", "certificate")
_SHORT = re.compile("@[A-L]")
#: The beginning of an item, in shorthand.
SHORT_ITEM = "@C@E_ITEM"


def written_out(page: Page) -> Page:
    """The list that the site sends to its own script, as the script shows it."""
    data = page.json()
    shown = data.get("retHTML") if isinstance(data, dict) else None
    if not isinstance(shown, str):
        raise PageError("not_a_parcel", "the answer is no list of auctions")
    if "AITEM_" not in shown:
        raise PageError("parcel_not_found", "the list has no auctions on it")
    return spelled_out(page, shown)


def spelled_out(page: Page, shown: str) -> Page:
    """The page that a list in shorthand stands for."""
    html = _SHORT.sub(lambda found: _SHORTHAND[found[0]], shown).encode()
    shown_page = Page(page.url, html, "text/html", "utf-8")
    shown_page.under_limits = page.under_limits
    return shown_page


def item_of(item: Any) -> Record:
    """A row without a label goes on with the address above it."""
    pairs: list[Pair] = []
    link = None
    for element in _ITEM_LABELS(item):
        value = next(element.itersiblings("td", "th", "div"), None)
        if value is not None and "parcel" in text_of(element).lower():
            link = next((href for a in value.iter("a") if (href := a.get("href") or "").startswith("http")), link)
        label, lines = text_of(element).rstrip(" :"), lines_of(value) if value is not None else ()
        if label and lines:
            pairs.append(Pair(label, lines))
        elif lines and pairs and "address" in pairs[-1].label.lower():
            last = pairs.pop()
            pairs.append(Pair(last.label, last.lines + lines))
    record = record_of(pairs)
    found = {pair.label.lower(): pair.value for pair in pairs}
    auction = {name: wash(found[label]) for label, (name, wash) in _AUCTION.items() if label in found}
    record["auction"] = _stats(item) | auction
    certificate = next((found[word] for word in _CERTIFICATE if word in found), None)
    record["liens"] = [{"certificate_number": clean.identifier(certificate)}]
    if link:
        record["url"] = link  # the county's own page of the parcel, for who follows the list
    record["alternate_ids"] = record.get("alternate_ids", {}) | {"auction_id": item.get("aid") or item.get("id")[6:]}
    return record


def _stats(item: Any) -> Record:
    """The box beside an item: when it starts, or how and to whom it went."""
    texts = [text for element in _STATS(item) if (text := text_of(element))]
    joined = " ".join(texts)
    return {"date": clean.iso_date(_date_in(joined)), "status": clean.text(joined)}


def _date_in(text: str) -> str | None:
    found = re.search(r"\d{1,2}/\d{1,2}/\d{4}", text)
    return found[0] if found else None


def day_of(day: Any) -> Record:
    """A day of the calendar: what kind of auction, how many are on, at what time."""
    shown = {name: element for element in _BY_CLASS(day) for name in element.get("class").split()}
    parts = {name: clean.text(text_of(shown[name])) for name in ("CALACT", "CALSCH", "CALTIME") if name in shown}
    kind = clean.text(shown["CALTEXT"].text) if "CALTEXT" in shown else None
    fields = {"active": parts.get("CALACT"), "scheduled": parts.get("CALSCH"), "time": parts.get("CALTIME")}
    auction = {"date": clean.iso_date(day.get("dayid")), "type": kind}
    return {"auction": auction, "fields": clean.compact(fields)}
