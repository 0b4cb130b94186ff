"""Tables with a head: each row below it is one thing (a sale, a bill, a year), each column one of its facts.

Also the small tables where a head of labels stands above a single row of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import LONGEST_REMEMBERED
from lienworker.platforms.reading.labels import MAX_LABEL, is_known, normalise
from lienworker.platforms.reading.pairs import Pair
from lienworker.platforms.reading.tokens import CELLS, Element, Token

_NAME_HEADS = frozenset({"field", "attribute", "name", "label", "item", "description", "characteristic", "category"})
_VALUE_HEADS = frozenset({"value", "values", "detail", "details", "information", "data"})


@dataclass
class Grid:
    """A head and its rows, all of the same width, with the tokens that they consumed."""

    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    title: str = ""
    """What stands above it, where the reader knows."""
    about: str = ""
    """What its rows are (`sales`, `taxes`, …), where the reader knows; else the head tells."""
    facts: Any = None
    """What `gridfacts` made of it, worked out once."""

    @cached_property
    def words(self) -> list[str]:
        """The head, as it is looked up."""
        return [normalise(head[:LONGEST_REMEMBERED]) for head in self.head]

    def items(self) -> list[dict[str, str]]:
        """The rows, each by the words of the head."""
        return [dict(zip(self.words, row, strict=True)) for row in self.rows]

    def pairs(self) -> list[Pair]:
        """Head above values, where there is only one row."""
        if len(self.rows) != 1:
            return []
        cells = _cells_of_texts(self.tokens)
        return [
            Pair(_own_label(label, cells), _lines(value, cells))
            for label, value in zip(self.head, self.rows[0], strict=True)
            if label and value
        ]


def _cells_of_texts(tokens: list[Token]) -> dict[str, list[Token]]:
    """The tokens of cells that have more than one, by the whole text of the cell."""
    cells: dict[Element, list[Token]] = {}
    for token in tokens:
        cells.setdefault(token.cell, []).append(token)
    return {" ".join([token.text for token in inside]): inside for inside in cells.values() if len(inside) > 1}


def _own_label(label: str, cells: dict[str, list[Token]]) -> str:
    """A label without the link beside it (`Mailing Address Change`)."""
    first = cells[label][0].text if label in cells else label
    return first if not is_known(label) and is_known(first) else label


def _lines(value: str, cells: dict[str, list[Token]]) -> tuple[str, ...]:
    lines: dict[int, list[str]] = {}
    for token in cells.get(value, ()):
        lines.setdefault(token.line, []).append(token.text)
    return tuple(map(" ".join, lines.values())) or (value,)


@dataclass(slots=True)
class _Row:
    cells: list[str]
    filled: list[str]
    """The cells that say something."""
    tokens: list[Token]
    headers: int
    """How many of the filled cells are `th`."""
    barred: bool
    """Whether one of them waits to be filled in."""


def grids_of(tokens: list[Token]) -> tuple[list[Grid], list[Token]]:
    """The grids, and the tokens that belong to none of them."""
    grids = [grid for rows in _tables(tokens) for grid in _grids(rows)]
    used = {id(token) for grid in grids for token in grid.tokens}
    for grid in grids:
        # The first of its tokens stays as a barrier, or the texts before and after the grid would look like neighbours.
        used.discard(id(grid.tokens[0]))
        grid.tokens[0].barrier = True
    return grids, _without(used, tokens) if used else tokens


def _without(used: set[int], tokens: list[Token]) -> list[Token]:
    """The other tokens; each shares with the one that is before it now what it and those between them share."""
    left: list[Token] = []
    lowest = None
    for token in tokens:
        if id(token) in used:
            lowest = token.shared if lowest is None else min(lowest, token.shared)
            continue
        if lowest is not None:
            token.shared, lowest = min(token.shared, lowest), None
        left.append(token)
    return left


def _tables(tokens: list[Token]) -> Iterator[list[_Row]]:
    """The rows of each table, from the tokens in them; cells that hold tables of their own count as empty."""
    cells: dict[Element, list[Token]] = {}
    for token in tokens:
        if token.cell is not None:
            if token.cell in cells:
                cells[token.cell].append(token)
            else:
                cells[token.cell] = [token]
    tables: dict[Element, list[Element]] = {}
    known: dict[Element, Element | None] = {}
    for row in dict.fromkeys([cell.getparent() for cell in cells]):
        if row.tag == "tr" and (table := _table_of(row, known)) is not None:
            tables.setdefault(table, []).append(row)
    for rows in tables.values():
        if len(rows) > 1:  # a head alone is none
            yield [_row(row, cells) for row in rows]


def _table_of(row: Element, known: dict[Element, Element | None]) -> Element | None:
    """The table around a row. What was climbed on the way is noted in `known`: others climb the same way."""
    climbed = []
    above = row.getparent()
    while above is not None and above.tag != "table" and above not in known:
        climbed.append(above)
        above = above.getparent()
    table = known.get(above, above)
    known.update(dict.fromkeys(climbed, table))
    return table


def _row(row: Element, cells: dict[Element, list[Token]]) -> _Row:
    texts: list[str] = []
    used: list[Token] = []
    headers = 0
    for cell in row:
        if (tag := cell.tag) not in CELLS:
            continue
        if found := cells.get(cell):
            used += found
            headers += tag == "th"
            texts.append(found[0].text if len(found) == 1 else " ".join([token.text for token in found]))
        else:
            texts.append("")
        if said := cell.get("colspan"):
            texts += [""] * (min(clean.integer(said) or 1, 50) - 1)
    return _Row(texts, list(filter(None, texts)), used, headers, any(token.barrier for token in used))


def _grids(rows: list[_Row]) -> Iterator[Grid]:
    grid: Grid | None = None
    for row in rows:
        if _is_head(row) and not (grid and not grid.rows and not _all_known(row)):
            if grid and grid.rows:
                yield grid
            grid = Grid(row.cells, tokens=row.tokens)
        elif grid and _fits(grid, row):
            grid.rows.append(row.cells + [""] * (len(grid.head) - len(row.cells)))
            grid.tokens += row.tokens
        elif row.filled:
            if grid and grid.rows:
                yield grid
            grid = None
    if grid and grid.rows:
        yield grid


def _is_head(row: _Row) -> bool:
    filled = row.filled
    if len(filled) == 2 and filled[1].lower() in _VALUE_HEADS and filled[0].lower() in _NAME_HEADS:
        return False  # what stands below it are labels and their values
    if row.headers > 2 and sum(map(is_known, filled[:3])) == 3:
        return True  # whatever stands to the right of the head ("Date: …")
    # A `th` beside a `td` names that one cell, not a column.
    if len(filled) < 2 or row.barred or row.headers not in (0, len(filled)) or any(map(_no_label, filled)):
        return False
    if row.headers:
        return True
    known, years = sum(map(is_known, filled)), sum(map(_is_year_head, filled))
    if years > 1 or not row.cells[0]:
        known += years
    # `MILLBROOK, XX 00902 | Tax District | County` is a value among its neighbours' labels.
    return known >= 2 and known * 5 >= len(filled) * 3 and not any(map(_is_value, filled))


def _fits(grid: Grid, row: _Row) -> bool:
    """A row of the grid has its width, or misses only what a head's wide cells took."""
    if not row.filled or len(row.cells) > len(grid.head) or row.barred:
        return False
    return len(row.cells) == len(grid.head) or (len(row.cells) >= 2 and len(grid.head) - len(row.cells) <= 1)


def _all_known(row: _Row) -> bool:
    return all(map(_heads_column, row.filled))


def _heads_column(text: str) -> bool:
    return is_known(text) or _is_year_head(text)


def _is_value(text: str) -> bool:
    return any(map(str.isdigit, text)) and not _heads_column(text)


def _is_year_head(text: str) -> bool:
    """`2023`, `2023 Certified Values`: a column for a year."""
    return len(text) <= 30 and clean.year(text) is not None


def _no_label(text: str) -> bool:
    """A text with a colon names what follows it in the row; a long or numeric one names nothing."""
    if text[-1] == ":" or len(text) > MAX_LABEL:
        return True
    if text[0].isalpha() and text[0] not in "Uu":  # `US$5` is an amount
        return False
    return clean.money(text) is not None and clean.year(text) is None
