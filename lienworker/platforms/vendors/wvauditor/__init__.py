"""West Virginia State Auditor: the list of lands for sale, and the search of lands certified to the state."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.rules import Path, RulePlatform

_HANDOUT = Path("//table[contains(@id, 'WebHandoutGV')]")
_CERTIFIED = Path("//table[contains(@id, 'gvCTSSearchResults')]")
_HEAD = Path(".//tr[th]")
_ROWS = Path(".//tr[td]")
_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}")
_CERTIFICATE = re.compile(r"\d{4}-[A-Z]+-\d+")
_PARCEL_PARTS = ("district", "map", "parcel", "sub parcel", "sub sub parcel")
Cells = dict[str, tuple[str, ...]]


class WvAuditorPlatform(RulePlatform):
    """Both pages are lists; neither has a parcel of its own."""

    name = "wvauditor"
    version = "1"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(r"//[\w.]*wvsao\.gov/", re.I)

    def recognises(self, page: Page) -> bool:
        return "FixedWidthContent_WebHandoutGV" in page.text or "FixedWidthContent_gvCTSSearchResults" in page.text

    def parse(self, page: Page, target: Target) -> Record:
        root = page.selector.root
        items = _items(_HANDOUT(root), _for_sale) + _items(_CERTIFIED(root), _certified)
        return self.checked({"parcels": items})


def _items(tables: list[Any], read: Callable[[Cells], Record]) -> list[Record]:
    items: list[Record] = []
    for table in tables:
        heads = [text_of(cell).lower() for row in _HEAD(table)[:1] for cell in cells_of(row)]
        for row in _ROWS(table):
            # The row of page numbers below a grid has fewer cells.
            cells = cells_of(row)
            if len(cells) == len(heads):
                items.append(read({head: lines_of(cell) for head, cell in zip(heads, cells, strict=True)}))
    return [item for item in map(clean.compact, items) if item.get("liens")]


def _one(cells: Cells, name: str) -> str | None:
    return clean.text(" ".join(cells.get(name, ())))


def _fields(cells: Cells) -> dict[str, str]:
    return {name.title(): " ".join(lines) for name, lines in cells.items() if name and lines}


def _for_sale(cells: Cells) -> Record:
    """WV numbers a parcel within its map and its district, so all its parts make the id."""
    parts = [_one(cells, name) for name in _PARCEL_PARTS]
    certificate = _one(cells, "certificate of sale")
    return {
        "parcel_id": "/".join(part for part in parts if part) if parts[2] else None,
        "alternate_ids": {"ticket": _one(cells, "ticket #"), "map": parts[1]},
        "owner_name": _one(cells, "assessed name"),
        "legal_description": _one(cells, "legal description"),
        "liens": [{"certificate_number": certificate}],
        "auction": {"opening_bid": clean.money(_one(cells, "minimum bid")), "type": "Land Sale"},
        "fields": _fields(cells),
    }


def _certified(cells: Cells) -> Record:
    """The first cell has the county above the certificate; the last has the status above the next sale."""
    certificate = _CERTIFICATE.search(_one(cells, "cert number") or "")
    state = cells.get("redemption date", ())
    status = state[0] if state else None
    found = _DATE.search(status or "")
    return {
        "alternate_ids": {"ticket": _one(cells, "ticket number")},
        "owner_name": next(iter(cells.get("taxpayer name", ())), None),
        "owner_names": list(cells.get("taxpayer name", ())),
        "legal_description": _one(cells, "description"),
        "liens": [
            {
                "certificate_number": certificate[0] if certificate else None,
                "holder": _one(cells, "buyer name"),
                "status": status,
                "redeemed_on": clean.iso_date(found[0]) if found and "REDEEMED" in (status or "") else None,
            }
        ],
        "auction": _next_sale(state[1:]),
        "fields": _fields(cells),
    }


def _next_sale(lines: tuple[str, ...]) -> Record:
    found = next((date for line in lines if (date := _DATE.search(line))), None)
    return {"status": " ".join(lines) or None, "date": clean.iso_date(found[0]) if found else None}


PLATFORM = WvAuditorPlatform()
