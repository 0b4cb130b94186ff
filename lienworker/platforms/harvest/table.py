"""Rolls: tables in files, cut into pages that each begin with the header. Florida's NAL and SDF are known by theirs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from lienworker.errors import InputError, PageError
from lienworker.platforms.harvest.plan import Cursor, Plan, Request, SourcePage

#: Columns that only such a file has; of both the first that has all of its columns.
_FLORIDA = {
    "fl_nal": frozenset({"CO_NO", "PARCEL_ID", "DOR_UC", "JV", "OWN_NAME"}),
    "fl_sdf": frozenset({"CO_NO", "PARCEL_ID", "QUAL_CD", "SALE_PRC", "SALE_YR"}),
}
#: Columns of the SDF that are about one of the parcel's sales, and how many of these are read.
_OF_SALE = frozenset(
    {
        "SALE_ID_CD", "SAL_CHG_CD", "VI_CD", "OR_BOOK", "OR_PAGE", "CLERK_NO", "QUAL_CD", "SALE_YR", "SALE_MO",
        "SALE_PRC", "MULTI_PAR_SAL",
    }
)  # fmt: skip
_MOST_SALES = 9
#: The counties of Florida in the order of their numbers, which begin at 11.
_IN_ORDER = (
    "Alachua|Baker|Bay|Bradford|Brevard|Broward|Calhoun|Charlotte|Citrus|Clay|Collier|Columbia|Miami-Dade|DeSoto|Dixie"
    "|Duval|Escambia|Flagler|Franklin|Gadsden|Gilchrist|Glades|Gulf|Hamilton|Hardee|Hendry|Hernando|Highlands"
    "|Hillsborough|Holmes|Indian River|Jackson|Jefferson|Lafayette|Lake|Lee|Leon|Levy|Liberty|Madison|Manatee|Marion"
    "|Martin|Monroe|Nassau|Okaloosa|Okeechobee|Orange|Osceola|Palm Beach|Pasco|Pinellas|Polk|Putnam|St. Johns"
    "|St. Lucie|Santa Rosa|Sarasota|Seminole|Sumter|Suwannee|Taylor|Union|Volusia|Wakulla|Walton|Washington"
)
_COUNTIES = _IN_ORDER.split("|")
_FIRST_NUMBER = 11
_DELIMITERS = ",\t|;"


def describe_table(header: str, wish: Plan) -> Plan:
    """Return the plan of a table by its header line."""
    delimiter = max(_DELIMITERS, key=header.count)
    columns = _cells(header, delimiter)
    if len(columns) < 2 or len(set(columns)) < len(columns) or not all(columns):
        raise InputError(f"{wish.url} does not begin with a line of column names, each of them once")
    platform = next((name for name, known in _FLORIDA.items() if known <= set(columns)), "roll")
    chosen = dict(wish.chosen)
    if platform != "roll":
        chosen.setdefault("county", "CO_NO")
    return Plan(
        kind="table",
        url=wish.url,
        platform=platform,
        columns=_columns_of(platform, columns),
        chosen=chosen,
        limit=wish.limit,
        size=wish.size,
        delimiter=delimiter,
    )


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip("\ufeff") for cell in next(csv.reader([line], delimiter=delimiter), [])]


def _columns_of(platform: str, columns: Sequence[str]) -> tuple[str, ...]:
    if platform != "fl_sdf":
        return tuple(columns)
    sales = [f"{name}{n}" for n in range(1, _MOST_SALES + 1) for name in columns if name in _OF_SALE]
    return (*(name for name in columns if name not in _OF_SALE), *sales)


def parcel_of(plan: Plan, header: str, line: str) -> str:
    """Return the id in a line of a table whose parcels have several lines; empty for any other table."""
    if plan.platform != "fl_sdf":
        return ""
    place = _cells(header, plan.delimiter).index("PARCEL_ID")
    cells = _cells(line, plan.delimiter)
    return cells[place] if place < len(cells) else ""


class TableSource:
    """The pages of a table."""

    def request(self, plan: Plan, cursor: Cursor, secret: str | None) -> Request:
        return Request(f"{plan.url}&page={cursor.number}")

    def read(self, plan: Plan, cursor: Cursor, body: bytes) -> SourcePage:
        try:
            lines = csv.reader(io.StringIO(body.decode("utf-8"), newline=""), delimiter=plan.delimiter)
            header = [cell.strip().strip("\ufeff") for cell in next(lines)]
            rows = [dict(zip(header, line, strict=False)) for line in lines if line]
        except (csv.Error, StopIteration, UnicodeDecodeError) as problem:
            raise PageError("not_a_source", f"the page is no table: {problem}") from None
        return SourcePage(_joined_sales(rows) if plan.platform == "fl_sdf" else rows)

    def values(self, plan: Plan, row: Any) -> dict[str, Any]:
        values: dict[str, Any] = row
        if plan.platform == "roll":
            return values
        return {**values, "CO_NO": _county(values.get("CO_NO"))}

    def geometry(self, plan: Plan, row: Any) -> dict[str, Any]:
        return {}

    def address(self, plan: Plan, row: Any, parcel_id: str) -> str:
        return f"{plan.url}&parcel={parcel_id}"


def _joined_sales(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return a row for each parcel, its sales one after the other, the newest first."""
    joined = []
    for _, group in groupby(rows, key=lambda row: row.get("PARCEL_ID")):
        sales = sorted(group, key=lambda row: (row.get("SALE_YR", ""), row.get("SALE_MO", "").zfill(2)), reverse=True)
        row = {name: value for name, value in sales[0].items() if name not in _OF_SALE}
        for n, sale in enumerate(sales[:_MOST_SALES], 1):
            row |= {f"{name}{n}": value for name, value in sale.items() if name in _OF_SALE}
        joined.append(row)
    return joined


def _county(number: Any) -> str | None:
    """Return the county of Florida that a roll names by its number."""
    place = int(number) - _FIRST_NUMBER if isinstance(number, str) and number.strip().isdecimal() else -1
    return _COUNTIES[place] if 0 <= place < len(_COUNTIES) else None
