"""Cook County's property tax portal: each value has its id, each bill and each tax sale its number."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.core.bounds import remember_short
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import cells_of, text_of
from lienworker.platforms.rules import Path

PIN = re.compile(r"\d{2}-\d{2}-\d{3}-\d{3}-\d{4}")
# As the site names its places now, and as it did before 2015.
_IDS = Path("//@id[starts-with(., 'ContentPlaceHolder1_') or starts-with(., 'ctl00_PlaceHolderMain_')]/..")
# `rptTaxBill_taxBillYear_0`, earlier `rptTaxBill_ctl01_taxBillYear`.
_PART = re.compile(r"_(?:(?P<list>rpt[A-Za-z]+)_(?:ctl(?P<old>\d+)_)?)?(?P<name>[A-Za-z]+\d?)(?:_(?P<new>\d+))?$")
_HISTORY = Path("//table[@id='assessdhistorytable']//tr")
_SPOTS = {
    "property_address": ("propertyAddress", clean.text),
    "city": ("propertyCity", clean.text),
    "zip": ("propertyZip", clean.text),
    "owner_name": ("propertyMailingName", clean.text),
    "market_value": ("propertyEstimatedValue", clean.money),
    "assessed_value": ("propertyAssessedValue", clean.money),
    "land_area_sqft": ("propertyLotSize", clean.number),
    "building_area_sqft": ("propertyBuildingSize", clean.number),
    "property_use": ("propertyClass", clean.text),
}
_PAY = re.compile(r"pay online:?\s*(\$[\d,.]+)", re.I)
_SOLD = re.compile(r"\b(?:sold|redeem\w*|forfeit\w*)\b", re.I)
_NOT = re.compile(r"\bnot?\b", re.I)
_FIRST_LINK = Path(".//a")


def portal_parts(root: Any) -> dict[str, Any]:
    """The elements by their own names; those of a list with their number before (`0 taxBillYear`)."""
    parts: dict[str, Any] = {}
    for element in _IDS(root):
        if name := _part_name(element.get("id")):
            parts.setdefault(name, element)
    return parts


@remember_short(1024)
def _part_name(place: str) -> str:
    """The ids are the same on all pages of the portal."""
    found = _PART.search(place)
    if found is None:
        return ""
    number = found["new"] or found["old"]
    return f"{found['list']} {number} {found['name']}" if found["list"] and number else found["name"]


def take_portal(record: Record, root: Any, parts: dict[str, Any]) -> None:
    shown = {name: text_of(element) for name, element in parts.items()}
    for name, (place, wash) in _SPOTS.items():
        if place in shown and (value := wash(shown[place])) is not None:
            record[name] = value
    titles = (PIN.search(shown.get(place, "")) for place in ("lblResultTitle", "propertyPIN"))
    record["parcel_id"] = next((pin[0] for pin in titles if pin), record.get("parcel_id"))
    mailing = ("propertyMailingAddress", "propertyMailingCityStateZip")
    record["owner_address"] = clean.joined([shown.get(place) for place in mailing], " ")
    if not people.is_owner(record.get("owner_name") or ""):
        record.pop("owner_name", None)
    record["owner_names"] = [record["owner_name"]] if record.get("owner_name") else []
    record["taxes"] = [_bill(shown, parts, *place) for place in _numbered(shown, "rptTaxBill", "taxBillYear")]
    sales = [_sale(parts, *place) for place in _numbered(shown, "rptRedemption", "Label2")]
    record["liens"] = [sale for sale in sales if _SOLD.search(sale["status"]) and not _NOT.search(sale["status"])]
    record["values"] = [
        {"year": clean.year(text_of(cells[0])), "assessed": clean.money(text_of(cells[1]))}
        for cells in map(cells_of, _HISTORY(root))
        if len(cells) > 1 and clean.year(text_of(cells[0]))
    ]


def _numbered(shown: dict[str, str], kind: str, name: str) -> list[tuple[str, int]]:
    """The entries of a list, each with the year that it is about."""
    places = [
        place.removesuffix(name) for place in shown if place.startswith(f"{kind} ") and place.endswith(f" {name}")
    ]
    return [(place, year) for place in places if (year := clean.year(shown[place + name]))]


def _said(parts: dict[str, Any], place: str) -> str:
    """What the panels of an entry show: their first link, for what it opens explains all that there could be."""
    panels = [element for name, element in parts.items() if name.startswith(f"{place}Panel")]
    return " ".join(text_of(next(iter(_FIRST_LINK(panel)), panel)) for panel in panels)


def _bill(shown: dict[str, str], parts: dict[str, Any], place: str, year: int) -> Record:
    """What is to be paid online is what is due; where a link says so, the bill is paid."""
    said = _said(parts, place)
    due = _PAY.search(said)
    paid = not due and "paid" in said.lower()
    return {
        "year": year,
        "amount": clean.money(shown.get(f"{place}taxBillAmount")),
        "due": clean.money(due[1]) if due else None,
        "status": "Paid" if paid else None,
    }


def _sale(parts: dict[str, Any], place: str, year: int) -> Record:
    return {"tax_year": year, "status": _said(parts, place)}
