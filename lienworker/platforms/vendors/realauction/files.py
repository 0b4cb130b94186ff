"""The files of tax lien auctions: advertised, sold, unsold and for uploading bids, in many heads over years and states.

Comma, tab, pipe or semicolon; the head decides what a column is. Without a head, as in files of 2006 to 2008, only
what its cells leave no doubt about is read (see `headless`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.vendors.realauction.file_headers import HEADS
from lienworker.platforms.vendors.realauction.headless import columns_without_head, delimiter_of

# Where the winning bid is a rate of interest; in New Jersey it is either; elsewhere it is dollars.
RATE_STATES = frozenset({"FL", "AZ"})
_EITHER_STATES = frozenset({"NJ"})
_HIGHEST_RATE = 18.0
_COLUMN = {word.replace(" ", ""): name for name, words in HEADS.items() for word in words.split("|")}
_ENOUGH = 3
_TITLE_LINES = 10
_NOISE = re.compile(r"[^a-z0-9]+")


def column_of(head: str) -> str | None:
    """What a column holds, by its head; None where the head is unknown."""
    return _COLUMN.get(_NOISE.sub("", head.lower()))


def looks_like_auction_file(page: Page) -> bool:
    """A head of known columns: an id, and a face or an owner; or columns that need no head."""
    start = page.text[:4096].lstrip("\ufeff \r\n")
    if start[:1] in "<{[":
        return False
    return _head_of(start.splitlines()) is not None or columns_without_head(page.text) is not None


def _head_of(lines: list[str]) -> int | None:
    """The line of the head; a title may stand above it."""
    return next((n for n, line in enumerate(lines[:_TITLE_LINES]) if _is_head(line)), None)


def _is_head(line: str) -> bool:
    names = [column_of(cell.strip(' "')) for cell in line.split(delimiter_of(line))]
    known = {name for name in names if name}
    has_id = bool(known & {"parcel_id", "folio_parts"}) or {"block", "lot"} <= known
    return len(known) >= _ENOUGH and has_id and bool(known & {"face", "owner"})


def read_auction_file(text: str, state: str | None = None) -> Iterator[Record]:
    """One record a row; rows without an id are left out."""
    lines = text.lstrip("\ufeff").splitlines()
    start = _head_of(lines)
    columns = columns_without_head(text) if start is None else None
    if start is None:
        start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    rows = csv.reader(lines[start:], delimiter=delimiter_of(lines[start]) if lines else ",")
    heads = (
        [f"column {n}" for n in range(1, len(columns) + 1)] if columns else [cell.strip() for cell in next(rows, [])]
    )
    columns = columns or _columns(heads)
    for row in rows:
        record = clean.compact(_record(heads, columns, [cell.strip() for cell in row], state))
        if record.get("parcel_id"):
            record["fields"]["row"] = rows.dialect.delimiter.join(row)
            yield record


def _columns(heads: list[str]) -> list[str | None]:
    """What each column holds. A bare `Name` in a file of bids is the bidder's, elsewhere the owner's."""
    columns = [column_of(head) for head in heads]
    if not {"bid", "rate", "premium", "bidder_id", "holder"} & set(columns):
        return columns
    named = None if "holder" in columns else "holder"
    return [named if head.lower() == "name" else column for head, column in zip(heads, columns, strict=True)]


def _record(heads: list[str], columns: list[str | None], row: list[str], state: str | None) -> Record:
    cells: dict[str, list[str]] = {}
    for name, cell in zip(columns, row, strict=False):
        if name and cell:
            cells.setdefault(name, []).append(cell)
    owners = [name for cell in cells.get("owner", ()) if (name := clean.text(cell))]
    return {
        "parcel_id": clean.identifier(_first(cells, "parcel_id")) or _by_parts(cells),
        "alternate_ids": {
            "advertising_number": clean.identifier(_first(cells, "adv_number")),
            "alternate": clean.identifier(_first(cells, "alternate")),
            "account": clean.identifier(_first(cells, "tax_account")),
            "item": clean.identifier(_first(cells, "item")),
        },
        "owner_name": owners[0] if owners else None,
        "owner_names": owners,
        "owner_address": clean.joined(cells.get("owner_address", ()), " "),
        "property_address": clean.joined(cells.get("situs", ()), " "),
        "legal_description": clean.joined(cells.get("legal", ()), " "),
        "assessed_value": clean.money(_first(cells, "assessed")),
        "market_value": clean.money(_first(cells, "market")),
        "liens": [_lien(cells, state)],
        "fields": {head: cell for head, cell in zip(_distinct(heads), row, strict=False) if cell},
    }


def _by_parts(cells: dict[str, list[str]]) -> str | None:
    """New Jersey has no number for a parcel but its block, its lot and its qualifier; some folios come in parts."""
    if "folio_parts" in cells:
        return " ".join(cells["folio_parts"])
    if not {"block", "lot"} <= cells.keys():
        return None
    return "/".join(cells[name][0] for name in ("block", "lot", "qual") if name in cells)


def _lien(cells: dict[str, list[str]], state: str | None) -> Record:
    certificate = clean.identifier(_first(cells, "certificate_number"))
    holder = clean.known(_first(cells, "holder"))
    sold = bool(holder or "bidder_id" in cells)
    rate, dollars = _bid(_first(cells, "bid"), (state or "").upper())
    if rate is None:
        rate = clean.number(_first(cells, "rate"))
    if dollars is None:
        dollars = clean.money(_first(cells, "premium"))
    return {
        "certificate_number": certificate if certificate != "0" else None,
        "tax_year": clean.year(_first(cells, "tax_year")),
        "face_amount": clean.money(_first(cells, "face")),
        # A zero that nobody bid is a column that waits for its sale.
        "interest_rate": rate if rate or sold else None,
        "winning_bid": dollars if dollars or sold else None,
        "holder": holder,
        "sale_date": clean.iso_date(_first(cells, "sale_date")),
        "status": clean.known(_first(cells, "status")),
    }


def _bid(cell: str | None, state: str) -> tuple[float | None, float | None]:
    """The rate and the dollars of a bid. Its own sign decides, then its state; where neither does, it is left out."""
    bid = clean.number(cell)
    if bid is None or cell is None:
        return None, None
    if "%" in cell or ("$" not in cell and state in RATE_STATES):
        return bid, None
    if "$" in cell or (state and (state not in _EITHER_STATES or bid > _HIGHEST_RATE)):
        return None, bid
    return None, None


def _first(cells: dict[str, list[str]], name: str) -> str | None:
    return cells[name][0] if name in cells else None


def _distinct(heads: Iterable[str]) -> Iterator[str]:
    """Heads come twice (`OWNER NAME|OWNER NAME`); the second is numbered."""
    times: dict[str, int] = {}
    for head in heads:
        times[head] = times.get(head, 0) + 1
        yield head if times[head] == 1 else f"{head} ({times[head]})"
