"""Grant Street's TaxSys (county-taxes.com). Only the order of its texts is relied on, so stripped text works too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import people
from lienworker.platforms.reading.tokens import tokens_of
from lienworker.platforms.rules import RulePlatform

_ACCOUNT = re.compile(
    r"(?:Real Estate|Property|Tangible\D*|Parcel)?\s*Account\s*(?:number\s*)?#?:?\s*(?=\S*\d)(.+)", re.I
)
_BILL = re.compile(
    r"(?P<name>(?P<year>(?:19|20)\d\d)\s+(?:annual|installment|supplemental|adjusted|\w+)\s+bill.*)", re.I
)
_PAID_TOTAL = re.compile(r"Paid\s+(\$[\d,.]+)")
_MONEY = re.compile(r"\$[\d,]+\.\d\d")
_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")
_STATUS = re.compile(
    r"(Paid|Unpaid|Due|Upcoming|Delinquent|Redeemed|Cancel\w+|Deferred|Certificate\b.*|Pending)\b.*", re.I
)
_CERTIFICATE = re.compile(r"certificate\s*(?:number\s*)?#?\s*(\d[\w-]*)", re.I)
_STOP = re.compile(
    r"(?:Owner|Situs|Amount due|Parcel details|Get bills|Account history|Mailing address|Print)\b.*", re.I
)
_STYLE = re.compile(r"[.{}]|\w+:\s?\w+;|stroke|Print")


class TaxSysPlatform(RulePlatform):
    """Account, owner, situs, what is due, then the bills by year."""

    name = "taxsys"
    version = "2"
    delay = 3.0
    evidence = "the text of a real page"
    reach = "parse only"
    url_pattern = re.compile(r"//(?:[\w-]+\.)*county-taxes\.(?:com|net)/", re.I)
    url_template = "https://{county_host}.county-taxes.com/public/real_estate/parcels/{parcel_id}"

    def recognises(self, page: Page) -> bool:
        return "TaxSys" in page.text and "Account" in page.text

    def parse(self, page: Page, target: Target) -> Record:
        lines = list(_lines(page))
        account = next((found[1] for line in lines if (found := _ACCOUNT.fullmatch(line))), None)
        owner = _below(lines, "owner")
        situs = _below(lines, "situs")
        bills, totals = _bills(lines)
        record: Record = {
            "parcel_id": clean.identifier(account),
            "owner_name": owner[0] if owner and people.is_owner(owner[0]) else None,
            "owner_names": [line for line in owner if people.is_owner(line)],
            "property_address": clean.text(" ".join(situs)),
            "owner_address": people.mailing_address(_below(lines, "mailing address")),
            "total_due": _total_due(lines, bills),
            "taxes": bills,
            "liens": _liens(bills),
            "fields": {"Owner": " ".join(owner), "Situs": " ".join(situs), **totals, **_last_payment(lines)},
        }
        if bills:
            record |= {"tax_year": bills[0]["year"], "tax_status": bills[0].get("status")}
        return self.checked(record)


def _lines(page: Page) -> Iterator[str]:
    """The visible lines; of stripped text, those that are no left-over of a style or a script."""
    if "<" in page.text[:2000]:
        joined: dict[int, list[str]] = {}
        for token in tokens_of(page.selector):
            joined.setdefault(token.line, []).append(token.text)
        yield from (" ".join(texts) for texts in joined.values())
    else:
        yield from (
            line for raw in page.text.splitlines() if (line := clean.text(raw)) and not line.startswith((".", "var "))
        )


def _below(lines: list[str], label: str) -> list[str]:
    """What stands after a label, in its line or below it, up to the next label."""
    for place, line in enumerate(lines):
        name, colon, rest = line.partition(":")
        if colon and name.strip().lower() == label:
            below = takewhile(
                lambda text: not _STOP.fullmatch(text) and not _STYLE.search(text), lines[place + 1 : place + 6]
            )
            return [text for text in (rest.strip(), *below) if text]
    return []


def _bills(lines: list[str]) -> tuple[list[Record], dict[str, str]]:
    """The bills in the order of the page, and the sums that close the years paid in installments."""
    bills: list[Record] = []
    totals: dict[str, str] = {}
    for line in lines:
        if found := _BILL.fullmatch(line.strip()):
            bills.append({"year": int(found["year"]), "bill": found["name"].strip()})
        elif bills and (total := _PAID_TOTAL.fullmatch(line)) and "status" in bills[-1]:
            totals[f"{bills[-1]['year']} Paid"] = total[1]
        elif bills:
            _take_line(bills[-1], line)
    return bills, totals


def _take_line(bill: Record, line: str) -> None:
    """First what is due, then the status, then what was paid and when."""
    amount, date = _MONEY.search(line), _DATE.search(line)
    if amount and "due" not in bill and "status" not in bill:
        bill["due"] = clean.money(amount[0])
    elif "status" not in bill and (found := _STATUS.fullmatch(line)):
        bill["status"] = found[0] if found[1].lower().startswith("certificate") else found[1]
        amount = _MONEY.search(line)
        bill |= {"paid": clean.money(amount[0])} if amount else {}
    elif amount and "paid" not in bill and bill.get("status") == "Paid":
        bill["paid"] = bill["amount"] = clean.money(amount[0])
    if date and "paid_on" not in bill and "status" in bill:
        bill["paid_on"] = clean.iso_date(date[0])


def _liens(bills: list[Record]) -> list[Record]:
    liens = []
    for bill in bills:
        if found := _CERTIFICATE.search(str(bill.get("status", ""))):
            liens.append({"certificate_number": found[1], "tax_year": bill["year"], "status": bill["status"]})
    return liens


def _total_due(lines: list[str], bills: list[Record]) -> float | None:
    if any("paid to date" in line.lower() for line in lines):
        return 0.0
    place = next((n for n, line in enumerate(lines) if re.fullmatch(r"(?:total )?amount due:?", line, re.I)), None)
    found = _MONEY.fullmatch(lines[place + 1]) if place is not None and place + 1 < len(lines) else None
    return clean.money(found[0]) if found else None


def _last_payment(lines: list[str]) -> dict[str, str]:
    text = " ".join(lines)
    found = re.search(r"last payment was made on\s+(\S+)\s+for (\$[\d,.]+\d)", text)
    return {"Last payment": f"{found[2]} on {found[1]}"} if found else {}


PLATFORM = TaxSysPlatform()
