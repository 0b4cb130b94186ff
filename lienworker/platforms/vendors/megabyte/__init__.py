"""Megabyte's MPTS (mptsweb.com), which tax collectors in California use: a bill of two installments and their sum."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading.elements import text_of
from lienworker.platforms.reading.labels import normalise
from lienworker.platforms.rules import Labels, Path, RulePlatform

_LISTS = Path("//*[@id='h2tab1']//dl[dt]")
_NAMES = {
    "asmt": "account",
    "fee parcel": "parcel_id",
    "parcel number": "parcel_id",
    "assessment number": "account",
    **dict.fromkeys(("total due", "total paid", "balance", "paid date", "paid status", "total"), ""),
}
_TITLES = ("1st Installment", "2nd Installment")


class MegabytePlatform(RulePlatform):
    """`dt` and `dd`; each installment is a list of them, and the third list is both together."""

    name = "megabyte"
    version = "1"
    delay = 3.0
    evidence = "from documentation"
    url_pattern = re.compile(r"//common\d\.mptsweb\.com/mb(?:c|ap)/", re.I)
    marks = ("h2tab1", "tabsContainer")
    labels = (Labels(Path("//dt")),)
    names = _NAMES

    def finish(self, record: Record, root: Any, page: Page) -> None:
        parts = [dict(_pairs(part)) for part in _LISTS(root)]
        record["taxes"] = [
            _installment(part, title, record.get("tax_year")) for part, title in zip(parts, _TITLES, strict=False)
        ]
        if len(parts) == len(_TITLES) + 1:
            record["tax_amount"] = clean.money(parts[-1].get("total due"))
            record["total_due"] = clean.money(parts[-1].get("total balance", parts[-1].get("balance")))


def _pairs(part: Any) -> Iterator[tuple[str, str]]:
    for label in part.iter("dt"):
        value = label.getnext()
        if value is not None and value.tag == "dd":
            yield normalise(text_of(label)), text_of(value)


def _installment(part: dict[str, str], title: str, year: int | None) -> Record:
    """What is called due is what was billed; what is left to pay is the balance."""
    return {
        "year": year,
        "bill": title,
        "amount": clean.money(part.get("total due")),
        "paid": clean.money(part.get("total paid")),
        "due": clean.money(part.get("balance")),
        "status": clean.known(part.get("paid status")),
        "paid_on": clean.iso_date(part.get("paid date")),
    }


PLATFORM = MegabytePlatform()
