"""MyGovOnline's property tax service: the bills of an account as JSON, with their certificates."""

from __future__ import annotations

import json
import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target

_URL = re.compile(r"//[\w-]+\.mygovonline\.com/", re.I)


class MyGovOnlinePlatform(Platform):
    """Rates come in hundredths of a percent and faces in cents, both as text."""

    name = "mygovonline"
    version = "1"
    delay = 3.0
    evidence = "a real page"

    def matches_url(self, url: str) -> bool:
        return bool(_URL.search(url))

    def recognises(self, page: Page) -> bool:
        return page.is_json and '"bills"' in page.text and '"PPT"' in page.text

    def parse(self, page: Page, target: Target) -> Record:
        data = page.json()
        due = _inside(data, "due", "PPT")
        bills = [bill for bill in due.get("bills") or [] if isinstance(bill, dict)]
        if not bills:
            raise PageError("parcel_not_found", "the service has no bills for this account")
        newest = max(bills, key=lambda bill: clean.year(bill.get("taxYear")) or 0)
        record: Record = _head(newest) | _place(due, newest)
        record["taxes"] = [_bill(bill) for bill in bills]
        record["liens"] = [_lien(bill) for bill in bills if _inside(bill, "certificate", "info")]
        record["values"] = [entry for bill in bills if len(entry := _values(bill)) > 1]
        record["total_due"] = round(sum(clean.money(bill.get("due")) or 0.0 for bill in bills), 2)
        record["documents"] = [url for bill in bills if (url := clean.text(bill.get("printUrl")))]
        for name in ("market", "assessed", "taxable"):
            record[f"{name}_value"] = _values(newest).get(name)
        record["fields"] = _fields(newest, bills)
        found: Record = clean.compact(record)
        return found


def _inside(data: Any, *names: str) -> dict[str, Any]:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _head(bill: dict[str, Any]) -> Record:
    return {
        "parcel_id": clean.identifier(bill.get("account_number")),
        "alternate_ids": {"internal": clean.identifier(bill.get("parcelId"))},
        "owner_name": clean.text(bill.get("owner")),
        "tax_year": clean.year(bill.get("taxYear")),
        "tax_amount": clean.money(bill.get("amount")),
        "tax_status": _status(bill),
    }


def _place(due: dict[str, Any], newest: dict[str, Any]) -> Record:
    """Where the parcel is and where its bill goes; the service lists it once for each bill."""
    parcels = [parcel for parcel in due.get("parcels") or [] if isinstance(parcel, dict)]
    parcel = next((p for p in parcels if p.get("parcel_id") == newest.get("parcelId")), parcels[0] if parcels else {})
    names = ("parcel_address_1", "parcel_address_2", "parcel_city", "parcel_state", "parcel_zip")
    details = _inside(parcel, "parcel_details")
    return {
        "owner_address": clean.joined([parcel.get(name) for name in names], " "),
        "property_address": clean.text(details.get("situs")),
        "legal_description": clean.text(details.get("parcel_legal")),
        "property_use": clean.text(details.get("property_type")),
    }


def _status(bill: dict[str, Any]) -> str:
    return "Paid" if bill.get("paid") else "Delinquent" if bill.get("delinquent") else "Unpaid"


def _bill(bill: dict[str, Any]) -> Record:
    payments = [payment for payment in bill.get("payments") or [] if isinstance(payment, dict)]
    paid = [clean.money(payment.get("amount")) or 0.0 for payment in payments]
    return {
        "year": clean.year(bill.get("taxYear")),
        "bill": clean.identifier(bill.get("bill_number")),
        "amount": clean.money(bill.get("amount")),
        "paid": round(sum(paid), 2) if paid else None,
        "due": clean.money(bill.get("due")),
        "status": _status(bill),
        "paid_on": max((date for payment in payments if (date := clean.iso_date(payment.get("date")))), default=None),
    }


def _lien(bill: dict[str, Any]) -> Record:
    info = _inside(bill, "certificate", "info")
    rate, face = clean.number(info.get("bidPercentage")), clean.number(info.get("face"))
    return {
        "certificate_number": clean.identifier(info.get("number")),
        "tax_year": clean.year(bill.get("taxYear")),
        "face_amount": face / 100 if face is not None else None,
        "interest_rate": rate / 100 if rate is not None else None,
        "holder": clean.text(_inside(bill, "certificate", "holder").get("name")),
        "sale_date": clean.iso_date(info.get("sold")),
        "status": "Redeemed" if bill.get("paid") else "Outstanding",
    }


def _values(bill: dict[str, Any]) -> Record:
    """Each authority repeats the values; the first line is the county's."""
    charges = _inside(bill, "charges", "adValorem").get("charges") or [{}]
    names = (("market", "just"), ("assessed", "assessed"), ("taxable", "taxable"))
    shown = {name: clean.money(charges[0].get(place)) for name, place in names}
    return {"year": clean.year(bill.get("taxYear"))} | {
        name: value for name, value in shown.items() if value is not None
    }


def _fields(newest: dict[str, Any], bills: list[dict[str, Any]]) -> dict[str, str]:
    """The newest bill's own words, and every certificate as the service gave it (rates and faces undivided)."""
    fields = {
        name: str(value) for name, value in newest.items() if isinstance(value, (str, int, float)) and value != ""
    }
    for bill in bills:
        if info := _inside(bill, "certificate", "info"):
            fields[f"certificate {bill.get('taxYear')}"] = json.dumps(info, separators=(",", ":"))
    return fields


PLATFORM = MyGovOnlinePlatform()
