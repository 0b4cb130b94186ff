"""Cook County, Illinois, Treasurer (cookcountytreasurer.com): what is billed and due, by year and installment.

Each year has its own total, and no sum of them all is on the page: where several years are shown, `total_due` is left
to the bills. Every box is there twice, for wide screens and for narrow ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import Pair, people
from lienworker.platforms.reading.elements import text_of
from lienworker.platforms.rules import Path, RulePlatform

_IDS = Path("//span[contains(@id, '_lbl')]")
_BOXES = Path(
    "//div[contains(concat(' ', @class, ' '), ' paymentboxdesktop ')]//div[contains(@class, 'paymentboxcolumnheader1')]"
)
_ROWS = Path(".//div[@class='paymentboxrowheader']")
_STATUS = re.compile(r"paymentstatusinstallment\d(\w+)")
_STATUSES = {"paidinfull": "Paid in full", "delinquenttaxes": "Delinquent", "balancedue": "Balance due"}
# One group of ids for each of the years that the page may show.
_YEARS = ("Current", "Prior", "SpecialCollection")


class CookTreasurerPlatform(RulePlatform):
    """Single facts by the end of their ids, installments by their boxes."""

    name = "cooktreasurer"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//(?:www\.)?cookcountytreasurer\.com/", re.I)
    marks = ("Cook County Treasurer", "_lblTaxpayerName1", "_lblPIN")

    def pairs(self, root: Any) -> list[Pair]:
        return [
            Pair(label, (value,), text_of(box))
            for box in _BOXES(root)
            for label, value in _amounts(box).items()
            if value
        ]

    def finish(self, record: Record, root: Any, page: Page) -> None:
        shown: dict[str, str] = {}
        for element in _IDS(root):
            shown.setdefault(element.get("id").rpartition("_lbl")[2], clean.text(text_of(element)) or "")
        fields = {f"{pair.section}: {pair.label}": pair.value for pair in self.pairs(root)}
        record.clear()  # an installment is no parcel, whatever its labels say
        record |= _parcel(shown) | {"taxes": list(_installments(root)), "fields": fields | _totals(shown)}
        record |= _newest(shown)


def _parcel(shown: dict[str, str]) -> Record:
    names, _ = people.owner_and_address([shown.get("TaxpayerName1", "")] if shown.get("TaxpayerName1") else [])
    place = ("PropertyAddress", "PropertyCityStateZipCode")
    mail = ("MailingAddress1", "MailingAddress2", "MailingCityStateZipCode1")
    return {
        "parcel_id": clean.identifier(shown.get("PIN")),
        "alternate_ids": {"volume": clean.identifier(shown.get("Volume"))},
        "owner_name": names[0] if names else None,
        "owner_names": names,
        "owner_address": clean.joined([shown.get(name) for name in mail], " "),
        "property_address": clean.joined([shown.get(name) for name in place], " "),
    }


def _amounts(box: Any) -> dict[str, str]:
    """The labels and values of the box below a head; none where the page ends there."""
    below = box.getnext()
    rows = _ROWS(below) if below is not None else []
    return {text_of(row).rstrip(" :"): text_of(value) for row in rows if (value := row.getnext()) is not None}


def _installments(root: Any) -> Iterator[Record]:
    for box in _BOXES(root):
        amounts = _amounts(box)
        number, _, year = text_of(box).partition(" - ")
        status = _STATUS.search(box.getnext().get("class") or "") if amounts else None
        yield {
            "year": clean.year(year),
            "bill": clean.text(number),
            "amount": clean.money(amounts.get("Original Billed Amount")),
            "due": clean.money(amounts.get("Current Amount Due")),
            "status": _STATUSES.get(status[1]) if status else None,
        }


def _totals(shown: dict[str, str]) -> dict[str, str]:
    """What the page says of each year as a whole."""
    return {
        f"{shown[f'{which}TaxYear']}: {label}": shown[f"{which}Total{name}"]
        for which in _YEARS
        for label, name in (("Total Amount Billed", "AmountBilled"), ("Total Amount Due", "AmountDue"))
        if shown.get(f"{which}TaxYear") and shown.get(f"{which}Total{name}")
    }


def _newest(shown: dict[str, str]) -> Record:
    years = {year: which for which in _YEARS if (year := clean.year(shown.get(f"{which}TaxYear")))}
    if not years:
        return {}
    which = years[max(years)]
    due = clean.money(shown.get(f"{which}TotalAmountDue")) if len(years) == 1 else None
    billed = clean.money(shown.get(f"{which}TotalAmountBilled"))
    return {"tax_year": max(years), "tax_amount": billed, "total_due": due}


PLATFORM = CookTreasurerPlatform()
