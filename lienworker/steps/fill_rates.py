"""What is usual on the pages of a county, and whether the newest ones are still like that. Decisions only, no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lienworker.store.history import History

#: Pages that are compared with those before them.
WINDOW = 20
#: Pages that must have come before them: fewer say nothing about what is usual.
ENOUGH = 20
#: A field that was there in this share of pages belongs to the page.
USUAL = 0.95
#: One that was in every page and is there in no more than this share of the window has collapsed.
COLLAPSED = 0.5
#: One that was missing now and then (no house, no year in which it was built) has to fall further: of a field that two
#: in three pages have, nearly all of twenty may have it by chance, and then only half of the next twenty.
_SURELY_COLLAPSED = 0.25
#: Pages after which the past counts half: sites change slowly, too, and that is no alarm.
_LONG = 2000
# Bits of what is stored: add new names at the end.
WATCHED = (
    "parcel_id", "owner_name", "owner_address", "property_address", "city", "zip", "legal_description", "property_use",
    "acres", "land_area_sqft", "building_area_sqft", "year_built", "bedrooms", "bathrooms", "homestead", "land_value",
    "building_value", "market_value", "assessed_value", "taxable_value", "values", "tax_year", "tax_amount",
    "total_due", "tax_status", "taxes", "liens", "sales", "auction", "parcels",
)  # fmt: skip
_BIT = {name: 1 << n for n, name in enumerate(WATCHED)}


def mask_of(record: Mapping[str, Any]) -> int:
    return sum(_BIT[name] for name in record if name in _BIT)


def lost_fields(history: History) -> list[str]:
    """The usual fields that have collapsed; empty where all is well or too little is known."""
    if history.pages < ENOUGH or len(history.recent) < WINDOW:
        return []
    usual = [name for name in WATCHED if history.counts.get(name, 0) >= USUAL * history.pages]
    return [name for name in usual if _share_now(history, name) <= _most_of_a_collapsed(history, name)]


def _share_now(history: History, name: str) -> float:
    return sum(bool(mask & _BIT[name]) for mask in history.recent) / len(history.recent)


def _most_of_a_collapsed(history: History, name: str) -> float:
    return COLLAPSED if history.counts[name] >= history.pages else _SURELY_COLLAPSED


def take_in(history: History, masks: Sequence[int]) -> None:
    """Newer pages into the window; what falls out of it becomes the past."""
    history.recent += masks
    old, history.recent = history.recent[:-WINDOW], history.recent[-WINDOW:]
    for mask in old:
        history.pages += 1
        for name, bit in _BIT.items():
            if mask & bit:
                history.counts[name] = history.counts.get(name, 0) + 1
    if history.pages > _LONG:
        history.pages //= 2
        history.counts = {name: n // 2 for name, n in history.counts.items()}


def rates(history: History) -> list[dict[str, Any]]:
    """How much of the newest pages has each field, and how much of those before them had; most lost first."""
    found = []
    for name, bit in _BIT.items():
        now = sum(bool(mask & bit) for mask in history.recent) / len(history.recent) if history.recent else None
        before = history.counts.get(name, 0) / history.pages if history.pages else None
        if now or before:
            found.append({"field": name, "now": now, "before": before})
    return sorted(found, key=lambda rate: (rate["now"] or 0.0) - (rate["before"] or 0.0))


def in_words(history: History, lost: list[str]) -> str:
    empty = sum(mask == 0 for mask in history.recent)
    if empty >= COLLAPSED * len(history.recent):
        return f"{empty} of its last {len(history.recent)} pages gave nothing"
    share = max(_share_now(history, name) for name in lost)
    names = ", ".join(lost[:6]) + (f" and {len(lost) - 6} more" if len(lost) > 6 else "")
    return f"{names} came with nearly every page before, and with {share:.0%} of the last {len(history.recent)}"
