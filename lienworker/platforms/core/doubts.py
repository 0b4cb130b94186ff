"""What a person would doubt in a record at a glance. Pure, cheap, and about one record alone.

A doubt changes nothing: the values stay as the page gave them, and it is stored beside them for people to look at. So
a check is worth having only where it is nearly always right: less than one correct page in a hundred may be doubted.
Rejected for that reason: assessed above market (some counties reassess years apart), taxable above assessed (South
Carolina assesses at six percent), a certificate without an amount (lists give its number only).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

#: Of one record; a list of ten thousand items that are all wrong says so with the first of them.
MOST_DOUBTS = 20
_CENT = 0.011
_SQFT_OF_ACRE = 43_560
#: An area in acres and the same in square feet, rounded by people and by programs.
_MOST_APART = 2.0
#: Square feet below which an area in acres may be rounded to nothing.
_A_SPECK = 1_000
#: Percent a year; no state allows more for a certificate.
_HIGHEST_RATE = 50.0
_CODE = re.compile(r"[{}]|</?[a-z]+[ />]|\bfunction *\(|\bvar [\w$]+ *=|=>|&nbsp;", re.I)
_TEXTS = (
    "parcel_id", "owner_name", "owner_address", "property_address", "city", "legal_description", "property_use",
    "tax_status",
)  # fmt: skip
_NEVER_NEGATIVE = (
    "acres", "land_area_sqft", "building_area_sqft", "bedrooms", "bathrooms", "market_value", "taxable_value",
)  # fmt: skip
_TELLS_A_LIEN = frozenset(
    {"face_amount", "winning_bid", "interest_rate", "certificate_number", "holder", "sale_date", "redeemed_on"}
)
_SOLD = re.compile(r"\b(?:sold|certificate|redeemed|forfeit\w*|delinquent|outstanding|available)\b", re.I)
_WORD = re.compile(r"\w+")
Record = Mapping[str, Any]


class Doubt(NamedTuple):
    """Which check, about which field, and what it saw."""

    check: str
    field: str
    detail: str


def doubts_of(record: Record, today: date) -> list[Doubt]:
    """The doubts about a record of a page that was fetched on a day; of a list, those about its items."""
    found: list[Doubt] = []
    for prefix, item in _items(record):
        for check in _CHECKS:
            found += [Doubt(name, prefix + field, detail[:200]) for name, field, detail in check(item, today)]
        if len(found) >= MOST_DOUBTS:
            break
    return found[:MOST_DOUBTS]


def _items(record: Record) -> Iterator[tuple[str, Record]]:
    yield "", record
    for place, item in _rows(record, "parcels"):
        yield f"{place}.", item


def _rows(record: Record, name: str) -> Sequence[tuple[str, Record]]:
    rows = record.get(name)
    if not isinstance(rows, list):  # nearly always, and a generator for it would cost more than the check itself
        return ()
    return [(f"{name}[{n}]", row) for n, row in enumerate(rows) if isinstance(row, dict)]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _total_below_part(record: Record, today: date) -> Iterator[Doubt]:
    """A whole that is less than its land or its building."""
    entries = [("", {name: record.get(f"{name}_value") for name in ("land", "building", "market")})]
    for place, entry in [*entries, *_rows(record, "values")]:
        market = _number(entry.get("market"))
        for part in ("land", "building"):
            amount = _number(entry.get(part))
            if market is not None and amount is not None and amount > market + 1:
                field = f"{place}.market" if place else "market_value"
                yield Doubt("total_below_part", field, f"{market:g} in all, and {amount:g} of it {part}")


def _due_above_total(record: Record, today: date) -> Iterator[Doubt]:
    """Bills that come to more than what is due in all: one of them is counted twice, or is not of this parcel."""
    total = _number(record.get("total_due"))
    dues = [due for _, bill in _rows(record, "taxes") if (due := _number(bill.get("due"))) and due > 0]
    if total is not None and sum(dues) > total + _CENT:
        yield Doubt("due_above_total", "total_due", f"{total:g} in all, and {sum(dues):g} by bill")


def _owner_is_address(record: Record, today: date) -> Iterator[Doubt]:
    owner = _folded(record.get("owner_name"))
    for name in ("property_address", "owner_address"):
        if owner and owner == _folded(record.get(name)):
            yield Doubt("owner_is_address", "owner_name", str(record["owner_name"]))


def _folded(value: object) -> str:
    return " ".join(_WORD.findall(value.lower())) if isinstance(value, str) else ""


def _code_in_text(record: Record, today: date) -> Iterator[Doubt]:
    """A text of the page's program, not of the page."""
    shown = [(name, record.get(name)) for name in _TEXTS]
    for name in ("liens", "taxes", "sales"):
        shown += [(f"{place}.{key}", value) for place, row in _rows(record, name) for key, value in row.items()]
    texts = [(name, value) for name, value in shown if isinstance(value, str)]
    if _CODE.search("\n".join([text for _, text in texts])):  # once for all of them: nearly never is there any
        yield from (Doubt("code_in_text", name, text) for name, text in texts if _CODE.search(text))


def _lien_of_nothing(record: Record, today: date) -> Iterator[Doubt]:
    """A lien has an amount, a number, a holder or a day, or is said to be sold; else it is some other remark."""
    for place, lien in _rows(record, "liens"):
        if lien and _TELLS_A_LIEN.isdisjoint(lien) and not _SOLD.search(str(lien.get("status"))):
            yield Doubt("lien_of_nothing", place, ", ".join(f"{key} {value}" for key, value in lien.items()))


def _in_the_future(record: Record, today: date) -> Iterator[Doubt]:
    now = today.isoformat()
    for name, key in (("sales", "date"), ("taxes", "paid_on"), ("liens", "redeemed_on")):
        for place, row in _rows(record, name):
            if isinstance(day := row.get(key), str) and day > now:
                yield Doubt("in_the_future", f"{place}.{key}", day)
    for name in ("tax_year", "year_built"):
        year = _number(record.get(name))
        if year is not None and year > today.year + 1:
            yield Doubt("in_the_future", name, f"{year:g}")


def _impossible_number(record: Record, today: date) -> Iterator[Doubt]:
    for name in _NEVER_NEGATIVE:
        amount = _number(record.get(name))
        if amount is not None and amount < 0:
            yield Doubt("impossible_number", name, f"{amount:g}")
    for place, lien in _rows(record, "liens"):
        rate = _number(lien.get("interest_rate"))
        if rate is not None and not 0 <= rate <= _HIGHEST_RATE:
            yield Doubt("impossible_number", f"{place}.interest_rate", f"{rate:g} %")


def _areas_apart(record: Record, today: date) -> Iterator[Doubt]:
    """One land in two units."""
    acres, feet = _number(record.get("acres")), _number(record.get("land_area_sqft"))
    if acres is None or feet is None or feet < _A_SPECK:
        return
    if not 1 / _MOST_APART <= acres * _SQFT_OF_ACRE / feet <= _MOST_APART:
        yield Doubt("areas_apart", "acres", f"{acres:g} acres, and {feet:g} square feet")


_CHECKS: tuple[Callable[[Record, date], Iterator[Doubt]], ...] = (
    _total_below_part,
    _due_above_total,
    _owner_is_address,
    _code_in_text,
    _lien_of_nothing,
    _in_the_future,
    _impossible_number,
    _areas_apart,
)
