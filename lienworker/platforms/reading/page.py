"""A page read as a person reads it: its pairs and its grids, worked out once and kept with the page."""

from __future__ import annotations

from dataclasses import dataclass

from lienworker.platforms.core.base import Page
from lienworker.platforms.reading.formats import json_reading, plain_reading
from lienworker.platforms.reading.gridfacts import facts_of, is_list_of_parcels, said_of_parcel
from lienworker.platforms.reading.grids import Grid, grids_of
from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, without_year
from lienworker.platforms.reading.pairs import Pair, named_by_id, pairs_of
from lienworker.platforms.reading.tokens import tokens_of


@dataclass(frozen=True)
class Reading:
    """All labelled values of a page."""

    pairs: list[Pair]
    grids: list[Grid]
    words: int
    """How many texts the page shows at all."""


def read(page: Page) -> Reading:
    return page.memo("reading", lambda: _read(page))


def shows_parcel(page: Page) -> bool:
    """A parcel id and several labelled values, or a list of parcels: whatever else is on it, a page of parcels."""
    reading = read(page)
    if any(map(is_list_of_parcels, reading.grids)):
        return True
    names = {found[0] for grid in reading.grids if (found := facts_of(grid)) and found[1]}
    for pair in reading.pairs:
        word = without_year(pair.label)[0]
        if word in ID_RANK and any(map(str.isdigit, pair.value)):
            names.add("parcel_id")
        elif word in FIELD_OF:
            names.add(FIELD_OF[word])
    return "parcel_id" in names and len(names) >= 4


def _read(page: Page) -> Reading:
    if page.is_json:
        pairs, grids = json_reading(page.json())
        return Reading(pairs, grids, len(pairs))
    if "<" not in page.text[:2000]:
        pairs, grids = plain_reading(page.text)
        return Reading(pairs, grids, len(pairs))
    tokens = tokens_of(page.selector)
    grids, loose = grids_of(tokens)
    pairs = pairs_of(loose)
    pairs += named_by_id(tokens, pairs)
    for grid in grids:
        pairs += said_of_parcel(grid)
    return Reading(pairs, grids, len(tokens))
