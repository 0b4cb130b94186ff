"""`fields`: every label and value as shown, also those that no canonical field takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lienworker.platforms.reading.gridfacts import facts_of, is_list_of_parcels
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.pairs import Pair

# A page that has more pairs than this is a list or a trap; the canonical fields are not cut.
MAX_FIELDS = 500


def fields_of(pairs: Iterable[Pair], grids: Iterable[Grid] = ()) -> dict[str, str]:
    """A label that comes again with another value gets a number."""
    fields: dict[str, str] = {}
    again: dict[str, dict[str, None]] = {}
    for label, value in _shown(pairs, grids):
        if len(fields) >= MAX_FIELDS:
            break
        if label not in fields:
            fields[label] = value
        elif fields[label] != value and value not in (others := again.setdefault(label, {})):
            others[value] = None
            fields[f"{label} ({len(others) + 1})"] = value
    return fields


def _shown(pairs: Iterable[Pair], grids: Iterable[Grid]) -> Iterator[tuple[str, str]]:
    named = [(pair.label, pair.value) for pair in pairs]
    telling = (grid for grid in grids if len(grid.rows) > 1 and not is_list_of_parcels(grid) and not facts_of(grid))
    return chain(named, chain.from_iterable(map(_cells, telling)))


def _cells(grid: Grid) -> Iterator[tuple[str, str]]:
    """The cells of a grid that is about nothing known, named by its row and its column."""
    for row in grid.rows:
        for head, cell in zip(grid.head[1:], row[1:], strict=True):
            if head and cell:
                yield (f"{row[0]} / {head}" if row[0] else head), cell
